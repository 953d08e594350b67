"""What two rows have in common, summed for one row against every row of a block.

A block is given by its columns: for each item who rated it how. Columns are walked in ascending order, so each sum is
the same in any tile, thread or cluster. Positions are unsigned: a signed index would be tested for wrapping round.
"""

from __future__ import annotations

import numpy as np

from goodfence.arrays import AnyFloats, AnyIntegers, Csr
from goodfence.kernels import inner, kernel

ROUNDING = 1e-14


@kernel
def add_dots(columns: AnyIntegers, values: AnyFloats, block: Csr, dots: AnyFloats) -> None:
    """Add to `dots[j]` the dot product of the row (`columns`, `values`) with row j of the block."""
    for position in range(columns.size):
        column, value = columns[position], values[position]
        for entry in range(np.uint64(block.starts[column]), np.uint64(block.starts[column + 1])):
            dots[np.uint32(block.columns[entry])] += value * block.values[entry]


@kernel
def add_counted_dots(columns: AnyIntegers, values: AnyFloats, block: Csr, sums: AnyFloats) -> None:
    """Add to `sums[j]` the dot product with row j of the block, and how many columns they share."""
    for position in range(columns.size):
        column, value = columns[position], values[position]
        for entry in range(np.uint64(block.starts[column]), np.uint64(block.starts[column + 1])):
            row = np.uint32(block.columns[entry])
            sums[row, 0] += value * block.values[entry]
            sums[row, 1] += 1.0


@kernel
def add_moments(columns: AnyIntegers, values: AnyFloats, block: Csr, moments: AnyFloats) -> None:
    """Add to `moments[j]` six sums over the columns shared with row j: 1, own, other's, both squared, the product."""
    for position in range(columns.size):
        column, value = columns[position], values[position]
        for entry in range(np.uint64(block.starts[column]), np.uint64(block.starts[column + 1])):
            sums = moments[np.uint32(block.columns[entry])]
            rating = block.values[entry]
            sums[0] += 1.0
            sums[1] += value
            sums[2] += rating
            sums[3] += value * value
            sums[4] += rating * rating
            sums[5] += value * rating


@inner
def cosine(dot: float, squared_norm: float, other_squared_norm: float) -> float:
    """Return dot / (norm x other norm), so that exactly equal fractions give exactly equal floats.

    With integers, `dot * dot` and the product of the squared norms are exact, and division and square root are
    correctly rounded: the result depends on the fraction alone, and never falls when the fraction grows.
    """
    product = squared_norm * other_squared_norm
    if product <= 0.0:
        return 0.0
    size = float(np.sqrt(dot * dot / product))
    return size if dot >= 0.0 else -size


@kernel
def cosines(dots: AnyFloats, squared_norm: float, squared_norms: AnyFloats, similarities: AnyFloats) -> None:
    """Write the cosine of one row with every row of a block [COS]."""
    for j in range(dots.size):
        similarities[j] = cosine(dots[j], squared_norm, squared_norms[j])


@kernel
def paired_cosines(
    rows: Csr, others: Csr, squared_norms: AnyFloats, other_squared_norms: AnyFloats, similarities: AnyFloats
) -> None:
    """Write the cosine of each row with the other row of the same number."""
    for row in range(similarities.size):
        dot, place, end = 0.0, others.starts[row], others.starts[row + 1]
        for entry in range(rows.starts[row], rows.starts[row + 1]):
            while place < end and others.columns[place] < rows.columns[entry]:
                place += 1
            if place < end and others.columns[place] == rows.columns[entry]:
                dot += rows.values[entry] * others.values[place]
        similarities[row] = cosine(dot, squared_norms[row], other_squared_norms[row])


@kernel
def cosines_of_rows(
    rows: AnyIntegers, others: Csr, squared_norms: AnyFloats, block: Csr, similarities: AnyFloats
) -> None:
    """Write the cosines of some rows of `others` with each of them, (rows, others); `block` has them by column."""
    for place in range(rows.size):
        row = rows[place]
        own = slice(others.starts[row], others.starts[row + 1])
        similar = similarities[place]
        similar[:] = 0.0
        add_dots(others.columns[own], others.values[own], block, similar)
        cosines(similar, squared_norms[row], squared_norms, similar)


@kernel
def corated_cosines(moments: AnyFloats, similarities: AnyFloats) -> None:
    """Write the cosine over the co-rated columns only."""
    for j in range(moments.shape[0]):
        similarities[j] = cosine(moments[j, 5], moments[j, 3], moments[j, 4])


@kernel
def correlations(
    moments: AnyFloats, total: float, count: float, totals: AnyFloats, counts: AnyFloats, similarities: AnyFloats
) -> None:
    """Write Pearson's correlation over the co-rated columns; a negative `count` centres on these alone.

    Otherwise `total / count` is the mean of the row, and `totals / counts` are those of the block. Everything is
    multiplied by the counts first: with integers the sums stay exact.
    """
    for j in range(moments.shape[0]):
        n, own, other, own_squared, other_squared, dot = moments[j]
        sum_a, n_a, sum_b, n_b = total, count, totals[j], counts[j]
        if count < 0.0:
            sum_a, n_a, sum_b, n_b = own, n, other, n
        covariance = n_a * n_b * dot - n_a * sum_b * own - n_b * sum_a * other + sum_a * sum_b * n
        variance_a = n_a * n_a * own_squared - 2.0 * n_a * sum_a * own + sum_a * sum_a * n
        variance_b = n_b * n_b * other_squared - 2.0 * n_b * sum_b * other + sum_b * sum_b * n
        # What is left of a constant row after cancellation is rounding noise, not variance.
        varied = variance_a > ROUNDING * n_a * n_a * own_squared
        similarities[j] = 0.0
        if n > 0.0 and varied and variance_b > ROUNDING * n_b * n_b * other_squared:
            similarities[j] = min(1.0, max(-1.0, covariance / np.sqrt(variance_a * variance_b)))


@kernel
def inverse_differences(moments: AnyFloats, unit: float, similarities: AnyFloats) -> None:
    """Write 1 / (1 + mean squared difference) over the co-rated columns; ratings are in steps of 1 / `unit`."""
    for j in range(moments.shape[0]):
        n, _, _, own_squared, other_squared, dot = moments[j]
        similarities[j] = 0.0
        if n > 0.0:
            differences = max(0.0, own_squared + other_squared - 2.0 * dot) / (unit * unit)
            similarities[j] = 1.0 / (differences / n + 1.0)
