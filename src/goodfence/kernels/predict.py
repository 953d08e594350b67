"""Predictions [PRED]: what the chosen neighbours rated, weighted by how similar they are.

For one row all sums are formed in the order of its neighbours, so `predict`, `recommend` and `answer` agree to
the last bit. `fixed` is the denominator for the reading over all neighbours, or negative for the reading over
those who rated the item.
"""

from __future__ import annotations

import numpy as np

from goodfence.kernels.compiled import kernel
from goodfence.kernels.types import Floats, Ints


@kernel
def add_neighbours(
    neighbours: Ints,
    weights: Floats,
    starts: Ints,
    columns: Ints,
    ratings: Floats,
    sums: Floats,
    sizes: Floats,
) -> None:
    """Add each neighbour's weighted ratings to `sums` and the sizes of the weights to `sizes`, by column."""
    for position in range(neighbours.size):
        weight = weights[position]
        size = abs(weight)
        neighbour = neighbours[position]
        for entry in range(starts[neighbour], starts[neighbour + 1]):
            column = columns[entry]
            sums[column] += weight * ratings[entry]
            sizes[column] += size


@kernel
def clear_neighbours(
    neighbours: Ints, starts: Ints, columns: Ints, sums: Floats, sizes: Floats
) -> None:
    """Set back to zero what `add_neighbours` touched."""
    for position in range(neighbours.size):
        neighbour = neighbours[position]
        for entry in range(starts[neighbour], starts[neighbour + 1]):
            sums[columns[entry]] = 0.0
            sizes[columns[entry]] = 0.0


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

    A row with few cells looks them up; a row with many adds up all that its neighbours rated. Both give the
    same sums in the same order.
    """
    sums = np.zeros(n_columns)
    sizes = np.zeros(n_columns)
    for group in range(groups.size - 1):
        row = rows[group]
        near, weight = neighbours[row], weights[row]
        fixed = -1.0 if over_raters else np.abs(weight).sum()
        n_rated = 0
        for neighbour in near:
            n_rated += starts[neighbour + 1] - starts[neighbour]
        n_cells = groups[group + 1] - groups[group]
        look_up = n_cells * near.size * 8 < n_rated
        if not look_up:
            add_neighbours(near, weight, starts, columns, ratings, sums, sizes)
        for cell in range(groups[group], groups[group + 1]):
            column = cells[cell]
            total, size = sums[column], sizes[column]
            if look_up:
                total, size = predict_one(column, near, weight, starts, columns, ratings)
            predictions[cell] = divided(total, size, fixed)
        if not look_up:
            clear_neighbours(near, starts, columns, sums, sizes)


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
