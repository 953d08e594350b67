"""`PrivateMeans`: how good each item is, released once with noise, and each person's own offset."""

from __future__ import annotations

from typing import Any

import numpy as np

from goodfence.models.private.base import PrivateRecommender
from goodfence.models.private.constants import SUMS, weight_of
from goodfence.models.private.empirical_bayes import estimate_effects
from goodfence.models.private.item_sums import release_sums
from goodfence.models.private.local_ridge import ItemModel
from goodfence.models.private.people import People, Unit
from goodfence.models.recommender import Ids
from goodfence.privacy.accounting import lattice_distance
from goodfence.privacy.fixed_point import Publisher
from goodfence.privacy.noise import SIGMA
from goodfence.rng import RNG


class PrivateMeans(PrivateRecommender):
    """Item effects with noise-aware shrinkage, and each person's own offset. The simple private model.

    Parameters
    ----------
    epsilon, delta
        The promise: what is released is (epsilon, delta)-differentially private. Choose delta well below one over
        the number of those protected.
    unit
        What is protected: one `rating`, or one `user` with all of hers.
    catalogue
        The ids of all items there are, from a public source. Ratings of other items are not used. None declares the
        items of the ratings public: beware where these are only those that somebody rated.
    rng
        None for noise from the operating system. A seed makes an experiment repeatable, and its guarantee `none`.

    Examples
    --------
    >>> import goodfence as gf
    >>> from goodfence.models.private_means import PrivateMeans
    >>> films = gf.load("movietweetings")
    >>> model = PrivateMeans(epsilon=1.0).fit(films)
    >>> model.guarantee().status, model.guarantee().epsilon <= 1.0
    ('proved', True)
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float = 1e-5,
        unit: Unit = "rating",
        catalogue: Ids | None = None,
        rng: RNG = None,
    ) -> None:
        super().__init__(epsilon=epsilon, delta=delta, unit=unit, catalogue=catalogue, rng=rng)

    def settings(self) -> dict[str, Any]:
        """Return the arguments that make this model again, as they are saved."""
        return {"epsilon": self.epsilon, "delta": self.delta, "unit": self.unit}

    def _learn(self, people: People, mu: float, publisher: Publisher) -> ItemModel:
        settings = SUMS[self.unit]
        nothing = np.zeros(people.n_items)
        sums = release_sums(people, nothing, settings, self.unit, mu, publisher)
        items = estimate_effects(sums, settings.clamps.wide, weight_of(self.unit))
        return ItemModel.of(items, np.zeros((people.n_items, 0)))

    def _distance(self, n_items: int) -> float:
        return lattice_distance(2 * n_items, SIGMA)
