"""Profiles laid out for the tiles: which items are dense, and the arrays of the rows and of the blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from goodfence.engines.local.threads import ranges, run
from goodfence.kernels.tiles.layout import (
    ColumnSide,
    RowSide,
    Stored,
    count_rows,
    lay_out_rows,
    list_tail,
)
from goodfence.kernels.tiles.strips import UNROLL, WIDTH
from goodfence.similarity.profiles import Profiles

POPULAR = 0.0165
"""An item is laid out dense where more than this share of rows rated it; `./scripts/bench border` measures the time
around it. Only time depends on it."""
DENSE_BYTES = 320 << 20
"""The most memory that dense items may take."""
LARGEST_DENSE = 31
"""Above this rating 8-bit sums hold too few items to pay."""
MOST_POPULAR = 65_000
"""Popular items are numbered with 16 bits."""


@dataclass(frozen=True, eq=False)
class Items:
    """Which items are popular: 0, 1, ... by popularity, and -1, -2, ... for those of the tail."""

    numbers: npt.NDArray[np.int32]
    n_popular: int

    @classmethod
    def of(cls, profiles: Profiles, largest: int) -> Items:
        """Choose the items whose dense sums (count x rows) cost less than their sparse updates (count squared).

        So a share of the rows decides, whatever their number.
        """
        counts = np.bincount(profiles.rows.indices, minlength=profiles.n_columns)
        dense = counts > POPULAR * profiles.n_rows
        n_popular = int(dense.sum()) if largest <= LARGEST_DENSE else 0
        n_popular = min(n_popular, DENSE_BYTES // max(profiles.n_rows, 1), MOST_POPULAR)
        popular = np.argsort(-counts, kind="stable")[:n_popular]
        numbers = np.zeros(profiles.n_columns, dtype=np.int32)
        numbers[popular] = 1
        numbers[numbers == 0] = -np.arange(1, profiles.n_columns - n_popular + 1)
        numbers[popular] = np.arange(n_popular)
        return cls(numbers, n_popular)

    @property
    def n_tail(self) -> int:
        """The number of items that are not popular."""
        return len(self.numbers) - self.n_popular


@dataclass(frozen=True, eq=False)
class Layout:
    """Some rows in some order ("positions"), cut in blocks."""

    block: int
    rows: npt.NDArray[np.int32]
    """(positions,): which row stands there."""
    row_side: RowSide
    strips: npt.NDArray[np.uint8]
    list_starts: npt.NDArray[np.uint32]
    list_columns: npt.NDArray[np.uint16]
    list_ratings: npt.NDArray[Any]

    @property
    def n_positions(self) -> int:
        """The number of rows laid out."""
        return len(self.rows)

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """Where each block begins and ends."""
        return ranges(self.n_positions, self.block)

    @property
    def padded(self) -> int:
        """The number of positions, made a multiple of a strip's width."""
        return len(self.strips) * WIDTH

    def columns(self, block: int) -> ColumnSide:
        """Return the column side of a block."""
        first = block * self.block
        last = min(first + self.block, self.padded)
        strips = self.strips[first // WIDTH : last // WIDTH]
        return ColumnSide(strips, self.list_starts[block], self.list_columns, self.list_ratings)

    def width(self, block: int) -> int:
        """Return how many columns a block has, padding included."""
        return min(self.block, self.padded - block * self.block)


def lay_out(
    profiles: Profiles,
    rows: npt.NDArray[np.int32],
    items: Items,
    block: int,
    *,
    threads: int | None = None,
) -> Layout:
    """Lay out `rows` of the profiles in that order; `block` is a multiple of a strip's width."""
    csr = profiles.rows
    largest = int(csr.data.max(initial=0))
    kind = np.uint8 if largest <= np.iinfo(np.uint8).max else np.uint32
    longest = max(UNROLL, 255 // max(largest, 1) // UNROLL * UNROLL)
    ratings = csr.data.astype(kind)
    stored = Stored(rows, csr.indptr, csr.indices, ratings, items.numbers, longest, largest)
    counts = np.zeros((3, len(rows) + 1), dtype=np.int64)
    blocks = ranges(len(rows), block)
    run(lambda piece: count_rows(*piece, stored, counts), blocks, threads=threads)
    segments, first_items, tail = np.cumsum(counts, axis=1)
    side = RowSide(
        segments,
        np.full(segments[-1] + 1, first_items[-1]),
        np.empty(segments[-1], dtype=np.uint8),
        np.empty(first_items[-1], dtype=np.uint16),
        tail,
        np.empty(tail[-1], dtype=np.uint32),
        np.empty(tail[-1], dtype=kind),
    )
    strips = np.zeros((-(-len(rows) // WIDTH), items.n_popular + 1, WIDTH), dtype=np.uint8)
    list_starts = np.empty((len(blocks), items.n_tail + 1), dtype=np.uint32)
    list_columns = np.empty(tail[-1], dtype=np.uint16)
    list_ratings = np.empty(tail[-1], dtype=kind)

    def work(number: int) -> None:
        first, last = blocks[number]
        lay_out_rows(first, last, stored, first_items, side, strips)
        list_tail(first, last, side, list_starts[number], list_columns, list_ratings)

    run(work, range(len(blocks)), threads=threads)
    return Layout(block, rows, side, strips, list_starts, list_columns, list_ratings)
