"""Released quantity: how the residuals of pairs of chosen items go together, person by person, with noise.

Each person enters as x xᵀ/|x| (unit rating) or x xᵀ/|x|² (unit user), above the diagonal only. The proofs of the
sensitivities are in `docs/mechanisms/private-cf.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.engines.local.threads import ranges, run
from goodfence.errors import require
from goodfence.kernels.pair_sums import add_pairs, person_scales
from goodfence.models.private.people import Clamps, People, Unit
from goodfence.privacy.fixed_point import UP, Floats, Publisher, offset_move, whole_sensitivity
from goodfence.privacy.noise import SIGMA, Integers

NAME = "covariance of residuals"
GRID = 1 << 18
MOST_ITEMS = 1 << 12
_ROWS = 16
_ANGLES = 1 << 14


@dataclass(frozen=True, slots=True)
class Covariance:
    """The noisy symmetric matrix of the chosen items, its diagonal zero, and its noise."""

    matrix: npt.NDArray[np.float32]
    noise: float


def release_covariance(
    people: People,
    effects: Floats,
    chosen: npt.NDArray[np.integer],
    clamps: Clamps,
    unit: Unit,
    mu: float,
    publisher: Publisher,
) -> Covariance:
    """Release the covariance of the chosen items (columns, ascending) at the price mu."""
    target = whole_sensitivity(mu)
    size = covariance_size(clamps, unit, people.n_items, len(chosen), target)
    totals = pair_totals(people, effects, chosen, clamps, unit, size)
    above = np.triu_indices(len(chosen), 1)
    noisy = publisher.publish(NAME, totals[above], target)
    matrix = np.zeros(totals.shape, dtype=np.float32)
    scale = size * GRID if unit == "rating" else size
    matrix[above] = noisy / scale
    matrix += matrix.T
    return Covariance(matrix, SIGMA / scale)


def covariance_size(clamps: Clamps, unit: Unit, n_items: int, n_chosen: int, target: int) -> float:
    """Return the factor on each person's matrix for which one unit of privacy moves the integers by `target`.

    Unit rating: the factor times the sensitivity of x xᵀ/|x| on the grid, plus what rounding can add: each entry
    is within 1/2 + 2^-19 of its exact value in both data sets. Unit user: cutting toward zero adds nothing.
    """
    require(n_chosen <= MOST_ITEMS, "n_chosen", f"at most {MOST_ITEMS}", n_chosen)
    if unit == "user":
        return target * math.sqrt(2) / UP
    rounding = (1 + 2.0**-18) * math.sqrt(n_chosen * (n_chosen - 1) / 2)
    spent = max(0.0, target - rounding)
    near, wide = clamps.near_on(GRID), clamps.wide_on(GRID)
    return spent / (rating_bound(wide, offset_move(near, clamps.prior, n_items)) * UP)


def rating_bound(wide: float, move: float) -> float:
    """Bound how far one rating more moves the strict upper triangle of x xᵀ/|x|.

    The largest of h(a) = (wide sin a)² + (move + wide sin a cos a/(1 + sin a)/sqrt(2))² over a in [0, pi/2]. Its
    derivative is at most 2 wide² + 2 wide(move + wide), which covers the points between those that are tried.
    """
    angles = np.linspace(0.0, math.pi / 2, _ANGLES + 1)
    sine = np.sin(angles)
    block = move + wide * sine * np.cos(angles) / (1 + sine) / math.sqrt(2)
    tried = float(((wide * sine) ** 2 + block**2).max())
    between = (2 * wide**2 + 2 * wide * (move + wide)) * (math.pi / 2 / _ANGLES)
    return math.sqrt(tried + between)


def pair_totals(
    people: People,
    effects: Floats,
    chosen: npt.NDArray[np.integer],
    clamps: Clamps,
    unit: Unit,
    size: float,
) -> Integers:
    """Return the sum over people of their rounded matrices, above the diagonal."""
    rows = chosen_residuals(people, effects, chosen, clamps)
    scales = person_scales(rows.indptr, rows.data, 1 if unit == "rating" else 2, size)
    return sum_pairs(rows, scales.astype(np.float64), toward_zero=unit == "user")


def chosen_residuals(
    people: People, effects: Floats, chosen: npt.NDArray[np.integer], clamps: Clamps
) -> sparse.csr_array:
    """Return everybody's residuals of the chosen items on the grid, columns ascending."""
    values = people.residuals(clamps, effects, GRID)
    shape = (len(people.indptr) - 1, people.n_items)
    every = sparse.csr_array((values, people.indices, people.indptr), shape=shape)
    rows = sparse.csr_array(every[:, chosen])
    rows.sort_indices()
    return rows


def sum_pairs(rows: sparse.csr_array, scales: Floats, *, toward_zero: bool) -> Integers:
    """Return the sum over people of scale·x xᵀ, each entry rounded by itself, above the diagonal."""
    n_items = rows.shape[1]
    where = np.arange(rows.nnz)
    places = sparse.csr_array((where, rows.indices, rows.indptr), shape=rows.shape).tocsc()
    values = rows.data.astype(np.float64)
    out = np.zeros((n_items, n_items))

    def work(piece: tuple[int, int]) -> None:
        add_pairs(
            *piece,
            places.indptr,
            places.indices,
            places.data,
            rows.indptr,
            rows.indices,
            values,
            scales,
            toward_zero,
            out,
        )

    run(work, ranges(n_items, _ROWS))
    return out.astype(np.int64)
