"""Sums over pairs of items, user by user, as integers to be released.

What a user adds depends on that user's ratings and on public numbers alone, by operations that are exact or correctly
rounded, so it is the same to the last bit whoever else is in the data. Nothing here raises.
"""

from __future__ import annotations

import numpy as np

from goodfence.arrays import AnyFloats, AnyIntegers, Csr
from goodfence.kernels import inner, kernel

COARSER = 64.0
"""What users add along the centre twice is in units so many times as large as what they add to pairs."""
_SPLIT = 134217729.0  # 2^27 + 1: cuts a float into two of half as many bits


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
    """Write the integers nearest to b, b·a and b·a²/64 of each user, b = size/(n - a² + spare/unit²)^(power/2).

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
        out[row, 2] = np.int64(np.rint(weight * along * along / COARSER))


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
def subtract_centre(matrix: AnyIntegers, sums: AnyIntegers, total: int, centre: AnyFloats) -> None:
    """Turn m_ij above the diagonal into the integer nearest to (m_ij - z_i v_j - v_i z_j + 64 total v_i v_j)/16.

    z are the `sums`, v the `centre`, of at most 26 bits. Sums, below 2^62, are cut into a float and what it leaves out:
    cells are off by rounding alone.
    """
    n_items = len(matrix)
    high = sums.astype(np.float64)
    low = (sums - high.astype(np.int64)).astype(np.float64)
    all_high = np.float64(total)
    all_low = np.float64(total - np.int64(all_high))
    for one in range(n_items):
        mine = centre[one]
        along, left = _product(COARSER * all_high, mine)
        left += COARSER * all_low * mine
        for two in range(one + 1, n_items):
            other = centre[two]
            value = float(matrix[one, two])
            rest = float(matrix[one, two] - np.int64(value))
            first, lost = _product(high[one], other)
            value, cut = _sum(value, -first)
            rest += cut - (lost + low[one] * other)
            second, lost = _product(high[two], mine)
            value, cut = _sum(value, -second)
            rest += cut - (lost + low[two] * mine)
            both, lost = _product(along, other)
            value, cut = _sum(value, both)
            rest += cut + (lost + left * other)
            whole = np.rint(value / 16.0)
            matrix[one, two] = np.int64(whole) + np.int64(np.rint((value - 16.0 * whole + rest) / 16.0))


@inner
def _product(number: float, short: float) -> tuple[float, float]:
    """Return a product, and what its rounding leaves out [Dekker 1971]; `short` has at most 26 bits."""
    product, cut = number * short, _SPLIT * number
    first = cut - (cut - number)
    return product, (first * short - product) + (number - first) * short


@inner
def _sum(one: float, two: float) -> tuple[float, float]:
    """Return a sum, and what its rounding leaves out [Knuth 1969]."""
    total = one + two
    part = total - one
    return total, (one - (total - part)) + (two - part)


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
