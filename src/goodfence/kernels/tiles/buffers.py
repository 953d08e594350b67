"""The best candidates so far of each row, and the threshold below which nothing is offered to them.

An entry packs (position, dot product). A row's first n entries lie in `kept`, later ones in `extra`; when both are
full, `shrink_buffer` drops what cannot be among the n best and raises the row's threshold. Thresholds are float32
similarities with a margin for rounding, so nothing that belongs to a list is turned away; the exact order decides last.

A row of a tile is offered to its own list at once, and to those of the columns by way of a log, column after column.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import float32, uint8, uint32, uint64

from goodfence.arrays import AnyFloats, AnyIntegers, Flags
from goodfence.kernels import inner, kernel
from goodfence.kernels.moments import cosine
from goodfence.kernels.order import sort_candidates

MARGIN = 1 - 2e-6
"""A float32 similarity (three roundings, of norms that were rounded too) is within 4e-7 of the truth."""
STEPS = 10  # halvings of the range of similarities: a cut is within a thousandth of it
CHUNK = 4096  # columns looked at in one go: calls cost more than a threshold that is raised a little later
LOG = 1 << 17  # entries of a log


class Buffers(NamedTuple):
    """The candidates of all rows."""

    kept: npt.NDArray[np.uint64]  # (rows, n)
    extra: npt.NDArray[np.uint64]  # (rows, some more)
    counts: npt.NDArray[np.int32]
    """(rows,): how many entries each row has. This and the two above go by row number."""
    thresholds: npt.NDArray[np.float32]  # (positions,): the least similarity that may still enter a list
    inverses: npt.NDArray[np.float32]  # (positions,): one over the norm, 0 where that is 0
    squared_norms: npt.NDArray[np.float64]  # (positions,)
    rows: npt.NDArray[np.int32]  # (positions,): which row is there


class Space(NamedTuple):
    """What one thread needs for its tiles."""

    entries: npt.NDArray[np.uint64]
    values: npt.NDArray[np.float32]  # with `entries` the candidates of one row
    flags: npt.NDArray[np.uint8]
    words: npt.NDArray[np.uint64]  # eight at a time the flags, which say what one chunk of a row offers
    hits: npt.NDArray[np.uint32]
    offered: npt.NDArray[np.uint64]  # with `hits` the entries and columns of what it offers
    log_columns: npt.NDArray[np.uint32]
    log_entries: npt.NDArray[np.uint64]  # with `log_columns` what is offered to columns and not yet served
    starts: npt.NDArray[np.int64]
    grouped: npt.NDArray[np.uint64]
    """(columns of the tile + 1,): where each column's part begins in the log, grouped by column."""


def work_space(width: int, capacity: int) -> Space:
    """Return space for tiles of this width and buffers of this capacity."""
    flags, size = np.zeros(CHUNK, dtype=np.uint8), max(LOG, 2 * width) + 1
    return Space(
        np.empty(capacity, dtype=np.uint64),
        np.empty(capacity, dtype=np.float32),
        flags,
        flags.view(np.uint64),
        np.empty(CHUNK + 8, dtype=np.uint32),
        np.empty(CHUNK + 1, dtype=np.uint64),
        np.empty(size, dtype=np.uint32),
        np.empty(size, dtype=np.uint64),
        np.empty(width + 1, dtype=np.int64),
        np.empty(size, dtype=np.uint64),
    )


@kernel
def pack_entry(position: Any, dot: Any) -> Any:
    """Return (position, dot product) as one number."""
    return (uint64(position) << uint64(32)) | uint64(dot)


@kernel
def position_of(entry: Any) -> Any:
    """Return the position of an entry."""
    return uint32(entry >> uint64(32))


@kernel
def dot_of(entry: Any) -> Any:
    """Return the dot product of an entry."""
    return uint32(entry & uint64(0xFFFFFFFF))


@inner
def rough(entry: Any, inverse: Any, inverses: AnyFloats) -> Any:
    """Return the float32 similarity of an entry to the row whose inverse norm is given."""
    return float32(dot_of(entry)) * (inverses[position_of(entry)] * inverse)


@kernel
def cut_near(values: AnyFloats, n: int) -> Any:
    """Return a bound that at least n of the values reach, just under the n-th largest."""
    low, high = values[0], values[0]
    for slot in range(values.size):
        low = min(low, values[slot])
        high = max(high, values[slot])
    for _ in range(STEPS):
        middle = float32(0.5) * (low + high)
        reaching = 0
        for slot in range(values.size):
            reaching += 1 if values[slot] >= middle else 0
        if reaching >= n:
            low = middle
        else:
            high = middle
    return low


@inner
def copy_entries(home: int, buffers: Buffers, entries: AnyIntegers) -> int:
    """Copy a row's entries together; return how many there are."""
    count = int(buffers.counts[home])
    n = buffers.kept.shape[1]
    first = min(count, n)
    entries[:first] = buffers.kept[home, :first]
    if count > n:
        entries[n:count] = buffers.extra[home, : count - n]
    return count


@kernel
def find_unsure(guesses: AnyFloats, buffers: Buffers, unsure: Flags) -> None:
    """Flag each position whose guessed threshold was never raised and may have turned away one of the n best.

    A guess is trusted only where n entries are above it by more than the rounding of both sides.
    """
    n = buffers.kept.shape[1]
    entries = np.empty(n + buffers.extra.shape[1], dtype=np.uint64)
    for position in range(guesses.size):
        guess = guesses[position]
        if buffers.thresholds[position] != guess:
            continue
        count = copy_entries(buffers.rows[position], buffers, entries)
        inverse = buffers.inverses[position]
        sure = 0
        for slot in range(count):
            sure += 1 if rough(entries[slot], inverse, buffers.inverses) * MARGIN >= guess else 0
        unsure[position] = sure < n


@inner
def promising(entries: AnyIntegers, count: int, n: int, inverse: Any, inverses: AnyFloats, values: AnyFloats) -> Any:
    """Keep in front the entries that can be among the n best; return how many, and the threshold."""
    for slot in range(count):
        values[slot] = rough(entries[slot], inverse, inverses)
    threshold = float32(cut_near(values[:count], n) * MARGIN)
    left = 0
    for slot in range(count):
        entries[left] = entries[slot]
        left += 1 if values[slot] >= threshold else 0
    return left, threshold


@kernel
def shrink_buffer(position: int, buffers: Buffers, space: Space) -> None:
    """Drop what cannot be among the n best of a full row, and raise its threshold."""
    n = buffers.kept.shape[1]
    home = buffers.rows[position]
    entries = space.entries
    count = copy_entries(home, buffers, entries)
    inverse = buffers.inverses[position]
    left, threshold = promising(entries, count, n, inverse, buffers.inverses, space.values)
    if left > n + buffers.extra.shape[1] // 2:
        # The rare case, masses of ties: the n best by the exact order.
        similarities, rows = np.empty(left), np.empty(left, dtype=np.int32)
        exact(position, entries, left, buffers, similarities, rows)
        entries[:n] = entries[sort_candidates(similarities, rows)[:n]]
        left = n
    buffers.thresholds[position] = max(threshold, buffers.thresholds[position])
    buffers.counts[home] = left
    first = min(left, n)
    buffers.kept[home, :first] = entries[:first]
    if left > n:
        buffers.extra[home, : left - n] = entries[n:left]


@inner
def exact(
    position: int, entries: AnyIntegers, count: int, buffers: Buffers, similarities: AnyFloats, rows: AnyIntegers
) -> None:
    """Write the float64 similarities and the row numbers of entries."""
    squared_norm = buffers.squared_norms[position]
    for slot in range(count):
        other = position_of(entries[slot])
        dot = np.float64(dot_of(entries[slot]))
        similarities[slot] = cosine(dot, squared_norm, buffers.squared_norms[other])
        rows[slot] = buffers.rows[other]


@kernel
def append(position: int, offered: AnyIntegers, buffers: Buffers, space: Space) -> None:
    """Add entries to a row's buffer, shrinking it whenever it is full."""
    n = buffers.kept.shape[1]
    capacity = n + buffers.extra.shape[1]
    home = buffers.rows[position]
    inverse = buffers.inverses[position]
    count = buffers.counts[home]
    raised = False
    for place in range(offered.size):
        entry = offered[place]
        if raised and rough(entry, inverse, buffers.inverses) < buffers.thresholds[position]:
            continue
        if count < n:
            buffers.kept[home, count] = entry
        else:
            buffers.extra[home, count - n] = entry
        count += 1
        if count == capacity:
            buffers.counts[home] = count
            shrink_buffer(position, buffers, space)
            count = buffers.counts[home]
            raised = True
    buffers.counts[home] = count


@inner
def flag_promising(
    sums: AnyIntegers, inverses: AnyFloats, thresholds: AnyFloats, inverse: Any, threshold: Any, flags: AnyIntegers
) -> None:
    """Flag each column that may enter the row's list, or whose list the row may enter."""
    for column in range(sums.size):
        similarity = float32(sums[column]) * (inverses[column] * inverse)
        flags[column] = uint8(similarity >= min(thresholds[column], threshold))


@inner
def list_flagged(space: Space, width: int) -> int:
    """Write the numbers of the set flags, ascending; return how many. `width` is a multiple of eight."""
    count = 0
    for word in range(width // 8):
        if space.words[word] != uint64(0):
            for column in range(8 * word, 8 * word + 8):
                space.hits[count] = column
                count += space.flags[column]
    return count


@inner
def offer_row(
    position: int, first_column: int, sums: AnyIntegers, to_columns: bool, space: Space, logged: int, buffers: Buffers
) -> int:
    """Offer all columns of one tile row to its list, and the row to theirs; return the log's length."""
    chunk = space.flags.size
    for start in range(0, sums.size, chunk):
        end = min(start + chunk, sums.size)
        low, high = first_column + start, first_column + end
        inverse, threshold = buffers.inverses[position], buffers.thresholds[position]
        inverses, thresholds = buffers.inverses[low:high], buffers.thresholds[low:high]
        flag_promising(sums[start:end], inverses, thresholds, inverse, threshold, space.flags)
        n_found, after = 0, logged
        for hit in range(list_flagged(space, end - start)):
            column, dot = low + space.hits[hit], sums[start + space.hits[hit]]
            similarity = float32(dot) * (buffers.inverses[column] * inverse)
            space.offered[n_found] = pack_entry(column, dot)
            n_found += 1 if similarity >= threshold else 0
            space.log_columns[after] = column
            space.log_entries[after] = pack_entry(position, dot)
            after += 1 if similarity >= buffers.thresholds[column] else 0
        if n_found:
            append(position, space.offered[:n_found], buffers, space)
        if to_columns:
            logged = after
    return logged


@inner
def serve_log(first_column: int, space: Space, logged: int, buffers: Buffers) -> None:
    """Append the logged entries to their columns' buffers, grouped by column."""
    starts = space.starts
    starts[:] = 0
    for place in range(logged):
        starts[space.log_columns[place] - first_column + 1] += 1
    for column in range(starts.size - 1):
        starts[column + 1] += starts[column]
    for place in range(logged):
        column = space.log_columns[place] - first_column
        space.grouped[starts[column]] = space.log_entries[place]
        starts[column] += 1
    start = 0
    for column in range(starts.size - 1):
        end = starts[column]
        if end > start:
            append(first_column + column, space.grouped[start:end], buffers, space)
        start = end
