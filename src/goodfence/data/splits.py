"""Parts of ratings, by chance or by time: what is held out, folds, and who is asked about.

Only raw 64-bit words of a stream decide, so the same seed gives the same parts on every machine and
with every version of NumPy. All parts keep the ids and the shape of all ratings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.arrays import Flags, Integers, row_numbers
from goodfence.data.matrix import cells_inside
from goodfence.data.ratings import Ratings
from goodfence.errors import DataError, SettingError, require, warn
from goodfence.rng import RNG, Streams
from goodfence.settings import Count, Fraction, at_least, checked, integer

DEFAULT_FRACTION = 0.2
SplitBy: TypeAlias = Literal["chance", "time"]


@checked
def holdout(
    ratings: Ratings,
    *,
    fraction: Fraction | None = None,
    per_user: Count | None = None,
    by: SplitBy = "chance",
    rng: RNG = None,
) -> tuple[Ratings, Ratings]:
    """Hold ratings or events out, and return the rest and what was held out (train, test).

    Parameters
    ----------
    fraction : float, optional
        The part of all ratings that is held out, between 0 and 1, rounded to an integer number; 0.2 where neither
        `fraction` nor `per_user` is given.
    per_user : int, optional
        Instead: how many ratings of each user are held out. Who has no more than that keeps them all, and a warning
        says how many such users there are.
    by : {"chance", "time"}, default "chance"
        What decides: chance, or time, by which the last ones of each user are held out (`per_user=1` leaves one
        out); of those of the same time, the later columns. By time `fraction` is of each user's own, rounded, one at
        least; who has only one keeps it.
    rng : int, sequence of int, Generator or None, default None
        Where chance comes from; None takes fresh entropy. By time nothing is drawn.

    Examples
    --------
    >>> from scipy import sparse
    >>> ratings = Ratings(sparse.csr_array(np.ones((4, 5))), range(4), range(5), scale=(1, 5))
    >>> train, test = holdout(ratings, fraction=0.2, rng=7)
    >>> train.n_ratings, test.n_ratings, test.shape
    (16, 4, (4, 5))
    """
    if fraction is not None and per_user is not None:
        raise SettingError("fraction and per_user must not both be given; leave one out")
    share = DEFAULT_FRACTION if fraction is None else fraction
    if by == "time":
        held = _latest(ratings, share, per_user)
    elif per_user is not None:
        words = Streams(rng).words(ratings.n_ratings)
        held = _first_ranks(ratings, words, _wanted(ratings, per_user))
    else:
        words = Streams(rng).words(ratings.n_ratings)
        held = np.zeros(len(words), dtype=np.bool_)
        held[np.argsort(words, kind="stable")[: round(share * len(words))]] = True
    return subset(ratings, ~held), subset(ratings, held)


@checked
def folds(ratings: Ratings, *, n: int = 5, rng: RNG = None) -> Iterator[tuple[Ratings, Ratings]]:
    """Yield `n` pairs (train, test): every rating is in exactly one of the test parts.

    The sizes of the test parts differ by at most one. The pairs are made one at a time.

    Examples
    --------
    >>> from scipy import sparse
    >>> ratings = Ratings(sparse.csr_array(np.ones((4, 5))), range(4), range(5), scale=(1, 5))
    >>> [test.n_ratings for train, test in folds(ratings, n=3, rng=7)]
    [7, 7, 6]
    """
    n = integer(n, "n", least=2, most=max(2, ratings.n_ratings))
    require(n <= ratings.n_ratings, "n", "at most the number of ratings", n)
    fold = np.empty(ratings.n_ratings, dtype=np.int64)
    fold[Streams(rng).order(ratings.n_ratings)] = np.arange(ratings.n_ratings) % n
    return ((subset(ratings, fold != turn), subset(ratings, fold == turn)) for turn in range(n))


@checked
def sample_targets(
    ratings: Ratings, n: Count, *, rng: RNG = None, more_than: Annotated[int, at_least(0)] = 0
) -> npt.NDArray[Any]:
    """Return the ids of `n` different users who have more than `more_than` ratings, at random.

    Fewer such users than `n`: all of them. The order is that of the draw, so that with one seed the first hundred of
    two hundred are the hundred. For items, ask with `ratings.transposed`.
    """
    order = Streams(rng).order(ratings.shape[0])
    eligible = np.diff(ratings.csr.indptr) > more_than
    return np.asarray(ratings.users[order[eligible[order]][:n]])


def _latest(ratings: Ratings, share: float, per_user: int | None) -> Flags:
    """Return which ratings are among the last of their user: a share of all, or so many."""
    if ratings.times is None:
        raise DataError(
            "ratings must have times to be split by time, and have none; name their column with time=, or "
            "split by chance"
        )
    if per_user is None:
        counts = np.diff(ratings.csr.indptr)
        n_held = np.clip(np.rint(share * counts), 1, np.maximum(counts - 1, 0)).astype(np.int64)
    else:
        n_held = _wanted(ratings, per_user)
    # Later first, and of the same time the later column first, which comes later in the order of the cells.
    order = np.argsort(ratings.times, kind="stable")[::-1]
    later = np.empty_like(order)
    later[order] = np.arange(len(order))
    return _first_ranks(ratings, later, n_held)


def _wanted(ratings: Ratings, per_user: int) -> Integers:
    """Return how many ratings of each user are held out; none of those who have no more than `per_user`."""
    counts = np.diff(ratings.csr.indptr)
    n_short = int(((counts > 0) & (counts <= per_user)).sum())
    if n_short:
        warn(f"{n_short:,} users have no more than {per_user:,} ratings; none of theirs is held out")
    return np.where(counts > per_user, min(per_user, int(counts.max(initial=0))), 0)


def _first_ranks(ratings: Ratings, keys: npt.NDArray[Any], n_held: Integers) -> Flags:
    """Return which ratings have the `n_held` lowest keys of their user."""
    indptr = ratings.csr.indptr
    rows = row_numbers(indptr)
    order = np.lexsort((keys, rows))  # within each user, by key
    rank = np.arange(len(rows)) - indptr[rows]
    held = np.zeros(len(rows), dtype=np.bool_)
    held[order] = rank < n_held[rows]
    return held


def subset(ratings: Ratings, inside: Flags) -> Ratings:
    """Return the ratings that are `inside`; a stored 0 stays a rating."""
    times = None if ratings.times is None else ratings.times[inside]
    return ratings.replaced(cells_inside(ratings.csr, inside), times)


def core(ratings: Ratings, *, per_user: int, per_item: int) -> Ratings:
    """Return the part in which every user has `per_user` and every item `per_item` ratings or more.

    Leaving out an item may bring a user below the limit, so it is repeated until stable. The result is the largest
    such part, in whatever order users and items go.
    """
    per_user = integer(per_user, "per_user", least=1)
    per_item = integer(per_item, "per_item", least=1)
    n_users, n_items = ratings.shape
    rows, columns = row_numbers(ratings.csr.indptr), ratings.csr.indices
    while True:
        users = np.bincount(rows, minlength=n_users) >= per_user
        items = np.bincount(columns, minlength=n_items) >= per_item
        inside = users[rows] & items[columns]
        if inside.all():
            break
        rows, columns = rows[inside], columns[inside]
    if not users.any():
        raise DataError(f"no part of the ratings has {per_user:,} a user and {per_item:,} an item")
    inside = users[row_numbers(ratings.csr.indptr)] & items[ratings.csr.indices]
    kept, known = ratings.items[items], ratings.titles
    return ratings.replaced(
        ratings.csr[np.flatnonzero(users)][:, np.flatnonzero(items)],
        None if ratings.times is None else ratings.times[inside],
        users=ratings.users[users],
        items=kept,
        titles={item: known[item] for item in kept.tolist() if item in known},
        items_declared=False,
    )
