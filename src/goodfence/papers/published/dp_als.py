"""`DPALS`: alternating least squares with noisy item statistics (Chien, Jain, Krichene et al. 2021)."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

import numpy as np

from goodfence.arrays import AnyFloats, AnyIntegers, Floats
from goodfence.kernels.private import solve_user
from goodfence.models.private.base import FromRatings
from goodfence.models.private.estimation import estimate_biases, listed_counts
from goodfence.models.private.item_model import ItemBiases, ItemModel, PrivatePredictor
from goodfence.models.private.releases import SUMS, SUMS_WEIGHT, release_sums
from goodfence.models.recommender import IdsLike
from goodfence.privacy.accounting import lattice_distance
from goodfence.privacy.fixed_point import UP, UserProfiles, integer_sensitivity, to_grid
from goodfence.privacy.noise import SIGMA, Publisher
from goodfence.registry import register
from goodfence.rng import RNG
from goodfence.settings import Count, at_least, checked

CLAMP = 2.0
"""A residual counts up to this."""
LONGEST = 2.0
"""A user's factors are scaled down to this length."""
RIDGE = 4.0
"""The penalty on an item's factors, in users."""


@checked
@register
class DPALS(PrivatePredictor):
    """Item biases, then factors by alternating least squares, from noisy sums over users; a user's own stay with them.

    Parameters
    ----------
    epsilon, delta, catalogue, items, rng
        As in `PrivateCF`, for all ratings of a user.
    rank : int, default 4
        How many factors.
    sweeps : int, default 1
        How often the items' factors are released; each takes an equal share of what the biases leave.
    per_user : int, default 60
        At most so many ratings of a user count.

    Examples
    --------
    >>> import goodfence as gf
    >>> gf.papers.DPALS(epsilon=8.0, items="from ratings").fit(gf.load("movietweetings")).guarantee().unit
    'user'
    """

    name: ClassVar[str] = "dp-als"
    label: ClassVar[str] = "DP-ALS"
    _saved = ("epsilon", "delta", "items", "rank", "sweeps", "per_user")

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float = 1e-5,
        rank: Annotated[int, at_least(1, most=64)] = 4,
        sweeps: Annotated[int, at_least(1, most=100)] = 1,
        per_user: Count = 60,
        catalogue: IdsLike | None = None,
        items: FromRatings | None = None,
        rng: RNG = None,
    ) -> None:
        super().__init__(epsilon=epsilon, delta=delta, unit="user", catalogue=catalogue, items=items, rng=rng)
        self.rank, self.sweeps, self.per_user = rank, sweeps, per_user

    def _distance(self, n_items: int) -> float:
        each = n_items * (self.rank * (self.rank + 1) // 2 + self.rank)
        return lattice_distance(2 * n_items, SIGMA) + self.sweeps * lattice_distance(each, SIGMA)

    def _learn(self, profiles: UserProfiles, mu: float, publisher: Publisher) -> ItemModel:
        share = mu / math.sqrt(2)
        sums = release_sums(profiles, SUMS["user"], "user", share, publisher)
        biases = estimate_biases(sums, SUMS["user"].clamps.wide, SUMS_WEIGHT["user"])
        factors = 0.3 * np.sin(2.399963 * np.arange(1, profiles.n_items + 1)[:, None] * np.arange(1, self.rank + 1))
        for _ in range(self.sweeps):
            cost = share / math.sqrt(self.sweeps)
            factors = self._release_factors(profiles, biases, factors, cost, publisher)
        return ItemModel.of(biases, factors, listed_counts(sums, biases))

    def _release_factors(
        self, profiles: UserProfiles, biases: ItemBiases, factors: Floats, mu: float, door: Publisher
    ) -> Floats:
        """Release for every item the sums of u u' and of r u over the users who count, and solve for its factors."""
        target, (ones, others) = integer_sensitivity(mu), np.triu_indices(self.rank)
        grid = self.grid(target)
        n_products = len(ones)
        totals = np.zeros((profiles.n_items, n_products + self.rank), dtype=np.int64)
        model = ItemModel.of(biases, factors)
        for row in range(len(profiles.counts)):
            cells = slice(profiles.indptr[row], profiles.indptr[row + 1])
            columns, values = profiles.indices[cells], profiles.values[cells]
            own = solve_user(columns, values, model.known)
            counted, taste, left = self._bounded(biases, columns, values, own)
            products = np.tile(taste[ones] * taste[others], (len(counted), 1))
            part = to_grid(np.concatenate([products, left[:, None] * taste], axis=1), grid)
            # In integers, whatever floating point did before: nobody adds more than is accounted.
            if int((part * part).sum()) <= target**2:
                totals[counted] += part
        noisy = door.publish("item factors", totals, target) / grid
        gram = np.zeros((profiles.n_items, self.rank, self.rank))
        gram[:, ones, others] = noisy[:, :n_products]
        gram[:, others, ones] = noisy[:, :n_products]
        values, vectors = np.linalg.eigh(gram)
        # Post-processing: no direction has less weight than none, and the noise's own weight is added.
        unsure = math.sqrt(self.rank) * SIGMA / grid
        steady = np.maximum(values, 0.0) + RIDGE / LONGEST**2 + unsure
        rotated = np.einsum("nji,nj->ni", vectors, noisy[:, n_products:]) / steady
        return np.asarray(np.einsum("nij,nj->ni", vectors, rotated)) / LONGEST

    def _bounded(
        self, biases: ItemBiases, columns: AnyIntegers, values: Floats, own: AnyFloats
    ) -> tuple[AnyIntegers, Floats, Floats]:
        """Return a user's rarest items (by released counts), factors of length <= 1, residuals up to `CLAMP`."""
        kept = np.argsort(biases.counts[columns], kind="stable")[: self.per_user]
        taste = np.asarray(own[1:] / LONGEST, dtype=np.float64)
        taste = taste / max(1.0, float(np.linalg.norm(taste)) * UP)
        left = np.clip(values[kept] - biases.biases[columns[kept]] - own[0], -CLAMP, CLAMP)
        return columns[kept], taste, left

    def grid(self, target: int) -> int:
        """Return the grid on which all that a user adds is within the target: products of length 1, residuals CLAMP."""
        n = self.per_user
        rounding = math.sqrt(n * (self.rank * (self.rank + 1) / 2 + self.rank)) / 2
        return max(int((target - rounding) / (math.sqrt(n * (1 + CLAMP**2)) * UP)), 1)
