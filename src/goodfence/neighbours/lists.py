"""Lists of the best items in bulk, over threads: of scores, and of what neighbours have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from goodfence.arrays import AnyFloats, AnyIntegers, Csr, Flags, Floats, Rows
from goodfence.kernels.lists import (
    NO_ITEM,
    rank_block,
    rank_by_neighbours,
    rank_by_profiles,
    rank_in_order,
    rank_scores,
    sum_by_neighbours,
)
from goodfence.parallel import ranges, run

_TOGETHER = 512
"""How many rows are ranked at a time, at most."""
_CELLS = 1 << 22
"""How many scores a thread holds at a time, unless one row has more."""


class Ranked(NamedTuple):
    """The best items of one row or of several, best first."""

    columns: Rows
    """Item columns; of several rows (rows, n), -1 where there are fewer."""
    scores: Floats
    """What they are ranked by, NaN where there is no item."""

    def __repr__(self) -> str:
        return f"Ranked({' x '.join(f'{size:,}' for size in self.columns.shape)})"


def no_lists(n_rows: int, n: int, n_items: int) -> Ranked:
    """Return lists to be filled in: of n places, and of no more than there are items."""
    shape = (n_rows, min(n, max(n_items, 1)))
    return Ranked(np.full(shape, NO_ITEM, dtype=np.int32), np.full(shape, np.nan))


def best_of(scores: AnyFloats, seen: AnyIntegers, allowed: Flags, n: int) -> Ranked:
    """Return the n best allowed columns that were not seen: NaN is no score, of equal scores the lower column is first.

    Examples
    --------
    >>> nothing, every = np.empty(0, dtype=np.int32), np.ones(4, dtype=bool)
    >>> best_of(np.array([3.0, np.nan, 4.0, 3.0]), nothing, every, 2).columns
    array([2, 0], dtype=int32)
    """
    lists = no_lists(1, n, len(scores))
    rank_scores(scores, np.asarray(seen), allowed, lists.columns[0], lists.scores[0])
    listed = lists.columns[0] != NO_ITEM
    return Ranked(lists.columns[0][listed], lists.scores[0][listed])


def rank_in_blocks(
    scores: Callable[[int, int], AnyFloats],
    seen: sparse.csr_array,
    allowed: Flags,
    n: int,
    *,
    items: AnyIntegers | None = None,
    threads: int | None = None,
) -> Ranked:
    """Return the lists of the rows of `seen`, where `scores(first, last)` returns some rows of scores at a time.

    They are scores of all items, or of `items`, which ascend.
    """
    lists = no_lists(seen.shape[0], n, seen.shape[1])
    scored = np.arange(seen.shape[1]) if items is None else np.asarray(items, dtype=np.int64)

    def work(piece: tuple[int, int]) -> None:
        first, last = piece
        own, part = Csr(seen.indptr[first : last + 1], seen.indices, seen.data), slice(*piece)
        block = scores(first, last)
        if block.dtype == np.float64:
            rank_block(block, scored, own, allowed, lists.columns[part], lists.scores[part])
            return
        best = np.empty(lists.scores[part].shape, dtype=block.dtype)
        rank_block(block, scored, own, allowed, lists.columns[part], best)
        lists.scores[part] = best

    together = max(1, min(_TOGETHER, _CELLS // max(len(scored), 1)))
    run(work, ranges(seen.shape[0], together), threads=threads)
    return lists


def rank_alike(
    scores: Floats, seen: sparse.csr_array, allowed: Flags, n: int, threads: int | None = None
) -> Ranked:
    """Return the lists of the rows of `seen` where everybody has the same scores: the first of one order, unseen."""
    order = np.argsort(-scores, kind="stable").astype(np.int32)  # NaN is last
    listable = allowed & ~np.isnan(scores)
    lists = no_lists(seen.shape[0], n, seen.shape[1])

    def work(piece: tuple[int, int]) -> None:
        first, last = piece
        own = Csr(seen.indptr[first : last + 1], seen.indices, seen.data)
        places = np.empty((last - first, lists.columns.shape[1]), dtype=np.int64)
        rank_in_order(order, listable, own, lists.columns[first:last], places)
        lists.scores[first:last] = np.where(places < 0, np.nan, scores[order[places]])

    run(work, ranges(seen.shape[0], _TOGETHER), threads=threads)
    return lists


@dataclass(frozen=True, eq=False)
class UserVotes:
    """User-based scores of lists: of each item, the weights of the neighbours who have it times how much, summed."""

    rated: sparse.csr_array
    """users x items: ratings, or events."""

    def scores(self, neighbours: AnyIntegers, weights: Floats) -> Floats:
        """Return the scores of all items for one user with these neighbours, NaN where none of them has the item."""
        found = np.empty(self.rated.shape[1])
        sum_by_neighbours(neighbours, weights, as_csr(self.rated), found)
        return found

    def rank(
        self,
        near: tuple[Rows, Floats],
        seen: sparse.csr_array,
        allowed: Flags,
        n: int,
        threads: int | None = None,
    ) -> Ranked:
        """Return the lists of users with these neighbours and weights, (users, k), who have seen what `seen` says."""
        lists = no_lists(seen.shape[0], n, seen.shape[1])
        neighbours, weights = near
        held = as_csr(self.rated)

        def work(piece: tuple[int, int]) -> None:
            first, last = piece
            own, part = Csr(seen.indptr[first : last + 1], seen.indices, seen.data), slice(*piece)
            out = lists.columns[part], lists.scores[part]
            rank_by_neighbours(neighbours[part], weights[part], held, own, allowed, *out)

        run(work, ranges(seen.shape[0], _TOGETHER), threads=threads)
        return lists


@dataclass(frozen=True, eq=False)
class ItemVotes:
    """Item-based scores of lists: of each item, the weights of its neighbours that the user has, times how much."""

    near: sparse.csr_array
    """items x items: whose neighbour each item is, and with what weight."""

    @classmethod
    def of(cls, neighbours: Rows, weights: Floats, n_items: int, first: int = 0) -> ItemVotes:
        """Return the votes for the items from `first` on, which have these neighbours and weights, (items, k)."""
        n_scored, k = neighbours.shape
        cells = (weights.ravel(), neighbours.ravel(), np.arange(0, neighbours.size + 1, k))
        turned = sparse.csr_array(cells, shape=(n_scored, n_items)).T.tocsr()
        placed = (turned.data, turned.indices + first, turned.indptr)
        return cls(sparse.csr_array(placed, shape=(n_items, n_items)))

    def scores(self, columns: AnyIntegers, values: Floats) -> Floats:
        """Return the scores of all items for a user who has these, NaN where none of them is a neighbour."""
        found = np.empty(self.near.shape[1])
        sum_by_neighbours(columns, values, as_csr(self.near), found)
        return found

    def rank(
        self, profiles: sparse.csr_array, allowed: Flags, n: int, threads: int | None = None
    ) -> Ranked:
        """Return the lists of the users who have the rows of `profiles`."""
        lists, near = no_lists(profiles.shape[0], n, profiles.shape[1]), as_csr(self.near)

        def work(piece: tuple[int, int]) -> None:
            first, last = piece
            own = Csr(profiles.indptr[first : last + 1], profiles.indices, profiles.data)
            part = slice(*piece)
            rank_by_profiles(own, near, allowed, lists.columns[part], lists.scores[part])

        run(work, ranges(profiles.shape[0], _TOGETHER), threads=threads)
        return lists


def as_csr(matrix: sparse.csr_array) -> Csr:
    """Return a sparse matrix as kernels take it."""
    return Csr(matrix.indptr, matrix.indices, matrix.data)
