"""Lists of the best items: what the neighbours of a row have in common, and the n best of some scores.

For one row all sums are formed in the order of its neighbours, so a list in an attack, in `recommend` and in
`recommend_many` is the same to the last bit. Of equal scores the lower column is better.
"""

from __future__ import annotations

import numpy as np

from goodfence.arrays import AnyFloats, AnyIntegers, Csr, Flags, Floats, Rows
from goodfence.kernels import kernel

NO_ITEM = -1
"""The column of a place in a list that no item takes."""


@kernel
def insert(
    column: int, score: float, columns: AnyIntegers, scores: AnyFloats, n_listed: int
) -> int:
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
    while place > 0 and (
        scores[place - 1] < score or (scores[place - 1] == score and columns[place - 1] > column)
    ):
        columns[place], scores[place] = columns[place - 1], scores[place - 1]
        place -= 1
    columns[place], scores[place] = column, score
    return n_listed


@kernel
def rank_scores(
    scores: AnyFloats, seen: AnyIntegers, allowed: Flags, columns: AnyIntegers, best: AnyFloats
) -> None:
    """Write the n best allowed columns of one row of scores that are not among `seen`; NaN is no score."""
    barred = np.zeros(scores.size, dtype=np.bool_)
    for column in seen:
        barred[column] = True
    n_listed = 0
    for column in range(scores.size):
        if allowed[column] and not barred[column] and not np.isnan(scores[column]):
            n_listed = insert(column, scores[column], columns, best, n_listed)
    columns[n_listed:] = NO_ITEM
    best[n_listed:] = np.nan


@kernel
def rank_by_neighbours(
    neighbours: AnyIntegers,
    weights: AnyFloats,
    rated: Csr,
    seen: Csr,
    allowed: Flags,
    columns: Rows,
    scores: Floats,
) -> None:
    """Write for each row its n best items by the weights of the neighbours who have them, summed in their order.

    `seen` has a row for each of these rows: its items are not listed, nor is what no neighbour has. A neighbour below
    0 is nobody.
    """
    sums = np.zeros(allowed.size)
    touched = np.empty(allowed.size, dtype=np.int32)
    state = np.zeros(allowed.size, dtype=np.uint8)  # 1: some neighbour has it; 2: seen
    for row in range(neighbours.shape[0]):
        for entry in range(seen.starts[row], seen.starts[row + 1]):
            state[seen.columns[entry]] = 2
        n_touched = 0
        for position in range(neighbours.shape[1]):
            neighbour, weight = neighbours[row, position], weights[row, position]
            if neighbour < 0:
                continue
            for entry in range(rated.starts[neighbour], rated.starts[neighbour + 1]):
                column = rated.columns[entry]
                if state[column] == 0:
                    state[column] = 1
                    touched[n_touched] = column
                    n_touched += 1
                sums[column] += weight * rated.values[entry]
        n_listed = 0
        for place in range(n_touched):
            column = touched[place]
            if allowed[column]:
                n_listed = insert(column, sums[column], columns[row], scores[row], n_listed)
            sums[column] = 0.0
            state[column] = 0
        columns[row, n_listed:] = NO_ITEM
        scores[row, n_listed:] = np.nan
        for entry in range(seen.starts[row], seen.starts[row + 1]):
            state[seen.columns[entry]] = 0
            sums[seen.columns[entry]] = 0.0
