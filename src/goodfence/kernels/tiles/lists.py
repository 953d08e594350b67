"""From candidate buffers to sorted lists: exact order, then zero similarities in row order."""

from __future__ import annotations

import numpy as np

from goodfence.arrays import AnyFloats, AnyIntegers, Flags
from goodfence.kernels import inner, kernel
from goodfence.kernels.order import sort_candidates
from goodfence.kernels.tiles.buffers import Buffers, Space, copy_entries, cut_near, exact, promising, shrink_buffer


@inner
def fill_zeros(indices: AnyIntegers, similarities: AnyFloats, found: int, own: int, seen: Flags) -> None:
    """Go on with rows of similarity zero, in row order, after `found` entries; `seen`, (n + 1,), is left False."""
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
def fill_up(indices: AnyIntegers, similarities: AnyFloats, lengths: AnyIntegers, first: int) -> None:
    """Go on with rows of similarity zero in each list that is too short; the lists are of the rows from `first` on."""
    n = indices.shape[1]
    seen = np.zeros(n + 1, dtype=np.bool_)
    for row in range(lengths.size):
        if lengths[row] < n:
            fill_zeros(indices[row], similarities[row], lengths[row], first + row, seen)


@kernel
def finish_rows(first: int, last: int, buffers: Buffers, indices: AnyIntegers, similarities: AnyFloats) -> None:
    """Write the sorted lists of the positions first..last, each at its row number, filled up with zeros.

    `similarities` may share memory with `buffers.kept`: a row is read before it is written.
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
def drop_hopeless(first: int, last: int, buffers: Buffers, space: Space) -> None:
    """Leave to the positions first..last little more than their n best."""
    for position in range(first, last):
        if buffers.counts[buffers.rows[position]] > buffers.kept.shape[1]:
            shrink_buffer(position, buffers, space)


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
    """Write what the rows from `first` on, at `positions`, have found, by `numbers`, each from its start."""
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
    """Write the best of the candidates of each owner, from `starts[i]` on, in order; the candidates are moved."""
    n_owners, n = indices.shape
    for owner in range(n_owners):
        offered = slice(starts[owner], starts[owner + 1])
        own_rows, own_values = rows[offered], similarities[offered]
        count = int(own_rows.size)
        if count > n:
            least, count = cut_near(own_values, n), 0
            for slot in range(own_rows.size):
                own_rows[count], own_values[count] = own_rows[slot], own_values[slot]
                count += 1 if own_values[slot] >= least else 0
        order = sort_candidates(own_values[:count], own_rows[:count])
        lengths[owner] = min(n, count)
        for place in range(lengths[owner]):
            indices[owner, place] = own_rows[order[place]]
            values[owner, place] = own_values[order[place]]
