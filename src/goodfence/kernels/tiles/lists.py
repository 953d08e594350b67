"""From candidate buffers to sorted lists: exact order, then zero similarities in row order."""

from __future__ import annotations

import numpy as np

from goodfence.arrays import AnyFloats, AnyIntegers, Flags
from goodfence.kernels import inner, kernel
from goodfence.kernels.order import sort_candidates
from goodfence.kernels.tiles.buffers import (
    Buffers,
    Scratch,
    copy_entries,
    cut_near,
    exact,
    promising,
    shrink_buffer,
)


@inner
def fill_zeros(
    indices: AnyIntegers, similarities: AnyFloats, found: int, own: int, seen: Flags
) -> None:
    """Go on with rows of similarity zero, in row order, after the `found` first entries of a list of n.

    Of the rows 0, ..., n at least as many are free as are wanted. `seen`, (n + 1,), is all False before and after.
    """
    n = indices.size
    for place in range(found):
        if indices[place] <= n:
            seen[indices[place]] = True
    if own <= n:
        seen[own] = True
    row = 0
    for place in range(found, n):
        while seen[row]:
            row += 1
        indices[place] = row
        similarities[place] = 0.0
        row += 1
    seen[:] = False


@kernel
def fill_up(
    indices: AnyIntegers, similarities: AnyFloats, lengths: AnyIntegers, first: int
) -> None:
    """Go on with rows of similarity zero in each list that is too short; the lists are of the rows from `first` on."""
    n = indices.shape[1]
    seen = np.zeros(n + 1, dtype=np.bool_)
    for row in range(lengths.size):
        if lengths[row] < n:
            fill_zeros(indices[row], similarities[row], lengths[row], first + row, seen)


@kernel
def finish_rows(
    first: int, last: int, buffers: Buffers, indices: AnyIntegers, similarities: AnyFloats
) -> None:
    """Write the sorted lists of the positions first..last, each at its row number, filled up with zeros.

    `similarities` may lie in the memory of `buffers.kept`: all of a row is read before it is written.
    """
    n = indices.shape[1]
    capacity = n + buffers.extra.shape[1]
    entries = np.empty(capacity, dtype=np.uint64)
    values = np.empty(capacity, dtype=np.float32)
    found_similarities = np.empty(capacity)
    found_rows = np.empty(capacity, dtype=np.int32)
    seen = np.zeros(n + 1, dtype=np.bool_)
    for position in range(first, last):
        home = buffers.rows[position]
        count = copy_entries(home, buffers, entries)
        if count > n:
            inverse = buffers.inverses[position]
            count = promising(entries, count, n, inverse, buffers.inverses, values)[0]
        exact(position, entries, count, buffers, found_similarities, found_rows)
        order = sort_candidates(found_similarities[:count], found_rows[:count])
        length = min(count, n)
        for place in range(length):
            indices[home, place] = found_rows[order[place]]
            similarities[home, place] = found_similarities[order[place]]
        if length < n:
            fill_zeros(indices[home], similarities[home], length, home, seen)


@kernel
def drop_hopeless(first: int, last: int, buffers: Buffers) -> None:
    """Leave to the positions first..last little more than their n best."""
    n = buffers.kept.shape[1]
    capacity = n + buffers.extra.shape[1]
    scratch = Scratch(np.empty(capacity, dtype=np.uint64), np.empty(capacity, dtype=np.float32))
    for position in range(first, last):
        if buffers.counts[buffers.rows[position]] > n:
            shrink_buffer(position, buffers, scratch)


@kernel
def write_found(
    first: int,
    positions: AnyIntegers,
    buffers: Buffers,
    numbers: AnyIntegers,
    starts: AnyIntegers,
    rows: AnyIntegers,
    similarities: AnyFloats,
) -> None:
    """Write what the rows from `first` on have found, in no order, each from its `starts` on.

    They are at `positions`. Candidates are written by their `numbers`.
    """
    entries = np.empty(buffers.kept.shape[1] + buffers.extra.shape[1], dtype=np.uint64)
    for place in range(positions.size):
        count = copy_entries(first + place, buffers, entries)
        own = slice(starts[place], starts[place + 1])
        exact(positions[place], entries, count, buffers, similarities[own], rows[own])
        for slot in range(starts[place], starts[place + 1]):
            rows[slot] = numbers[rows[slot]]


@kernel
def place_lists(
    lengths: AnyIntegers,
    rows: AnyIntegers,
    similarities: AnyFloats,
    places: AnyIntegers,
    all_rows: AnyIntegers,
    all_similarities: AnyFloats,
) -> None:
    """Copy list i, one of several, one after the other, to `places[i]`, and move that place on."""
    start = 0
    for owner in range(lengths.size):
        end, place = start + lengths[owner], places[owner]
        places[owner] += lengths[owner]
        all_rows[place : places[owner]] = rows[start:end]
        all_similarities[place : places[owner]] = similarities[start:end]
        start = end


@kernel
def list_best(
    starts: AnyIntegers,
    rows: AnyIntegers,
    similarities: AnyFloats,
    indices: AnyIntegers,
    values: AnyFloats,
    lengths: AnyIntegers,
) -> None:
    """Write for each owner i the best of the candidates from `starts[i]` to `starts[i + 1]`, in the order of a list.

    `indices` and `values` are (owners, n), and `lengths` says how much of each was written. `rows` and
    `similarities` are used up.
    """
    n_owners, n = indices.shape
    for owner in range(n_owners):
        offered = slice(starts[owner], starts[owner + 1])
        own_rows, own_values = rows[offered], similarities[offered]
        count = put_best_first(own_rows, own_values, n)
        order = sort_candidates(own_values[:count], own_rows[:count])
        lengths[owner] = min(n, count)
        for place in range(lengths[owner]):
            indices[owner, place] = own_rows[order[place]]
            values[owner, place] = own_values[order[place]]


@inner
def put_best_first(rows: AnyIntegers, similarities: AnyFloats, n: int) -> int:
    """Put in front the candidates that can be among the n best; return how many."""
    if rows.size <= n:
        return int(rows.size)
    least = cut_near(similarities, n)
    left = 0
    for slot in range(rows.size):
        rows[left], similarities[left] = rows[slot], similarities[slot]
        left += 1 if similarities[slot] >= least else 0
    return left
