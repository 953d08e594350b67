"""One recommender on the frontier: its error, what it gives away, and its guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from goodfence.attack import DEFAULT_FAKES, GUESSING
from goodfence.attack.attack import Attack
from goodfence.attack.report import AttackReport, Tried
from goodfence.attack.scoring import UNKNOWN, Estimate
from goodfence.attack.strongest import applied, usual_attackers
from goodfence.attack.subject import Subject
from goodfence.data.ratings import Ratings
from goodfence.errors import DataError, SettingError
from goodfence.evaluation import Scores
from goodfence.models.neighbour_cf import traits_of
from goodfence.models.private.base import FROM_RATINGS
from goodfence.models.private.cf import PrivateCF
from goodfence.models.private.means import PrivateMeans
from goodfence.models.recommender import Attackable, guarantee_of, unfitted_copy
from goodfence.privacy.guarantee import Guarantee
from goodfence.rng import RNG
from goodfence.selection.knn import KNN
from goodfence.selection.mechanism import Mechanism
from goodfence.selection.npns import NPNS
from goodfence.selection.pncf import PNCF
from goodfence.selection.ppns import PPNS

_LEAK = (
    "recovery",
    "recovery_without",
    "advantage",
    "guess",
    "raw_recovery",
    "raw_recovery_without",
    "raw_advantage",
    "fully_recovered",
    "fully_recovered_without",
    "worst_tenth_loss",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint:
    """A mechanism or model with its settings, and what was measured of it."""

    family: str
    """Which one, without settings."""
    label: str
    """The settings that tell it from others of its family."""
    status: str
    """The status of its guarantee: proved, claimed, refuted or none."""
    guarantee: str
    """The guarantee in words."""
    mae: float
    """Mean absolute error on ratings held out, predictions clipped to the scale."""
    coverage: float
    """The share of these that got a prediction."""
    recovery: Estimate
    """The share of the hidden ratings that the informed attacker recovered."""
    recovery_without: Estimate
    """The same where the target is not in the data."""
    advantage: Estimate
    """The difference: what the target's data gave away."""
    guess: Estimate
    """What guessing alone recovered."""
    raw_recovery: Estimate = UNKNOWN
    """The share that the answers alone recovered."""
    raw_recovery_without: Estimate = UNKNOWN
    """The same where the target is not in the data."""
    raw_advantage: Estimate = UNKNOWN
    """Their difference."""
    fully_recovered: Estimate = UNKNOWN
    """The share of the users of whom every hidden rating that was asked for was recovered."""
    fully_recovered_without: Estimate = UNKNOWN
    """The same where the target is not in the data."""
    worst_tenth_loss: Estimate = UNKNOWN
    """What the tenth of the users loses of whom most is recovered."""
    attack: str
    """The strongest attack of those tried, on other targets than these."""
    n_targets: int
    """How many users it attacked."""
    tried: tuple[Tried, ...] = ()
    """All attackers who were tried."""

    def __str__(self) -> str:
        name = f"{self.family} {self.label}".strip()
        return (
            f"{name:<30} {self.status:<8} MAE {self.mae:.3f}  recovery {self.recovery.value:.3f}  "
            f"advantage {self.advantage.value:+.3f} ({self.advantage.low:+.3f} to {self.advantage.high:+.3f})"
        )

    def no_better_than_guessing(self, bound: float = GUESSING) -> bool:
        """Return whether the attackers tried gain at most `bound`, or what cannot be told from 0 and is not much."""
        low, high = self.advantage.low, self.advantage.high
        return high <= bound or (low <= 0 and high <= 2 * bound)

    def to_dict(self) -> dict[str, Any]:
        """Return the line of the table as plain values: each estimate with the ends of its interval."""
        plain = ("family", "label", "status", "guarantee", "mae", "coverage")
        line: dict[str, Any] = {name: getattr(self, name) for name in plain}
        for name in _LEAK:
            found: Estimate = getattr(self, name)
            line |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
        return {**line, "attack": self.attack, "n_targets": self.n_targets}


def measure(
    subject: Subject, split: tuple[Ratings, Ratings], report: AttackReport, seed: RNG
) -> FrontierPoint:
    """Return one point: fitted on the first part of the split, asked for the second, attacked on all ratings."""
    scores, guarantee = held_out_error(subject.recommender, split, seed)
    found = report.estimates
    return FrontierPoint(
        family=subject.traits.family,
        label=subject.traits.settings,
        status=guarantee.status,
        guarantee=str(guarantee),
        mae=scores.mae,
        coverage=scores.coverage,
        **{name: found[name] for name in _LEAK},
        attack=report.attack,
        n_targets=report.n_targets,
        tried=report.tried,
    )


class TargetDraw(NamedTuple):
    """How many users are attacked, and with which seed."""

    targets: int
    seed: RNG


def attackers_of(
    subject: Subject, known: int, attacks: Sequence[Attack] | None
) -> tuple[Attack, ...]:
    """Return the attackers of one recommender: the usual ones, or those of `attacks` that apply to it."""
    if attacks is None:
        return usual_attackers(subject, known=known)
    able = tuple(one for attack in attacks if (one := applied(attack, subject)) is not None)
    if not able:
        raise DataError("attacks must include one that applies to everything compared")
    return able


def held_out_error(
    recommender: Any, split: tuple[Ratings, Ratings], seed: RNG
) -> tuple[Scores, Guarantee]:
    """Return the scores on held-out ratings, predictions clipped to the scale, and the fitted model's guarantee."""
    train, test = split
    fresh = traits_of(recommender).fresh_noise
    if callable(getattr(recommender, "perturbed", None)):
        train = recommender.perturbed(train, seed)  # users send noisy ratings
    fitted = unfitted_copy(recommender, None if fresh else seed).fit(train)
    csr = test.csr
    rows = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
    told = np.asarray(fitted.predict(test.users[rows], test.items[csr.indices]))
    clipped = np.clip(told, test.scale.lowest, test.scale.highest)
    return Scores.of(clipped, csr.data), guarantee_of(fitted)


Compared: TypeAlias = "Mechanism | Attackable"


def default_list(n_users: int) -> list[Compared]:
    """Return the mechanisms that fit `n_users` users, over a few settings, and the private models over epsilon."""
    mechanisms: list[Any] = [
        *(KNN(k=k) for k in (30, 50, 100)),
        *(PPNS(k=50, beta=beta) for beta in (2, 4, 7)),
        *(NPNS(k=50, within=beta) for beta in (4, 7)),
        NPNS(k=50),
        *(PNCF(k=50, epsilon=epsilon, within=7) for epsilon in (1.0, 10.0)),
    ]
    private: list[Any] = [
        *(
            PrivateCF(epsilon=epsilon, unit="rating", items=FROM_RATINGS)
            for epsilon in (0.5, 1.0, 4.0)
        ),
        *(
            PrivateCF(epsilon=epsilon, unit="user", items=FROM_RATINGS)
            for epsilon in (1.0, 4.0, 8.0)
        ),
    ]
    return [one for one in mechanisms if _fits(one, n_users)] + private


def short_list(n_users: int, k: int = DEFAULT_FAKES) -> list[Compared]:
    """Return each mechanism with this k, as far as it fits `n_users` users, and two private models.

    Examples
    --------
    >>> [traits_of(one).family for one in short_list(60, k=20)]
    ['kNN', 'nPNS', 'PrivateMeans, per rating', 'PrivateCF, per rating']
    """
    mechanisms: list[Any] = [KNN(k=k), PPNS(k=k, beta=7), NPNS(k=k), PNCF(k=k, within=7)]
    private: list[Any] = [
        PrivateMeans(epsilon=1.0, items=FROM_RATINGS),
        PrivateCF(epsilon=1.0, items=FROM_RATINGS),
    ]
    return [one for one in mechanisms if _fits(one, n_users)] + private


def name_of(compared: object) -> str:
    """Return family and settings.

    Examples
    --------
    >>> name_of(PPNS(k=5, beta=2)), name_of(PrivateCF(epsilon=1.0, items="from ratings"))
    ('PPNS k=5, β=2', 'PrivateCF, per rating ε=1')
    """
    traits = traits_of(compared)
    return f"{traits.family} {traits.settings}".strip()


def _fits(mechanism: Mechanism, n_users: int) -> bool:
    try:
        mechanism.reach(n_users - 1)
    except SettingError:
        return False
    return True
