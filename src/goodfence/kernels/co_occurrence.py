"""Which items go together, as integers: what each user adds, and its sum over users.

What a user adds rests on that user's events and on public numbers alone, computed by operations that are exact or
correctly rounded, so it is the same to the last bit whoever else is in the data. Nothing here raises.
"""

from __future__ import annotations

import numpy as np

from goodfence.arrays import AnyFloats, AnyIntegers, Csr
from goodfence.kernels import kernel


@kernel
def weigh_users(
    starts: AnyIntegers,
    columns: AnyIntegers,
    centre: AnyIntegers,
    unit: int,
    spare: int,
    size: float,
    power: int,
    out: AnyIntegers,
) -> None:
    """Write for each user the integers nearest to b, b·a and b·a², where b = size/(n - a² + spare/unit²)^(power/2).

    n is the number of the user's items, a the sum of `centre` over them, in units of 1/unit. All under the root is an
    integer in units of 1/unit², and exact below 2^53. A user without items gets zeros.
    """
    square = np.int64(unit) * np.int64(unit)
    for row in range(len(starts) - 1):
        begin, end = starts[row], starts[row + 1]
        out[row] = 0
        if begin == end:
            continue
        total = np.int64(0)
        for at in range(begin, end):
            total += centre[columns[at]]
        left = (end - begin) * square + spare - total * total
        share = np.float64(left) / np.float64(square)
        weight = size / np.sqrt(share) if power == 1 else size / share
        along = np.float64(total) / np.float64(unit)
        out[row, 0] = np.int64(np.rint(weight))
        out[row, 1] = np.int64(np.rint(weight * along))
        out[row, 2] = np.int64(np.rint(weight * along * along))


@kernel
def add_co_occurrences(
    first: int, last: int, by_item: Csr, by_user: Csr, weights: AnyIntegers, out: AnyIntegers
) -> None:
    """Fill rows first..last-1 above the diagonal: out[i, j] = sum of the weights of the users who have both i and j.

    Parameters
    ----------
    by_item
        For each item who has it, and at which position of `by_user`.
    by_user
        For each user which items, ascending.
    weights
        One integer a user.
    out
        Rows first..last-1 must be zero above the diagonal.
    """
    for item in range(first, last):
        row = out[item]
        for visit in range(by_item.starts[item], by_item.starts[item + 1]):
            user = by_item.columns[visit]
            weight = weights[user]
            for at in range(by_item.values[visit] + 1, by_user.starts[user + 1]):
                row[by_user.columns[at]] += weight


@kernel
def subtract_centre(matrix: AnyIntegers, sums: AnyFloats, total: float, centre: AnyFloats) -> None:
    """Turn each m_ij above the diagonal into the integer nearest to (m_ij - z_i v_j - v_i z_j + total v_i v_j)/16.

    z are the `sums`, v the `centre`.
    """
    n_items = len(matrix)
    for one in range(n_items):
        for two in range(one + 1, n_items):
            value = np.float64(matrix[one, two]) - sums[one] * centre[two]
            value = value - centre[one] * sums[two] + total * centre[one] * centre[two]
            matrix[one, two] = np.int64(np.rint(value / 16.0))
