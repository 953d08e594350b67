"""The covariance of items along a few directions, user by user: integers to be released.

As in `kernels/private.py` nothing here raises, and all operations are plain ones in a fixed order, so that what one
user adds is the same to the last bit whoever else is in the data.
"""

from __future__ import annotations

import numpy as np

from goodfence.arrays import AnyIntegers, Csr
from goodfence.kernels import kernel


@kernel
def add_projected(
    rows: Csr, directions: AnyIntegers, longest: float, size: float, out: AnyIntegers
) -> None:
    """Add to out[i] every user's size·x_i·s, rounded: s is their score along the directions without item i.

    Parameters
    ----------
    rows
        For each user which items with which residual x, integers.
    directions
        One row an item, integers.
    longest
        Scores Zᵀx/|x| longer than this are shortened to it, in the units of the directions.
    size
        The factor on what is added.
    out
        One row an item, one column a direction.
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
