"""What is attacked: a recommender on some ratings, what a few questions tell about it, and the worlds built of it."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from goodfence.attack.fakes import Worlds
from goodfence.attack.fast_worlds import NeighbourWorlds
from goodfence.attack.refit_worlds import RefitWorlds
from goodfence.attack.targets import find_targets
from goodfence.data.ratings import Ratings
from goodfence.errors import BlackBoxProblem
from goodfence.models.neighbour_cf import as_recommender, traits_of
from goodfence.neighbours.predict import Over
from goodfence.neighbours.similarity import Similarity
from goodfence.rng import Streams


class Subject:
    """A recommender on some ratings; its worlds remember what was asked in them, so attackers can share answers.

    Parameters
    ----------
    ratings, attacked, similarity, over, threads
        As in `Attack.run`.
    """

    def __init__(
        self,
        ratings: Ratings,
        attacked: object,
        *,
        similarity: Similarity | str = "cosine",
        over: Over = "raters",
        threads: int | None = None,
    ) -> None:
        self.ratings, self.threads = ratings, threads
        self.recommender: Any = as_recommender(
            attacked, similarity=similarity, over=over, threads=threads
        )
        self.traits = traits_of(self.recommender)
        self.similarity = self.traits.similarity or Similarity.of(similarity)
        self.over = over if self.traits.mechanism is None else self.recommender.over
        self._worlds: dict[int, Worlds] = {}

    def __repr__(self) -> str:
        return f"Subject({self.traits.title})"

    def worlds(self, n_fakes: int) -> Worlds:
        """Return the worlds in which `n_fakes` fake profiles ask."""
        if n_fakes not in self._worlds:
            self._worlds[n_fakes] = self._built(n_fakes)
        return self._worlds[n_fakes]

    def _built(self, n_fakes: int) -> Worlds:
        if not self.traits.needs_refits:
            return NeighbourWorlds(self.ratings, self.recommender, n_fakes, threads=self.threads)
        return RefitWorlds(self.ratings, self.recommender, n_fakes, similarity=self.similarity)

    @cached_property
    def answers_differ(self) -> bool:
        """Whether several fakes are told more than one: equal profiles, or equal questions, get different answers.

        Said by the recommender, or found by asking the same question twice.
        """
        if not self.traits.answers_alike or self.traits.fresh_answers:
            return True
        if not self.traits.needs_refits or self.traits.fresh_answers is False:
            return False
        return self.probed.differ

    @cached_property
    def centred(self) -> bool:
        """Whether answers move with the asker's mean: profiles that differ by a constant get answers that do."""
        return self.traits.needs_refits and self.probed.centred

    @cached_property
    def shares_fits(self) -> bool:
        """Whether questions about one target can share a fit, as where neighbours are chosen per item: tried on two."""
        worlds, streams = self.worlds(_HELPERS), Streams(_SEED)
        if not isinstance(worlds, RefitWorlds) or not worlds.among_raters:
            return False
        n_ratings = np.diff(self.ratings.csr.indptr)
        known = max(min(_PROFILE, int(n_ratings.max(initial=0)) - 2), 1)
        if n_ratings.max(initial=0) <= known:
            return False
        found, _ = find_targets(self.ratings, 1, known, "most_popular", streams)
        questions = found.sampled(2, streams).one_by_one()
        seeds = [_SEED] * len(questions)
        try:
            return bool(worlds.undisturbed(questions, seeds, float(self.ratings.scale.lowest)))
        except BlackBoxProblem:  # too many accounts for it, maybe
            return False

    @cached_property
    def probed(self) -> Probed:
        """What a few questions to one fit tell."""
        return _probe(self.ratings, self.recommender, self.similarity)


class Probed(NamedTuple):
    """What a recommender shows of itself when it is asked a few questions."""

    differ: bool
    """Whether the same question, or that of an equal profile, got another answer."""
    centred: bool
    """Whether the answers to a profile moved by a constant are moved by that constant, rather than not at all."""


_PROFILE, _QUESTIONS, _HELPERS = 6, 20, 10
_SEED = 0


def _probe(ratings: Ratings, recommender: Any, similarity: Similarity) -> Probed:
    """Fit once with two equal profiles and one moved by half the scale, and ask all of them for the same items."""
    scale = ratings.scale
    popular = np.argsort(
        -np.bincount(ratings.csr.indices, minlength=ratings.shape[1]), kind="stable"
    )
    rated = np.sort(popular[:_PROFILE])
    asked = popular[_PROFILE : _PROFILE + _QUESTIONS]
    if len(asked) == 0:
        return Probed(differ=False, centred=False)
    half = float(scale.round(np.array([(scale.lowest + scale.highest) / 2]))[0]) - scale.lowest
    low = scale.lowest + np.where(np.arange(len(rated)) % 2, half, 0.0)
    up = scale.highest - float(low.max())
    worlds = RefitWorlds(ratings, recommender, 1, similarity=similarity)
    told = worlds.answers_to([(rated, low), (rated, low), (rated, low + up)], asked, _SEED)
    differ = any(_differ(told[0], told[number]) for number in (1, 2))
    moved = told[3] - told[0]
    if up == 0 or np.isnan(moved).all():
        return Probed(differ, centred=False)
    return Probed(differ, centred=bool(np.nanmedian(moved) > up / 2))


def _differ(first: Any, second: Any) -> bool:
    return not np.allclose(first, second, rtol=0, atol=1e-9, equal_nan=True)
