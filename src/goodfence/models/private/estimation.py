"""Post-processing: item biases and factors from what was released, each shrunk as its noise deserves.

Item biases: the distribution of (count, bias) over the items is not assumed but estimated, as a discrete prior on a
grid, fitted to the noisy data by expectation-maximisation (Kiefer and Wolfowitz's nonparametric maximum likelihood).
Each item's bias is then its posterior mean. So there is no threshold or strength to choose, and what rarely rated items
are like is learnt. Factors: variational Bayes on the covariance, least squares with a prior on half steps.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from scipy.linalg import LinAlgError, eigh
from scipy.special import ndtr

from goodfence.arrays import AnyFloats, Float32s, Floats, Integers
from goodfence.errors import require
from goodfence.models.private.item_model import ItemBiases, bounded
from goodfence.models.private.releases import HalfStep, ItemSums, Noisy, residual_grid
from goodfence.privacy.fixed_point import Clamps
from goodfence.privacy.noise import SIGMA

_GRID_COUNTS, _GRID_BIASES = 30, 31
_LARGEST_BIAS = 2.2
_PRIOR_STEPS = 30
_FIRST_SPREAD = 0.6
"""How widely biases lie before anything is known of them; where the estimate of their distribution begins."""
_CLEAR = 4.0
"""How many standard deviations of its noise a count must have, to be believed by half."""
_ITEMS_AT_ONCE = 128
"""So few that what is computed of them stays in the processor's cache."""
_NEGLIGIBLE, _NOTHING = -40.0, 1e-20
"""Below these a likelihood (its logarithm) and a prior count as 0. So their products stay normal numbers: a processor
takes many times as long for numbers so small that they have lost their leading bits."""
_RATING_SPREAD = 1.05
"""How widely ratings lie about their user's mean, on the scale 1..5: a guess from experience, not from the data."""
_RESIDUAL_SPREAD = 0.93
"""The same about what is known of their user and item."""
MOST_FACTORS = 40
MOST_PUBLIC = 900
"""Public features: with what is found beside them they stay within `MOST_FEATURES`."""
_SPARE_FACTORS = 4
"""Factors tried beyond those whose eigenvalue stands out of the noise."""
_FACTOR_STEPS, _DAMPING = 25, 0.5
HALF_STEP_WEIGHT = 1.9
"""A rating's weight in the half step over its weight in the item sums, for residuals of ordinary size."""
_HALF_STEP_SPREAD, _HALF_STEP_SQUARE = 0.7, 0.11
_REFINE_STEPS = 15
_FIRST_VARIANCE = 0.15**2
_FREE_SCALE = 0.25
"""How widely users differ along each free factor: a public constant."""
_CURVED_SCALE = 0.053
"""The same along each curved factor, chosen on goodbooks and both movietweetings."""
_PUBLIC_SCALE = 0.3
"""How widely they differ along all public factors together: a public constant."""
_FARTHEST_DEVIATION = 4.0
_CONSTANT = 1e-9
"""A column that varies by less than this part of its size is taken as constant."""


_Block: TypeAlias = tuple[Integers, slice, Float32s]
"""Items, points of the grid, and the likelihood of the ones at the others."""


def estimate_biases(sums: ItemSums, wide: float, weight: float) -> ItemBiases:
    """Return the items' biases and counts, estimated from sums of residuals clamped at `wide`, each of this weight."""
    # A clamped residual follows its item bias only in part.
    slope = 2 * float(ndtr(wide / _RATING_SPREAD)) - 1
    variance = min(0.95, 0.7 * wide**2) * weight
    counts, biases = _grid(sums)
    blocks = _likelihood(sums, counts, biases, slope, variance)
    prior = _prior(blocks, biases)
    weighted = np.stack([prior, prior * biases, prior * biases**2, prior * counts], axis=1)
    joint = np.empty((len(sums.sums), 4), dtype=np.float32)
    for items, points, likelihood in blocks:
        joint[items] = likelihood @ weighted[points].astype(np.float32)
    total = np.maximum(joint[:, 0].astype(np.float64), 1e-30)
    mean = joint[:, 1] / total
    variances = np.maximum(joint[:, 2] / total - mean**2, 1e-6)
    return ItemBiases(mean, variances, joint[:, 3] / total)


def listed_counts(sums: ItemSums, items: ItemBiases) -> Floats:
    """Return how often each item was rated, for lists: as released where that is far above its noise."""
    # Near its noise a count is what the prior makes of it: else rare items that were lucky would be listed.
    released = np.maximum(sums.counts, 0.0)
    clear = released**2 / (released**2 + (_CLEAR * sums.counts_noise) ** 2)
    return np.asarray(clear * released + (1 - clear) * items.counts)


def _grid(sums: ItemSums) -> tuple[Floats, Floats]:
    """Return the grid's counts (0 and a geometric sequence) and biases, one pair for each of its points."""
    largest = max(float(sums.counts.max()), 4 * sums.counts_noise)
    least = min(sums.counts_noise / 2, largest / 100)
    counts = np.concatenate([[0.0], np.geomspace(least, largest, _GRID_COUNTS - 1)])
    biases = np.linspace(-_LARGEST_BIAS, _LARGEST_BIAS, _GRID_BIASES)
    return np.repeat(counts, _GRID_BIASES), np.tile(biases, _GRID_COUNTS)


def _likelihood(sums: ItemSums, counts: Floats, biases: Floats, slope: float, variance: float) -> list[_Block]:
    """Return the likelihood of every item where it is not 0, each item's largest being 1, by their noisy counts."""
    grid = (_GRID_COUNTS, _GRID_BIASES)
    levels, means = counts[::_GRID_BIASES], (slope * counts * biases).reshape(grid)
    # A point stands for its surroundings.
    of_counts = sums.counts_noise**2 + (np.gradient(levels) / 2.5) ** 2
    of_sums = sums.sums_noise**2 + levels * variance
    constant = -0.5 * np.log(of_sums * of_counts)
    order, blocks = np.argsort(sums.counts, kind="stable"), []
    for start in range(0, len(order), _ITEMS_AT_ONCE):
        items = order[start : start + _ITEMS_AT_ONCE]
        own, total = sums.counts[items, None], sums.sums[items, None, None]
        log = (total - means) ** 2
        log *= (-0.5 / of_sums)[:, None]
        log += (constant - (own - levels) ** 2 / (2 * of_counts))[:, :, None]
        log = log.reshape(len(items), -1)
        log -= log.max(axis=1, keepdims=True)
        likely = np.flatnonzero(log.max(axis=0) > _NEGLIGIBLE)
        points = slice(int(likely[0]), int(likely[-1]) + 1)
        within = log[:, points]
        found = np.where(within > _NEGLIGIBLE, np.exp(within), 0.0).astype(np.float32)
        blocks.append((items, points, found))
    return blocks


def _prior(blocks: list[_Block], biases: Floats) -> Float32s:
    """Return the prior over the grid that makes all items together likeliest."""
    prior = np.exp(-(biases**2) / (2 * _FIRST_SPREAD**2)).astype(np.float32)
    prior /= prior.sum()
    for _ in range(_PRIOR_STEPS):
        weights = np.zeros_like(prior)
        for _, points, likelihood in blocks:
            weights[points] += (1 / np.maximum(likelihood @ prior[points], 1e-30)) @ likelihood
        prior *= weights
        prior /= prior.sum()
        prior[prior < _NOTHING] = 0.0
    return prior


def update_biases(found: Noisy, items: ItemBiases, wide: float | None, around: Floats | None = None) -> ItemBiases:
    """Return the biases after what the residuals say, each weighed by how sure it is.

    The residuals are from the biases of `items`, or from those `around` which they were taken; those of one rating
    each are clamped at `wide`, those of a user's ratings together are scaled.
    """
    expected, variance = _response(items, found.noise, wide)
    precision = expected**2 / variance + 1 / items.variances
    values = found.values if around is None else found.values - expected * (items.biases - around)
    change = expected * values / variance / precision
    return ItemBiases(np.clip(items.biases + change, -2.5, 2.5), 1 / precision, items.counts)


def expected_variance(items: ItemBiases, clamps: Clamps, mu: float) -> float:
    """Return the biases' mean variance over ratings that would be left after item residuals at privacy cost mu."""
    noise = SIGMA / residual_grid(clamps, len(items.biases), mu)
    expected, variance = _response(items, noise, clamps.wide)
    return items.mean(1 / (expected**2 / variance + 1 / items.variances))


def _response(items: ItemBiases, noise: float, wide: float | None) -> tuple[Floats, Floats]:
    """Return how much an item's sum of residuals moves with its bias, and the sum's variance."""
    if wide is None:
        moves = HALF_STEP_WEIGHT * items.counts
        return moves, noise**2 + _HALF_STEP_SPREAD * _HALF_STEP_SQUARE * moves
    slope = 2 * float(ndtr(wide / _RESIDUAL_SPREAD)) - 1
    return items.counts * slope, noise**2 + items.counts * min(0.75, 0.7 * wide**2)


def factorise(covariance: Noisy, reach: Floats, chance: float) -> tuple[Floats, Floats, Floats]:
    """Return means, covariance matrices (one an item) and variances of the items' factors, with these reaches a."""
    # Besides the noise, who happened to rate both items makes their covariance vary, by `chance` times a_i a_j.
    reach = np.maximum(reach, max(float(reach.max()), 1e-12) * 1e-3)
    # noise² + chance a_i a_j is nearly n_i n_j with these n; dividing by their roots makes all entries equally noisy.
    spread = np.sqrt(covariance.noise**2 + chance * reach**2)
    scale = (1 / np.sqrt(spread)).astype(np.float32)
    even = Noisy(covariance.values * scale[:, None] * scale[None, :], 1.0)
    return _factors(even, reach * scale)


def _factors(covariance: Noisy, reach: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the factors of a covariance whose entries are all equally noisy."""
    factors = _start(covariance, reach)
    n_items, rank = factors.shape
    spread = np.zeros((n_items, rank, rank))
    if rank == 0:
        return factors, spread, np.zeros(0)
    strength = 1 / (_mean_square(factors, reach) + 1e-6)
    squared = reach**2
    precision = squared / covariance.noise**2
    for _ in range(_FACTOR_STEPS):
        loaded = reach[:, None] * factors
        own = loaded[:, :, None] * loaded[:, None, :] + squared[:, None, None] * spread
        inverse = precision[:, None, None] * (own.sum(axis=0) - own)
        inverse[:, np.arange(rank), np.arange(rank)] += strength
        spread = np.linalg.inv(inverse)
        pull = (covariance.values @ loaded.astype(np.float32)).astype(np.float64)
        pull *= (reach / covariance.noise**2)[:, None]
        found = np.einsum("ijk,ik->ij", spread, pull)
        factors = _DAMPING * factors + (1 - _DAMPING) * found
        diagonal = np.einsum("ijj->j", spread)
        strength = n_items / ((factors**2).sum(axis=0) + diagonal + 1e-9)
    return factors, spread, 1 / strength


def _start(covariance: Noisy, reach: Floats) -> Floats:
    """Return factors from the leading eigenvectors, their eigenvalues shrunk by what noise adds."""
    n_items = len(reach)
    most = min(MOST_FACTORS, n_items - 1)
    if most < 1:
        return np.zeros((n_items, 0))
    values, vectors = leading_eigenvectors(covariance.values, most)
    edge = 2 * covariance.noise * np.sqrt(n_items)
    rank = min(most, int((values > edge).sum()) + _SPARE_FACTORS)
    kept = np.maximum(values[:rank].astype(np.float64), 1e-9)
    shrunk = np.sqrt(np.maximum(kept**2 - edge**2, (0.2 * kept) ** 2))
    factors = vectors[:, :rank] * np.sqrt(shrunk) / reach[:, None]
    limit = 3 * np.sqrt(_mean_square(factors, reach))
    return np.asarray(np.clip(factors, -limit, limit))


def leading_eigenvectors(matrix: AnyFloats, n: int) -> tuple[AnyFloats, AnyFloats]:
    """Return the n largest eigenvalues of a symmetric matrix, largest first, and their eigenvectors as columns."""
    # A direct method, because the same release must give the same factors: an iteration may begin anywhere.
    size = len(matrix)
    try:
        values, vectors = eigh(matrix, subset_by_index=(size - n, size - 1))
    except LinAlgError:  # it was released, so what is found of it may not raise: the slow way, and more exact
        values, vectors = eigh(matrix.astype(np.float64), driver="ev")
    return values[::-1][:n], vectors[:, ::-1][:, :n]


def _mean_square(factors: Floats, reach: Floats) -> Floats:
    return np.asarray((reach[:, None] ** 2 * factors**2).sum(axis=0) / (reach**2).sum())


def refine(step: HalfStep, items: ItemBiases, factors: Floats) -> tuple[ItemBiases, Floats]:
    """Return item biases and factors after the half step."""
    # Item i's row is W_i P theta_i plus noise: W_i its count, P the mean moment of (1, score), theta_i the change of
    # its bias and factors, about 0. How far factors change is estimated over all items.
    n_factors = factors.shape[1]
    data = (HALF_STEP_WEIGHT * items.counts)[:, None, None] * _moment(step.scores)
    noise = step.items_noise**2 * np.eye(n_factors + 1)
    noise = noise + (_HALF_STEP_SPREAD * _HALF_STEP_SQUARE) * data
    solved = np.linalg.solve(noise, data)  # noise^-1 W P; both are symmetric
    precision = data @ solved
    pull = np.einsum("ijk,ij->ik", solved, step.items)
    variance, shares = _FIRST_VARIANCE * np.eye(n_factors), items.shares
    prior = np.zeros(data.shape)  # the inverse of its variances, one matrix an item
    prior[:, 0, 0] = 1 / items.variances
    for _ in range(_REFINE_STEPS):
        prior[:, 1:, 1:] = np.linalg.inv(variance)
        spread = np.linalg.inv(precision + prior)
        change = np.einsum("ijk,ik->ij", spread, pull)
        moved, around = change[:, 1:], spread[:, 1:, 1:]
        variance = np.einsum("i,ij,ik->jk", shares, moved, moved)
        variance += np.einsum("i,ijk->jk", shares, around) + 1e-6 * np.eye(n_factors)
    biases = np.clip(items.biases + change[:, 0], -2.5, 2.5)
    variances = np.ascontiguousarray(spread[:, 0, 0], dtype=np.float64)
    return ItemBiases(biases, variances, items.counts), bounded(factors + change[:, 1:])


def _moment(scores: Floats) -> Floats:
    """Return the mean moment of (1, score): the noisy sum over the noisy number, made positive."""
    values, vectors = np.linalg.eigh(scores / max(float(scores[0, 0]), 1.0))
    return np.asarray((vectors * np.clip(values, 1e-3, None)) @ vectors.T)


def free_factors(items: ItemBiases) -> Floats:
    """Return two factors that cost no budget: an item's bias, and the logarithm of its count, both standardised."""
    floor = max(float(items.counts.max()) * 1e-5, 1e-12)
    popularity = np.log(np.maximum(items.counts, floor))
    columns = [_standardised(values, items.shares) for values in (items.biases, popularity)]
    return _FREE_SCALE * np.stack(columns, axis=1)


def curved_factors(items: ItemBiases) -> Floats:
    """Return two more that cost no budget: the square of the first free factor, less its mean, and their product."""
    # Some users like what is neither very good nor very bad, or little-known good items.
    quality, popularity = (free_factors(items) / _FREE_SCALE).T
    return _CURVED_SCALE * np.stack([quality**2 - 1, quality * popularity], axis=1)


def _standardised(values: Floats, shares: Floats) -> Floats:
    """Return the values from their mean over ratings, in standard deviations."""
    off = values - float(shares @ values)
    spread = np.sqrt(float(shares @ off**2)) + 1e-6
    return np.asarray(np.clip(off / spread, -_FARTHEST_DEVIATION, _FARTHEST_DEVIATION))


def public_factors(features: Floats | None, n_items: int) -> Floats:
    """Return public features, each column in standard deviations (four at most) from its mean; constant ones as 0."""
    if features is None:
        return np.zeros((n_items, 0))
    table = np.asarray(features, dtype=np.float64)
    sound = table.ndim == 2 and len(table) == n_items and bool(np.isfinite(table).all())
    rule = f"finite numbers, one row for each of the {n_items} items"
    require(sound, "features", rule, f"an array of shape {table.shape}")
    few = table.shape[1] <= MOST_PUBLIC
    require(few, "features", f"of at most {MOST_PUBLIC} columns", table.shape[1])
    largest = np.abs(table).max(axis=0, initial=0.0)
    shares = table / np.where(largest > 0, largest, 1.0)  # so that no square overflows
    off = shares - shares.mean(axis=0)
    spread = np.sqrt((off**2).mean(axis=0))
    standard = np.where(spread > _CONSTANT, off / np.maximum(spread, _CONSTANT), 0.0)
    cut = np.clip(standard, -_FARTHEST_DEVIATION, _FARTHEST_DEVIATION)
    return np.asarray(cut * (_PUBLIC_SCALE / np.sqrt(max(table.shape[1], 1))))
