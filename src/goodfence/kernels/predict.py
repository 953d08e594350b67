"""Predictions [PRED]: what the chosen neighbours rated, weighted by how similar they are.

For one row all sums are formed in the order of its neighbours, so `predict`, `recommend` and `answer` agree to
the last bit. `fixed` is the denominator for the reading over all neighbours, or negative for the reading over
those who rated the item.
"""

from __future__ import annotations

import numpy as np

from goodfence.kernels.compiled import kernel
from goodfence.kernels.types import Floats, Ints

LOOK_UP_COST = 30
"""What looking one column up in one row costs, in steps of walking through a row."""


@kernel
def add_neighbours(
    neighbours: Ints,
    weights: Floats,
    starts: Ints,
    columns: Ints,
    ratings: Floats,
    places: Ints,
    sums: Floats,
    sizes: Floats,
) -> None:
    """Add each neighbour's weighted ratings, and the sizes of the weights, at the places of their columns.

    `places[column]` says where a column's sums are kept; a negative place is not asked for.
    """
    for position in range(neighbours.size):
        weight = weights[position]
        size = abs(weight)
        neighbour = neighbours[position]
        for entry in range(starts[neighbour], starts[neighbour + 1]):
            place = places[columns[entry]]
            if place >= 0:
                sums[place] += weight * ratings[entry]
                sizes[place] += size


@kernel
def divided(total: float, size: float, fixed: float) -> float:
    """Return the prediction from its two sums; NaN where no neighbour with a weight rated the item."""
    if size == 0.0:
        return float(np.nan)
    return total / (fixed if fixed >= 0.0 else size)


@kernel
def search(starts: Ints, columns: Ints, row: int, column: int) -> int:
    """Return where `column` stands in `row`, or -1."""
    low, high = starts[row], starts[row + 1]
    while low < high:
        middle = (low + high) // 2
        if columns[middle] < column:
            low = middle + 1
        else:
            high = middle
    if low < starts[row + 1] and columns[low] == column:
        return int(low)
    return -1


@kernel
def predict_one(
    column: int, neighbours: Ints, weights: Floats, starts: Ints, columns: Ints, ratings: Floats
) -> tuple[float, float]:
    """Return the two sums of one prediction, by looking the column up in each neighbour's row."""
    total, size = 0.0, 0.0
    for position in range(neighbours.size):
        entry = search(starts, columns, neighbours[position], column)
        if entry >= 0:
            total += weights[position] * ratings[entry]
            size += abs(weights[position])
    return total, size


@kernel
def predict_cells(
    groups: Ints,
    rows: Ints,
    cells: Ints,
    neighbours: Ints,
    weights: Floats,
    starts: Ints,
    columns: Ints,
    ratings: Floats,
    over_raters: bool,
    n_columns: int,
    predictions: Floats,
) -> None:
    """Predict the cells `cells[groups[g]:groups[g + 1]]` of row `rows[g]`, for each group g.

    A row with few cells looks them up in each neighbour's row; one with many walks through all that the
    neighbours rated. Both give the same sums in the same order.
    """
    places = np.full(n_columns, -1, dtype=np.int32)
    sums = np.zeros(n_columns)
    sizes = np.zeros(n_columns)
    for group in range(groups.size - 1):
        first, last = groups[group], groups[group + 1]
        near, weight = neighbours[rows[group]], weights[rows[group]]
        fixed = -1.0 if over_raters else np.abs(weight).sum()
        n_rated = 0
        for neighbour in near:
            n_rated += starts[neighbour + 1] - starts[neighbour]
        if (last - first) * near.size * LOOK_UP_COST < n_rated:
            for cell in range(first, last):
                total, size = predict_one(cells[cell], near, weight, starts, columns, ratings)
                predictions[cell] = divided(total, size, fixed)
            continue
        n_places = 0
        for cell in range(first, last):
            if places[cells[cell]] < 0:
                places[cells[cell]] = n_places
                sums[n_places] = 0.0
                sizes[n_places] = 0.0
                n_places += 1
        add_neighbours(near, weight, starts, columns, ratings, places, sums, sizes)
        for cell in range(first, last):
            place = places[cells[cell]]
            predictions[cell] = divided(sums[place], sizes[place], fixed)
        for cell in range(first, last):
            places[cells[cell]] = -1


@kernel
def predict_for_profile(
    profile: Floats,
    rows: Ints,
    neighbours: Ints,
    weights: Floats,
    over_raters: bool,
    predictions: Floats,
) -> None:
    """Predict each of `rows` from one column of ratings: `profile[j]` is row j's, NaN where it has none.

    Item-based: the rows are items, the column is what one person rated.
    """
    for position in range(rows.size):
        row = rows[position]
        total, size, fixed = 0.0, 0.0, 0.0
        for rank in range(neighbours.shape[1]):
            weight = weights[row, rank]
            rating = profile[neighbours[row, rank]]
            fixed += abs(weight)
            if not np.isnan(rating):
                total += weight * rating
                size += abs(weight)
        predictions[position] = divided(total, size, -1.0 if over_raters else fixed)
