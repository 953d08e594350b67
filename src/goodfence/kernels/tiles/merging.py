"""Lists put together from what several tiles found."""

from __future__ import annotations

from goodfence.kernels.compiled import kernel
from goodfence.kernels.tiles.buffers import cut_near
from goodfence.kernels.tiles.sorting import sort_candidates
from goodfence.kernels.types import Floats, Ints


@kernel
def place_lists(
    lengths: Ints,
    rows: Ints,
    similarities: Floats,
    places: Ints,
    all_rows: Ints,
    all_similarities: Floats,
) -> None:
    """Copy list i, one of several that stand one after the other, to `places[i]`, and move that place on."""
    start = 0
    for owner in range(lengths.size):
        end, place = start + lengths[owner], places[owner]
        places[owner] += lengths[owner]
        all_rows[place : places[owner]] = rows[start:end]
        all_similarities[place : places[owner]] = similarities[start:end]
        start = end


@kernel
def list_best(
    starts: Ints, rows: Ints, similarities: Floats, indices: Ints, values: Floats, lengths: Ints
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


@kernel
def put_best_first(rows: Ints, similarities: Floats, n: int) -> int:
    """Put in front the candidates that can be among the n best; return how many."""
    if rows.size <= n:
        return int(rows.size)
    least = cut_near(similarities, n)
    left = 0
    for slot in range(rows.size):
        rows[left], similarities[left] = rows[slot], similarities[slot]
        left += 1 if similarities[slot] >= least else 0
    return left
