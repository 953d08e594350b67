"""Half steps for the unit rating: the covariance of residuals once more, along the factors found so far.

A covariance has an entry for every pair of items, and one rating can move a whole row of it. Along a few directions Z
that are known already the same budget shows far more: what is released is C Z, one row an item, which one rating
moves only as far as its user's score along Z is long. This is a step of the power method with noise (Hardt and
Price 2014), with directions that were found in the noisy covariance. Proof of the sensitivity:
`docs/mechanisms/private-cf.md`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from goodfence.arrays import AnyIntegers, Csr, Floats, Integers
from goodfence.kernels.co_occurrence import add_projected
from goodfence.models.private.item_model import ItemBiases, bounded
from goodfence.models.private.releases import COVARIANCE_GRID
from goodfence.privacy.fixed_point import UP, Clamps, UserProfiles, integer_sensitivity
from goodfence.privacy.noise import Publisher

PROJECTED = Clamps(near=0.3, prior=200, wide=0.5)
"""The residuals of a half step. Their user bias is hardly taken off: what is left of it is one direction more, and
what one rating moves through it would be most of the noise."""
PROJECTED_NAME = "projected covariance"
LONGEST = 0.1
"""Scores longer than this are shortened to it."""
DIRECTION_GRID = 1 << 20
_GOLDEN = 0.30029
"""The largest value of sin a cos a/(1 + sin a), rounded up: that of sin a = (sqrt(5) - 1)/2."""
_OPERATOR_SLACK = 1 + 1e-6
_POPULAR = 0.1
"""An item rated this part as often as the most rated one counts half in the scores."""
_LONGEST_ROW = 1.2
"""No direction's row is longer than this times their root mean square, over items."""
_SQUARE = 0.18
"""The mean square of a clamped residual."""
_SCORES = 2.0
"""The mean square of a score, over what residuals without any structure would give."""
_ITEMS_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class Projected:
    """For every item its noisy sum of residuals times scores, the noise, and the directions of the scores."""

    rows: Floats
    noise: float
    directions: Floats


@dataclass(frozen=True, slots=True)
class FactorPosterior:
    """The factors that a covariance shows, and how unsure they are."""

    factors: Floats
    """One row for each item of the catalogue; zero for those that are not chosen."""
    chosen: Integers
    spread: Floats
    """The chosen items' covariance matrices."""
    variance: Floats
    """How widely factors lie over the items: all that is known of those that are not chosen."""


def find_directions(factors: Floats, counts: Floats) -> Integers:
    """Return directions along these factors, on the grid, whose scores are about equally wide."""
    # One rating moves a score by its item's row: rare items are left out by degrees, and long rows shortened.
    if factors.shape[1] == 0:
        return np.zeros(factors.shape, dtype=np.int64)
    weights = counts / max(float(counts.sum()), 1e-12)
    values, vectors = np.linalg.eigh((factors * weights[:, None]).T @ factors)
    even = factors @ (vectors / np.sqrt(np.maximum(values, 1e-9 * values[-1] + 1e-30)))
    even *= (counts / (counts + _POPULAR * max(float(counts.max()), 1e-12)))[:, None]
    lengths = np.sqrt((even**2).sum(axis=1))
    limit = _LONGEST_ROW * math.sqrt(float((lengths**2).mean()))
    even *= np.minimum(1.0, limit / np.maximum(lengths, 1e-12))[:, None]
    even /= max(largest_singular_value(even), 1e-12)
    return np.asarray(np.trunc(np.nan_to_num(even) * DIRECTION_GRID), dtype=np.int64)


def largest_singular_value(directions: Floats) -> float:
    """Return the largest singular value of a tall matrix."""
    squares = np.linalg.eigvalsh(directions.T @ directions)
    return math.sqrt(float(squares.max(initial=0.0)))


def projected_bound(clamps: Clamps, n_items: int, directions: AnyIntegers, longest: float) -> float:
    """Bound how far one rating more moves the rows, for residuals on the grid and scores in units of 1."""
    _, wide = clamps.on(COVARIANCE_GRID)
    move = clamps.others_move(COVARIANCE_GRID, n_items)
    plain = directions / DIRECTION_GRID
    stretch = largest_singular_value(plain) * _OPERATOR_SLACK
    row = math.sqrt(float((plain**2).sum(axis=1).max(initial=0.0))) * UP
    others = move * (longest + stretch) + wide * (row + _GOLDEN * longest)
    return math.hypot(wide * longest, others) * UP


def projected_size(clamps: Clamps, n_items: int, directions: AnyIntegers, longest: float, target: int) -> float:
    """Return the factor for which one unit of privacy moves the integers by `target`, 0 where rounding alone does."""
    # Every entry is within 1/2 + 2^-12 of its exact value in both data sets.
    rounding = (1 + 2.0**-11) * math.sqrt(directions.size)
    return max(0.0, target - rounding) / projected_bound(clamps, n_items, directions, longest)


def projected_totals(
    profiles: UserProfiles, item_bias: Floats, directions: AnyIntegers, clamps: Clamps, longest: float, size: float
) -> Integers:
    """Return the sum over users of their rounded rows."""
    values = profiles.residuals(clamps, item_bias, COVARIANCE_GRID)
    totals = np.zeros(directions.shape, dtype=np.int64)
    rows = Csr(profiles.indptr, profiles.indices, values)
    add_projected(rows, directions, longest * DIRECTION_GRID, size / DIRECTION_GRID, totals)
    return totals


def release_projected(
    profiles: UserProfiles, item_bias: Floats, directions: AnyIntegers, mu: float, publisher: Publisher
) -> Projected:
    """Release the covariance along the directions at privacy cost mu, for the unit rating."""
    target = integer_sensitivity(mu)
    size = projected_size(PROJECTED, profiles.n_items, directions, LONGEST, target)
    totals = profiles.total(projected_totals, item_bias, directions, PROJECTED, LONGEST, size)
    noisy = publisher.publish(PROJECTED_NAME, totals, target)
    return read_projected(noisy, publisher.sd, size, directions / DIRECTION_GRID)


def read_projected(noisy: Any, sd: float, size: float, directions: Floats) -> Projected:
    """Return published rows in the units of residuals and scores."""
    scale = size * COVARIANCE_GRID
    if scale == 0:
        return Projected(np.zeros(noisy.shape), math.inf, directions)
    return Projected(noisy / scale, sd / scale, directions)


def turned(directions: Integers, past: AnyIntegers, n_columns: int) -> AnyIntegers:
    """Return the directions in so many columns, turned and mirrored so that they are as near as can be to past ones.

    Projections along both then add up. The bound of the turned ones is computed from them, like that of any others.
    """
    wide = max(directions.shape[1], int(past.any(axis=0).sum()))
    now, before = np.zeros((2, len(directions), wide))
    now[:, : directions.shape[1]] = directions
    before[: len(past), : past.shape[1]] = past[:, :wide]
    left, _, right = np.linalg.svd(now.T @ before)
    found = np.zeros((len(directions), n_columns), dtype=np.int32)
    found[:, :wide] = np.trunc(now @ (left @ right))
    return found


def sharpen(found: FactorPosterior, steps: Sequence[Projected], items: ItemBiases) -> Floats:
    """Return the factors after these half steps, the posterior mean of each item by itself."""
    # Item i's row is W_i K q_i plus noise, W_i its count. K is estimated by regression of the rows on the factors as
    # they were before: posterior means, so that their own noise does not bias it.
    factors, kept = found.factors, []
    for step in steps if factors.shape[1] else ():
        variance = _row_variance(step, items)
        weights = items.counts / np.maximum(variance.mean(axis=1), 1e-300)
        matrix = (factors * (items.counts * weights)[:, None]).T @ factors
        matrix += 1e-9 * max(float(np.trace(matrix)), 1e-12) * np.eye(len(matrix))
        response = np.linalg.solve(matrix, (factors * weights[:, None]).T @ step.rows)
        kept.append((response, step.rows, variance))
        factors = _posterior(found, kept, items.counts)
    return bounded(factors)


def _row_variance(step: Projected, items: ItemBiases) -> Floats:
    """Return the variance of every entry of the rows: the noise's, and that of who happened to rate what how."""
    scores = np.minimum(_SCORES * (items.shares @ step.directions**2), LONGEST**2)
    return np.asarray(step.noise**2 + _SQUARE * items.counts[:, None] * scores)


def _posterior(found: FactorPosterior, kept: list[tuple[Floats, Floats, Floats]], counts: Floats) -> Floats:
    """Return the posterior means from the covariance and the steps, each a response Kᵀ, rows and their variance."""
    n_items, n_factors = found.factors.shape
    factors = np.empty((n_items, n_factors))
    at_chosen = np.full(n_items, -1)
    at_chosen[found.chosen] = np.arange(len(found.chosen))
    for start in range(0, n_items, _ITEMS_AT_ONCE):
        part = slice(start, min(start + _ITEMS_AT_ONCE, n_items))
        spread = np.tile(np.diag(found.variance), (part.stop - start, 1, 1))
        chosen = at_chosen[part] >= 0
        spread[chosen] = found.spread[at_chosen[part][chosen]]
        precision = np.linalg.inv(spread)
        pull = np.einsum("ijk,ik->ij", precision, found.factors[part])
        for response, rows, variance in kept:
            weighted = counts[part, None, None] * response / variance[part, None, :]
            precision += counts[part, None, None] * (weighted @ response.T)
            pull += np.einsum("ijk,ik->ij", weighted, rows[part])
        factors[part] = np.linalg.solve(precision, pull[:, :, None])[:, :, 0]
    return factors
