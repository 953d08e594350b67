"""`McSherryMironov`: the first private recommender, as published in 2009.

F. McSherry and I. Mironov, *Differentially Private Recommender Systems: Building Privacy into the Netflix Prize
Contenders*. Item averages with noise, clamped residuals, noisy covariance and weight matrices, and their clean-up.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np

from goodfence.arrays import Floats, Integers
from goodfence.errors import require
from goodfence.models.private.base import FromRatings
from goodfence.models.private.estimation import leading_eigenvectors
from goodfence.models.private.item_model import ItemBiases, ItemModel, PrivatePredictor
from goodfence.models.private.releases import (
    COVARIANCE_GRID,
    MOST_COVARIANCE_ITEMS,
    chosen_residuals,
    most_rated,
    sum_pairs,
)
from goodfence.models.recommender import IdsLike
from goodfence.privacy.accounting import lattice_distance
from goodfence.privacy.fixed_point import SPAN, Clamps, UserProfiles, integer_sensitivity, to_grid
from goodfence.privacy.guarantee import Guarantee
from goodfence.privacy.noise import SIGMA, Publisher
from goodfence.registry import register
from goodfence.rng import RNG
from goodfence.settings import Count, Finite, Positive, at_least, checked

THEOREM = 1 + 2 * math.sqrt(2)
"""Their Theorem 5: one rating moves the weighted covariance by at most this times the squared clamp."""
LEAST_CLAMP = 0.5
"""From here on one rating moves the covariance by at most 0.82 of the theorem's constant, which is proved; at 0.25 data
are known that exceed it (`docs/mechanisms/mcsherry-mironov.md`)."""
SHARES = (0.02, 0.19, 0.79)
"""Of the budget, as published: the global average, the items' averages, covariance and weights."""
_PUBLISHED = "The sensitivity of the covariance is that of the paper's Theorem 5."


@checked
@register
class McSherryMironov(PrivatePredictor):
    """Item averages, and a covariance of clamped residuals, with Gaussian noise [McSherry and Mironov 2009].

    Parameters
    ----------
    epsilon : float
        Of the (epsilon, delta)-differential privacy that the paper claims for one rating.
    delta : float, default 1e-5
        The slack in the probability of every event.
    clamp : float, default 1.0
        Residuals are clamped to plus and minus this (their B), on the scale 1..5; at least 0.5, because at 0.25 data
        are known that move the covariance farther than their theorem says.
    item_prior, user_prior : float, default 15 and 20
        How many ratings at the global average are added to an item's, and at zero to a user's.
    covariance_items : int, default 3200
        How many of the most rated items (by noisy counts) enter the covariance; the paper takes all.
    rank : int, default 20
        The rank of the approximation of the cleaned covariance.
    catalogue, items, rng
        As in `PrivateCF`.

    Examples
    --------
    >>> import goodfence as gf
    >>> model = gf.papers.McSherryMironov(epsilon=4.0, items="from ratings").fit(gf.load("movietweetings"))
    >>> model.guarantee().status
    'claimed'
    """

    name: ClassVar[str] = "mcsherry-mironov"
    label: ClassVar[str] = "McSherry–Mironov"
    _own = ("clamp", "item_prior", "user_prior", "covariance_items", "rank")
    _saved = ("epsilon", "delta", "items", *_own)

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float = 1e-5,
        clamp: Finite = 1.0,
        item_prior: Positive = 15.0,
        user_prior: Count = 20,
        covariance_items: Annotated[int, at_least(2, most=MOST_COVARIANCE_ITEMS)] = 3200,
        rank: Count = 20,
        catalogue: IdsLike | None = None,
        items: FromRatings | None = None,
        rng: RNG = None,
    ) -> None:
        super().__init__(epsilon=epsilon, delta=delta, unit="rating", catalogue=catalogue, items=items, rng=rng)
        require(clamp >= LEAST_CLAMP, "clamp", f"at least {LEAST_CLAMP}", clamp)
        self.clamp, self.item_prior, self.user_prior = clamp, item_prior, user_prior
        self.covariance_items, self.rank = covariance_items, rank

    def guarantee(self) -> Guarantee:
        """Return what the paper claims, with the constant of its sensitivity theorem."""
        stated = super().guarantee()
        if stated.status == "none":
            return stated
        return replace(stated, status="claimed", reason=f"{_PUBLISHED} {self._conditions()}")

    def _distance(self, n_items: int) -> float:
        return 3 * lattice_distance(2 * n_items + self.covariance_items**2, SIGMA)

    def _learn(self, profiles: UserProfiles, mu: float, publisher: Publisher) -> ItemModel:
        costs = [mu * math.sqrt(share) for share in SHARES]
        centre = self._global_average(profiles, costs[0], publisher)
        item_bias, counts = self._item_averages(profiles, centre, costs[1], publisher)
        chosen = most_rated(counts, min(self.covariance_items, profiles.n_items))
        covariance = self._covariance(profiles, item_bias, chosen, costs[2], publisher)
        factors = np.zeros((profiles.n_items, min(self.rank, len(chosen) - 1)))
        if len(chosen) > 1:
            factors[chosen] = low_rank(covariance, counts[chosen], factors.shape[1])
        return ItemModel.of(ItemBiases(item_bias, np.zeros(profiles.n_items), counts), factors)

    def _global_average(self, profiles: UserProfiles, mu: float, publisher: Publisher) -> float:
        """Release the sum and the number of all ratings; one rating moves them by (SPAN, 1) at most."""
        target = integer_sensitivity(mu)
        grid = self._grid(target)
        each = to_grid(profiles.values, grid)
        totals = np.array([each.sum(), grid * len(each)], dtype=np.int64)
        noisy = publisher.publish("global sum and count", totals, target)
        return float(np.clip(noisy[0] / max(int(noisy[1]), 1), -2.5, 1.5))

    def _grid(self, target: int) -> int:
        """Return the grid on which a rating and its count, (SPAN, 1), are within the target."""
        grid = int(target / math.hypot(SPAN, 1)) - 1
        require(grid >= 1, "epsilon", "larger", self.epsilon)
        return grid

    def _item_averages(
        self, profiles: UserProfiles, centre: float, mu: float, publisher: Publisher
    ) -> tuple[Floats, Floats]:
        """Release every item's sum and count, and return its average with a prior, and its noisy count."""
        target = integer_sensitivity(mu)
        grid = self._grid(target)
        totals = np.zeros((2, profiles.n_items), dtype=np.int64)
        np.add.at(totals[0], profiles.indices, to_grid(profiles.values, grid))
        np.add.at(totals[1], profiles.indices, grid)
        sums, counts = publisher.publish("item sums and counts", totals, target) / grid
        averages = (sums + self.item_prior * centre) / (np.maximum(counts, 0) + self.item_prior)
        return np.clip(averages, -2.5, 1.5), np.maximum(counts, 1.0)

    def _covariance(
        self, profiles: UserProfiles, bias: Floats, chosen: Integers, mu: float, publisher: Publisher
    ) -> Floats:
        """Release weighted covariance and weights, and return their quotient, shrunk to its average."""
        n_chosen = len(chosen)
        target = integer_sensitivity(mu)
        spare = 2 * math.sqrt(n_chosen * (n_chosen - 1))  # what rounding two matrices can add
        require(target > spare, "epsilon", "larger, or covariance_items fewer", self.epsilon)
        size = (target - spare) / (THEOREM * math.sqrt(2))
        clamps = Clamps(near=SPAN, prior=self.user_prior, wide=self.clamp)
        rows = chosen_residuals(profiles, bias, chosen, clamps)
        roots = np.maximum(np.sqrt(profiles.counts), 1.0)
        each = size / roots / (self.clamp * COVARIANCE_GRID) ** 2
        products = sum_pairs(rows, each, toward_zero=False)
        rows.data = np.ones_like(rows.data)
        weights = sum_pairs(rows, size / roots, toward_zero=False)
        above = np.triu_indices(n_chosen, 1)
        both = np.stack([products[above], weights[above]])
        noisy = publisher.publish("covariance and weights", both, target) / size
        return cleaned(noisy[0] * self.clamp**2, noisy[1], above, n_chosen)


def cleaned(products: Floats, weights: Floats, above: tuple[Any, Any], n_items: int) -> Floats:
    """Return the quotients above the diagonal, `shrunk`, as a symmetric matrix."""
    matrix = np.zeros((n_items, n_items))
    if len(products):
        matrix[above] = shrunk(products, weights)
    return matrix + matrix.T


def shrunk(products: Floats, weights: Floats) -> Floats:
    """Return products over weights, both shrunk to their averages."""
    strength = 2 * float(np.std(weights)) + 1e-9
    mean = float(products.mean()) / max(float(weights.mean()), 1e-9)
    found: Floats = (products + strength * mean) / (np.maximum(weights, 0.0) + strength)
    return found


def low_rank(matrix: Floats, counts: Floats, rank: int) -> Floats:
    """Return factors of the best approximation of this rank, rows weighed by the root of their counts."""
    weight = np.sqrt(counts)
    values, vectors = leading_eigenvectors(matrix * np.outer(weight, weight), rank)
    factors: Floats = vectors * np.sqrt(np.maximum(values, 0.0)) / weight[:, None]
    return np.clip(factors, -2.0, 2.0)
