"""The dot products of a block of rows with a block of columns: popular items dense, the tail sparse."""

from __future__ import annotations

import numpy as np
from numba import uint64

from goodfence.kernels.compiled import kernel
from goodfence.kernels.tiles.layout import ColumnSide, RowSide
from goodfence.kernels.tiles.strips import WIDTH, add_strips
from goodfence.kernels.types import Ints


@kernel
def add_popular(
    tile: Ints, first_row: int, n_rows: int, first_strip: int, rows: RowSide, columns: ColumnSide
) -> None:
    """Add to `tile[r]` what the popular items of row `first_row + r` give, from strip `first_strip` on."""
    element = tile.dtype.type
    for strip in range(first_strip, columns.strips.shape[0]):
        for local in range(n_rows):
            row = first_row + local
            sums = tile[local]
            for segment in range(rows.segments[row], rows.segments[row + 1]):
                start = rows.starts[segment]
                count = rows.starts[segment + 1] - start
                value = element(rows.values[segment])
                add_strips(sums, columns.strips, strip, rows.items, start, count, value)


@kernel
def add_tail(sums: Ints, items: Ints, ratings: Ints, columns: ColumnSide) -> None:
    """Add to `sums[c]` what one row's tail items give.

    Everything is unsigned: a signed index would be tested for wrapping round at every step.
    """
    element = sums.dtype.type
    for entry in range(uint64(items.size)):
        item = items[entry]
        rating = element(ratings[entry])
        last = uint64(columns.starts[item + np.uint32(1)])
        for place in range(uint64(columns.starts[item]), last):
            column = columns.columns[place]
            product = element(rating * element(columns.ratings[place]))
            sums[column] = element(sums[column] + product)


@kernel
def dot_tile(
    tile: Ints, first_row: int, n_rows: int, first_strip: int, rows: RowSide, columns: ColumnSide
) -> None:
    """Write the dot products of `n_rows` rows with a block of columns, from strip `first_strip` on."""
    tile[:n_rows, first_strip * WIDTH :] = 0
    add_popular(tile, first_row, n_rows, first_strip, rows, columns)
    for local in range(n_rows):
        low, high = rows.tail[first_row + local], rows.tail[first_row + local + 1]
        add_tail(tile[local], rows.tail_items[low:high], rows.tail_ratings[low:high], columns)
