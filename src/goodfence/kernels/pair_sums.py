"""Sums over people of products of their residuals for pairs of items, rounded to integers person by person."""

from __future__ import annotations

import numpy as np

from goodfence.kernels.compiled import kernel
from goodfence.kernels.types import Floats, Ints


@kernel
def person_scales(indptr: Ints, values: Ints, power: int, size: float) -> Floats:
    """Return size/|x|^power for each person's vector x of integers; 0 for the vector of zeros."""
    out = np.zeros(len(indptr) - 1, dtype=np.float64)
    for row in range(len(indptr) - 1):
        squares = np.int64(0)
        for at in range(indptr[row], indptr[row + 1]):
            squares += values[at] * values[at]
        if squares > 0:
            out[row] = (
                size / np.float64(squares) if power == 2 else size / np.sqrt(np.float64(squares))
            )
    return out


@kernel
def add_pairs(
    first: int,
    last: int,
    starts: Ints,
    people: Ints,
    places: Ints,
    indptr: Ints,
    items: Ints,
    values: Floats,
    scales: Floats,
    toward_zero: bool,
    out: Floats,
) -> None:
    """Fill rows first..last-1 of the strict upper triangle: out[i, j] = sum over people of round(scale·x_i·x_j).

    Parameters
    ----------
    starts, people, places
        For each item who rated it, and where her rating of it stands among hers.
    indptr, items, values
        For each person which items, ascending, with which residual (whole numbers).
    scales
        Each person's factor.
    toward_zero
        Cut the products toward zero; otherwise round them to the nearest integer.
    out
        Whole numbers in float64, exact below 2^53; rows first..last-1 must be zero above the diagonal.
    """
    for item in range(first, last):
        row = out[item]
        for visit in range(starts[item], starts[item + 1]):
            person = people[visit]
            factor = scales[person] * values[places[visit]]
            if toward_zero:
                for at in range(places[visit] + 1, indptr[person + 1]):
                    row[items[at]] += np.trunc(factor * values[at])
            else:
                for at in range(places[visit] + 1, indptr[person + 1]):
                    row[items[at]] += np.rint(factor * values[at])
