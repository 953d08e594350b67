"""Lists of the best items, from scores or from neighbours.

For one row all sums are formed in the order of its neighbours, so a list in an attack, in `recommend` and in
`recommend_many` is the same to the last bit. Of equal scores the lower column is better.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from goodfence.arrays import AnyFloats, AnyIntegers, Csr, Flags, Floats, Rows
from goodfence.kernels import inner, kernel

NO_ITEM = -1
"""The column of a place in a list that no item takes."""
_TOUCHED, _SEEN = np.uint8(1), np.uint8(2)
"""What is known of a column while a row is added up: some neighbour has it; it is not to be listed."""


class _Tally(NamedTuple):
    """What is added up for one row, clean before and after."""

    sums: Floats
    touched: Rows
    """The columns that some neighbour has, in the order in which they were met."""
    state: npt.NDArray[np.uint8]
    allowed: Flags


@inner
def _clean(allowed: Flags) -> _Tally:
    n_items = allowed.size
    state = np.zeros(n_items, dtype=np.uint8)
    return _Tally(np.zeros(n_items), np.empty(n_items, dtype=np.int32), state, allowed)


@inner
def insert(column: int, score: float, columns: AnyIntegers, scores: AnyFloats, n_listed: int) -> int:
    """Put an item at its place in a list that is kept in order, if it is among the best; return the new length."""
    n = columns.size
    if n_listed == n:
        worst = n - 1
        if score < scores[worst] or (score == scores[worst] and column > columns[worst]):
            return n_listed
        place = worst
    else:
        place = n_listed
        n_listed += 1
    while place > 0 and (scores[place - 1] < score or (scores[place - 1] == score and columns[place - 1] > column)):
        columns[place], scores[place] = columns[place - 1], scores[place - 1]
        place -= 1
    columns[place], scores[place] = column, score
    return n_listed


@inner
def _rank_row(scores: AnyFloats, items: AnyIntegers, listable: Flags, columns: AnyIntegers, best: AnyFloats) -> None:
    """Write the n best of one row of scores of some items, which ascend: a full list takes a better score only."""
    n, n_listed = columns.size, 0
    for place in range(scores.size):
        better = scores[place] > best[n - 1] if n_listed == n else not np.isnan(scores[place])
        if better and listable[items[place]]:
            n_listed = insert(items[place], scores[place], columns, best, n_listed)
    columns[n_listed:] = NO_ITEM
    best[n_listed:] = np.nan


@kernel
def rank_scores(scores: AnyFloats, seen: AnyIntegers, allowed: Flags, columns: AnyIntegers, best: AnyFloats) -> None:
    """Write the n best allowed columns of one row of scores that are not among `seen`; NaN is no score."""
    listable = allowed.copy()
    for column in seen:
        listable[column] = False
    _rank_row(scores, np.arange(scores.size), listable, columns, best)


@kernel
def rank_block(
    scores: AnyFloats, items: AnyIntegers, seen: Csr, allowed: Flags, columns: AnyIntegers, best: AnyFloats
) -> None:
    """Do what `rank_scores` does for each row of scores of some items, which ascend; `seen` has a row for each."""
    listable = allowed.copy()
    for row in range(scores.shape[0]):
        for entry in range(seen.starts[row], seen.starts[row + 1]):
            listable[seen.columns[entry]] = False
        _rank_row(scores[row], items, listable, columns[row], best[row])
        for entry in range(seen.starts[row], seen.starts[row + 1]):
            listable[seen.columns[entry]] = allowed[seen.columns[entry]]


@kernel
def rank_in_order(order: AnyIntegers, listable: Flags, seen: Csr, columns: Rows, places: AnyIntegers) -> None:
    """Write for each row of `seen` the first n of `order` that are listable and not seen, and where they are in it."""
    mine = listable.copy()
    for row in range(columns.shape[0]):
        own = seen.columns[seen.starts[row] : seen.starts[row + 1]]
        for column in own:
            mine[column] = False
        n_listed, place = 0, 0
        while n_listed < columns.shape[1] and place < order.size:
            if mine[order[place]]:
                columns[row, n_listed], places[row, n_listed] = order[place], place
                n_listed += 1
            place += 1
        columns[row, n_listed:] = NO_ITEM
        places[row, n_listed:] = NO_ITEM
        for column in own:
            mine[column] = listable[column]


@inner
def _add_up(neighbours: AnyIntegers, weights: AnyFloats, rated: Csr, tally: _Tally) -> int:
    """Add up the weighted rows of the neighbours (below 0: nobody), in order; return how many columns have any."""
    n_touched = 0
    for position in range(neighbours.size):
        neighbour, weight = neighbours[position], weights[position]
        if neighbour < 0:
            continue
        for entry in range(rated.starts[neighbour], rated.starts[neighbour + 1]):
            column = rated.columns[entry]
            if tally.state[column] == 0:
                tally.state[column] = _TOUCHED
                tally.touched[n_touched] = column
                n_touched += 1
            tally.sums[column] += weight * rated.values[entry]
    return n_touched


@kernel
def sum_by_neighbours(neighbours: AnyIntegers, weights: AnyFloats, rated: Csr, scores: Floats) -> None:
    """Write for each column the weights of the neighbours who have it, summed in their order; NaN where nobody has."""
    tally = _clean(np.ones(scores.size, dtype=np.bool_))
    n_touched = _add_up(neighbours, weights, rated, tally)
    scores[:] = np.nan
    for place in range(n_touched):
        scores[tally.touched[place]] = tally.sums[tally.touched[place]]


@inner
def _rank_unseen(
    neighbours: AnyIntegers,
    weights: AnyFloats,
    rated: Csr,
    seen: AnyIntegers,
    tally: _Tally,
    columns: AnyIntegers,
    scores: AnyFloats,
) -> None:
    """Write the n best columns that the neighbours have and that are not `seen`; leave the tally clean."""
    for column in seen:
        tally.state[column] = _SEEN
    n_listed = 0
    for place in range(_add_up(neighbours, weights, rated, tally)):
        column = tally.touched[place]
        if tally.allowed[column]:
            n_listed = insert(column, tally.sums[column], columns, scores, n_listed)
        tally.sums[column], tally.state[column] = 0.0, 0
    for column in seen:
        tally.sums[column], tally.state[column] = 0.0, 0
    columns[n_listed:] = NO_ITEM
    scores[n_listed:] = np.nan


@kernel
def rank_by_neighbours(
    neighbours: AnyIntegers, weights: AnyFloats, rated: Csr, seen: Csr, allowed: Flags, columns: Rows, scores: Floats
) -> None:
    """Write for each row its n best items that its neighbours have and that are not in its row of `seen`."""
    tally = _clean(allowed)
    for row in range(neighbours.shape[0]):
        own, near = seen.columns[seen.starts[row] : seen.starts[row + 1]], neighbours[row]
        _rank_unseen(near, weights[row], rated, own, tally, columns[row], scores[row])


@kernel
def rank_by_profiles(profiles: Csr, near: Csr, allowed: Flags, columns: Rows, scores: Floats) -> None:
    """Write for each profile its n best items, item-based; `near` has a row for each item: whose neighbour it is."""
    tally = _clean(allowed)
    for row in range(columns.shape[0]):
        first, last = profiles.starts[row], profiles.starts[row + 1]
        own, values = profiles.columns[first:last], profiles.values[first:last]
        _rank_unseen(own, values, near, own, tally, columns[row], scores[row])
