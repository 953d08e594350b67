"""How a budget is spent, decided from noisy quantities only.

A plan is a sequence of stages, and the whole budget is spent whichever stages are taken: what the first stage shows
decides the stages, never the total. Shares are of the squared mu, which adds up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.models.private.constants import RESIDUALS
from goodfence.models.private.covariance import GRID, covariance_size
from goodfence.models.private.empirical_bayes import ItemEffects
from goodfence.models.private.half_step_posterior import RATIO
from goodfence.models.private.item_residuals import expected_variance
from goodfence.models.private.low_rank import MOST_FACTORS
from goodfence.models.private.people import Clamps, Unit
from goodfence.privacy.accounting import lattice_distance
from goodfence.privacy.fixed_point import Floats, whole_sensitivity
from goodfence.privacy.noise import SIGMA

Plan: TypeAlias = Literal["auto", "means", "covariance", "half_step"]
PLANS = ("auto", "means", "covariance", "half_step")

FIRST_SHARE = {"rating": 0.2, "user": 0.3}
"""What the first look at the items takes."""
OVERLAP_SHARE = 0.02
"""What the overlap of ratings takes of the covariance's share."""
SIGNAL = 0.0625
"""A guess of how much of two items' residuals goes together."""
SLOPE = 0.4
"""How far a cut residual follows what it is cut from."""
RESIDUAL = 0.42
"""The size of a cut residual."""
CHANCE = {"rating": 0.04, "user": 0.007}
"""How much a covariance varies by who happened to rate what, for residuals and numbers of ratings of ordinary size."""
_SIZES = (100, 200, 400, 800, 1600, 3200)
_CLEAR = {"rating": 1.8, "user": 1.2}
"""How far the covariance's leading eigenvalue must be expected to stand out, to choose how many items enter."""
_TYPICAL = 150
_RATINGS_A_WEIGHT = 18.0
_LOADING = 0.15
_WORTH = 0.15
"""What part of a loading must be expected to survive the noise of a half step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The shares of the budget after the first look, in the order in which they are spent."""

    effects: tuple[float, ...] = ()
    covariance: float = 0.0
    half_steps: tuple[float, ...] = ()
    n_chosen: int = 0
    """How many of the most rated items (by noisy counts) enter the covariance."""

    @property
    def total(self) -> float:
        """All shares together; with the first look's they are 1."""
        return sum(self.effects) + self.covariance + sum(self.half_steps)


MEANS = {"rating": Stages(effects=(0.25, 0.25, 0.3)), "user": Stages(effects=(0.3, 0.4))}
"""The whole budget on the item effects."""
_COVARIANCE_STAGES = Stages(effects=(0.2,), covariance=0.6)
_BEARABLE = 0.004
"""Unit rating: how much more the item effects may vary, for a covariance's sake."""
_SURE = 0.025
"""Unit user: how much they may vary after the first look, for a covariance to come next."""
_SURE_ENOUGH = 0.17
"""Unit user: how much they may vary then, over the part of a loading that would survive, for a half step to come
next. Where they vary more, sharper effects are worth more than loadings."""


def reach_of(counts: Floats, overlap: float, unit: Unit) -> Floats:
    """Return a, each item's reach: the expected covariance of items i and j is a_i a_j q_i·q_j."""
    scale = RESIDUAL if unit == "rating" else RESIDUAL**2
    total = max(float(counts.sum()), 1e-12)
    reach: Floats = counts / total * math.sqrt(max(overlap, 1.0) / scale) * SLOPE
    return reach


def clearness(reach: Floats, noise: float) -> float:
    """Return the leading eigenvalue to be expected over the edge of the noise's eigenvalues."""
    return SIGNAL * float((reach**2).sum()) / (noise * math.sqrt(len(reach)))


def covariance_noise(clamps: Clamps, unit: Unit, n_items: int, n_chosen: int, mu: float) -> float:
    """Return the standard deviation of the covariance's noise at the price mu."""
    size = covariance_size(clamps, unit, n_items, n_chosen, whole_sensitivity(mu))
    if size <= 0:
        return math.inf
    return SIGMA / (size * GRID if unit == "rating" else size)


def most_rated(counts: Floats, n: int) -> npt.NDArray[np.int64]:
    """Return the columns of the n items with the largest noisy counts, ascending."""
    return np.sort(np.argsort(-counts, kind="stable")[:n]).astype(np.int64)


def half_step_worth(items: ItemEffects, mu: float, score: float = 0.3) -> float:
    """Return how much of an item's loading survives the half step's noise, over ratings."""
    noise = SIGMA * math.sqrt(2) / max(whole_sensitivity(mu), 1)
    signal = RATIO * items.counts * score * _LOADING
    kept = signal**2 / (signal**2 + noise**2)
    return float(items.counts @ kept / max(items.counts.sum(), 1e-12))


def choose_stages(
    plan: Plan, unit: Unit, items: ItemEffects, n_items: int, mu: float, clamps: Clamps
) -> Stages:
    """Return the stages of a plan; `auto` takes those that the first look makes worth their price.

    Everything here is computed from noisy quantities and public constants, and all stages spend the same total.
    """
    if plan == "means":
        return MEANS[unit]
    n_chosen = covariance_items(unit, items, n_items, mu * math.sqrt(_share(plan, unit)), clamps)
    if unit == "rating":
        if plan == "auto" and (n_chosen == 0 or effects_loss(items, mu) > _BEARABLE):
            return MEANS[unit]
        return replace(_COVARIANCE_STAGES, n_chosen=max(n_chosen, min(_SIZES[0], n_items)))
    if plan == "covariance":
        return Stages(
            effects=(0.2,), covariance=0.5, n_chosen=max(n_chosen, min(_SIZES[0], n_items))
        )
    if plan == "auto" and not _ready_for_half_step(items, mu):
        return MEANS[unit]
    if plan == "half_step" or n_chosen == 0 or mean_variance(items) > _SURE:
        return Stages(effects=(0.2,), half_steps=(0.25, 0.25))
    return Stages(covariance=0.3, half_steps=(0.2, 0.2), n_chosen=n_chosen)


def _ready_for_half_step(items: ItemEffects, mu: float) -> bool:
    """Return whether loadings would survive the noise, and the effects are sure enough to build on."""
    worth = half_step_worth(items, mu * math.sqrt(0.3))
    return worth >= _WORTH and mean_variance(items) <= _SURE_ENOUGH * worth


def effects_loss(items: ItemEffects, mu: float) -> float:
    """Return by how much more the effects would vary if most of the budget went to the covariance."""
    little = expected_variance(items, RESIDUALS, mu * math.sqrt(_COVARIANCE_STAGES.effects[0]))
    whole = expected_variance(items, RESIDUALS, mu * math.sqrt(MEANS["rating"].total))
    return little - whole


def mean_variance(items: ItemEffects) -> float:
    """Return how much the effects vary, over ratings."""
    return float(items.counts @ items.variances / max(float(items.counts.sum()), 1e-12))


def _share(plan: Plan, unit: Unit) -> float:
    if unit == "rating":
        return 0.6
    return 0.5 if plan == "covariance" else 0.3


def covariance_items(
    unit: Unit, items: ItemEffects, n_items: int, mu: float, clamps: Clamps
) -> int:
    """Return the largest number of items whose covariance stands out of its noise; 0 where none does.

    The overlap of ratings is not released yet; it is guessed from the counts: as if everybody had rated
    `_TYPICAL` items.
    """
    ordered = np.sort(items.counts)[::-1]
    total = float(items.counts.sum())
    overlap = total * math.sqrt(_TYPICAL) if unit == "rating" else total * _RATINGS_A_WEIGHT
    reach = reach_of(ordered, overlap, unit)
    best = 0
    for size in _SIZES:
        n_chosen = min(size, n_items)
        noise = covariance_noise(clamps, unit, n_items, n_chosen, mu)
        if clearness(reach[:n_chosen], noise) >= _CLEAR[unit]:
            best = n_chosen
    return best


def largest_distance(n_items: int, n_public: int = 0) -> float:
    """Bound the total variation of all releases of any plan from rounded real noise: at most nine releases.

    The largest is the covariance, or a half step with 1, two free, `n_public` and the found directions.
    """
    n_features = MOST_FACTORS + 4 + n_public
    largest = _SIZES[-1] * (_SIZES[-1] - 1) // 2 + n_items * n_features + n_features**2
    return 9 * lattice_distance(largest, SIGMA)
