"""`McSherryMironov`: the first private recommender, as published in 2009.

F. McSherry and I. Mironov, *Differentially Private Recommender Systems: Building Privacy into the Netflix Prize
Contenders*. Item averages with noise, clamped residuals, noisy covariance and weight matrices, and their clean-up.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import eigsh

from goodfence.errors import require
from goodfence.models.private.base import PrivateRecommender
from goodfence.models.private.covariance import GRID, MOST_ITEMS, chosen_residuals, sum_pairs
from goodfence.models.private.empirical_bayes import ItemEffects
from goodfence.models.private.local_ridge import ItemModel
from goodfence.models.private.people import Clamps, People
from goodfence.models.private.plans import most_rated
from goodfence.models.recommender import Ids
from goodfence.privacy.accounting import lattice_distance
from goodfence.privacy.fixed_point import SPAN, Floats, Publisher, to_grid, whole_sensitivity
from goodfence.privacy.guarantee import Guarantee
from goodfence.privacy.noise import SIGMA
from goodfence.rng import RNG

THEOREM = 1 + 2 * math.sqrt(2)
"""Their Theorem 5: one rating moves the weighted covariance by at most this times the squared clamp."""
LEAST_CLAMP = 0.25
"""At clamps of 0.1 and less the theorem's constant can be exceeded; here a search found at most 0.77 of it."""
_SHARES = (0.02, 0.19, 0.79)
_PUBLISHED = "The sensitivity of the covariance is taken from the paper's Theorem 5 as published."


class McSherryMironov(PrivateRecommender):
    """Item averages, and a covariance of clamped residuals, with Gaussian noise [McSherry and Mironov 2009].

    Parameters
    ----------
    epsilon, delta
        The promise that the paper claims for one rating.
    clamp
        Residuals are cut at plus and minus this (their B), on the scale 1..5; at least 0.25, because at 0.1 data are
        known that move the covariance farther than their theorem says.
    item_prior, user_prior
        How many ratings at the global average are added to an item's, and at zero to a user's.
    items
        How many of the most rated items (by noisy counts) enter the covariance; the paper takes all.
    rank
        The rank to which the cleaned covariance is cut.
    catalogue
        The ids of all items there are, from a public source; None declares the items of the ratings public.
    rng
        None for noise from the operating system. A seed makes an experiment repeatable, and its guarantee `none`.

    Examples
    --------
    >>> import goodfence as gf
    >>> from goodfence.models.mcsherry_mironov import McSherryMironov
    >>> model = McSherryMironov(epsilon=4.0).fit(gf.load("movietweetings"))
    >>> model.guarantee().status
    'claimed'
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float = 1e-5,
        clamp: float = 1.0,
        item_prior: float = 15.0,
        user_prior: int = 20,
        items: int = 3200,
        rank: int = 20,
        catalogue: Ids | None = None,
        rng: RNG = None,
    ) -> None:
        super().__init__(epsilon=epsilon, delta=delta, unit="rating", catalogue=catalogue, rng=rng)
        require(clamp >= LEAST_CLAMP, "clamp", f"at least {LEAST_CLAMP}", clamp)
        require(item_prior > 0, "item_prior", "positive", item_prior)
        require(user_prior >= 1, "user_prior", "at least 1", user_prior)
        require(2 <= items <= MOST_ITEMS, "items", f"2 to {MOST_ITEMS}", items)
        require(rank >= 1, "rank", "at least 1", rank)
        self.clamp, self.item_prior, self.user_prior = clamp, item_prior, user_prior
        self.items, self.rank = items, rank

    def settings(self) -> dict[str, Any]:
        """Return the arguments that make this model again, as they are saved."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "clamp": self.clamp,
            "item_prior": self.item_prior,
            "user_prior": self.user_prior,
            "items": self.items,
            "rank": self.rank,
        }

    def guarantee(self) -> Guarantee:
        """Return what the paper claims; its sensitivity theorem is taken as published, not proved again here."""
        stated = super().guarantee()
        if stated.status == "none":
            return stated
        return Guarantee(
            status="claimed",
            unit="rating",
            adjacency="add/remove",
            epsilon=stated.epsilon,
            delta=stated.delta,
            reason=f"{_PUBLISHED} {self._terms()}",
        )

    def _distance(self, n_items: int) -> float:
        return 3 * lattice_distance(2 * n_items + self.items**2, SIGMA)

    def _learn(self, people: People, mu: float, publisher: Publisher) -> ItemModel:
        prices = [mu * math.sqrt(share) for share in _SHARES]
        centre = self._global_average(people, prices[0], publisher)
        effects, counts = self._item_averages(people, centre, prices[1], publisher)
        chosen = most_rated(counts, min(self.items, people.n_items))
        covariance = self._covariance(people, effects, chosen, prices[2], publisher)
        factors = np.zeros((people.n_items, min(self.rank, len(chosen) - 1)))
        if len(chosen) > 1:
            factors[chosen] = _cut(covariance, counts[chosen], factors.shape[1])
        return ItemModel.of(ItemEffects(effects, np.zeros(people.n_items), counts), factors)

    def _global_average(self, people: People, mu: float, publisher: Publisher) -> float:
        """Release the sum and the number of all ratings; one rating moves them by (SPAN, 1) at most."""
        target = whole_sensitivity(mu)
        grid = self._grid(target)
        each = to_grid(people.values, grid)
        totals = np.array([each.sum(), grid * len(each)], dtype=np.int64)
        noisy = publisher.publish("global sum and count", totals, target)
        return float(np.clip(noisy[0] / max(int(noisy[1]), 1), -2.5, 1.5))

    def _grid(self, target: int) -> int:
        """Return the grid on which a rating and its count, (SPAN, 1), are within the target."""
        grid = int(target / math.hypot(SPAN, 1)) - 1
        require(grid >= 1, "epsilon", "larger", self.epsilon)
        return grid

    def _item_averages(
        self, people: People, centre: float, mu: float, publisher: Publisher
    ) -> tuple[Floats, Floats]:
        """Release every item's sum and count, and return its average with a prior, and its noisy count."""
        target = whole_sensitivity(mu)
        grid = self._grid(target)
        totals = np.zeros((2, people.n_items), dtype=np.int64)
        np.add.at(totals[0], people.indices, to_grid(people.values, grid))
        np.add.at(totals[1], people.indices, grid)
        sums, counts = publisher.publish("item sums and counts", totals, target) / grid
        averages = (sums + self.item_prior * centre) / (np.maximum(counts, 0) + self.item_prior)
        return np.clip(averages, -2.5, 1.5), np.maximum(counts, 1.0)

    def _covariance(
        self,
        people: People,
        effects: Floats,
        chosen: npt.NDArray[np.int64],
        mu: float,
        publisher: Publisher,
    ) -> npt.NDArray[np.float64]:
        """Release weighted covariance and weights, and return their quotient, shrunk to its average."""
        n_chosen = len(chosen)
        target = whole_sensitivity(mu)
        spare = 2 * math.sqrt(n_chosen * (n_chosen - 1))  # what rounding two matrices can add
        require(target > spare, "epsilon", "larger, or items fewer", self.epsilon)
        size = (target - spare) / (THEOREM * math.sqrt(2))
        clamps = Clamps(near=SPAN, prior=self.user_prior, wide=self.clamp)
        rows = chosen_residuals(people, effects, chosen, clamps)
        own = np.maximum(np.sqrt(people.counts), 1.0)
        products = sum_pairs(rows, size / own / (self.clamp * GRID) ** 2, toward_zero=False)
        rows.data = np.ones_like(rows.data)
        weights = sum_pairs(rows, size / own, toward_zero=False)
        above = np.triu_indices(n_chosen, 1)
        both = np.stack([products[above], weights[above]])
        noisy = publisher.publish("covariance and weights", both, target) / size
        return _cleaned(noisy[0] * self.clamp**2, noisy[1], above, n_chosen)


def _cleaned(
    products: Floats, weights: Floats, above: tuple[Any, Any], n_items: int
) -> npt.NDArray[np.float64]:
    """Return products over weights, both shrunk to their averages, as a symmetric matrix."""
    strength = 2 * float(np.std(weights)) if len(weights) else 1.0
    mean_weight = max(float(weights.mean()), 1e-9) if len(weights) else 1.0
    mean = float(products.mean()) / mean_weight if len(products) else 0.0
    quotient = (products + strength * mean) / (np.maximum(weights, 0) + strength)
    matrix = np.zeros((n_items, n_items))
    matrix[above] = quotient
    return matrix + matrix.T


def _cut(matrix: npt.NDArray[np.float64], counts: Floats, rank: int) -> Floats:
    """Return factors of the best approximation of this rank, rows weighed by the root of their counts."""
    weight = np.sqrt(counts)
    values, vectors = eigsh(
        matrix * np.outer(weight, weight), k=rank, which="LA", v0=np.ones(len(counts))
    )
    factors: Floats = vectors * np.sqrt(np.maximum(values, 0.0)) / weight[:, None]
    return np.clip(factors, -2.0, 2.0)
