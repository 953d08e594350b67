"""Ratings that were never given: long-tailed as real ones, with planted groups of taste.

For scale and for tests with a known answer; no statement about users follows from them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from goodfence.arrays import Floats, Integers, Rows
from goodfence.data.columns import Feedback
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale, ScaleLike
from goodfence.errors import require
from goodfence.kernels.synthetic import Levels, Tastes, choose_items, rate_items
from goodfence.parallel import run
from goodfence.rng import RNG, Streams
from goodfence.settings import checked, integer

# What Douban and Netflix look like: the most rated item has three users in ten, popularity falls a
# little faster than Zipf says, and the spread of the logarithm of activity is about 1.25.
_TOP_SHARE = 0.28
_TAIL = 1.3
_ACTIVITY_SPREAD = 1.25
_OWN_SHARE = 0.5  # tries that go to the user's own group of items

# How a rating comes about, on a scale from 0 to 1: mean and spreads
_MEAN, _USER, _ITEM, _TASTE, _NOISE = 0.66, 0.10, 0.11, 0.12, 0.16
_MOST = 10**8  # users or items; more would not fit into any memory we know
_N_PARTS = 64  # pieces of work for the threads; the result does not depend on it

# the paths of the streams
_ACTIVITY, _USER_GROUP, _ITEM_GROUP, _COLUMN, _LEVELS, _CHOICE, _RATING = range(7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """What is planted: ratings of each user, popularity of each item (sums to 1), and their groups of taste."""

    counts: Integers
    weights: Floats
    user_groups: Integers
    item_groups: Integers
    n_groups: int


@checked
def synthetic(
    *, users: int, items: int, ratings: int, rng: RNG = None, scale: ScaleLike = (1, 5), feedback: Feedback = "explicit"
) -> Ratings:
    """Make up ratings, or events, with a long tail of items and of users, and groups of taste.

    Parameters
    ----------
    users, items, ratings : int
        How many of each, exactly. No cell is rated twice; an item of the far tail may have no rating, a user has at
        least one where there are enough.
    rng : int, sequence of int, Generator or None, default None
        Where chance comes from; None takes fresh entropy.
    scale : Scale or tuple of float, default (1, 5)
        What ratings can be given. Events have none.
    feedback : {"explicit", "implicit"}, default "explicit"
        Whether these are ratings or events: the same cells, each of them 1.

    Notes
    -----
    Activity is lognormal. Popularity follows Zipf and Mandelbrot, ``(rank + shift) ** -1.3``, with the shift for which
    the most popular item is rated by about three users in ten. About half of a user's choices falls on the items of
    the user's own group, by popularity within it, and the groups differ in what they like: `plan`.

    Examples
    --------
    >>> synthetic(users=200, items=300, ratings=4000, rng=7)
    Ratings(200 users x 300 items, 4,000 ratings, integers 1-5)
    >>> synthetic(users=200, items=300, ratings=4000, rng=7, feedback="implicit")
    Ratings(200 users x 300 items, 4,000 events)
    """
    stated = Scale.of(scale)
    streams = Streams(rng)
    planted = plan(users, items, ratings, streams)
    indptr = np.concatenate(([0], np.cumsum(planted.counts)))
    columns = _choices(planted, indptr, streams.key(_CHOICE))
    ids = np.arange(1, users + 1), np.arange(1, items + 1)
    values = np.ones(len(columns))
    if feedback == "explicit":
        levels = _levels(planted, indptr, columns, streams)
        values = stated.round(stated.lowest + levels * (stated.highest - stated.lowest))
    matrix = sparse.csr_array((values, columns, indptr), shape=(users, items))
    return Ratings(matrix, *ids, stated, feedback=feedback)


def plan(users: int, items: int, ratings: int, streams: Streams) -> Planted:
    """Return what `synthetic` plants with the same arguments."""
    for name, count in (("users", users), ("items", items)):
        integer(count, name, least=1, most=_MOST)
    integer(ratings, "ratings", least=1, most=10 * _MOST)
    require(ratings <= users * items, "ratings", "from 1 to users x items", ratings)
    n_groups = min(items, max(2, round(min(users, items) ** 0.5 / 8)))
    counts = _counts(_normals(streams, users, _ACTIVITY), ratings, items)
    by_rank = _popularity(counts, items, n_groups)
    ranks = streams.order(items, _COLUMN)
    # Each run of n_groups ranks holds every group once, in random order: the groups are alike in popularity.
    rounds = np.arange(items) // n_groups
    order = np.lexsort((streams.words(items, _ITEM_GROUP), rounds))
    group_by_rank = np.empty(items, dtype=np.int64)
    group_by_rank[order] = np.arange(items) % n_groups
    return Planted(
        counts=counts,
        weights=by_rank[ranks],
        user_groups=(streams.words(users, _USER_GROUP) % np.uint64(n_groups)).astype(np.int64),
        item_groups=group_by_rank[ranks],
        n_groups=n_groups,
    )


def _counts(normals: Floats, ratings: int, items: int) -> Integers:
    """Return lognormal numbers of ratings that sum to `ratings`, none above `items`."""
    activity = np.exp(_ACTIVITY_SPREAD * normals)
    least = 1.0 if ratings >= len(activity) else 0.0
    low, high = 0.0, items / activity.min()
    for _ in range(200):  # halving: the sum grows with the factor
        factor = (low + high) / 2
        below = np.clip(factor * activity, least, items).sum() < ratings
        low, high = (factor, high) if below else (low, factor)
    wanted = np.clip(low * activity, least, items)
    counts = np.floor(wanted).astype(np.int64)
    remainders = np.where(counts < items, wanted - counts, -1.0)
    counts[np.argsort(-remainders, kind="stable")[: ratings - int(counts.sum())]] += 1
    return counts


def _popularity(counts: Integers, items: int, n_groups: int) -> Floats:
    """Return the weights by rank; the first item is rated by `_TOP_SHARE` of the users."""
    ranks = np.arange(1, items + 1, dtype=np.float64)

    def weights(shift: float) -> Floats:
        raw: Floats = np.power(ranks + shift, -_TAIL)
        return raw / float(raw.sum())

    def share(shift: float) -> float:
        first = float(weights(shift)[0])
        elsewhere = -np.expm1(-counts * (1 - _OWN_SHARE) * first).mean()
        at_home = -np.expm1(-counts * (1 - _OWN_SHARE + _OWN_SHARE * n_groups) * first).mean()
        return float(at_home / n_groups + elsewhere * (1 - 1 / n_groups))

    low, high = -10.0, float(np.log(100.0 * items))
    for _ in range(40):  # halving, on the logarithm of the shift: the share falls with it
        middle = (low + high) / 2
        low, high = (middle, high) if share(float(np.exp(middle))) > _TOP_SHARE else (low, middle)
    return weights(float(np.exp(low)))


def _choices(planted: Planted, indptr: Integers, key: int) -> Rows:
    """Return which items the users rate, row after row, ascending within each."""
    by_group = np.argsort(planted.item_groups, kind="stable").astype(np.int32)
    starts = np.searchsorted(planted.item_groups[by_group], np.arange(planted.n_groups + 1))
    cumulative = np.concatenate(([0.0], np.cumsum(planted.weights[by_group])))
    columns = np.empty(int(indptr[-1]), dtype=np.int32)
    tastes = Tastes(planted.user_groups, starts, cumulative, by_group, _OWN_SHARE)
    stream = np.uint64(key)
    _in_parts(indptr, lambda first, last: choose_items(first, last, indptr, tastes, stream, columns))
    return columns


def _levels(planted: Planted, indptr: Integers, columns: Rows, streams: Streams) -> Floats:
    """Return how much the users like what they rate, from 0 to 1."""
    n_users, n_items, n_groups = len(planted.counts), len(planted.weights), planted.n_groups
    normals = _normals(streams, n_users + n_items + n_groups**2, _LEVELS)
    levels = Levels(
        _MEAN + _USER * normals[:n_users],
        planted.user_groups,
        _ITEM * normals[n_users : n_users + n_items],
        planted.item_groups,
        _TASTE * normals[n_users + n_items :].reshape(n_groups, n_groups),
        _NOISE,
    )
    key, out = np.uint64(streams.key(_RATING)), np.empty(len(columns))
    _in_parts(indptr, lambda first, last: rate_items(first, last, indptr, columns, levels, key, out))
    return out


def _in_parts(indptr: Integers, work: Callable[[int, int], None]) -> None:
    """Call `work(first, last)` for ranges of rows with about equally many ratings, on threads."""
    edges = np.searchsorted(indptr, np.linspace(0, indptr[-1], _N_PARTS + 1))
    edges[0], edges[-1] = 0, len(indptr) - 1
    run(lambda piece: work(*piece), pairwise(edges.tolist()))


def _normals(streams: Streams, n: int, path: int) -> Floats:
    """Return standard normals made of raw words, which no version of NumPy changes."""
    words = streams.words(n, path) >> np.uint64(11)
    return np.asarray(ndtri((words.astype(np.float64) + 0.5) * 2.0**-53))
