"""Parts of ratings, by chance: what is held out, folds, and who is asked about.

Only raw 64-bit words of a stream decide, so the same seed gives the same parts on every machine and
with every version of NumPy. All parts keep the ids and the shape of the whole.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.data.ratings import Ratings
from goodfence.errors import GoodfenceWarning, SettingError, require
from goodfence.rng import RNG, Streams

DEFAULT_FRACTION = 0.2


def holdout(
    ratings: Ratings,
    *,
    fraction: float | None = None,
    per_user: int | None = None,
    rng: RNG = None,
) -> tuple[Ratings, Ratings]:
    """Hold ratings out at random, and return the rest and what was held out (train, test).

    Parameters
    ----------
    fraction
        The part of all ratings that is held out, between 0 and 1, rounded to whole ratings; 0.2
        where neither `fraction` nor `per_user` is given.
    per_user
        Instead: how many ratings of each user are held out. Who has no more than that keeps them
        all, and a warning says how many such users there are.
    rng
        Where chance comes from.

    Examples
    --------
    >>> from scipy import sparse
    >>> whole = Ratings(sparse.csr_array(np.ones((4, 5))), range(4), range(5), scale=(1, 5))
    >>> train, test = holdout(whole, fraction=0.2, rng=7)
    >>> train.n_ratings, test.n_ratings, test.shape
    (16, 4, (4, 5))
    >>> train, test = holdout(whole, per_user=2, rng=7)
    >>> np.diff(test.csr.indptr).tolist()
    [2, 2, 2, 2]
    """
    if fraction is not None and per_user is not None:
        raise SettingError("fraction and per_user must not both be given; leave one out")
    words = Streams(rng).words(ratings.n_ratings)
    held = _per_user(ratings, per_user, words) if per_user is not None else _share(fraction, words)
    return _part(ratings, ~held), _part(ratings, held)


def folds(ratings: Ratings, *, n: int = 5, rng: RNG = None) -> Iterator[tuple[Ratings, Ratings]]:
    """Return `n` pairs (train, test): every rating is in exactly one of the test parts.

    The sizes of the test parts differ by at most one. The pairs are made one at a time, as they are
    asked for.

    Examples
    --------
    >>> from scipy import sparse
    >>> whole = Ratings(sparse.csr_array(np.ones((4, 5))), range(4), range(5), scale=(1, 5))
    >>> [test.n_ratings for train, test in folds(whole, n=3, rng=7)]
    [7, 7, 6]
    """
    require(2 <= n <= ratings.n_ratings, "n", "at least 2 and at most the number of ratings", n)
    fold = np.empty(ratings.n_ratings, dtype=np.int64)
    fold[Streams(rng).order(ratings.n_ratings)] = np.arange(ratings.n_ratings) % n
    return ((_part(ratings, fold != turn), _part(ratings, fold == turn)) for turn in range(n))


def sample_targets(
    ratings: Ratings, n: int, *, rng: RNG = None, more_than: int = 0
) -> npt.NDArray[Any]:
    """Return the ids of `n` different users who have more than `more_than` ratings, at random.

    Fewer such users than `n`: all of them. The order is that of the draw, so that with one seed the
    first hundred of two hundred are the hundred. For items, ask with `ratings.transposed`.

    Examples
    --------
    >>> from scipy import sparse
    >>> whole = Ratings(sparse.csr_array(np.tri(5)), list("abcde"), range(5), scale=(1, 5))
    >>> sorted(sample_targets(whole, 9, more_than=3, rng=7))
    ['d', 'e']
    """
    require(n >= 1, "n", "a positive integer", n)
    require(more_than >= 0, "more_than", "0 or more", more_than)
    order = Streams(rng).order(ratings.shape[0])
    eligible = np.diff(ratings.csr.indptr) > more_than
    targets: npt.NDArray[Any] = ratings.users[order[eligible[order]][:n]]
    return targets


def _share(fraction: float | None, words: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    share = DEFAULT_FRACTION if fraction is None else fraction
    require(0 < share < 1, "fraction", "between 0 and 1", fraction)
    held = np.zeros(len(words), dtype=np.bool_)
    held[np.argsort(words, kind="stable")[: round(share * len(words))]] = True
    return held


def _per_user(
    ratings: Ratings, per_user: int, words: npt.NDArray[np.uint64]
) -> npt.NDArray[np.bool_]:
    require(per_user >= 1, "per_user", "a positive integer", per_user)
    indptr = ratings.csr.indptr
    counts = np.diff(indptr)
    n_short = int(((counts > 0) & (counts <= per_user)).sum())
    if n_short:
        warnings.warn(
            f"{n_short:,} users have no more than {per_user:,} ratings; none of theirs is held out",
            GoodfenceWarning,
            stacklevel=3,
        )
    rows = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((words, rows))  # within each user, by word
    rank = np.arange(len(rows)) - indptr[rows]
    held = np.zeros(len(rows), dtype=np.bool_)
    held[order] = (rank < per_user) & (counts > per_user)[rows]
    return held


def _part(ratings: Ratings, inside: npt.NDArray[np.bool_]) -> Ratings:
    """Return the ratings that are `inside`; a stored 0 stays a rating."""
    csr = ratings.csr
    ends = np.concatenate(([0], np.cumsum(inside)))[csr.indptr]
    parts = (csr.data[inside], csr.indices[inside], ends)
    return ratings.replaced(sparse.csr_array(parts, shape=csr.shape))
