"""Worlds of any recommender, the long way: append the fakes, fit, ask."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from goodfence.attack.fakes import attacked, helper_cells
from goodfence.attack.targets import Floats, Targets
from goodfence.attack.worlds import Asked
from goodfence.data.ratings import Ratings
from goodfence.errors import SettingError
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.models.recommender import Ids, Profile


class Predicts(Protocol):
    """Learns from ratings, and predicts for those who gave them."""

    def fit(self, ratings: Ratings) -> Any:
        """Learn, and return what can be asked."""
        ...

    def predict(self, users: Ids, items: Ids) -> Floats:
        """Return the predicted rating of users[j] for items[j], NaN where there is none."""
        ...


class AnswersProfiles(Protocol):
    """Learns from ratings, and predicts for a profile."""

    def fit(self, ratings: Ratings) -> Any:
        """Learn, and return what can be asked."""
        ...

    def answer(self, profile: Profile, items: Ids) -> Floats:
        """Return predictions for somebody who is not in the data, from her ratings."""
        ...


Attackable: TypeAlias = "Predicts | AnswersProfiles"


class RefitWorlds:
    """Worlds of a recommender, of which an instance is the recipe: a copy of it is fitted in each world.

    A recommender with an `rng` gets the seed of the target in it, the same in both worlds. One that cannot
    `predict` is asked by `answer`: then the asking fake is not in the data, and its fellows are.
    """

    def __init__(self, ratings: Ratings, recommender: Any, n_fakes: int) -> None:
        self.ratings, self.recommender, self.n_fakes = ratings, recommender, n_fakes
        self.asks_inside = callable(getattr(recommender, "predict", None))
        answers = self.asks_inside or callable(getattr(recommender, "answer", None))
        if not (callable(getattr(recommender, "fit", None)) and answers):
            raise SettingError(
                "the attacked must be a selection mechanism, or a recommender with fit and predict or answer, "
                f"got {type(recommender).__name__}"
            )

    def at_once(self, n_askers: int) -> int:  # noqa: ARG002 - protocol
        """Return 1: each target has worlds of her own."""
        return 1

    def ask(
        self,
        targets: Targets,
        seeds: Sequence[int],
        n_askers: int,
        helper_rating: float | None = None,
    ) -> Asked:
        """Return what the first `n_askers` fakes are told about the hidden items of each target."""
        with_target, without_target, chosen = [], [], []
        for position in range(len(targets)):
            target = targets.part(position, position + 1)
            row, seed = int(target.rows[0]), seeds[position]
            answers, among = self._world(target, None, seed, n_askers, helper_rating)
            with_target.append(answers)
            chosen.append(among)
            without_target.append(self._world(target, row, seed, n_askers, helper_rating)[0])
        told = np.concatenate(with_target, axis=1), np.concatenate(without_target, axis=1)
        return Asked(*told, np.array(chosen))

    def _world(
        self,
        target: Targets,
        removed: int | None,
        seed: int,
        n_askers: int,
        helper_rating: float | None,
    ) -> tuple[Floats, float]:
        """Return the answers in one world, (askers, hidden), and the share of askers near the target."""
        known = target.known_columns[0], target.known_ratings[0]
        helper = known
        if helper_rating is not None:
            columns, values = helper_cells(target, helper_rating)
            helper = columns[0], values[0]
        rated = [known, *[helper] * (self.n_fakes - 1)]
        inside = rated if self.asks_inside else rated[1:]
        world, ids = attacked(
            self.ratings, removed, [cells for cells, _ in inside], [values for _, values in inside]
        )
        model = copy.copy(self.recommender)
        if hasattr(model, "rng"):
            model.rng = seed
        fitted = model.fit(world)
        items = self.ratings.items[target.columns]
        if not self.asks_inside:
            profile = dict(
                zip(self.ratings.items[known[0]].tolist(), known[1].tolist(), strict=True)
            )
            answer = np.asarray(fitted.answer(profile, items), dtype=np.float64)
            return np.repeat(answer[np.newaxis], n_askers, axis=0), float(np.nan)
        askers = np.repeat(ids[:n_askers], len(items))
        answers = np.asarray(fitted.predict(askers, np.tile(items, n_askers)), dtype=np.float64)
        among = self._among(fitted, target, n_askers) if removed is None else 0.0
        return answers.reshape(n_askers, -1), among

    def _among(self, fitted: Any, target: Targets, n_askers: int) -> float:
        """Return the share of the asking fakes whose neighbours the target is among."""
        if not isinstance(fitted, NeighbourCF) or fitted.axis != "user":
            return float(np.nan)
        first = self.ratings.shape[0]
        neighbours = fitted.neighbours_[first : first + n_askers]
        return float((neighbours == target.rows[0]).any(axis=1).mean())
