"""How often two items were rated by the same user, kept up to date rating by rating, and the lists that follow.

Only the rows of watched items are kept. The cosine of two items, as sets of raters, is `c / sqrt(n n')` with c their
co-count and n, n' how many rated each; along the list of one item the order is that of `c² / n'`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from goodfence.arrays import AnyIntegers, Floats, Integers, Rows
from goodfence.kernels import kernel


class RatedSoFar(NamedTuple):
    """Who rated what up to a moment, and the counts that follow; all of it is written to."""

    starts: Integers
    """(users,): where the items of each user begin in `items`."""
    lengths: Integers
    """(users,): how many each has rated so far."""
    items: Rows
    """(ratings,): what each user rated, in the order of time."""
    n_raters: Integers
    """(items,): how many rated each item."""
    co_counts: Rows
    """(watched, items): how many rated both."""


@kernel
def count_ratings(
    users: AnyIntegers, items: AnyIntegers, watch: Integers, so_far: RatedSoFar
) -> None:
    """Add ratings, in the order of time; `watch` is each item's row among the watched, or -1."""
    for event in range(users.size):
        user, item = users[event], items[event]
        first = so_far.starts[user]
        own = watch[item]
        for place in range(first, first + so_far.lengths[user]):
            other = so_far.items[place]
            if own >= 0:
                so_far.co_counts[own, other] += 1
            if watch[other] >= 0:
                so_far.co_counts[watch[other], item] += 1
        so_far.items[first + so_far.lengths[user]] = item
        so_far.lengths[user] += 1
        so_far.n_raters[item] += 1


@kernel
def nearest_items(watched: Integers, so_far: RatedSoFar, keys: Floats, lists: Rows) -> None:
    """Write the most similar items of each watched row, best first, ties by column; -1 where there are no more.

    `keys` is a scratch of the length of a list.
    """
    n = lists.shape[1]
    for number in range(watched.size):
        filled = 0
        for item in range(so_far.n_raters.size):
            common = np.float64(so_far.co_counts[watched[number], item])
            if common == 0.0:
                continue
            key = common * common / so_far.n_raters[item]
            if filled == n and key <= keys[n - 1]:
                continue
            place = min(filled, n - 1)
            while place > 0 and keys[place - 1] < key:
                keys[place], lists[number, place] = keys[place - 1], lists[number, place - 1]
                place -= 1
            keys[place], lists[number, place] = key, item
            filled = min(filled + 1, n)
        lists[number, filled:] = -1


@kernel
def count_risen(before: Rows, after: Rows, ranks: Integers, scores: Integers) -> None:
    """Count for each item on how many of the lists it entered or moved up; lists end with -1.

    `ranks`, (items,), is a scratch; `scores`, (items,), is added to.
    """
    n = before.shape[1]
    for number in range(before.shape[0]):
        ranks[:] = n
        for rank in range(n):
            if before[number, rank] >= 0:
                ranks[before[number, rank]] = rank
        for rank in range(after.shape[1]):
            item = after[number, rank]
            if item >= 0 and rank < ranks[item]:
                scores[item] += 1
