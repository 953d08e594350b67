"""Sums over pairs of items, user by user, as integers to be released.

What a user adds depends on that user's ratings and on public numbers alone, by operations that are exact or correctly
rounded, so it is the same to the last bit whoever else is in the data. Nothing here raises.
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
    scale: tuple[int, int],
    size: float,
    power: int,
    out: AnyIntegers,
) -> None:
    """Write the integers nearest to b, b·a and b·a² of each user, b = size/(n - a² + spare/unit²)^(power/2).

    n is the number of the user's items, a the sum of `centre` over them in units of 1/unit. What is under the root is
    exact below 2^53. A user without items gets zeros.
    """
    unit, spare = scale
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
    """Fill rows first..last-1, zero above the diagonal: out[i, j] = sum of the weights of the users who have both.

    `by_item` holds each user of an item, and the position in `by_user`, which holds the items of each user, ascending.
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
    """Turn m_ij above the diagonal into the integer nearest to (m_ij - z_i v_j - v_i z_j + total v_i v_j)/16.

    z are the `sums`, v the `centre`.
    """
    n_items = len(matrix)
    for one in range(n_items):
        for two in range(one + 1, n_items):
            value = np.float64(matrix[one, two]) - sums[one] * centre[two]
            value = value - centre[one] * sums[two] + total * centre[one] * centre[two]
            matrix[one, two] = np.int64(np.rint(value / 16.0))


@kernel
def user_scales(starts: AnyIntegers, values: AnyIntegers, power: int, size: float) -> AnyFloats:
    """Return size/|x|^power for each user's vector x of integers; 0 for the vector of zeros."""
    out = np.zeros(len(starts) - 1, dtype=np.float64)
    for row in range(len(starts) - 1):
        squares = np.int64(0)
        for at in range(starts[row], starts[row + 1]):
            squares += values[at] * values[at]
        if squares > 0:
            root = np.float64(squares) if power == 2 else np.sqrt(np.float64(squares))
            out[row] = size / root
    return out


@kernel
def add_pairs(
    first: int, last: int, by_item: Csr, by_user: Csr, scales: AnyFloats, toward_zero: bool, out: AnyFloats
) -> None:
    """Fill rows first..last-1 above the diagonal: out[i, j] = sum over users of round(scale·x_i·x_j), in float64.

    As in `add_co_occurrences`; `toward_zero` cuts the products, otherwise they are rounded to the nearest integer.
    """
    for item in range(first, last):
        row = out[item]
        for visit in range(by_item.starts[item], by_item.starts[item + 1]):
            user, own = by_item.columns[visit], by_item.values[visit]
            factor = scales[user] * by_user.values[own]
            if toward_zero:
                for at in range(own + 1, by_user.starts[user + 1]):
                    row[by_user.columns[at]] += np.trunc(factor * by_user.values[at])
            else:
                for at in range(own + 1, by_user.starts[user + 1]):
                    row[by_user.columns[at]] += np.rint(factor * by_user.values[at])


@kernel
def add_projected(rows: Csr, directions: AnyIntegers, longest: float, size: float, out: AnyIntegers) -> None:
    """Add to out[i] every user's size·x_i·s, rounded: s is their score along the directions without item i.

    `rows` holds the residuals x of each user, `directions` a row for each item, both integers. Scores Zᵀx/|x| that are
    longer than `longest` are shortened to it.
    """
    n_directions = directions.shape[1]
    along, score = np.zeros(n_directions, dtype=np.int64), np.zeros(n_directions)
    for row in range(len(rows.starts) - 1):
        begin, end = rows.starts[row], rows.starts[row + 1]
        squares = np.int64(0)
        along[:] = 0
        for at in range(begin, end):
            value, direction = rows.values[at], directions[rows.columns[at]]
            squares += value * value
            for one in range(n_directions):
                along[one] += value * direction[one]
        if squares == 0:
            continue
        norm = np.sqrt(np.float64(squares))
        for at in range(begin, end):
            item, value = rows.columns[at], rows.values[at]
            length = 0.0
            for one in range(n_directions):
                score[one] = np.float64(along[one] - value * directions[item, one]) / norm
                length += score[one] * score[one]
            length = np.sqrt(length)
            factor = size * value
            if length > longest:
                factor *= longest / length
            for one in range(n_directions):
                out[item, one] += np.int64(np.rint(factor * score[one]))
