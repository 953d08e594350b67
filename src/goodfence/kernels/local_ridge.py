"""One small weighted ridge regression per person, on features of the items she rated."""

from __future__ import annotations

import numpy as np

from goodfence.kernels.compiled import kernel
from goodfence.kernels.types import Floats, Ints


@kernel
def solve_person(
    items: Ints, targets: Floats, features: Floats, weights: Floats, penalties: Floats
) -> Floats:
    """Return the coefficients that minimise the weighted squared error plus the penalties' squares."""
    n_features = features.shape[1]
    matrix = np.zeros((n_features, n_features))
    vector = np.zeros(n_features)
    for at in range(len(items)):
        item = items[at]
        for row in range(n_features):
            weighted = weights[item] * features[item, row]
            vector[row] += weighted * targets[at]
            for column in range(row + 1):
                matrix[row, column] += weighted * features[item, column]
    for row in range(n_features):
        for column in range(row):
            matrix[column, row] = matrix[row, column]
        matrix[row, row] += penalties[row]
    return np.linalg.solve(matrix, vector)


@kernel
def predict_rows(
    wanted: Ints,
    ends: Ints,
    columns: Ints,
    indptr: Ints,
    indices: Ints,
    ratings: Floats,
    effects: Floats,
    features: Floats,
    weights: Floats,
    penalties: Floats,
    out: Floats,
) -> None:
    """Predict columns[ends[j]:ends[j + 1]] for the person in row wanted[j], from her own ratings.

    `ratings` and `out` are measured from the centre of the scale, as `effects` are.
    """
    for turn in range(len(wanted)):
        begin, end = indptr[wanted[turn]], indptr[wanted[turn] + 1]
        items = indices[begin:end]
        targets = ratings[begin:end] - effects[items]
        answer = solve_person(items, targets, features, weights, penalties)
        for at in range(ends[turn], ends[turn + 1]):
            value = effects[columns[at]]
            for feature in range(len(answer)):
                value += features[columns[at], feature] * answer[feature]
            out[at] = value
