"""`PrivateMeans`: item biases, released once with noise, and each user's own bias on their side."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from goodfence.models.private.estimation import estimate_biases, listed_counts
from goodfence.models.private.item_model import ROBUST, ItemModel, PrivatePredictor
from goodfence.models.private.releases import SUMS, SUMS_WEIGHT, release_sums
from goodfence.privacy.accounting import lattice_distance
from goodfence.privacy.fixed_point import UserProfiles
from goodfence.privacy.noise import SIGMA, Publisher
from goodfence.registry import register


@register
class PrivateMeans(PrivatePredictor):
    """Item biases with noise-aware shrinkage, and user biases. The simple private model.

    Parameters
    ----------
    epsilon, delta, unit, catalogue, items, rng
        As in `PrivateCF`.

    Examples
    --------
    >>> import goodfence as gf
    >>> from goodfence.models.private.means import PrivateMeans
    >>> films = gf.load("movietweetings")
    >>> model = PrivateMeans(epsilon=1.0, items="from ratings").fit(films)
    >>> model.guarantee().status, model.guarantee().epsilon <= 1.0
    ('proved', True)
    """

    name: ClassVar[str] = "private-means"
    _cut = ROBUST
    label: ClassVar[str] = "PrivateMeans"

    def _learn(self, profiles: UserProfiles, mu: float, publisher: Publisher) -> ItemModel:
        settings = SUMS[self.unit]
        sums = release_sums(profiles, settings, self.unit, mu, publisher)
        items = estimate_biases(sums, settings.clamps.wide, SUMS_WEIGHT[self.unit])
        return ItemModel.of(items, np.zeros((profiles.n_items, 0)), listed_counts(sums, items))

    def _distance(self, n_items: int) -> float:
        return lattice_distance(2 * n_items, SIGMA)
