"""Lists of the best items in bulk, over threads: of scores, and of what neighbours have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from goodfence.arrays import AnyFloats, AnyIntegers, Csr, Flags, Floats, Rows, as_csr
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

_TOGETHER = 512  # how many rows are ranked at a time, at most
_CELLS = 1 << 22  # how many scores a thread holds at a time, unless one row has more


class Ranked(NamedTuple):
    """The best items of one row or of several, best first."""

    columns: Rows  # item columns; of several rows (rows, n), -1 where there are fewer
    scores: Floats  # what they are ranked by, NaN where there is no item

    def __repr__(self) -> str:
        return f"Ranked({' x '.join(f'{size:,}' for size in self.columns.shape)})"


def no_lists(n_rows: int, n: int, n_items: int) -> Ranked:
    """Return lists to be filled in: of n places, and of no more than there are items."""
    shape = (n_rows, min(n, max(n_items, 1)))
    return Ranked(np.full(shape, NO_ITEM, dtype=np.int32), np.full(shape, np.nan))


def best_of(scores: AnyFloats, seen: AnyIntegers, allowed: Flags, n: int) -> Ranked:
    """Return the n best allowed columns that were not seen; NaN is no score, and ties go to the lower column."""
    lists = no_lists(1, n, len(scores))
    rank_scores(scores, np.asarray(seen), allowed, lists.columns[0], lists.scores[0])
    listed = lists.columns[0] != NO_ITEM
    return Ranked(lists.columns[0][listed], lists.scores[0][listed])


def rank_in_pieces(
    seen: sparse.csr_array,
    n: int,
    rank: Callable[[Csr, slice, Rows, Floats], None],
    threads: int | None = None,
    together: int = _TOGETHER,
) -> Ranked:
    """Let `rank` write the lists of the rows of `seen`, some rows at a time."""
    lists = no_lists(seen.shape[0], n, seen.shape[1])

    def work(piece: tuple[int, int]) -> None:
        part = slice(*piece)
        own = Csr(seen.indptr[part.start : part.stop + 1], seen.indices, seen.data)
        rank(own, part, lists.columns[part], lists.scores[part])

    pieces = ranges(seen.shape[0], together)
    if len(pieces) == 1:
        work(pieces[0])  # one list takes less time than to start a thread
    else:
        run(work, pieces, threads=threads)
    return lists


def rank_in_blocks(
    scores: Callable[[int, int], AnyFloats],
    seen: sparse.csr_array,
    allowed: Flags,
    n: int,
    *,
    items: AnyIntegers | None = None,
    threads: int | None = None,
) -> Ranked:
    """Return the lists of the rows of `seen`; `scores(first, last)` returns scores of all items, or of `items`."""
    scored = np.arange(seen.shape[1]) if items is None else np.asarray(items, dtype=np.int64)

    def rank(own: Csr, part: slice, columns: Rows, found: Floats) -> None:
        block = scores(part.start, part.stop)
        best = found if block.dtype == np.float64 else np.empty(found.shape, dtype=block.dtype)
        rank_block(block, scored, own, allowed, columns, best)
        found[:] = best

    together = max(1, min(_TOGETHER, _CELLS // max(len(scored), 1)))
    return rank_in_pieces(seen, n, rank, threads, together)


def rank_alike(scores: Floats, seen: sparse.csr_array, allowed: Flags, n: int, threads: int | None = None) -> Ranked:
    """Return the lists of the rows of `seen` where everybody has the same scores: the first of one order, unseen."""
    order = np.argsort(-scores, kind="stable").astype(np.int32)  # NaN is last
    listable = allowed & ~np.isnan(scores)

    def rank(own: Csr, _part: slice, columns: Rows, found: Floats) -> None:
        places = np.empty(columns.shape, dtype=np.int64)
        rank_in_order(order, listable, own, columns, places)
        found[:] = np.where(places < 0, np.nan, scores[order[places]])

    return rank_in_pieces(seen, n, rank, threads)


@dataclass(frozen=True, eq=False)
class UserVotes:
    """User-based scores of lists: of each item, the weights of the neighbours who have it times how much, summed."""

    rated: sparse.csr_array  # users x items: ratings, or events

    def scores(self, neighbours: AnyIntegers, weights: Floats) -> Floats:
        """Return the scores of all items for one user with these neighbours, NaN where none of them has the item."""
        found = np.empty(self.rated.shape[1])
        sum_by_neighbours(neighbours, weights, as_csr(self.rated), found)
        return found

    def rank(
        self, near: tuple[Rows, Floats], seen: sparse.csr_array, allowed: Flags, n: int, threads: int | None = None
    ) -> Ranked:
        """Return the lists of users with these neighbours and weights, (users, k), who have seen what `seen` says."""
        held = as_csr(self.rated)

        def rank(own: Csr, part: slice, columns: Rows, scores: Floats) -> None:
            rank_by_neighbours(near[0][part], near[1][part], held, own, allowed, columns, scores)

        return rank_in_pieces(seen, n, rank, threads)


@dataclass(frozen=True, eq=False)
class ItemVotes:
    """Item-based scores of lists: of each item, the weights of its neighbours that the user has, times how much."""

    near: sparse.csr_array  # items x items: whose neighbour each item is, and with what weight

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

    def rank(self, profiles: sparse.csr_array, allowed: Flags, n: int, threads: int | None = None) -> Ranked:
        """Return the lists of the users who have the rows of `profiles`."""
        near = as_csr(self.near)

        def rank(own: Csr, _part: slice, columns: Rows, scores: Floats) -> None:
            rank_by_profiles(own, near, allowed, columns, scores)

        return rank_in_pieces(profiles, n, rank, threads)
