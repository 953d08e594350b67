"""One tile: a block of rows against a block of columns, their dot products and offers, in one pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import float32, uint64

from goodfence.arrays import AnyFloats, AnyIntegers
from goodfence.kernels import ZERO, inner, kernel
from goodfence.kernels.tiles.buffers import MARGIN, Buffers, Space, cut_near, offer_row, serve_log
from goodfence.kernels.tiles.layout import ColumnSide, RowSide
from goodfence.kernels.tiles.strips import WIDTH, add_strips

SMALLEST = np.float32(1e-30)
"""The threshold of a row that takes any positive similarity."""


class Bounds(NamedTuple):
    """Which pairs a tile compares: positions of rows with a block of columns."""

    first_row: int
    last_row: int
    first_column: int
    symmetric: bool
    """Where rows and columns overlap compare only columns after the row, so that a pair is offered once, to both
    lists. Otherwise the rows alone are served, with every column but themselves."""


class Sample(NamedTuple):
    """Some rows, as columns of a tile."""

    columns: ColumnSide
    inverses: AnyFloats
    positions: AnyIntegers
    """(columns,): the position of each among the rows, or -1; a row is not compared with itself."""


@kernel
def process_tile(
    bounds: Bounds, tile: AnyIntegers, rows: RowSide, columns: ColumnSide, buffers: Buffers, space: Space
) -> None:
    """Compare rows with a block of columns, and offer each pair to the lists; `tile` is space for their sums."""
    first_column, symmetric = bounds.first_column, bounds.symmetric
    depth, width = tile.shape
    logged = ZERO
    for start in range(bounds.first_row, bounds.last_row, depth):
        n_rows = min(depth, bounds.last_row - start)
        first_strip = max(0, start - first_column) // WIDTH if symmetric else 0
        offset = first_strip * WIDTH
        tile[:n_rows, offset:] = 0
        _add_popular(tile, start, n_rows, first_strip, rows, columns)
        for local in range(n_rows):
            position = start + local
            sums = tile[local]
            low, high = rows.tail[position], rows.tail[position + 1]
            _add_tail(sums, rows.tail_items[low:high], rows.tail_ratings[low:high], columns)
            own = position - first_column
            if 0 <= own < width:
                sums[offset if symmetric else own : own + 1] = 0
            if logged + width >= space.log_columns.size:
                serve_log(first_column, space, logged, buffers)
                logged = ZERO
            logged = offer_row(position, first_column + offset, sums[offset:], symmetric, space, logged, buffers)
    serve_log(first_column, space, logged, buffers)


@inner
def _add_popular(
    tile: AnyIntegers, first_row: int, n_rows: int, first_strip: int, rows: RowSide, columns: ColumnSide
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


@inner
def _add_tail(sums: AnyIntegers, items: AnyIntegers, ratings: AnyIntegers, columns: ColumnSide) -> None:
    """Add to `sums[c]` one row's tail items. All is unsigned: a signed index would be tested for wrapping round."""
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
def dot_tile(tile: AnyIntegers, first_row: int, n_rows: int, rows: RowSide, columns: ColumnSide) -> None:
    """Write the dot products of `n_rows` rows with a block of columns."""
    tile[:n_rows] = 0
    _add_popular(tile, first_row, n_rows, 0, rows, columns)
    for local in range(n_rows):
        low, high = rows.tail[first_row + local], rows.tail[first_row + local + 1]
        _add_tail(tile[local], rows.tail_items[low:high], rows.tail_ratings[low:high], columns)


@kernel
def sample_thresholds(
    first: int, last: int, rank: int, tile: AnyIntegers, rows: RowSide, sample: Sample, buffers: Buffers
) -> None:
    """Set thresholds: about the rank-th best similarity to the sample, or SMALLEST if there are fewer."""
    depth, width = tile.shape
    values = np.empty(width, dtype=np.float32)
    for start in range(first, last, depth):
        n_rows = min(depth, last - start)
        dot_tile(tile, start, n_rows, rows, sample.columns)
        for local in range(n_rows):
            position = start + local
            for column in range(width):
                values[column] = float32(tile[local, column]) * (sample.inverses[column] * buffers.inverses[position])
                if sample.positions[column] == position:
                    values[column] = float32(0.0)
            cut = float32(cut_near(values, rank) * MARGIN)
            buffers.thresholds[position] = max(SMALLEST, cut)
