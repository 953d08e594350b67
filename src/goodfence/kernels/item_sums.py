"""Sums over people of what each of them contributes to the items she rated, in integers."""

from __future__ import annotations

import numpy as np

from goodfence.kernels.compiled import kernel
from goodfence.kernels.types import Ints


@kernel
def residuals(
    indptr: Ints, indices: Ints, ratings: Ints, centres: Ints, near: int, prior: int, wide: int
) -> Ints:
    """Return each rating less its item's centre and less its person's offset, clamped to ±`wide`.

    The offset is the sum of the person's ratings less their centres, each clamped to ±`near`, divided by
    `prior` more than their number, rounded down. All arithmetic is in integers.
    """
    out = np.empty(len(ratings), dtype=np.int64)
    for row in range(len(indptr) - 1):
        total = np.int64(0)
        for at in range(indptr[row], indptr[row + 1]):
            value = ratings[at] - centres[indices[at]]
            total += min(max(value, -near), near)
        offset = total // np.int64(indptr[row + 1] - indptr[row] + prior)
        for at in range(indptr[row], indptr[row + 1]):
            value = ratings[at] - centres[indices[at]] - offset
            out[at] = min(max(value, -wide), wide)
    return out


@kernel
def add_by_item(indices: Ints, values: Ints, weight: int, sums: Ints, counts: Ints) -> None:
    """Add each value to the sum of its item, and `weight` to its count."""
    for at in range(len(indices)):
        sums[indices[at]] += values[at]
        counts[indices[at]] += weight


@kernel
def add_normalised(
    indptr: Ints,
    indices: Ints,
    values: Ints,
    grid: int,
    stretch: float,
    floor: float,
    limit: int,
    sums: Ints,
    counts: Ints,
) -> None:
    """Add each person's values and ones, scaled so that all of hers together have a norm of at most `limit`.

    A value x (in units of 1/grid) enters as `stretch`·x beside its one. The person's vector of these is divided
    by its norm, or by `floor` where the norm is less, times `limit`, and cut to integers toward zero. The norm
    of the integers is then tested in integers; somebody who fails the test is left out.
    """
    for row in range(len(indptr) - 1):
        begin, end = indptr[row], indptr[row + 1]
        squares = 0.0
        for at in range(begin, end):
            scaled = stretch * values[at] / grid
            squares += scaled * scaled + 1.0
        size = limit / max(np.sqrt(squares), floor)
        one = np.int64(size)
        spent = np.int64(0)
        for at in range(begin, end):
            whole = np.int64(size * (stretch * values[at] / grid))
            spent += whole * whole + one * one
        if spent > limit * limit:
            continue
        for at in range(begin, end):
            sums[indices[at]] += np.int64(size * (stretch * values[at] / grid))
            counts[indices[at]] += one
