"""What a tile has to offer to the buffers of its rows and of its columns.

A row is served at once. What it has to offer to its columns is logged, and the log is served column by column
when it is full: a buffer is then touched once for many entries, not once for each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import float32, uint8, uint64

from goodfence.arrays import AnyFloats, AnyIntegers
from goodfence.kernels import kernel
from goodfence.kernels.tiles.buffers import Buffers, Scratch, append, pack

CHUNK = 4096
"""Columns looked at in one go: calls cost more than a threshold that is raised a little later."""
LOG = 1 << 17
"""Entries of a log."""


class Log(NamedTuple):
    """Entries offered to columns and not yet served."""

    columns: npt.NDArray[np.uint32]
    entries: npt.NDArray[np.uint64]
    starts: npt.NDArray[np.int64]
    """(columns of the tile + 1,)."""
    grouped: npt.NDArray[np.uint64]


class Hits(NamedTuple):
    """Space for one chunk of a row: what is offered there."""

    flags: npt.NDArray[np.uint8]
    words: npt.NDArray[np.uint64]
    """The flags, eight at a time."""
    columns: npt.NDArray[np.uint32]
    entries: npt.NDArray[np.uint64]


class Space(NamedTuple):
    """What one thread needs for its tiles."""

    hits: Hits
    log: Log
    scratch: Scratch


@kernel
def work_space(width: int, capacity: int) -> Space:
    """Return space for tiles of this width and buffers of this capacity."""
    flags = np.zeros(CHUNK, dtype=np.uint8)
    hits = Hits(
        flags,
        flags.view(np.uint64),
        np.empty(CHUNK + 8, dtype=np.uint32),
        np.empty(CHUNK + 1, dtype=np.uint64),
    )
    size = max(LOG, 2 * width) + 1
    log = Log(
        np.empty(size, dtype=np.uint32),
        np.empty(size, dtype=np.uint64),
        np.empty(width + 1, dtype=np.int64),
        np.empty(size, dtype=np.uint64),
    )
    scratch = Scratch(np.empty(capacity, dtype=np.uint64), np.empty(capacity, dtype=np.float32))
    return Space(hits, log, scratch)


@kernel
def flag_promising(
    sums: AnyIntegers,
    inverses: AnyFloats,
    thresholds: AnyFloats,
    inverse: Any,
    threshold: Any,
    flags: AnyIntegers,
) -> None:
    """Flag each column that may enter the row's list, or whose list the row may enter."""
    for column in range(sums.size):
        similarity = float32(sums[column]) * (inverses[column] * inverse)
        flags[column] = uint8(similarity >= min(thresholds[column], threshold))


@kernel
def list_flagged(hits: Hits, width: int) -> int:
    """Write the numbers of the set flags, ascending; return how many. `width` is a multiple of eight."""
    count = 0
    for word in range(width // 8):
        if hits.words[word] != uint64(0):
            for column in range(8 * word, 8 * word + 8):
                hits.columns[count] = column
                count += hits.flags[column]
    return count


@kernel
def split_hits(
    position: int,
    low: int,
    n_hits: int,
    sums: AnyIntegers,
    space: Space,
    logged: int,
    buffers: Buffers,
) -> tuple[int, int]:
    """Pack what the row's list takes (how many is returned), and log what the columns' lists take."""
    inverse, threshold = buffers.inverses[position], buffers.thresholds[position]
    hits, log = space.hits, space.log
    n_found = 0
    for hit in range(n_hits):
        column = low + hits.columns[hit]
        dot = sums[hits.columns[hit]]
        similarity = float32(dot) * (buffers.inverses[column] * inverse)
        hits.entries[n_found] = pack(column, dot)
        n_found += 1 if similarity >= threshold else 0
        log.columns[logged] = column
        log.entries[logged] = pack(position, dot)
        logged += 1 if similarity >= buffers.thresholds[column] else 0
    return n_found, logged


@kernel
def offer_row(
    position: int,
    first_column: int,
    sums: AnyIntegers,
    to_columns: bool,
    space: Space,
    logged: int,
    buffers: Buffers,
) -> int:
    """Offer all columns of one tile row to its list, and the row to theirs; return the log's length."""
    for start in range(0, sums.size, CHUNK):
        end = min(start + CHUNK, sums.size)
        low, high = first_column + start, first_column + end
        flag_promising(
            sums[start:end],
            buffers.inverses[low:high],
            buffers.thresholds[low:high],
            buffers.inverses[position],
            buffers.thresholds[position],
            space.hits.flags,
        )
        n_hits = list_flagged(space.hits, end - start)
        if n_hits == 0:
            continue
        n_found, after = split_hits(position, low, n_hits, sums[start:end], space, logged, buffers)
        if n_found:
            append(position, space.hits.entries[:n_found], buffers, space.scratch)
        if to_columns:
            logged = after
    return logged


@kernel
def serve_log(first_column: int, space: Space, logged: int, buffers: Buffers) -> None:
    """Append the logged entries to their columns' buffers, grouped by column."""
    log = space.log
    starts = log.starts
    starts[:] = 0
    for place in range(logged):
        starts[log.columns[place] - first_column + 1] += 1
    for column in range(starts.size - 1):
        starts[column + 1] += starts[column]
    for place in range(logged):
        column = log.columns[place] - first_column
        log.grouped[starts[column]] = log.entries[place]
        starts[column] += 1
    start = 0
    for column in range(starts.size - 1):
        end = starts[column]
        if end > start:
            append(first_column + column, log.grouped[start:end], buffers, space.scratch)
        start = end
