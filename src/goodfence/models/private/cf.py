"""`PrivateCF`: the strongest recommender here with a proof: noisy statistics once, then post-processing."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from goodfence.arrays import Floats
from goodfence.errors import require
from goodfence.models.private.base import FromRatings, PrivateRecommender
from goodfence.models.private.budget import (
    CHANCE,
    COVARIANCE,
    FIRST_SHARE,
    OVERLAP_SHARE,
    PLANS,
    RESIDUALS,
    SUMS,
    SUMS_WEIGHT,
    Plan,
    Stages,
    choose_stages,
    largest_distance,
    longest_score,
    most_rated,
    reach_of,
)
from goodfence.models.private.estimation import (
    estimate_biases,
    factorise,
    free_factors,
    public_factors,
    refine,
    update_biases,
)
from goodfence.models.private.item_model import ItemBiases, ItemModel, bounded
from goodfence.models.private.releases import (
    release_covariance,
    release_half_step,
    release_overlap,
    release_residuals,
    release_sums,
)
from goodfence.models.recommender import IdsLike
from goodfence.privacy.fixed_point import UserProfiles
from goodfence.privacy.guarantee import Unit
from goodfence.privacy.noise import Publisher
from goodfence.registry import register
from goodfence.rng import RNG
from goodfence.settings import checked


@checked
@register
class PrivateCF(PrivateRecommender):
    """Collaborative filtering from statistics that were released once, with a proved guarantee.

    Parameters
    ----------
    epsilon : float
        Of (epsilon, delta)-differential privacy, which everything that is released satisfies together.
    delta : float, default 1e-5
        The slack in the probability of every event. Choose it well below one over the number of those protected.
    unit : {"rating", "user"}, default "rating"
        What is protected: one rating, or one user with all their ratings.
    plan : {"auto", "means", "covariance", "half_step"}, default "auto"
        What is released: item biases (`means`), the covariance of items too, half steps of alternating least squares
        too (unit user), or what noisy quantities alone decide (`auto`).
    features : array (items, features), optional
        Public features of the items (genres, say), one row an item in the order of the catalogue, or of
        `ratings.items`. They cost no budget. Never give anything that was computed from ratings.
    catalogue : sequence of ids
        The ids of all items there are, from a public source. Ratings of other items are not used.
    items : {"from ratings"}
        Instead of a catalogue: declares the items of the ratings public. Beware where these are only those that
        somebody rated. One of both must be given to fit.
    rng : seed or generator, optional
        None for noise from the operating system. A seed makes an experiment repeatable, and its guarantee `none`.

    Examples
    --------
    >>> import goodfence as gf
    >>> from goodfence.models.private.cf import PrivateCF
    >>> films = gf.load("movietweetings")
    >>> model = PrivateCF(epsilon=1.0, unit="rating", items="from ratings").fit(films)
    >>> model.guarantee().status, len(model.recommend(films.users[0], n=5).items)
    ('proved', 5)
    """

    name: ClassVar[str] = "private-cf"
    label: ClassVar[str] = "PrivateCF"
    _saved = ("epsilon", "delta", "unit", "items", "plan")  # public features are in the model

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float = 1e-5,
        unit: Unit = "rating",
        plan: Plan = "auto",
        features: Floats | None = None,
        catalogue: IdsLike | None = None,
        items: FromRatings | None = None,
        rng: RNG = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon, delta=delta, unit=unit, catalogue=catalogue, items=items, rng=rng
        )
        require(plan in PLANS, "plan", f"one of {PLANS}", plan)
        possible = plan != "half_step" or unit == "user"
        require(possible, "plan", "another than 'half_step' for the unit rating", plan)
        self.plan: Plan = plan
        self.features = features

    def _distance(self, n_items: int) -> float:
        return largest_distance(n_items, public_factors(self.features, n_items).shape[1])

    def _learn(self, profiles: UserProfiles, mu: float, publisher: Publisher) -> ItemModel:
        public = public_factors(self.features, profiles.n_items)
        first = mu * math.sqrt(FIRST_SHARE[self.unit])
        sums = release_sums(profiles, SUMS[self.unit], self.unit, first, publisher)
        items = estimate_biases(sums, SUMS[self.unit].clamps.wide, SUMS_WEIGHT[self.unit])
        stages = choose_stages(self.plan, self.unit, items, mu)
        for share in stages.biases:
            items = better_biases(profiles, items, self.unit, mu * math.sqrt(share), publisher)
        factors = np.concatenate([free_factors(items), public], axis=1)
        if stages.covariance > 0:
            found = self._factors(profiles, items, stages, mu, publisher)
            factors = np.concatenate([factors, bounded(found)], axis=1)
        for share in stages.half_steps:
            model = ItemModel.of(items, factors)
            longest = longest_score(factors.shape[1])
            step = release_half_step(profiles, model, longest, mu * math.sqrt(share), publisher)
            items, factors = refine(step, items, factors)
        self.stages_ = stages
        return ItemModel.of(items, factors)

    def _factors(
        self,
        profiles: UserProfiles,
        items: ItemBiases,
        stages: Stages,
        mu: float,
        publisher: Publisher,
    ) -> Floats:
        """Return the items' factors from a released covariance; zero for items that did not enter it."""
        of_overlap = mu * math.sqrt(OVERLAP_SHARE * stages.covariance)
        of_pairs = mu * math.sqrt((1 - OVERLAP_SHARE) * stages.covariance)
        overlap = release_overlap(profiles, self.unit, of_overlap, publisher)
        chosen = most_rated(items.counts, stages.n_chosen)
        covariance = release_covariance(
            profiles, items.biases, chosen, COVARIANCE, self.unit, of_pairs, publisher
        )
        reach = reach_of(items.counts, overlap, self.unit)[chosen]
        found = factorise(covariance, reach, CHANCE[self.unit])
        factors = np.zeros((profiles.n_items, found.shape[1]))
        factors[chosen] = found
        return factors


def better_biases(
    profiles: UserProfiles, items: ItemBiases, unit: Unit, mu: float, publisher: Publisher
) -> ItemBiases:
    """Return the item biases after one more release at privacy cost mu.

    For the unit user this is the half step with no score but the constant one.
    """
    if unit == "rating":
        found = release_residuals(profiles, items.biases, RESIDUALS, mu, publisher)
        return update_biases(found, items, RESIDUALS.wide)
    no_factors = np.zeros((profiles.n_items, 0))
    step = release_half_step(profiles, ItemModel.of(items, no_factors), 0.0, mu, publisher)
    return refine(step, items, no_factors)[0]
