"""What is released: sums over users as integers, their sensitivity, and the same with noise.

Item sums and counts, item residuals, the overlap of ratings, the covariance of residuals, and half steps of alternating
least squares. Each has a function of its totals, which are exact integers, and one that publishes them. Proofs of the
sensitivities: `docs/mechanisms/private-means.md`, `docs/mechanisms/private-cf.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from goodfence.arrays import AnyIntegers, Csr, Floats, Integers, as_csr
from goodfence.errors import require
from goodfence.kernels.co_occurrence import add_pairs, user_scales
from goodfence.kernels.private import HalfStepLimits, add_by_item, add_half_steps, add_normalised
from goodfence.models.private.item_model import ItemBiases, ItemModel
from goodfence.parallel import ranges, run
from goodfence.privacy.fixed_point import UP, Clamps, UserProfiles, finest_grid, integer_sensitivity
from goodfence.privacy.guarantee import Unit
from goodfence.privacy.noise import SIGMA, Publisher

SUMS_GRID = 1 << 20
COVARIANCE_GRID = 1 << 18
MOST_COVARIANCE_ITEMS = 1 << 12
MOST_COUNTED = {"rating": 1000, "user": 400}
"""More ratings than this of one user do not count in the overlap."""
HALF_STEP_CLAMP = 1.5
"""Where residuals are clamped in a half step."""
SCORES_SHARE = 0.03
"""The part of a half step's budget that the moments of the scores take."""
SUMS_NAME, RESIDUALS_NAME, OVERLAP_NAME = "item sums and counts", "item residuals", "overlap of ratings"
COVARIANCE_NAME = "covariance of residuals"
_ANGLES = 1 << 14
_COVARIANCE_ROWS, _HALF_STEP_USERS = 16, 2048


class Noisy(NamedTuple):
    """Released numbers, and the standard deviation of their noise."""

    values: Any
    noise: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SumSettings:
    """Public constants of the item sums."""

    clamps: Clamps
    stretch: float
    """How much larger a residual enters than a count does."""
    floor: float
    """Unit user: nobody's contribution is blown up beyond 1/floor of it."""


SUMS = {
    "rating": SumSettings(clamps=Clamps(near=1.25, prior=15, wide=1.0), stretch=2.0, floor=1.0),
    "user": SumSettings(clamps=Clamps(near=2.0, prior=8, wide=2.0), stretch=1.5, floor=1.5),
}
"""The item sums, by unit."""
SUMS_WEIGHT = {"rating": 1.0, "user": 0.06}
"""The typical weight of one rating in the item sums: 1, or that of a user with some 80 ratings."""


@dataclass(frozen=True, slots=True)
class ItemSums:
    """Noisy sums of residuals and counts of all items, and the standard deviation of their noise."""

    sums: Floats
    counts: Floats
    sums_noise: float
    counts_noise: float


def release_sums(
    profiles: UserProfiles, settings: SumSettings, unit: Unit, mu: float, publisher: Publisher, name: str = SUMS_NAME
) -> ItemSums:
    """Release every item's sum of residuals and number of ratings at privacy cost mu; no item bias is known yet."""
    find = rating_totals if unit == "rating" else user_totals
    found = profiles.total(find, np.zeros(profiles.n_items), settings, mu)
    totals, sensitivity, (of_sums, of_counts) = found
    noisy = publisher.publish(name, totals, sensitivity)
    return ItemSums(noisy[0] / of_sums, noisy[1] / of_counts, publisher.sd / of_sums, publisher.sd / of_counts)


def sums_of(profiles: UserProfiles, settings: SumSettings, unit: Unit, mu: float) -> Integers:
    """Return the item sums as integers."""
    find = rating_totals if unit == "rating" else user_totals
    return find(profiles, np.zeros(profiles.n_items), settings, mu)[0]


def over_history(settings: SumSettings, history: bool) -> SumSettings:
    """Return the settings for user biases of all ratings by then, if these are wanted."""
    return replace(settings, clamps=replace(settings.clamps, history=history))


def rating_totals(
    profiles: UserProfiles, item_bias: Floats, settings: SumSettings, mu: float
) -> tuple[Integers, int, tuple[float, float]]:
    """Return sums and counts as integers, their sensitivity to one rating, and their grids."""
    n_items = profiles.most_items
    grid = finest_grid(lambda grid: rating_bound(settings, n_items, grid), mu)
    one = int(grid / settings.stretch)
    totals = np.zeros((2, profiles.n_items), dtype=np.int64)
    values = profiles.residuals(settings.clamps, item_bias, grid)
    add_by_item(*profiles.arriving(values), one, totals[0], totals[1])
    return totals, rating_bound(settings, n_items, grid), (grid, one)


def rating_bound(settings: SumSettings, n_items: int, grid: int) -> int:
    """Bound how far one rating more moves (sums, counts): its own row, and the others through the user bias."""
    _, own = settings.clamps.on(grid)
    one, others = int(grid / settings.stretch), settings.clamps.others_move(grid, n_items)
    return math.ceil(math.sqrt(own**2 + one**2 + others**2) * UP)


def user_totals(
    profiles: UserProfiles, item_bias: Floats, settings: SumSettings, mu: float
) -> tuple[Integers, int, tuple[float, float]]:
    """Return normalised sums and counts as integers, their sensitivity to one user, and their grids."""
    limit = integer_sensitivity(mu)
    require(1 <= limit < 1 << 31, "epsilon", "smaller, or larger, for integers of 64 bits", mu)
    totals = np.zeros((2, profiles.n_items), dtype=np.int64)
    values = profiles.residuals(settings.clamps, item_bias, SUMS_GRID)
    rows = Csr(profiles.indptr, profiles.indices, values)
    stretch, floor = settings.stretch, settings.floor
    add_normalised(rows, SUMS_GRID, stretch, floor, limit, totals[0], totals[1])
    return totals, limit, (stretch * limit, float(limit))


def release_residuals(
    profiles: UserProfiles,
    item_bias: Floats,
    clamps: Clamps,
    mu: float,
    publisher: Publisher,
    name: str = RESIDUALS_NAME,
) -> Noisy:
    """Release the sums of residuals from known item biases at privacy cost mu, for the unit rating."""
    totals, sensitivity, grid = profiles.total(residual_totals, item_bias, clamps, mu)
    noisy = publisher.publish(name, totals, sensitivity)
    return Noisy(noisy / grid, publisher.sd / grid)


def residual_totals(profiles: UserProfiles, item_bias: Floats, clamps: Clamps, mu: float) -> tuple[Integers, int, int]:
    """Return the sums as integers, their sensitivity to one rating, and their grid."""
    grid = residual_grid(clamps, profiles.most_items, mu)
    totals, unused = np.zeros((2, profiles.n_items), dtype=np.int64)
    values = profiles.residuals(clamps, item_bias, grid)
    add_by_item(*profiles.arriving(values), 0, totals, unused)
    return totals, residual_bound(clamps, profiles.most_items, grid), grid


def user_residual_totals(profiles: UserProfiles, item_bias: Floats, limit: int) -> Integers:
    """Return the sums of residuals from known item biases for the unit user, who moves them by at most `limit`."""
    # The half step of a model without factors: each user's residuals are scaled together.
    n_items = len(item_bias)  # fewer than now where the catalogue has grown since the batch came
    items = ItemBiases(item_bias, np.zeros(n_items), np.zeros(n_items))
    model = ItemModel.of(items, np.zeros((n_items, 0)))
    return half_step_totals(profiles, model, 0.0, limit, limit)[0][:, 0]


def residual_grid(clamps: Clamps, n_items: int, mu: float) -> int:
    """Return the grid on which the sums of residuals spend mu."""
    return finest_grid(lambda grid: residual_bound(clamps, n_items, grid), mu)


def residual_bound(clamps: Clamps, n_items: int, grid: int) -> int:
    """Bound how far one rating more moves the sums: by its own residual, and the others' through the user bias."""
    _, own = clamps.on(grid)
    return math.ceil(math.hypot(own, clamps.others_move(grid, n_items)) * UP)


def release_overlap(profiles: UserProfiles, unit: Unit, mu: float, publisher: Publisher) -> float:
    """Return, with noise, the sum over users of min(c, most)^1.5 (unit rating) or min(c, most) (unit user)."""
    target = integer_sensitivity(mu)
    total = profiles.total(overlap_sum, unit, target)
    noisy = publisher.publish(OVERLAP_NAME, total, target)
    grid = _overlap_grid(unit, target)
    return float(noisy[0] / grid) if grid > 0 else 0.0


def overlap_sum(profiles: UserProfiles, unit: Unit, target: int) -> Integers:
    """Return the sum over users as one integer."""
    return overlap_totals(profiles.counts, unit, target)


def overlap_totals(counts: Integers, unit: Unit, target: int) -> Integers:
    """Return the sum over users, by their numbers of ratings, as one integer."""
    counted = np.minimum(counts, MOST_COUNTED[unit]).astype(np.float64)
    # Not `** 1.5`: root and product are correctly rounded, so a user's number does not depend on whose are beside it.
    powers = counted * np.sqrt(counted) if unit == "rating" else counted
    each = np.floor(powers * _overlap_grid(unit, target)).astype(np.int64)
    return np.array([each.sum()], dtype=np.int64)


def _overlap_grid(unit: Unit, target: int) -> float:
    """Return the factor for which one unit of privacy moves the rounded sum by at most `target`."""
    most = MOST_COUNTED[unit]
    # One rating more moves c^1.5 by at most 1.5 sqrt(most); a user is there with all their ratings, or not.
    reach = 1.5 * math.sqrt(most) if unit == "rating" else float(most)
    # Rounding down can add 1 to the difference, and the rounding of the powers far less.
    return max(0, target - 2) / reach


def most_rated(counts: Floats, n: int) -> Integers:
    """Return the columns of the n items with the largest noisy counts, ascending."""
    return np.sort(np.argsort(-counts, kind="stable")[:n]).astype(np.int64)


def release_covariance(
    profiles: UserProfiles,
    item_bias: Floats,
    chosen: AnyIntegers,
    clamps: Clamps,
    unit: Unit,
    mu: float,
    publisher: Publisher,
) -> Noisy:
    """Release the covariance of the residuals of the chosen items (columns, ascending) at privacy cost mu."""
    # Each user enters as x xᵀ/|x| (unit rating) or x xᵀ/|x|² (unit user), above the diagonal only.
    target = integer_sensitivity(mu)
    size = covariance_size(clamps, unit, profiles.most_items, max(len(chosen), publisher.listed), target)
    n = len(chosen)  # the places of all pairs take much memory, and are found twice
    totals = profiles.total(pair_totals, item_bias, chosen, clamps, unit, size)[publisher.pairs(n)]
    noisy = publisher.publish(COVARIANCE_NAME, totals, target)
    matrix = np.zeros((n, n), dtype=np.float32)
    scale = size * COVARIANCE_GRID if unit == "rating" else size
    matrix[publisher.pairs(n)] = noisy / scale
    matrix += matrix.T
    return Noisy(matrix, publisher.sd / scale)


def covariance_noise(clamps: Clamps, unit: Unit, n_items: int, n_chosen: int, mu: float) -> float:
    """Return the standard deviation of the covariance's noise at privacy cost mu."""
    size = covariance_size(clamps, unit, n_items, n_chosen, integer_sensitivity(mu))
    if size <= 0:
        return math.inf
    return SIGMA / (size * COVARIANCE_GRID if unit == "rating" else size)


def covariance_size(clamps: Clamps, unit: Unit, n_items: int, n_chosen: int, target: int) -> float:
    """Return the factor on each user's matrix for which one unit of privacy moves the integers by `target`."""
    # Unit rating: each entry is within 1/2 + 2^-19 of its exact value in both data sets. Unit user: cutting toward
    # zero adds nothing.
    most = MOST_COVARIANCE_ITEMS
    require(n_chosen <= most, "n_chosen", f"at most {most}", n_chosen)
    if unit == "user":
        return target * math.sqrt(2) / UP
    rounding = (1 + 2.0**-18) * math.sqrt(n_chosen * (n_chosen - 1) / 2)
    spent = max(0.0, target - rounding)
    _, wide = clamps.on(COVARIANCE_GRID)
    return spent / (pairs_bound(wide, clamps.others_move(COVARIANCE_GRID, n_items)) * UP)


def pairs_bound(wide: float, move: float) -> float:
    """Bound how far one rating more moves the strict upper triangle of x xᵀ/|x|."""
    # The largest of h(a) = (wide sin a)² + (move + wide sin a cos a/(1 + sin a)/sqrt(2))² over a in [0, pi/2]. Its
    # derivative is at most 2 wide² + 2 wide(move + wide), which covers the points between those that are tried.
    angles = np.linspace(0.0, math.pi / 2, _ANGLES + 1)
    sine = np.sin(angles)
    block = move + wide * sine * np.cos(angles) / (1 + sine) / math.sqrt(2)
    tried = float(((wide * sine) ** 2 + block**2).max())
    between = (2 * wide**2 + 2 * wide * (move + wide)) * (math.pi / 2 / _ANGLES)
    return math.sqrt(tried + between)


def pair_totals(
    profiles: UserProfiles, item_bias: Floats, chosen: AnyIntegers, clamps: Clamps, unit: Unit, size: float
) -> Integers:
    """Return the sum over users of their rounded matrices, above the diagonal."""
    rows = chosen_residuals(profiles, item_bias, chosen, clamps)
    scales = user_scales(rows.indptr, rows.data, 1 if unit == "rating" else 2, size)
    return sum_pairs(rows, scales.astype(np.float64), toward_zero=unit == "user")


def chosen_residuals(
    profiles: UserProfiles, item_bias: Floats, chosen: AnyIntegers, clamps: Clamps
) -> sparse.csr_array:
    """Return all users' residuals of the chosen items on the grid, columns ascending."""
    values = profiles.residuals(clamps, item_bias, COVARIANCE_GRID)
    shape = (len(profiles.indptr) - 1, profiles.n_items)
    every = sparse.csr_array((values, profiles.indices, profiles.indptr), shape=shape)
    rows = sparse.csr_array(every[:, chosen])
    rows.sort_indices()
    return rows


def cells_by_item(rows: sparse.csr_array) -> Csr:
    """Return for each column the rows that have it, and where their cells are."""
    positions = (np.arange(rows.nnz), rows.indices, rows.indptr)
    columns = sparse.csr_array(positions, shape=rows.shape).tocsc()
    return as_csr(columns)


def sum_pairs(rows: sparse.csr_array, scales: Floats, *, toward_zero: bool) -> Integers:
    """Return the sum over users of scale·x xᵀ, each entry rounded by itself, above the diagonal."""
    n_items = rows.shape[1]
    by_item = cells_by_item(rows)
    by_user = Csr(rows.indptr, rows.indices, rows.data.astype(np.float64))
    out = np.zeros((n_items, n_items))

    def work(chunk: tuple[int, int]) -> None:
        add_pairs(*chunk, by_item, by_user, scales, toward_zero, out)

    run(work, ranges(n_items, _COVARIANCE_ROWS))
    return out.astype(np.int64)


@dataclass(frozen=True, slots=True)
class HalfStep:
    """For every item its noisy sum of residuals times (1, score), and the noisy moments of (1, score)."""

    items: Floats
    items_noise: float
    scores: Floats


def release_half_step(
    profiles: UserProfiles, model: ItemModel, longest: float, mu: float, publisher: Publisher
) -> HalfStep:
    """Release a half step for the unit user at privacy cost mu; scores longer than `longest` are shortened to it."""
    item_limit = integer_sensitivity(mu * math.sqrt(1 - SCORES_SHARE))
    score_limit = integer_sensitivity(mu * math.sqrt(SCORES_SHARE))
    for limit in (item_limit, score_limit):
        require(1 <= limit < 1 << 30, "epsilon", "smaller, or larger, for integers of 64 bits", mu)
    items, scores = profiles.total(half_step_totals, model, longest, item_limit, score_limit)
    noisy_items = publisher.publish("half step, items", items, item_limit)
    noisy_scores = publisher.publish("half step, scores", scores, score_limit)
    squared = 1 + longest**2
    grid = item_limit / math.sqrt(squared)
    symmetric = (noisy_scores + noisy_scores.T) / 2
    return HalfStep(noisy_items / grid, SIGMA / grid, symmetric / (score_limit / squared))


def half_step_totals(
    profiles: UserProfiles, model: ItemModel, longest: float, item_limit: int, score_limit: int
) -> tuple[Integers, Integers]:
    """Return both sums over users as integers; they are exact, so the order of the chunks does not matter."""
    n_features = model.features.shape[1]
    items = np.zeros((profiles.n_items, n_features), dtype=np.int64)
    scores = np.zeros((n_features, n_features), dtype=np.int64)
    known, adding = model.known, Lock()
    limits = HalfStepLimits(HALF_STEP_CLAMP, float(longest), item_limit, score_limit)

    def work(chunk: tuple[int, int]) -> None:
        own_items, own_scores = np.zeros_like(items), np.zeros_like(scores)
        add_half_steps(profiles.rows(*chunk), known, limits, own_items, own_scores)
        with adding:
            np.add(items, own_items, out=items)
            np.add(scores, own_scores, out=scores)

    run(work, ranges(len(profiles.indptr) - 1, _HALF_STEP_USERS))
    return items, scores
