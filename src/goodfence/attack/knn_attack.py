"""The kNN attack of Calandrino et al., as the paper uses it, and its stronger forms by setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from goodfence.attack.attack import Answers, Attack, mechanism_in, seeds
from goodfence.attack.combining import Combine, combined
from goodfence.attack.targets import Targets
from goodfence.attack.worlds import Worlds
from goodfence.data.ratings import Ratings
from goodfence.errors import SettingError, require
from goodfence.rng import Streams
from goodfence.selection.rules import whole
from goodfence.similarity.measure import Similarity

Ask: TypeAlias = Literal["one", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KNNAttack(Attack):
    """k fakes with exactly the m known ratings; the first of them asks for everything else.

    Then the k - 1 other fakes and the target are the k nearest of the one who asks, and what is predicted for an
    item that only the target rated is her rating.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> report = gf.KNNAttack(known=8).run(films, gf.KNN(k=20), targets=50, rng=7)
    >>> report.recovery > report.guess
    True
    """

    ask: Ask = "one"
    """Only the first fake asks, or every fake does and the attacker combines what they are told."""
    combine: Combine = "mode"
    """How several answers become one: the most frequent of the rounded answers, or their mean."""
    rounds: int = 1
    """How often the fakes ask, each time after a refit with fresh randomness."""

    def __post_init__(self) -> None:
        # `super()` does not know the class that `slots=True` makes.
        Attack.__post_init__(self)
        require(self.ask in ("one", "all"), "ask", "'one' or 'all'", self.ask)
        require(self.combine in ("mode", "mean"), "combine", "'mode' or 'mean'", self.combine)
        object.__setattr__(self, "rounds", whole(self.rounds, "rounds", least=1))

    def _n_askers(self, targets: Targets, worlds: Worlds) -> int:  # noqa: ARG002 - as in Attack
        return worlds.n_fakes if self.ask == "all" else 1

    def _answers(
        self,
        worlds: Worlds,
        targets: Targets,
        ratings: Ratings,
        similarity: Similarity,  # noqa: ARG002 - as in Attack
        streams: Streams,
    ) -> Answers:
        n_askers = self._n_askers(targets, worlds)
        turns = [
            worlds.ask(targets, seeds(targets, streams, turn), n_askers)
            for turn in range(self.rounds)
        ]
        told = [np.concatenate([asked.with_target for asked in turns])]
        told.append(np.concatenate([asked.without_target for asked in turns]))
        answers = [combined(each, self.combine, ratings.scale) for each in told]
        return answers[0], answers[1], np.mean([asked.chosen for asked in turns], axis=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverAttack(KNNAttack):
    """As many fakes as the mechanism looks at candidates (beta * k), all asking: nobody real but the target is near.

    What the paper's beta is about: to be sure that the target is the only real neighbour, the attacker needs
    beta * k fakes. For mechanisms that look at a bounded part of the list: `KNN`, `PPNS`, `NPNS(within=)`.
    """

    ask: Ask = "all"
    """Every fake asks: each has its own chance to have the target among its neighbours."""

    def n_fakes(self, attacked: object, n_users: int) -> int:
        """Return how many candidates the mechanism looks at, unless `fakes` says otherwise."""
        mechanism = mechanism_in(attacked)
        if self.fakes is not None or mechanism is None:
            return Attack.n_fakes(self, attacked, n_users)
        looked_at = mechanism.reach(n_users - 1)
        if mechanism.reach(n_users) != looked_at:
            raise SettingError(
                "fakes must be given: the mechanism looks at the whole list, which no number of fakes covers"
            )
        return looked_at
