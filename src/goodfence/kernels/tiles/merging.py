"""Lists put together from what several tiles found."""

from __future__ import annotations

import numpy as np

from goodfence.kernels.compiled import kernel
from goodfence.kernels.tiles.sorting import sort_candidates
from goodfence.kernels.types import Floats, Ints


@kernel
def merge_lists(
    owners: Ints,
    rows: Ints,
    similarities: Floats,
    indices: Ints,
    values: Floats,
    lengths: Ints,
) -> None:
    """Write for each owner 0, 1, ... the best of the candidates offered to it, in the order of a list.

    `owners[j]` is whom candidate `rows[j]` of similarity `similarities[j]` is offered to; `indices` and `values`
    are (owners, n), and `lengths` says how much of each was written.
    """
    n_owners, n = indices.shape
    starts = np.zeros(n_owners + 1, dtype=np.int64)
    for place in range(owners.size):
        starts[owners[place] + 1] += 1
    for owner in range(n_owners):
        starts[owner + 1] += starts[owner]
    grouped = np.empty(owners.size, dtype=np.int64)
    cursor = starts[:-1].copy()
    for place in range(owners.size):
        owner = owners[place]
        grouped[cursor[owner]] = place
        cursor[owner] += 1
    for owner in range(n_owners):
        offered = grouped[starts[owner] : starts[owner + 1]]
        order = sort_candidates(similarities[offered], rows[offered])
        lengths[owner] = min(n, offered.size)
        for place in range(lengths[owner]):
            indices[owner, place] = rows[offered[order[place]]]
            values[owner, place] = similarities[offered[order[place]]]


@kernel
def join_lists(
    indices: Ints, similarities: Floats, lengths: Ints, numbers: Ints, rows: Ints, values: Floats
) -> None:
    """Write the first `lengths[i]` entries of every list i one after the other, with the numbers of their rows."""
    place = 0
    for owner in range(lengths.size):
        for rank in range(lengths[owner]):
            rows[place] = numbers[indices[owner, rank]]
            values[place] = similarities[owner, rank]
            place += 1
