"""What two rows have in common, summed for one row against every row of a block.

A block of rows is given by its columns (who rated each item): `starts`, `raters`, `ratings`, as in a sparse
matrix. Columns are walked in ascending order, so each sum is the same in any tile, thread or cluster.
"""

from __future__ import annotations

import numpy as np

from goodfence.kernels.compiled import kernel
from goodfence.kernels.types import Floats, Ints

ROUNDING = 1e-14


@kernel
def add_dots(
    columns: Ints, values: Floats, starts: Ints, raters: Ints, ratings: Floats, dots: Floats
) -> None:
    """Add to `dots[j]` the dot product of the row (`columns`, `values`) with row j of the block."""
    for position in range(columns.size):
        column = columns[position]
        value = values[position]
        for entry in range(starts[column], starts[column + 1]):
            dots[raters[entry]] += value * ratings[entry]


@kernel
def add_moments(
    columns: Ints, values: Floats, starts: Ints, raters: Ints, ratings: Floats, moments: Floats
) -> None:
    """Add to `moments[j]` the six sums over the columns shared with row j of the block.

    In this order: how many, sum of own, sum of other's, own squared, other's squared, dot product.
    """
    for position in range(columns.size):
        column = columns[position]
        value = values[position]
        for entry in range(starts[column], starts[column + 1]):
            sums = moments[raters[entry]]
            rating = ratings[entry]
            sums[0] += 1.0
            sums[1] += value
            sums[2] += rating
            sums[3] += value * value
            sums[4] += rating * rating
            sums[5] += value * rating


@kernel
def cosine(dot: float, squared_norm: float, other_squared_norm: float) -> float:
    """Return dot / (norm x other norm), so that exactly equal fractions give exactly equal floats.

    With whole numbers, `dot * dot` and the product of the squared norms are exact, division and square root
    are correctly rounded: the result depends on the fraction alone, and never falls when the fraction grows.
    """
    product = squared_norm * other_squared_norm
    if product <= 0.0:
        return 0.0
    size = float(np.sqrt(dot * dot / product))
    return size if dot >= 0.0 else -size


@kernel
def cosines(dots: Floats, squared_norm: float, squared_norms: Floats, similarities: Floats) -> None:
    """Write the cosine of one row with every row of a block [COS]."""
    for j in range(dots.size):
        similarities[j] = cosine(dots[j], squared_norm, squared_norms[j])


@kernel
def corated_cosines(moments: Floats, similarities: Floats) -> None:
    """Write the cosine over the co-rated columns only."""
    for j in range(moments.shape[0]):
        similarities[j] = cosine(moments[j, 5], moments[j, 3], moments[j, 4])


@kernel
def correlations(
    moments: Floats,
    total: float,
    count: float,
    totals: Floats,
    counts: Floats,
    similarities: Floats,
) -> None:
    """Write Pearson's correlation over the co-rated columns.

    `total / count` is the mean that centres the row, `totals / counts` those of the block; a negative `count`
    centres both on the co-rated columns. Everything is multiplied by the counts first: with whole numbers the
    sums stay exact.
    """
    for j in range(moments.shape[0]):
        n, own, other, own_squared, other_squared, dot = moments[j]
        sum_a, n_a, sum_b, n_b = total, count, totals[j], counts[j]
        if count < 0.0:
            sum_a, n_a, sum_b, n_b = own, n, other, n
        if n == 0.0:
            similarities[j] = 0.0
            continue
        covariance = n_a * n_b * dot - n_a * sum_b * own - n_b * sum_a * other + sum_a * sum_b * n
        variance_a = n_a * n_a * own_squared - 2.0 * n_a * sum_a * own + sum_a * sum_a * n
        variance_b = n_b * n_b * other_squared - 2.0 * n_b * sum_b * other + sum_b * sum_b * n
        similarities[j] = 0.0
        # What is left of a constant row after cancellation is rounding noise, not variance.
        noise_a = ROUNDING * n_a * n_a * own_squared
        noise_b = ROUNDING * n_b * n_b * other_squared
        if variance_a > noise_a and variance_b > noise_b:
            product = variance_a * variance_b
            similarities[j] = min(1.0, max(-1.0, covariance / np.sqrt(product)))
