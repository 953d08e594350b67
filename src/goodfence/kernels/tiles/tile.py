"""One tile: a block of rows against a block of columns, their dot products and offers, in one pass."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float32, uint64

from goodfence.arrays import AnyFloats, AnyIntegers
from goodfence.kernels import ZERO, inner, kernel
from goodfence.kernels.moments import cosine
from goodfence.kernels.tiles.buffers import MARGIN, Buffers, Space, cut_near, offer_row, serve_log
from goodfence.kernels.tiles.layout import ColumnSide, RowSide
from goodfence.kernels.tiles.lists import fill_zeros
from goodfence.kernels.tiles.strips import LANES, WIDTH, add_strips, lowest_bit, reaching

ROW_BITS, OF_ROW, ONE = uint64(16), uint64(0xFFFF), uint64(1 << 47)
"""A key has the row in its lowest bits, and above them how far the similarity is from 1, in parts of 2^47."""
FEW = 256  # touched columns from which a threshold is guessed
NO_KEY = uint64(0xFFFFFFFFFFFFFFFF)
SMALLEST = np.float32(1e-30)  # the threshold of a row that takes any positive similarity


Sides = tuple[RowSide, ColumnSide]
Keyed = tuple[AnyIntegers, AnyIntegers]  # the keys of some rows, and how many each of them has


class Bounds(NamedTuple):
    """Which pairs a tile compares: positions of rows with a block of columns."""

    first_row: int
    last_row: int
    first_column: int
    symmetric: bool
    """Where rows and columns overlap compare only columns after the row, so that a pair is offered once, to both
    lists. Otherwise the rows alone are served, with every column but themselves."""


class Ordered(NamedTuple):
    """All rows by position, for lists that are made row by row."""

    inverses: AnyFloats  # (positions,): one over the norm as float32, 0 where that is 0
    squared_norms: AnyFloats
    rows: AnyIntegers  # (positions,): which row is there
    positions: AnyIntegers  # (rows,): where each row is
    sampled: AnyIntegers  # columns from which a row's threshold is guessed
    rank: int  # about which of the sampled columns has it


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
def key_rows(first_row: int, n_rows: int, n: int, tile: AnyIntegers, rows: Ordered, keyed: Keyed) -> Any:
    """Write a key of each column that may be among the n nearest of a row of the tile; return how wide the keys are.

    In ascending order keys are by falling similarity, rounded down, and then by row.
    """
    keys, counts = keyed
    values, hits = np.empty(rows.sampled.size, dtype=np.float32), np.empty(tile.shape[1] + LANES, dtype=np.uint32)
    width = ZERO
    for local in range(n_rows):
        position, sums = first_row + local, tile[local]
        sums[position : position + 1] = 0
        for place in range(values.size):
            column = rows.sampled[place]
            values[place] = float32(sums[column]) * rows.inverses[column]
        least = max(SMALLEST, float32(cut_near(values, rows.rank) * MARGIN))
        count, sure = _keyed(position, least, sums, rows, hits, keys[local])
        if sure < n and least > SMALLEST:  # guessed too high
            count, sure = _keyed(position, SMALLEST, sums, rows, hits, keys[local])
        counts[local] = count
        width = max(width, count)
    for local in range(n_rows):
        keys[local, counts[local] : width] = NO_KEY
    return width


@kernel
def key_touched(
    first_row: int, n_rows: int, n: int, sums: AnyIntegers, sides: Sides, rows: Ordered, keyed: Keyed
) -> Any:
    """Do what `dot_tile` and `key_rows` do, visiting only columns that have an item of the row; `sums` is all 0."""
    (own, columns), (keys, counts) = sides, keyed
    touched, hits = np.empty(sums.size + 1, dtype=np.uint32), np.empty(sums.size + 1, dtype=np.uint32)
    values, sample = np.empty(sums.size, dtype=np.float32), np.empty(2 * FEW, dtype=np.float32)
    width = ZERO
    for local in range(n_rows):
        position = first_row + local
        low, high = own.tail[position], own.tail[position + 1]
        size = _touch(sums, own.tail_items[low:high], own.tail_ratings[low:high], columns, touched)
        sums[position : position + 1] = 0
        for place in range(uint64(size)):
            column = touched[place]
            values[place] = float32(sums[column]) * rows.inverses[column]
        least = _guess(values[:size], n, sample)
        n_hits = _hit(values[:size], least, touched, hits)
        count, sure = _key_hits(position, least, n_hits, sums, rows, hits, keys[local])
        if sure < n and least > SMALLEST:  # guessed too high
            n_hits = _hit(values[:size], SMALLEST, touched, hits)
            count, sure = _key_hits(position, SMALLEST, n_hits, sums, rows, hits, keys[local])
        counts[local] = count
        width = max(width, count)
        for place in range(uint64(size)):
            sums[touched[place]] = 0
    for local in range(n_rows):
        keys[local, counts[local] : width] = NO_KEY
    return width


@inner
def _hit(values: AnyFloats, least: Any, touched: AnyIntegers, hits: AnyIntegers) -> Any:
    """List the touched columns whose value reaches `least`, and return how many they are."""
    count = uint64(0)
    for place in range(uint64(values.size)):
        hits[count] = touched[place]
        count += uint64(values[place] >= least)
    return np.int64(count)


@inner
def _touch(
    sums: AnyIntegers, items: AnyIntegers, ratings: AnyIntegers, columns: ColumnSide, touched: AnyIntegers
) -> Any:
    """Add one row's items to `sums`, which is all 0; list the columns that get something, and return how many."""
    element, size = sums.dtype.type, uint64(0)
    for entry in range(uint64(items.size)):
        item = items[entry]
        rating = element(ratings[entry])
        last = uint64(columns.starts[item + np.uint32(1)])
        for place in range(uint64(columns.starts[item]), last):
            column = columns.columns[place]
            touched[size] = column
            size += uint64(sums[column] == 0)
            sums[column] = element(sums[column] + element(rating * element(columns.ratings[place])))
    return size


@inner
def _guess(values: AnyFloats, n: int, sample: AnyFloats) -> Any:
    """Return a bound that about n of the values reach, or SMALLEST where there are few."""
    if values.size < 2 * n or values.size < FEW:
        return SMALLEST
    step = values.size // FEW
    size = values.size // step
    for place in range(size):
        sample[place] = values[place * step]
    expected = size * n / values.size
    rank = min(size, int(expected + 3.1 * np.sqrt(expected) + 2))
    return max(SMALLEST, float32(cut_near(sample[:size], rank) * MARGIN))


@inner
def _keyed(
    position: int, least: Any, sums: AnyIntegers, rows: Ordered, hits: AnyIntegers, keys: AnyIntegers
) -> tuple[Any, Any]:
    """Write the keys of all columns above `least`; return how many, and how many are surely above all others."""
    count: Any = ZERO
    for start in range(0, sums.size, LANES):
        mask: Any = reaching(sums, rows.inverses, start, least)
        while mask != uint64(0):
            hits[count] = uint64(start) + lowest_bit(mask)
            mask &= mask - uint64(1)
            count += 1
    return _key_hits(position, least, count, sums, rows, hits, keys)


@inner
def _key_hits(
    position: int, least: Any, count: Any, sums: AnyIntegers, rows: Ordered, hits: AnyIntegers, keys: AnyIntegers
) -> tuple[Any, Any]:
    squared_norm = rows.squared_norms[position]
    sure, bound = ZERO, np.float64(least) / MARGIN / np.sqrt(squared_norm) if count else 0.0
    for place in range(count):
        column = hits[place]
        similarity: Any = cosine(np.float64(sums[column]), squared_norm, rows.squared_norms[column])
        sure += 1 if similarity >= bound else 0
        keys[place] = ((ONE - uint64(similarity * ONE)) << ROW_BITS) | uint64(rows.rows[column])
    return count, sure


@kernel
def list_keyed(first_row: int, n_rows: int, rows: Ordered, keyed: Keyed, lists: tuple[AnyIntegers, AnyFloats]) -> None:
    """Write the lists of some rows from their sorted keys, each at its row number.

    A key gives the dot product back: it is below 2^32, and a similarity in parts of 2^47 tells it from the next one.
    """
    (keys, counts), (indices, similarities) = keyed, lists
    n = indices.shape[1]
    near, sizes = np.empty(rows.rows.size, dtype=np.int32), np.empty(rows.rows.size)
    seen = np.zeros(n + 1, dtype=np.bool_)
    for local in range(n_rows):
        position, count = first_row + local, counts[local]
        home, own, length = rows.rows[position], keys[local], min(n, count)
        squared_norm = rows.squared_norms[position]
        end = length
        while 0 < end < count and own[end] >> ROW_BITS == own[length - 1] >> ROW_BITS:
            end += 1
        for place in range(end):
            row = own[place] & OF_ROW
            other, at = rows.squared_norms[rows.positions[row]], place
            rounded = np.float64(ONE - (own[place] >> ROW_BITS)) / np.float64(ONE)
            similarity = cosine(np.rint(rounded * np.sqrt(squared_norm * other)), squared_norm, other)
            # Similarities that are alike when rounded down may differ.
            while at > 0 and similarity > sizes[at - 1]:
                near[at], sizes[at] = near[at - 1], sizes[at - 1]
                at -= 1
            near[at], sizes[at] = row, similarity
        indices[home, :length], similarities[home, :length] = near[:length], sizes[:length]
        if length < n:
            fill_zeros(indices[home], similarities[home], length, home, seen)


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
