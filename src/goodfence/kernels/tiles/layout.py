"""Rows laid out for the tiles, in positions of ascending norm.

Popular items are dense: `strips` holds one byte for each (item, position), and a row has them in *segments* of one
rating value, short enough for 8-bit sums. All others are the tail: each row's own, and by item for each block.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from goodfence.arrays import AnyIntegers
from goodfence.kernels import kernel
from goodfence.kernels.tiles.strips import UNROLL, WIDTH


class Stored(NamedTuple):
    """The ratings as they are stored, and how they are to be laid out."""

    rows: npt.NDArray[np.int32]  # (positions,): which row is there
    starts: AnyIntegers
    indices: AnyIntegers
    ratings: AnyIntegers  # with `starts` and `indices` a sparse matrix, by row
    numbers: npt.NDArray[np.int32]  # (items,): 0, 1, ... for popular items, -1, -2, ... for those of the tail
    longest: int  # the most items of a segment
    largest: int  # the largest rating


class RowSide(NamedTuple):
    """What each row brings to a tile."""

    segments: npt.NDArray[np.int64]  # (rows + 1,): where each row's segments begin
    starts: npt.NDArray[np.int64]  # (segments + 1,): where each segment's items begin
    values: npt.NDArray[np.uint8]  # (segments,): the one rating of each segment
    items: npt.NDArray[np.uint16]  # the items of the segments, padded with an item nobody rated
    tail: npt.NDArray[np.int64]  # (rows + 1,): where each row's tail begins
    tail_items: npt.NDArray[np.uint32]
    tail_ratings: AnyIntegers


class ColumnSide(NamedTuple):
    """What a block of columns brings to a tile."""

    strips: npt.NDArray[np.uint8]
    """(strips, popular items + 1, WIDTH): one byte a rating; the last item is rated by nobody."""
    starts: npt.NDArray[np.uint32]  # (tail items + 1,): where each tail item's list begins
    columns: npt.NDArray[np.uint16]  # who rated it, as columns of the block, ascending
    ratings: AnyIntegers


@kernel
def count_rows(first: int, last: int, stored: Stored, counts: AnyIntegers) -> None:
    """Write segments, padded entries and tail entries of the positions first..last to `counts` (3, rows + 1)."""
    by_value = np.zeros(stored.largest + 1, dtype=np.int64)
    for position in range(first, last):
        row = stored.rows[position]
        by_value[:] = 0
        tail = 0
        for entry in range(stored.starts[row], stored.starts[row + 1]):
            rating = stored.ratings[entry]
            if rating == 0:
                continue
            if stored.numbers[stored.indices[entry]] >= 0:
                by_value[rating] += 1
            else:
                tail += 1
        segments, padded = 0, 0
        for value in range(by_value.size):
            full = by_value[value] // stored.longest
            rest = by_value[value] - full * stored.longest
            segments += full + (1 if rest > 0 else 0)
            padded += full * stored.longest + (rest + UNROLL - 1) // UNROLL * UNROLL
        counts[0, position + 1] = segments
        counts[1, position + 1] = padded
        counts[2, position + 1] = tail


@kernel
def lay_out_rows(
    first: int, last: int, stored: Stored, first_items: AnyIntegers, side: RowSide, strips: AnyIntegers
) -> None:
    """Write segments, tails and strips of the positions first..last."""
    ratings, numbers = stored.ratings, stored.numbers
    cursor = np.zeros(stored.largest + 1, dtype=np.int64)
    by_value = np.zeros(stored.largest + 1, dtype=np.int64)
    nobody = strips.shape[1] - 1
    for position in range(first, last):
        row = stored.rows[position]
        low, high = stored.starts[row], stored.starts[row + 1]
        strip, lane = position // WIDTH, position % WIDTH
        tail = side.tail[position]
        by_value[:] = 0
        for entry in range(low, high):
            value, item = ratings[entry], numbers[stored.indices[entry]]
            if value == 0:
                continue
            if item >= 0:
                by_value[value] += 1
                strips[strip, item, lane] = value
            else:
                side.tail_items[tail] = -item - 1
                side.tail_ratings[tail] = value
                tail += 1
        place, segment = first_items[position], side.segments[position]
        for value in range(by_value.size):
            cursor[value] = place
            for taken in range(0, by_value[value], stored.longest):
                take = min(by_value[value] - taken, stored.longest)
                side.starts[segment], side.values[segment] = place, value
                segment += 1
                padded = (take + UNROLL - 1) // UNROLL * UNROLL
                side.items[place + take : place + padded] = nobody
                place += padded
        for entry in range(low, high):
            value, item = ratings[entry], numbers[stored.indices[entry]]
            if value != 0 and item >= 0:
                side.items[cursor[value]] = item
                cursor[value] += 1


@kernel
def list_tail(
    first: int, last: int, side: RowSide, starts: AnyIntegers, columns: AnyIntegers, ratings: AnyIntegers
) -> None:
    """Write for each tail item who of the positions first..last rated it, by ascending position."""
    starts[:] = 0
    for entry in range(side.tail[first], side.tail[last]):
        starts[side.tail_items[entry] + 1] += 1
    starts[0] = side.tail[first]
    for item in range(starts.size - 1):
        starts[item + 1] += starts[item]
    for position in range(first, last):
        for entry in range(side.tail[position], side.tail[position + 1]):
            item = side.tail_items[entry]
            place = starts[item]
            columns[place] = position - first
            ratings[place] = side.tail_ratings[entry]
            starts[item] = place + 1
    for item in range(starts.size - 1, 0, -1):
        starts[item] = starts[item - 1]
    starts[0] = side.tail[first]
