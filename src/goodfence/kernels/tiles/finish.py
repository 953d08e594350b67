"""From candidate buffers to sorted lists: exact order, then zero similarities in row order."""

from __future__ import annotations

import numpy as np

from goodfence.kernels.compiled import kernel
from goodfence.kernels.tiles.buffers import Buffers, Scratch, exact, gather, promising, shrink
from goodfence.kernels.tiles.sorting import sort_candidates
from goodfence.kernels.types import Flags, Floats, Ints


@kernel
def fill_zeros(indices: Ints, similarities: Floats, found: int, own: int, seen: Flags) -> None:
    """Go on with rows of similarity zero, in row order; `seen` is all False before and after."""
    for place in range(found):
        seen[indices[place]] = True
    seen[own] = True
    row = 0
    for place in range(found, indices.size):
        while seen[row]:
            row += 1
        indices[place] = row
        similarities[place] = 0.0
        row += 1
    for place in range(found):
        seen[indices[place]] = False
    seen[own] = False


@kernel
def list_rows(
    first: int, last: int, buffers: Buffers, indices: Ints, similarities: Floats, lengths: Ints
) -> None:
    """Write what the positions first..last have found, each list sorted, at its row number, and its length there.

    `similarities` may lie in the memory of `buffers.kept`: a row is read whole before it is written.
    """
    n = indices.shape[1]
    capacity = n + buffers.extra.shape[1]
    entries = np.empty(capacity, dtype=np.uint64)
    values = np.empty(capacity, dtype=np.float32)
    found_similarities = np.empty(capacity)
    found_rows = np.empty(capacity, dtype=np.int32)
    for position in range(first, last):
        home = buffers.rows[position]
        count = gather(home, buffers, entries)
        if count > n:
            inverse = buffers.inverses[position]
            count = promising(entries, count, n, inverse, buffers.inverses, values)[0]
        exact(position, entries, count, buffers, found_similarities, found_rows)
        order = sort_candidates(found_similarities[:count], found_rows[:count])
        lengths[home] = min(count, n)
        for place in range(lengths[home]):
            indices[home, place] = found_rows[order[place]]
            similarities[home, place] = found_similarities[order[place]]


@kernel
def finish_rows(
    first: int, last: int, buffers: Buffers, indices: Ints, similarities: Floats
) -> None:
    """Write the sorted lists of the positions first..last, each at its row number, filled up with zeros."""
    lengths = np.empty(buffers.counts.size, dtype=np.int32)
    list_rows(first, last, buffers, indices, similarities, lengths)
    seen = np.zeros(buffers.counts.size, dtype=np.bool_)
    for position in range(first, last):
        home = buffers.rows[position]
        if lengths[home] < indices.shape[1]:
            fill_zeros(indices[home], similarities[home], lengths[home], home, seen)


@kernel
def drop_hopeless(first: int, last: int, buffers: Buffers) -> None:
    """Leave to the positions first..last little more than their n best."""
    n = buffers.kept.shape[1]
    capacity = n + buffers.extra.shape[1]
    scratch = Scratch(np.empty(capacity, dtype=np.uint64), np.empty(capacity, dtype=np.float32))
    for position in range(first, last):
        if buffers.counts[buffers.rows[position]] > n:
            shrink(position, buffers, scratch)


@kernel
def write_found(
    first: int,
    positions: Ints,
    buffers: Buffers,
    numbers: Ints,
    starts: Ints,
    rows: Ints,
    similarities: Floats,
) -> None:
    """Write what the rows from `first` on have found, in no order, each from its `starts` on.

    They stand at `positions`. Candidates are written by their `numbers`.
    """
    entries = np.empty(buffers.kept.shape[1] + buffers.extra.shape[1], dtype=np.uint64)
    for place in range(positions.size):
        count = gather(first + place, buffers, entries)
        own = slice(starts[place], starts[place + 1])
        exact(positions[place], entries, count, buffers, similarities[own], rows[own])
        for slot in range(starts[place], starts[place + 1]):
            rows[slot] = numbers[rows[slot]]
