"""Worlds in which users sent noisy ratings once: one perturbation and one set of candidate lists for all targets.

`RefitWorlds` lets everybody send anew for each target, and fits twice. Here all targets are attacked in the one data
set that the server got, as it would be; the answers are those of `RefitWorlds` with the same seed for all
(`tests/attack/test_sent_worlds.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

import goodfence as gf
from goodfence.arrays import Floats
from goodfence.attack.attack import Subject
from goodfence.attack.targets import Asked, Targets
from goodfence.attack.worlds import NeighbourWorlds
from goodfence.models.recommender import unfitted_copy


class SentWorlds:
    """Worlds of `Perturbed(NeighbourCF(KNN(k)), by=...)`: users' noise is drawn from one seed, fakes send none."""

    one_by_one, asking = False, 1

    def __init__(self, ratings: gf.Ratings, model: gf.papers.Perturbed, n_fakes: int, seed: int) -> None:
        self.ratings, self.n_fakes = ratings, n_fakes
        fitted = unfitted_copy(model, seed)
        fitted.fit_sent(fitted.perturbed(ratings, seed))
        self.standardised = fitted.means_ is not None
        received = fitted.inner_.ratings_
        self.lists = NeighbourWorlds(received, model.recommender, n_fakes)

    def at_once(self, n_askers: int) -> int:
        """Return how many targets' lists are held at a time."""
        return self.lists.at_once(n_askers)

    def ask(self, targets: Targets, seeds: Sequence[int], n_askers: int, helper_rating: float | None = None) -> Asked:
        """Return what the fakes are told; where users send deviations, fakes send and are told theirs."""
        if not self.standardised:
            return self.lists.ask(targets, seeds, n_askers, helper_rating)
        given = targets.known_ratings
        means, spreads = given.mean(axis=1), given.std(axis=1)
        spreads = np.where(spreads > 0, spreads, 1.0)
        deviations = (given - means[:, np.newaxis]) / spreads[:, np.newaxis]
        sent = dataclasses.replace(targets, known_ratings=deviations)
        told = self.lists.ask(sent, seeds, n_askers, helper_rating)
        owners = targets.owners

        def as_ratings(answers: Floats) -> Floats:
            return np.asarray(means[owners] + spreads[owners] * answers)

        both = as_ratings(told.with_target), as_ratings(told.without_target)
        return Asked(*both, told.chosen)


class SentOnce(Subject):
    """A `Perturbed` kNN under attack, after all users sent their ratings once."""

    def __init__(self, ratings: gf.Ratings, model: gf.papers.Perturbed, seed: int) -> None:
        super().__init__(ratings, model)
        self.seed = seed

    def worlds(self, n_fakes: int) -> Any:
        """Return the worlds in which `n_fakes` fake profiles ask."""
        if n_fakes not in self._worlds:
            made: Any = SentWorlds(self.ratings, self.recommender, n_fakes, self.seed)
            self._worlds[n_fakes] = made
        return self._worlds[n_fakes]
