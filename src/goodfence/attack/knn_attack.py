"""The kNN attack of Calandrino et al., as the paper uses it, and its stronger forms by setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from goodfence.arrays import Flags, Floats
from goodfence.attack.attack import Answers, Attack, seeds
from goodfence.attack.fakes import Worlds
from goodfence.attack.scoring import ON_GRID, is_rating
from goodfence.attack.targets import Targets
from goodfence.data.scale import Scale
from goodfence.errors import SettingError, require
from goodfence.models.neighbour_cf import traits_of
from goodfence.rng import Streams
from goodfence.selection.mechanism import integer
from goodfence.settings import checked

Ask: TypeAlias = Literal["one", "all"]


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class KNNAttack(Attack):
    """k fake profiles with exactly the m known ratings; the first of them asks for everything else.

    Then the k - 1 other fakes and the target are the k nearest of the one who asks, and what is predicted for an
    item that only the target rated is the target's rating.

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
        object.__setattr__(self, "rounds", integer(self.rounds, "rounds", least=1, most=10_000))

    def _n_askers(self, worlds: Worlds) -> int:
        return worlds.n_fakes if self.ask == "all" else 1

    def _answers(self, worlds: Worlds, targets: Targets, streams: Streams) -> Answers:
        n_askers = self._n_askers(worlds)
        turns = [
            worlds.ask(targets, seeds(targets, streams, turn), n_askers)
            for turn in range(self.rounds)
        ]

        scale = worlds.ratings.scale
        told = np.concatenate([asked.with_target for asked in turns])
        told_without = np.concatenate([asked.without_target for asked in turns])
        return Answers(
            combined(told, self.combine, scale),
            combined(told_without, self.combine, scale),
            np.mean([asked.chosen for asked in turns], axis=0),
            agreed(told, scale),
            agreed(told_without, scale),
        )


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class CoverAttack(KNNAttack):
    """As many fakes as the mechanism looks at candidates (beta * k), all asking: no real user but the target is near.

    What the paper's beta is about: to be sure that the target is the only real neighbour, the attacker needs
    beta * k fakes. For mechanisms that look at a bounded part of the list: `KNN`, `PPNS`, `NPNS(within=)`.
    """

    ask: Ask = "all"
    """Every fake asks: each has its own chance to have the target among its neighbours."""

    def n_fakes(self, attacked: object, n_users: int) -> int:
        """Return how many candidates the mechanism looks at, unless `fakes` says otherwise."""
        mechanism = traits_of(attacked).mechanism
        if self.fakes is not None or mechanism is None:
            return Attack.n_fakes(self, attacked, n_users)
        looked_at = mechanism.reach(n_users - 1)
        if mechanism.reach(n_users) != looked_at:
            raise SettingError(
                "fakes must be given: the mechanism looks at the whole list, which no number of fakes covers"
            )
        return looked_at


Combine: TypeAlias = Literal["mode", "mean"]


def combined(answers: Floats, how: Combine, scale: Scale) -> Floats:
    """Return one answer for each hidden rating from `answers`, (askers, hidden), NaN where no fake got one.

    A single answer stays as it is. `mode` takes the most frequent of the rounded answers, the lowest of these
    if there are several.

    Examples
    --------
    >>> told = np.array([[2.9, 4.0], [3.1, np.nan], [5.0, np.nan]])
    >>> combined(told, "mode", Scale(1, 5)), combined(told, "mean", Scale(1, 5))
    (array([3., 4.]), array([3.66666667, 4.        ]))
    """
    if len(answers) == 1:
        return np.asarray(answers[0])
    if how == "mode":
        return _mode(scale.round(answers))
    made = ~np.isnan(answers)
    sums = np.where(made, answers, 0.0).sum(axis=0)
    counts = made.sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def agreed(answers: Floats, scale: Scale) -> Flags:
    """Return where all that was told, (askers, hidden), is the same rating: one neighbour rated the item, or all agree.

    Examples
    --------
    >>> agreed(np.array([[3.0, 3.5, 4.0], [3.0, 3.5, np.nan]]), Scale(1, 5))
    array([ True, False,  True])
    """
    made = ~np.isnan(answers)
    highest = np.where(made, answers, -np.inf).max(axis=0)
    lowest = np.where(made, answers, np.inf).min(axis=0)
    same: Flags = made.any(axis=0) & (np.abs(highest - lowest) <= ON_GRID * (scale.step or 0.0))
    return same & is_rating(np.where(same, lowest, np.nan), scale)


def _mode(answers: Floats) -> Floats:
    """Return the most frequent value of each column, the lowest among equally frequent ones."""
    ordered = np.sort(answers, axis=0)  # NaN last
    best = np.full(answers.shape[1], np.nan)
    longest = np.zeros(answers.shape[1], dtype=np.int64)
    length = np.zeros(answers.shape[1], dtype=np.int64)
    for rank in range(len(ordered)):
        same = ordered[rank] == ordered[rank - 1] if rank else np.zeros(len(best), dtype=np.bool_)
        length = np.where(same, length + 1, 1)
        longer = (length > longest) & ~np.isnan(ordered[rank])
        best = np.where(longer, ordered[rank], best)
        longest = np.where(longer, length, longest)
    return best
