"""`PrivateCF` and the simpler `PrivateMeans`: predictions with a proof, from noisy statistics that are released once.

How the budget is spent is decided from noisy quantities only. A plan is a sequence of stages, and the whole budget is
spent whichever stages are taken: what the first stage shows decides the stages, never the total. Shares are of the
squared mu, which adds up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from goodfence.arrays import Floats, Integers
from goodfence.errors import require
from goodfence.models.private import estimation, history, releases, updated
from goodfence.models.private.base import FromRatings
from goodfence.models.private.item_model import ROBUST, ItemBiases, ItemModel, PrivatePredictor, bounded
from goodfence.models.private.life import MOST_DIRECTIONS, Known
from goodfence.models.private.projected import (
    PROJECTED_NAME,
    FactorPosterior,
    Projected,
    find_directions,
    projected_totals,
    release_projected,
    sharpen,
)
from goodfence.models.recommender import IdsLike
from goodfence.privacy.accounting import lattice_distance
from goodfence.privacy.fixed_point import Clamps, UserProfiles, integer_sensitivity
from goodfence.privacy.guarantee import Unit
from goodfence.privacy.noise import SIGMA, Publisher
from goodfence.privacy.updates import Lasting, Updater, pairs_in_order
from goodfence.registry import register
from goodfence.rng import RNG
from goodfence.settings import checked

Plan: TypeAlias = Literal["auto", "means", "covariance", "half_step"]

RESIDUALS = Clamps(near=1.0, prior=20, wide=0.5)
"""The residuals from item biases that are known, unit rating."""
COVARIANCE = Clamps(near=1.0, prior=40, wide=0.5)
"""The residuals whose covariance is released."""
MOST_SPENT = 2.9
"""No more mu than this is spent: beyond it (an epsilon of about 16 at a delta of 1e-5) the noise no longer hides who
happened to rate what, and chance is taken for structure. More budget must not cost error."""
FIRST_SHARE = {"rating": 0.2, "user": 0.3}
"""What the first look at the items takes."""
OVERLAP_SHARE = 0.01
"""What the overlap of ratings takes of the first look's share."""
CHANCE = {"rating": 1.0, "user": 0.007}
"""How much a covariance varies by who happened to rate what, for residuals of ordinary size; for the unit rating over
the root of a user's number of ratings."""

_SIGNAL = 0.0625
"""A guess of how much of two items' residuals goes together."""
_SLOPE = 0.4
"""How far a clamped residual follows what it is clamped from."""
_RESIDUAL = 0.42
"""The size of a clamped residual."""
_SIZES = (100, 200, 400, 800, 1600, 3200)
"""How many items may enter the covariance."""
_CLEAR = 1.2
"""How far the covariance's leading eigenvalue must be expected to stand out, to choose how many items enter."""
_BEARABLE = 0.009
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


@checked
@register
class PrivateCF(PrivatePredictor):
    """Collaborative filtering from statistics that were released once, with a proved guarantee.

    Parameters
    ----------
    epsilon : float
        Of (epsilon, delta)-differential privacy, for everything that is released together.
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
        somebody rated. Either `catalogue` or `items` is required.
    rng : seed or generator, optional
        None for noise from the operating system. A seed makes an experiment repeatable, and its guarantee `none`.
    lasting : Lasting, optional
        For a model that learns from new data by `update`, under one guarantee for its whole life. Needs `catalogue`.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> model = gf.PrivateCF(epsilon=1.0, unit="rating", items="from ratings").fit(films)
    >>> model.guarantee().status, len(model.recommend(films.users[0], n=5).items)
    ('proved', 5)
    """

    name: ClassVar[str] = "private-cf"
    _cut = ROBUST
    _sized = updated.SIZED
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
        lasting: Lasting | None = None,
    ) -> None:
        self.plan: Plan = plan
        given: Any = {"epsilon": epsilon, "delta": delta, "unit": unit, "lasting": lasting}
        super().__init__(**given, catalogue=catalogue, items=items, rng=rng)
        possible = plan != "half_step" or unit == "user"
        require(possible, "plan", "another than 'half_step' for the unit rating", plan)
        proved = lasting is None or plan != "half_step"
        require(proved, "plan", "another than 'half_step' with lasting, for which half steps are not proved", plan)
        self.features = features

    def _distance(self, n_items: int) -> float:
        return largest_distance(n_items, estimation.public_factors(self.features, n_items).shape[1])

    def _useful(self, mu: float) -> float:
        return min(mu, MOST_SPENT)

    def _learn(self, profiles: UserProfiles, mu: float, publisher: Publisher) -> ItemModel:
        if isinstance(publisher, Updater):
            return self._learn_update(profiles, mu, publisher)
        public = estimation.public_factors(self.features, profiles.n_items)
        first = mu * math.sqrt(FIRST_SHARE[self.unit] - OVERLAP_SHARE)
        sums, items = first_look(profiles, self.unit, first, publisher)
        of_overlap = mu * math.sqrt(OVERLAP_SHARE)
        overlap = releases.release_overlap(profiles, self.unit, of_overlap, publisher)
        stages = choose_stages(self.plan, self.unit, items, overlap, mu)
        for share in stages.biases:
            items = better_biases(profiles, items, self.unit, mu * math.sqrt(share), publisher)
        factors = np.concatenate([estimation.free_factors(items), public], axis=1)
        if stages.covariance > 0:
            found = self._factors(profiles, items, overlap, stages, mu, publisher)
            factors = np.concatenate([factors, found], axis=1)
        for share in stages.half_steps if self.unit == "user" else ():
            model = ItemModel.of(items, factors)
            longest = longest_score(factors.shape[1])
            step = releases.release_half_step(profiles, model, longest, mu * math.sqrt(share), publisher)
            items, factors = estimation.refine(step, items, factors)
        self.stages_ = stages
        factors = np.concatenate([factors, estimation.curved_factors(items)], axis=1)
        return ItemModel.of(items, factors, estimation.listed_counts(sums, items))

    def _numbers(self, room: int) -> int:
        n_pairs = 0 if self.plan == "means" else _listed(room) * (_listed(room) - 1) // 2
        n_projected = room * MOST_DIRECTIONS if n_pairs and self.unit == "rating" else 0
        return 2 * room + 1 + 2 * room + n_pairs + n_projected

    def _learn_update(self, profiles: UserProfiles, mu: float, updater: Updater) -> ItemModel:
        """Learn from an update: the stages of its batch, and the running totals of all."""
        unit, online = self.unit, profiles.arrival is not None
        shared = unit == "rating" or self.plan == "covariance"
        updater.listed = _listed(profiles.most_items)
        sums, items = first_look(profiles, unit, mu * math.sqrt(updated.SUMS_SHARE[unit, shared]), updater)
        overlap = 0.0
        if shared:
            of_overlap = mu * math.sqrt(updated.OVERLAP_SHARE)
            if online:
                overlap = history.release_history_overlap(profiles, of_overlap, updater)
            else:
                overlap = releases.release_overlap(profiles, unit, of_overlap, updater)
            updater.known["overlap"] = np.array([overlap])
        covers = releases.COVARIANCE_NAME in updater.series or self._covers(items, overlap, mu, updater)
        clamps = replace(RESIDUALS, history=online)
        names = updated.residual_names(unit, covers)
        items = updated.release_update_residuals(profiles, items, clamps, mu, names, updater)
        public = estimation.public_factors(self.features, profiles.n_items)
        factors = np.concatenate([estimation.free_factors(items), public], axis=1)
        self.stages_ = MEANS[unit]
        if covers:
            found = self._update_factors(profiles, items, overlap, mu, updater)
            factors = np.concatenate([factors, found], axis=1)
        factors = np.concatenate([factors, estimation.curved_factors(items)], axis=1)
        return ItemModel.of(items, factors, estimation.listed_counts(sums, items))

    def _covers(self, items: ItemBiases, overlap: float, mu: float, updater: Updater) -> bool:
        """Return whether the batches from this one on enter a covariance."""
        if self.plan != "auto" or self.unit == "user":
            return self.plan == "covariance"
        growth = updated.growth_of(updater)
        later, effective = updated.ahead(items, growth), updater.effective(mu)
        return choose_stages("auto", self.unit, later, growth * overlap, effective).covariance > 0

    def _update_factors(
        self, profiles: UserProfiles, items: ItemBiases, overlap: float, mu: float, updater: Updater
    ) -> Floats:
        """Return the items' factors from the running total of the covariance."""
        unit, effective = self.unit, updater.effective(mu)
        halves = self._takes_half_steps(profiles, items, overlap, effective, updater)
        share = updated.covariance_share(half_steps=halves)
        of_pairs = effective * math.sqrt(share)
        least = min(_SIZES[0], profiles.n_items)
        later = np.sort(reach_of(items.counts, updated.growth_of(updater) * overlap, unit))[::-1]
        n_listed = max(_covariance_items(unit, later, of_pairs), least)
        found = updated.release_update_pairs(
            profiles, items, COVARIANCE, unit, mu * math.sqrt(share), n_listed, updater
        )
        overlap = updated.covered_overlap(overlap, updater)
        reach = reach_of(items.counts, overlap, unit)
        n_chosen = max(_covariance_items(unit, np.sort(reach)[::-1], of_pairs), least)
        covariance, chosen = updated.part_of(found, updater.known["listed"], items.counts, n_chosen)
        chance = chance_of(items.counts, overlap, unit)
        self.stages_ = Stages(biases=(0.1,), covariance=share, n_chosen=len(chosen))
        means, spread, variance = estimation.factorise(covariance, reach[chosen], chance)
        factors = np.zeros((profiles.n_items, means.shape[1]))
        factors[chosen] = means
        if not halves:
            return bounded(factors)
        posterior = FactorPosterior(factors, chosen, spread, variance)
        return updated.release_update_half_step(profiles, items, posterior, mu, updater)

    def _takes_half_steps(
        self, profiles: UserProfiles, items: ItemBiases, overlap: float, effective: float, updater: Updater
    ) -> bool:
        """Return whether batches enter projections too: for life, if the first covariance is expected to be clear."""
        past = updater.past[-1] if updater.past else {}
        if "listed" in past:
            return "directions" in past
        of_pairs = effective * math.sqrt(updated.covariance_share(half_steps=True))
        reach = np.sort(reach_of(items.counts, overlap, self.unit))[::-1]
        possible = self.unit == "rating" and profiles.arrival is None
        return possible and _covariance_items(self.unit, reach, of_pairs) > 0

    def _sums(self, profiles: UserProfiles, known: Known) -> dict[str, Integers]:
        mu, unit, online = self.life_.terms.of_batch, self.unit, profiles.arrival is not None
        shared, covers = unit == "rating" or self.plan == "covariance", "listed" in known
        settings = releases.over_history(releases.SUMS[unit], online)
        of_sums = mu * math.sqrt(updated.SUMS_SHARE[unit, shared])
        sums = {releases.SUMS_NAME: profiles.total(releases.sums_of, settings, unit, of_sums)}
        if shared:
            target = integer_sensitivity(mu * math.sqrt(updated.OVERLAP_SHARE))
            over = (history.history_overlap,) if online else (releases.overlap_sum, unit)
            sums[releases.OVERLAP_NAME] = profiles.total(*over, target)
        clamps = replace(RESIDUALS, history=online)
        for name in updated.residual_names(unit, covers):
            sums[name] = profiles.total(updated.residual_sums, name, known["biases"], clamps, mu)
        if covers:
            share = updated.covariance_share(half_steps="directions" in known)
            pairs = self._pair_sums(profiles, known, integer_sensitivity(mu * math.sqrt(share)))
            sums[releases.COVARIANCE_NAME] = pairs[pairs_in_order(len(known["listed"]))]
        if "directions" in known:
            along = updated.half_step_of(known)
            sums[PROJECTED_NAME] = profiles.total(projected_totals, known["pair biases"], *along).T
        return sums

    def frozen(self, profiles: UserProfiles, known: Known) -> Integers | None:
        """Return the residuals of the cells that were listed."""
        return history.frozen_residuals(profiles, known["pair biases"], known["listed"]) if "listed" in known else None

    def _pair_sums(self, profiles: UserProfiles, known: Known, target: int) -> Integers:
        biases, listed, n_items = known["pair biases"], known["listed"], profiles.most_items
        if profiles.arrival is not None:
            size = history.pairs_size(n_items, _listed(n_items), target)
            return np.asarray(profiles.total(history.history_pair_totals, biases, listed, size))
        size = releases.covariance_size(COVARIANCE, self.unit, n_items, _listed(n_items), target)
        return np.asarray(profiles.total(releases.pair_totals, biases, listed, COVARIANCE, self.unit, size))

    def _factors(
        self, profiles: UserProfiles, items: ItemBiases, overlap: float, stages: Stages, mu: float, publisher: Publisher
    ) -> Floats:
        """Return the items' factors from a released covariance and, for the unit rating, half steps after it."""
        of_pairs = mu * math.sqrt(stages.covariance)
        chosen = releases.most_rated(items.counts, stages.n_chosen)
        covariance = releases.release_covariance(
            profiles, items.biases, chosen, COVARIANCE, self.unit, of_pairs, publisher
        )
        reach = reach_of(items.counts, overlap, self.unit)[chosen]
        chance = chance_of(items.counts, overlap, self.unit)
        means, spread, variance = estimation.factorise(covariance, reach, chance)
        factors = np.zeros((profiles.n_items, means.shape[1]))
        factors[chosen] = means
        if self.unit == "user":
            return bounded(factors)
        posterior = FactorPosterior(factors, chosen, spread, variance)
        steps: list[Projected] = []
        for share in stages.half_steps:
            directions = find_directions(sharpen(posterior, steps, items), items.counts)
            cost = mu * math.sqrt(share)
            steps.append(release_projected(profiles, items.biases, directions, cost, publisher))
        return sharpen(posterior, steps, items)


@register
class PrivateMeans(PrivatePredictor):
    """Item biases with noise-aware shrinkage, and user biases: the simple private model. Parameters as in `PrivateCF`.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> model = gf.PrivateMeans(epsilon=1.0, items="from ratings").fit(films)
    >>> model.guarantee().status, model.guarantee().epsilon <= 1.0
    ('proved', True)
    """

    name: ClassVar[str] = "private-means"
    _cut = ROBUST
    _sized = updated.SIZED
    label: ClassVar[str] = "PrivateMeans"

    def _learn(self, profiles: UserProfiles, mu: float, publisher: Publisher) -> ItemModel:
        sums, items = first_look(profiles, self.unit, mu, publisher)
        counts = estimation.listed_counts(sums, items)
        return ItemModel.of(items, np.zeros((profiles.n_items, 0)), counts)

    def _distance(self, n_items: int) -> float:
        return lattice_distance(2 * n_items, SIGMA)

    def _numbers(self, room: int) -> int:
        return 2 * room

    def _sums(self, profiles: UserProfiles, known: Known) -> dict[str, Integers]:  # noqa: ARG002 - none is needed
        settings = releases.over_history(releases.SUMS[self.unit], profiles.arrival is not None)
        return {releases.SUMS_NAME: profiles.total(releases.sums_of, settings, self.unit, self.life_.terms.of_batch)}


def _listed(n_items: int) -> int:
    """Return how many items the covariance of a life has at most."""
    return min(_SIZES[-1], n_items)


def first_look(
    profiles: UserProfiles, unit: Unit, mu: float, publisher: Publisher
) -> tuple[releases.ItemSums, ItemBiases]:
    """Release the item sums at privacy cost mu, and return them and what they say about the items."""
    settings = releases.over_history(releases.SUMS[unit], profiles.arrival is not None)
    sums = releases.release_sums(profiles, settings, unit, mu, publisher)
    wide, weight = settings.clamps.wide, releases.SUMS_WEIGHT[unit]
    return sums, estimation.estimate_biases(sums, wide, weight)


def better_biases(profiles: UserProfiles, items: ItemBiases, unit: Unit, mu: float, publisher: Publisher) -> ItemBiases:
    """Return the item biases after one more release at privacy cost mu; unit user: a half step without factors."""
    if unit == "rating":
        found = releases.release_residuals(profiles, items.biases, RESIDUALS, mu, publisher)
        return estimation.update_biases(found, items, RESIDUALS.wide)
    no_factors = np.zeros((profiles.n_items, 0))
    step = releases.release_half_step(profiles, ItemModel.of(items, no_factors), 0.0, mu, publisher)
    return estimation.refine(step, items, no_factors)[0]


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
    "rating": Stages(biases=(0.1,), covariance=0.35, half_steps=(0.2, 0.15)),
    "user": Stages(biases=(0.2,), covariance=0.5),
}
_WITH_BOTH = Stages(covariance=0.3, half_steps=(0.2, 0.2))
_HALF_STEPS = Stages(biases=(0.2,), half_steps=(0.25, 0.25))


def choose_stages(plan: Plan, unit: Unit, items: ItemBiases, overlap: float, mu: float) -> Stages:
    """Return the stages of a plan; `auto` takes those that the first look makes worth their privacy cost."""
    # Everything here is computed from noisy quantities and public constants, and all stages spend the same total.
    if plan == "means":
        return MEANS[unit]
    covariance_only = plan == "covariance" or unit == "rating"
    stages = _WITH_COVARIANCE[unit] if covariance_only else _WITH_BOTH
    reach = np.sort(reach_of(items.counts, overlap, unit))[::-1]
    n_chosen = _covariance_items(unit, reach, mu * math.sqrt(stages.covariance))
    if plan == "auto" and not _worth_more_than_means(unit, items, mu, n_chosen):
        return MEANS[unit]
    if covariance_only:
        return replace(stages, n_chosen=max(n_chosen, min(_SIZES[0], len(items.counts))))
    if plan == "half_step" or n_chosen == 0 or items.mean(items.variances) > _SURE:
        return _HALF_STEPS
    return replace(stages, n_chosen=n_chosen)


def _worth_more_than_means(unit: Unit, items: ItemBiases, mu: float, n_chosen: int) -> bool:
    """Return whether factors are worth their privacy cost: the covariance's (unit rating), the half step's (user)."""
    if unit == "user":
        worth = _half_step_worth(items, mu * math.sqrt(0.3))
        return worth >= _WORTH and items.mean(items.variances) <= _SURE_ENOUGH * worth
    # How much more the biases would vary if most of the budget went to the covariance.
    shares = _WITH_COVARIANCE["rating"].biases[0], MEANS["rating"].total
    little, full = (estimation.expected_variance(items, RESIDUALS, mu * math.sqrt(each)) for each in shares)
    return n_chosen > 0 and not little - full > _BEARABLE


def _covariance_items(unit: Unit, reach: Floats, mu: float) -> int:
    """Return the largest number of items, the farthest reach first, whose covariance stands out of its noise; or 0."""
    n_items, best = len(reach), 0
    for size in _SIZES:
        n_chosen = min(size, n_items)
        noise = releases.covariance_noise(COVARIANCE, unit, n_items, n_chosen, mu)
        # The leading eigenvalue to be expected, over the edge of the noise's eigenvalues.
        clear = _SIGNAL * float((reach[:n_chosen] ** 2).sum()) / (noise * math.sqrt(n_chosen))
        if clear >= _CLEAR:
            best = n_chosen
    return best


def _half_step_worth(items: ItemBiases, mu: float) -> float:
    """Return how much of an item's factor loading survives the half step's noise, over ratings."""
    noise = SIGMA * math.sqrt(2) / max(integer_sensitivity(mu), 1)
    signal = estimation.HALF_STEP_WEIGHT * items.counts * _SCORE * _LOADING
    return items.mean(signal**2 / (signal**2 + noise**2))


def reach_of(counts: Floats, overlap: float, unit: Unit) -> Floats:
    """Return a, each item's reach: the expected covariance of items i and j is a_i a_j q_i·q_j."""
    scale, total = _RESIDUAL if unit == "rating" else _RESIDUAL**2, max(float(counts.sum()), 1e-12)
    return np.asarray(counts / total * math.sqrt(max(overlap, 1.0) / scale) * _SLOPE)


def chance_of(counts: Floats, overlap: float, unit: Unit) -> float:
    """Return by how much chance makes the covariance of items i and j vary, over their reach a_i a_j."""
    # Unit rating: a user with c ratings counts by 1/sqrt(c) and varies by 1/c; overlap/sum is the mean of sqrt(c).
    if unit == "user":
        return CHANCE[unit]
    return CHANCE[unit] / max(overlap / max(float(counts.sum()), 1e-12), 1.0)


def longest_score(n_factors: int) -> float:
    """Return where a user's score is shortened in the half step: with more factors scores are longer."""
    return 0.6 if n_factors <= 2 else 2.0


def largest_distance(n_items: int, n_public: int = 0) -> float:
    """Bound the total variation of all releases of any plan (at most nine) from rounded real noise."""
    # The largest is the covariance, or a half step with 1, two free, `n_public` and the found factors.
    n_features = estimation.MOST_FACTORS + 4 + n_public
    largest = _SIZES[-1] * (_SIZES[-1] - 1) // 2 + n_items * n_features + n_features**2
    return 9 * lattice_distance(largest, SIGMA)
