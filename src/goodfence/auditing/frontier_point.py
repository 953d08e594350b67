"""One way of recommending on the frontier: its error, what it gives away, and its promise."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from goodfence.attack.attack import Attack, is_mechanism, mechanism_in
from goodfence.attack.knn_attack import CoverAttack
from goodfence.attack.report import AttackReport
from goodfence.attack.scoring import Estimate
from goodfence.auditing.audit import FAKES, leak, promise_of
from goodfence.auditing.compared import Compared, family_of, label_of
from goodfence.data.ratings import Ratings
from goodfence.errors import DataError, SettingError
from goodfence.evaluation.scores import Scores
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.models.private.base import PrivateRecommender

_LEAK = ("recovery", "recovery_without", "advantage", "guess")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint:
    """A mechanism or model with its settings, and what was measured of it."""

    family: str
    """Which one, without settings."""
    label: str
    """The settings that tell it from others of its family."""
    promise: str
    """The status of its guarantee: proved, claimed, refuted or none."""
    guarantee: str
    """The guarantee in words."""
    mae: float
    """Mean absolute error on ratings held out, predictions clipped to the scale."""
    coverage: float
    """The share of these that got a prediction."""
    recovery: Estimate
    """The share of the hidden ratings that the attacker found out."""
    recovery_without: Estimate
    """The same where the target is not in the data."""
    advantage: Estimate
    """The difference: what her data gave away."""
    guess: Estimate
    """What guessing the item's mean would have found out."""
    attack: str
    """The attack that found out most, of those tried."""
    n_targets: int
    """How many users were attacked."""

    def __str__(self) -> str:
        name = f"{self.family} {self.label}".strip()
        return (
            f"{name:<30} {self.promise:<8} MAE {self.mae:.3f}  recovery {self.recovery.value:.3f}  "
            f"advantage {self.advantage.value:+.3f} ({self.advantage.low:+.3f} to {self.advantage.high:+.3f})"
        )

    def no_better_than_guessing(self, bound: float) -> bool:
        """Return whether the advantage is at most `bound`, or cannot be told from 0 and surely is not large."""
        low, high = self.advantage.low, self.advantage.high
        return high <= bound or (low <= 0 and high <= 2 * bound)

    def row(self) -> dict[str, Any]:
        """Return the line of the table."""
        plain = ("family", "label", "promise", "guarantee", "mae", "coverage")
        line: dict[str, Any] = {name: getattr(self, name) for name in plain}
        for name in _LEAK:
            found: Estimate = getattr(self, name)
            line |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
        return {**line, "attack": self.attack, "n_targets": self.n_targets}


def measure(
    ratings: Ratings,
    split: tuple[Ratings, Ratings],
    way: Compared,
    attacks: Sequence[Attack],
    targets: int,
    seed: int,
    threads: int | None = None,
) -> FrontierPoint:
    """Return one point: fitted on the first part of the split, asked for the second, attacked on all ratings."""
    report = strongest(ratings, way, attacks, targets, seed, threads)
    scores, promise = held_out_error(way, split, seed, threads)
    found = report.estimates
    return FrontierPoint(
        family=family_of(way),
        label=label_of(way),
        promise=promise.status,
        guarantee=str(promise),
        mae=scores.mae,
        coverage=scores.coverage,
        **{name: found[name] for name in _LEAK},
        attack=report.attack,
        n_targets=report.n_targets,
    )


def strongest(
    ratings: Ratings,
    way: Compared,
    attacks: Sequence[Attack],
    targets: int,
    seed: int,
    threads: int | None = None,
) -> AttackReport:
    """Return the report of the attack with the largest advantage, among those that apply.

    All attacks have the same targets, and the same knowledge of them.
    """
    reports = []
    for each in attacks:
        attack = applied(each, way, ratings.shape[0])
        if attack is not None:
            report = leak(ratings, way, attack=attack, targets=targets, rng=seed, threads=threads)
            reports.append(report)
    if not reports:
        raise DataError("attacks must include one that applies to everything compared")
    return max(reports, key=lambda report: report.advantage)


def applied(attack: Attack, way: Compared, n_users: int) -> Attack | None:
    """Return the attack with as many fakes as this way calls for; None if it says nothing new, or cannot be made.

    Whoever has no neighbours among users answers equal profiles equally: there, one fake asking says all.
    """
    mechanism = mechanism_in(way)
    if mechanism is None:
        if getattr(attack, "ask", "one") == "all":
            return None
        return attack if attack.fakes else replace(attack, fakes=FAKES)
    within = getattr(mechanism, "within", None)
    if isinstance(attack, CoverAttack) and attack.fakes is None and within is not None:
        return replace(attack, fakes=within * mechanism.k)
    try:
        attack.n_fakes(way, n_users)
    except SettingError:
        return None
    return attack


def held_out_error(
    way: Any, split: tuple[Ratings, Ratings], seed: int, threads: int | None = None
) -> tuple[Scores, Any]:
    """Return the scores on held-out ratings, predictions clipped to the scale, and the fitted model's promise."""
    train, test = split
    model = NeighbourCF(way, threads=threads) if is_mechanism(way) else copy.copy(way)
    if hasattr(model, "rng"):
        model.rng = None if isinstance(model, PrivateRecommender) else seed
    fitted = model.fit(train)
    csr = test.csr
    rows = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
    told = np.asarray(fitted.predict(test.users[rows], test.items[csr.indices]))
    clipped = np.clip(told, test.scale.lowest, test.scale.highest)
    return Scores.of(clipped, csr.data), promise_of(way if is_mechanism(way) else fitted)
