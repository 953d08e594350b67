"""Released quantity: for every item the sum of what its ratings miss, with noise; for the unit rating.

Once something is known of the items, residuals from it lie closer to zero and may be cut narrower, and the counts need
not be released again. The proof of the sensitivity is in `docs/mechanisms/private-means.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from goodfence.errors import require
from goodfence.kernels.item_sums import add_by_item
from goodfence.models.private.empirical_bayes import ItemEffects
from goodfence.models.private.people import Clamps, People
from goodfence.privacy.fixed_point import UP, Floats, Publisher, offset_move, whole_sensitivity
from goodfence.privacy.noise import SIGMA, Integers

NAME = "item residuals"
_SPREAD = 0.93
"""How widely ratings lie about what is known of their person and item: a guess from experience."""


@dataclass(frozen=True, slots=True)
class ItemResiduals:
    """The noisy sums of residuals, and the standard deviation of their noise."""

    sums: Floats
    noise: float


def release_residuals(
    people: People, effects: Floats, clamps: Clamps, mu: float, publisher: Publisher
) -> ItemResiduals:
    """Release the sums of residuals from `effects` at the price mu, for the unit rating."""
    totals, sensitivity, grid = residual_totals(people, effects, clamps, mu)
    noisy = publisher.publish(NAME, totals, sensitivity)
    return ItemResiduals(noisy / grid, SIGMA / grid)


def residual_totals(
    people: People, effects: Floats, clamps: Clamps, mu: float
) -> tuple[Integers, int, int]:
    """Return the sums as integers, their sensitivity to one rating, and their grid."""
    grid = residual_grid(clamps, people.n_items, mu)
    totals, unused = np.zeros((2, people.n_items), dtype=np.int64)
    values = people.residuals(clamps, effects, grid)
    add_by_item(people.indices, values, 0, totals, unused)
    return totals, residual_bound(clamps, people.n_items, grid), grid


def residual_grid(clamps: Clamps, n_items: int, mu: float) -> int:
    """Return a grid whose `residual_bound` spends at most mu, and nearly that."""
    target, large = whole_sensitivity(mu), 1 << 30
    grid = math.ceil(target / residual_bound(clamps, n_items, large) * large) + 1
    while grid > 1 and residual_bound(clamps, n_items, grid) > target:
        grid -= max(1, grid >> 20)
    require(residual_bound(clamps, n_items, grid) <= target, "epsilon", "larger", mu)
    return grid


def residual_bound(clamps: Clamps, n_items: int, grid: int) -> int:
    """Bound how far one rating more moves the sums: by its own residual, and the others' through the offset."""
    others = offset_move(clamps.near_on(grid), clamps.prior, n_items)
    return math.ceil(math.hypot(clamps.wide_on(grid), others) * UP)


def update_effects(found: ItemResiduals, items: ItemEffects, wide: float) -> ItemEffects:
    """Return the effects after what the residuals say, each weighed by how sure it is. Post-processing."""
    expected, variance = _law(items, found.noise, wide)
    precision = expected**2 / variance + 1 / items.variances
    change = expected * found.sums / variance / precision
    return ItemEffects(np.clip(items.effects + change, -2.5, 2.5), 1 / precision, items.counts)


def expected_variance(items: ItemEffects, clamps: Clamps, mu: float) -> float:
    """Return the effects' mean variance over ratings that would be left after a release at the price mu."""
    noise = SIGMA / residual_grid(clamps, len(items.effects), mu)
    expected, variance = _law(items, noise, clamps.wide)
    left = 1 / (expected**2 / variance + 1 / items.variances)
    return float(items.counts @ left / max(float(items.counts.sum()), 1e-12))


def _law(items: ItemEffects, noise: float, wide: float) -> tuple[Floats, Floats]:
    """Return how much an item's sum moves with its effect, and the sum's variance."""
    slope = 2 * float(ndtr(wide / _SPREAD)) - 1
    return items.counts * slope, noise**2 + items.counts * min(0.75, 0.7 * wide**2)
