"""How the budget is spent, decided from noisy quantities only; and the public constants of the releases.

A plan is a sequence of stages, and the whole budget is spent whichever stages are taken: what the first stage shows
decides the stages, never the total. Shares are of the squared mu, which adds up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from goodfence.arrays import Floats, Integers
from goodfence.models.private.estimation import HALF_STEP_WEIGHT, MOST_FACTORS, expected_variance
from goodfence.models.private.item_model import ItemBiases
from goodfence.models.private.releases import SumSettings, covariance_noise
from goodfence.privacy.accounting import lattice_distance
from goodfence.privacy.fixed_point import Clamps, integer_sensitivity
from goodfence.privacy.guarantee import Unit
from goodfence.privacy.noise import SIGMA

Plan: TypeAlias = Literal["auto", "means", "covariance", "half_step"]
PLANS = ("auto", "means", "covariance", "half_step")

SUMS = {
    "rating": SumSettings(clamps=Clamps(near=1.25, prior=15, wide=1.0), stretch=2.0, floor=1.0),
    "user": SumSettings(clamps=Clamps(near=2.0, prior=8, wide=2.0), stretch=1.5, floor=1.5),
}
"""The item sums, by unit."""
SUMS_WEIGHT = {"rating": 1.0, "user": 0.06}
"""The typical weight of one rating in the item sums: 1, or that of a user with some 80 ratings."""
RESIDUALS = Clamps(near=1.0, prior=20, wide=0.5)
"""The residuals from item biases that are known, unit rating."""
COVARIANCE = Clamps(near=1.0, prior=40, wide=0.5)
"""The residuals whose covariance is released."""
FIRST_SHARE = {"rating": 0.2, "user": 0.3}
"""What the first look at the items takes."""
OVERLAP_SHARE = 0.02
"""What the overlap of ratings takes of the covariance's share."""
CHANCE = {"rating": 0.04, "user": 0.007}
"""How much a covariance varies by who happened to rate what, for residuals and numbers of ratings of ordinary size."""

_SIGNAL = 0.0625
"""A guess of how much of two items' residuals goes together."""
_SLOPE = 0.4
"""How far a clamped residual follows what it is clamped from."""
_RESIDUAL = 0.42
"""The size of a clamped residual."""
_TYPICAL_RATINGS, _RATINGS_A_WEIGHT = 150, 18.0
_SIZES = (100, 200, 400, 800, 1600, 3200)
"""How many items may enter the covariance."""
_CLEAR = {"rating": 1.8, "user": 1.2}
"""How far the covariance's leading eigenvalue must be expected to stand out, to choose how many items enter."""
_BEARABLE = 0.004
"""Unit rating: how much more the item biases may vary, for a covariance's sake."""
_SURE = 0.025
"""Unit user: how much they may vary after the first look, for a covariance to come next."""
_SURE_ENOUGH = 0.17
"""Unit user: how much they may vary then, over the part of a factor loading that would survive, for a half step to
come next. Where they vary more, sharper biases are worth more than loadings."""
_SCORE, _LOADING = 0.3, 0.15
"""The typical size of a user's score and of an item's factor loading."""
_WORTH = 0.15
"""What part of a factor loading must be expected to survive the noise of a half step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The shares of the budget after the first look, in the order in which they are spent."""

    biases: tuple[float, ...] = ()
    covariance: float = 0.0
    half_steps: tuple[float, ...] = ()
    n_chosen: int = 0
    """How many of the most rated items (by noisy counts) enter the covariance."""

    @property
    def total(self) -> float:
        """All shares together; with the first look's they are 1."""
        return sum(self.biases) + self.covariance + sum(self.half_steps)


MEANS = {"rating": Stages(biases=(0.25, 0.25, 0.3)), "user": Stages(biases=(0.3, 0.4))}
"""The whole budget on the item biases."""
_WITH_COVARIANCE = {
    "rating": Stages(biases=(0.2,), covariance=0.6),
    "user": Stages(biases=(0.2,), covariance=0.5),
}
_WITH_BOTH = Stages(covariance=0.3, half_steps=(0.2, 0.2))
_HALF_STEPS = Stages(biases=(0.2,), half_steps=(0.25, 0.25))


def choose_stages(plan: Plan, unit: Unit, items: ItemBiases, mu: float) -> Stages:
    """Return the stages of a plan; `auto` takes those that the first look makes worth their privacy cost.

    Everything here is computed from noisy quantities and public constants, and all stages spend the same total.
    """
    if plan == "means":
        return MEANS[unit]
    covariance_only = plan == "covariance" or unit == "rating"
    stages = _WITH_COVARIANCE[unit] if covariance_only else _WITH_BOTH
    n_chosen = _covariance_items(unit, items, mu * math.sqrt(stages.covariance))
    if plan == "auto" and not _worth_more_than_means(unit, items, mu, n_chosen):
        return MEANS[unit]
    if covariance_only:
        return replace(stages, n_chosen=max(n_chosen, min(_SIZES[0], len(items.counts))))
    if plan == "half_step" or n_chosen == 0 or _mean_variance(items) > _SURE:
        return _HALF_STEPS
    return replace(stages, n_chosen=n_chosen)


def _worth_more_than_means(unit: Unit, items: ItemBiases, mu: float, n_chosen: int) -> bool:
    """Return whether factors are worth their privacy cost: the covariance's (unit rating), the half step's (user)."""
    if unit == "rating":
        return n_chosen > 0 and not _biases_loss(items, mu) > _BEARABLE
    worth = _half_step_worth(items, mu * math.sqrt(0.3))
    return worth >= _WORTH and _mean_variance(items) <= _SURE_ENOUGH * worth


def _covariance_items(unit: Unit, items: ItemBiases, mu: float) -> int:
    """Return the largest number of items whose covariance stands out of its noise; 0 where none does.

    The overlap of ratings is not released yet; it is guessed from the counts: as if everybody had rated
    `_TYPICAL_RATINGS` items.
    """
    n_items, total = len(items.counts), float(items.counts.sum())
    each = math.sqrt(_TYPICAL_RATINGS) if unit == "rating" else _RATINGS_A_WEIGHT
    reach = reach_of(np.sort(items.counts)[::-1], total * each, unit)
    best = 0
    for size in _SIZES:
        n_chosen = min(size, n_items)
        noise = covariance_noise(COVARIANCE, unit, n_items, n_chosen, mu)
        # The leading eigenvalue to be expected, over the edge of the noise's eigenvalues.
        clear = _SIGNAL * float((reach[:n_chosen] ** 2).sum()) / (noise * math.sqrt(n_chosen))
        if clear >= _CLEAR[unit]:
            best = n_chosen
    return best


def _biases_loss(items: ItemBiases, mu: float) -> float:
    """Return by how much more the biases would vary if most of the budget went to the covariance."""
    shares = _WITH_COVARIANCE["rating"].biases[0], MEANS["rating"].total
    little, full = (expected_variance(items, RESIDUALS, mu * math.sqrt(each)) for each in shares)
    return little - full


def _mean_variance(items: ItemBiases) -> float:
    """Return how much the biases vary, over ratings."""
    return float(items.counts @ items.variances / max(float(items.counts.sum()), 1e-12))


def _half_step_worth(items: ItemBiases, mu: float) -> float:
    """Return how much of an item's factor loading survives the half step's noise, over ratings."""
    noise = SIGMA * math.sqrt(2) / max(integer_sensitivity(mu), 1)
    signal = HALF_STEP_WEIGHT * items.counts * _SCORE * _LOADING
    kept = signal**2 / (signal**2 + noise**2)
    return float(items.counts @ kept / max(items.counts.sum(), 1e-12))


def reach_of(counts: Floats, overlap: float, unit: Unit) -> Floats:
    """Return a, each item's reach: the expected covariance of items i and j is a_i a_j q_i·q_j."""
    scale = _RESIDUAL if unit == "rating" else _RESIDUAL**2
    total = max(float(counts.sum()), 1e-12)
    reach: Floats = counts / total * math.sqrt(max(overlap, 1.0) / scale) * _SLOPE
    return reach


def most_rated(counts: Floats, n: int) -> Integers:
    """Return the columns of the n items with the largest noisy counts, ascending."""
    return np.sort(np.argsort(-counts, kind="stable")[:n]).astype(np.int64)


def longest_score(n_factors: int) -> float:
    """Return where a user's score is shortened in the half step: with more factors scores are longer."""
    return 0.6 if n_factors <= 2 else 2.0


def largest_distance(n_items: int, n_public: int = 0) -> float:
    """Bound the total variation of all releases of any plan from rounded real noise: at most nine releases.

    The largest is the covariance, or a half step with 1, two free, `n_public` and the found factors.
    """
    n_features = MOST_FACTORS + 4 + n_public
    largest = _SIZES[-1] * (_SIZES[-1] - 1) // 2 + n_items * n_features + n_features**2
    return 9 * lattice_distance(largest, SIGMA)
