"""`PrivateCF`: the strongest recommender here with a proof: noisy statistics once, then everybody for herself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from goodfence.errors import require
from goodfence.models.private.base import PrivateRecommender
from goodfence.models.private.co_rating import release_overlap
from goodfence.models.private.constants import COVARIANCE, SUMS, longest_score, weight_of
from goodfence.models.private.covariance import release_covariance
from goodfence.models.private.directions import free_directions
from goodfence.models.private.effects import better_effects
from goodfence.models.private.empirical_bayes import ItemEffects, estimate_effects
from goodfence.models.private.half_step import release_half_step
from goodfence.models.private.half_step_posterior import refine
from goodfence.models.private.item_features import public_directions
from goodfence.models.private.item_sums import release_sums
from goodfence.models.private.local_ridge import ItemModel, bounded
from goodfence.models.private.low_rank import factorise
from goodfence.models.private.people import People, Unit
from goodfence.models.private.plans import (
    CHANCE,
    FIRST_SHARE,
    OVERLAP_SHARE,
    PLANS,
    Plan,
    Stages,
    choose_stages,
    largest_distance,
    most_rated,
    reach_of,
)
from goodfence.models.recommender import Ids
from goodfence.privacy.fixed_point import Floats, Publisher
from goodfence.rng import RNG


class PrivateCF(PrivateRecommender):
    """Collaborative filtering from statistics that were released once, with a proved guarantee.

    Parameters
    ----------
    epsilon, delta
        The promise: what is released is (epsilon, delta)-differentially private. Choose delta well below one over
        the number of those protected.
    unit
        What is protected: one `rating`, or one `user` with all of hers.
    plan
        What is released: `means` (item effects), `covariance` (and how items go together), `half_step` (unit user:
        and what people like who like them), or `auto`, which decides from noisy quantities only.
    features
        Public features of the items (genres, say), one row an item in the order of the catalogue, or where that is
        None of `ratings.items`. They cost no budget. Never give anything that was computed from ratings.
    catalogue
        The ids of all items there are, from a public source. Ratings of other items are not used. None declares the
        items of the ratings public: beware where these are only those that somebody rated.
    rng
        None for noise from the operating system. A seed makes an experiment repeatable, and its guarantee `none`.

    Examples
    --------
    >>> import goodfence as gf
    >>> from goodfence.models.private_cf import PrivateCF
    >>> films = gf.load("movietweetings")
    >>> model = PrivateCF(epsilon=1.0, unit="rating").fit(films)
    >>> model.guarantee().status, len(model.recommend(films.users[0], n=5).items)
    ('proved', 5)
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float = 1e-5,
        unit: Unit = "rating",
        plan: Plan = "auto",
        features: Floats | None = None,
        catalogue: Ids | None = None,
        rng: RNG = None,
    ) -> None:
        super().__init__(epsilon=epsilon, delta=delta, unit=unit, catalogue=catalogue, rng=rng)
        require(plan in PLANS, "plan", f"one of {PLANS}", plan)
        possible = plan != "half_step" or unit == "user"
        require(possible, "plan", "another than 'half_step' for the unit rating", plan)
        self.plan: Plan = plan
        self.features = features

    def settings(self) -> dict[str, Any]:
        """Return the arguments that make this model again, as they are saved; public features are in the model."""
        stated = {"epsilon": self.epsilon, "delta": self.delta, "unit": self.unit}
        return {**stated, "plan": self.plan}

    def _distance(self, n_items: int) -> float:
        return largest_distance(n_items, public_directions(self.features, n_items).shape[1])

    def _learn(self, people: People, mu: float, publisher: Publisher) -> ItemModel:
        public = public_directions(self.features, people.n_items)
        first = mu * math.sqrt(FIRST_SHARE[self.unit])
        settings = SUMS[self.unit]
        nothing = np.zeros(people.n_items)
        sums = release_sums(people, nothing, settings, self.unit, first, publisher)
        items = estimate_effects(sums, settings.clamps.wide, weight_of(self.unit))
        stages = choose_stages(self.plan, self.unit, items, people.n_items, mu, COVARIANCE)
        for share in stages.effects:
            items = better_effects(people, items, self.unit, mu * math.sqrt(share), publisher)
        directions = np.concatenate([free_directions(items), public], axis=1)
        if stages.covariance > 0:
            found = self._factors(people, items, stages, mu, publisher)
            directions = np.concatenate([directions, bounded(found)], axis=1)
        for share in stages.half_steps:
            model = ItemModel.of(items, directions)
            longest = longest_score(directions.shape[1])
            step = release_half_step(people, model, longest, mu * math.sqrt(share), publisher)
            items, directions = refine(step, items, directions)
        self.stages_ = stages
        return ItemModel.of(items, directions)

    def _factors(
        self, people: People, items: ItemEffects, stages: Stages, mu: float, publisher: Publisher
    ) -> Floats:
        """Return the items' factors from a released covariance; zero for items that did not enter it."""
        of_overlap = mu * math.sqrt(OVERLAP_SHARE * stages.covariance)
        of_pairs = mu * math.sqrt((1 - OVERLAP_SHARE) * stages.covariance)
        overlap = release_overlap(people, self.unit, of_overlap, publisher)
        chosen = most_rated(items.counts, stages.n_chosen)
        covariance = release_covariance(
            people, items.effects, chosen, COVARIANCE, self.unit, of_pairs, publisher
        )
        reach = reach_of(items.counts, overlap, self.unit)[chosen]
        found = factorise(covariance, reach, CHANCE[self.unit])
        factors = np.zeros((people.n_items, found.shape[1]))
        factors[chosen] = found
        return factors
