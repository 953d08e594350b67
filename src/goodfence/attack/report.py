"""What an attack found out, in total and for each target, beside what chance would have given.

`LeakReport` is what every attack reports, `AttackReport` that of an attack on predicted ratings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from goodfence.arrays import Flags, Floats, Integers
from goodfence.attack import GUESSING
from goodfence.attack.scoring import (
    Estimate,
    Informed,
    Outcomes,
    Tally,
    difference,
    frequency,
    more_often,
    ratio,
    share,
    worst_tenth_loss,
)
from goodfence.data.columns import Feedback
from goodfence.data.ratings import Ratings
from goodfence.markup import html_table
from goodfence.settings import checked, one_of

Judged: TypeAlias = Literal["value", "high"]


class Tried(NamedTuple):
    """One of several attackers, and what they found on the half of the targets where the strongest was chosen."""

    attack: str
    """The attack, with its settings."""
    what: str
    """What its accounts do, in words."""
    n_fakes: int
    n_targets: int
    recovery: Estimate
    """What they found: recovery of ratings, precision of lists."""
    recovery_without: Estimate
    """The same in the world without the target."""
    advantage: Estimate
    fully_recovered: Estimate
    strongest: bool
    """Whether this one was chosen, and attacked the other half."""
    failed: str | None = None
    """Why there are no figures: the recommender's own error."""


class NotTried(NamedTuple):
    """An attack that was not tried, and why."""

    attack: str
    reason: str


class Counts(NamedTuple):
    """What the answers alone got, for each target: arrays of shape (targets,)."""

    hidden: Floats
    """How much there was to find."""
    answered: Floats
    """How much the answers claimed."""
    right: Floats
    """How much of that was right."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LeakReport(ABC):
    """What every report of an attack has: who attacked whom, the main figures, and what else was tried.

    Everything that audits, compares or shows an attack asks for no more than this, be it of ratings or of lists.
    """

    measure: ClassVar[str]
    """Which estimate says how much the informed attacker finds; with `_without` that of the other world."""
    guessing: ClassVar[str]
    """Which estimate says how much is found without any attack."""
    feedback: ClassVar[Feedback]
    """Whether ratings were predicted (`explicit`) or lists shown (`implicit`)."""

    attack: str
    """The attack, with its settings."""
    attacked: str
    """The mechanism with its settings, or the name of the recommender."""
    n_left_out: int
    """How many users could not be attacked: they have too little, or nothing of a named item."""
    n_fakes: int
    """How many fakes attacked each target."""
    chosen: Floats
    """For each target the share of the asking fakes that had the target as a neighbour; NaN where that is not known."""
    rows: Integers
    """The targets' rows in the ratings."""
    ratings: Ratings
    """What was attacked."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the manifest of a saved report holds."""
    outcomes: Outcomes | None = None
    """What became of each hidden rating or event; None where only counts were kept. It is never saved."""
    attacker: Any = None
    """The attack itself, an `Attack`."""
    n_choosing: int = 0
    """On how many other users the strongest attacker was chosen; 0 where nobody was chosen."""
    tried: tuple[Tried, ...] = ()
    """All attackers of whom this one was the strongest, on other targets than those of this report; empty for one."""
    not_tried: tuple[NotTried, ...] = ()
    """Attacks of which this report says nothing."""
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    """When it was made."""

    @property
    @abstractmethod
    def estimates(self) -> dict[str, Estimate]:
        """Every number of the report with its 95% interval over targets."""

    @property
    @abstractmethod
    def n_hidden(self) -> int:
        """How many ratings or events of the targets the attacker does not know, of those asked for."""

    @property
    @abstractmethod
    def fully(self) -> Flags:
        """(targets,): who is fully recovered."""

    @property
    @abstractmethod
    def fully_without(self) -> Flags:
        """(targets,): the same in the world without the target."""

    @property
    @abstractmethod
    def gain(self) -> float:
        """The mean advantage over targets: the same for attackers who ask for everything and for some."""

    @property
    @abstractmethod
    def counts(self) -> Counts:
        """What there was to find, what was answered, and what of that was right, before guessing."""

    @abstractmethod
    def table(self, *, ids: bool = False) -> pa.Table:
        """Return one line for each target, numbered from 0; with the caller's own ids only if `ids`."""

    @property
    def known(self) -> int:
        """How many ratings or items of each target the attacker knew."""
        return int(self.settings["settings"]["known"])

    @property
    def n_targets(self) -> int:
        """How many users were attacked."""
        return len(self.chosen)

    @property
    def found(self) -> Estimate:
        """How much the informed attacker finds: recovery of ratings, precision of lists."""
        return self.estimates[self.measure]

    @property
    def found_without(self) -> Estimate:
        """The same in the world without the target."""
        return self.estimates[f"{self.measure}_without"]

    @property
    def guessed(self) -> Estimate:
        """How much is found without any attack."""
        return self.estimates[self.guessing]

    @property
    def advantage(self) -> float:
        """What is found with the target in the data less what is found without: what the target's data gave away."""
        return self.estimates["advantage"].value

    @property
    def fully_recovered(self) -> Estimate:
        """The share of the targets who are fully recovered."""
        return self.estimates["fully_recovered"]

    @property
    def target_chosen(self) -> float:
        """How often the target is among the neighbours of an asking fake."""
        return self.estimates["target_chosen"].value

    @property
    def leaks(self) -> bool | None:
        """Whether this attacker surely gains more than `GUESSING`, or recovers more people than without their data.

        False where they surely gain no more; None where too few users were attacked to tell.
        """
        gained = self.estimates["advantage"]
        if gained.low > GUESSING or more_often(self.fully, self.fully_without):
            return True
        return False if gained.high <= GUESSING else None

    @checked
    def above(self, limit: float, judged: Judged = "value") -> tuple[str, ...]:
        """Return what is more than `limit`, a share: `advantage`, `fully_recovered`, both or nothing.

        The share of people counts where it is more than in the world without the target by more than chance. `high`
        judges the upper ends of the intervals; where there is none (one target) it cannot tell, and says yes.
        """
        one_of(judged, "judged", get_args(Judged))
        names = ["advantage"]
        if more_often(self.fully, self.fully_without):
            names.append("fully_recovered")
        found = self.estimates
        return tuple(name for name in names if not getattr(found[name], judged) <= limit)

    def __repr__(self) -> str:
        head = (
            f"{type(self).__name__}({self.attack} on {self.attacked}: {self.n_targets:,} targets, "
            f"{self.n_hidden:,} hidden, {self.n_left_out:,} users left out)"
        )
        lines = [f"  {name:<28} {estimate}" for name, estimate in self.estimates.items()]
        return "\n".join([head, *lines])

    def _repr_html_(self) -> str:
        rows = [(name.replace("_", " "), estimate) for name, estimate in self.estimates.items()]
        title = f"{self.attack} on {self.attacked}: {self.n_targets:,} targets"
        return html_table(["measure", "estimate (95% interval)"], rows, title=title)

    def to_dict(self) -> dict[str, Any]:
        """Return settings and figures as plain values: no user's id, and items that were named stay unnamed."""
        settings = dict(self.settings.get("settings", {}))
        if not isinstance(settings.get("choose", ""), str):
            settings["choose"] = "named items"
        return {
            "date": self.date,
            "settings": settings,
            "seed": self.settings.get("seed"),
            "fakes": self.n_fakes,
            "targets": self.n_targets,
            "choosing": self.n_choosing,
            "left_out": self.n_left_out,
            "hidden": self.n_hidden,
            "leaks": self.leaks,
            "guessing": self.rules,
            "estimates": {name: one._asdict() for name, one in self.estimates.items()},
            "tried": [self.tried_as_plain(one) for one in self.tried],
            "not_tried": [one._asdict() for one in self.not_tried],
        }

    def tried_as_plain(self, tried: Tried) -> dict[str, Any]:
        """Return one attacker who was tried as plain values, what was found under the name of its measure."""
        names = {"recovery": self.measure, "recovery_without": f"{self.measure}_without"}
        return {names.get(name, name): value for name, value in as_plain(tried).items()}

    @property
    @abstractmethod
    def rules(self) -> dict[str, list[str]]:
        """How the informed attacker guesses and what they believe in each world, for each half of the targets."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AttackReport(LeakReport):
    """What fake profiles learnt about some targets.

    `recovery` and `advantage` are the informed attacker's: where the recommender gives no answer, or none worth
    believing, they guess as well as one can without the target's data, in both worlds (`attack/scoring.py`). Chance
    agreement is in both worlds, so only the advantage is leakage. `raw_recovery` and `raw_advantage` count no answer
    as not recovered; `mae`, `coverage` and `exact` are of the answers alone. Mind the sign of the paper's measure:
    a lower `mae` means more disclosure.
    """

    measure: ClassVar[str] = "recovery"
    guessing: ClassVar[str] = "guess"
    feedback: ClassVar[Feedback] = "explicit"

    with_target: Tally
    """What the answers alone got, for each target."""
    without_target: Tally
    """What they got in the world without the target."""
    informed: Informed
    """What the informed attacker got in both worlds, and what guessing gets."""

    @property
    def n_hidden(self) -> int:
        """How many hidden ratings were asked for."""
        return int(self.with_target.hidden.sum())

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Every number of the report with its 95% interval over targets."""
        raw, raw_without = self.with_target, self.without_target
        counted = self.informed
        inside, outside, guess = counted.with_target, counted.without_target, counted.guessed
        hidden, told, told_without = raw.hidden, raw.estimates(), raw_without.estimates()
        return {
            "recovery": share(inside.recovered, hidden),
            "recovery_without": share(outside.recovered, hidden),
            "advantage": difference(inside.recovered, outside.recovered, hidden),
            "fully_recovered": frequency(self.fully.astype(float)),
            "fully_recovered_without": frequency(self.fully_without.astype(float)),
            "worst_tenth_loss": worst_tenth_loss(
                inside.recovered / np.maximum(hidden, 1.0),
                outside.recovered / np.maximum(hidden, 1.0),
            ),
            "guess": share(guess.recovered, hidden),
            "within_one_step": share(inside.near, hidden),
            "within_one_step_without": share(outside.near, hidden),
            "mae_gain": ratio(guess.error - inside.error, hidden, lowest=-np.inf),
            "mae_gain_without": ratio(guess.error - outside.error, hidden, lowest=-np.inf),
            **_confident("", counted.sure),
            **_confident("_without", counted.sure_without),
            "raw_recovery": told.pop("recovery"),
            "raw_recovery_without": told_without.pop("recovery"),
            "raw_advantage": difference(raw.recovered, raw_without.recovered, hidden),
            **told,
            **{f"{name}_without": found for name, found in told_without.items()},
            "target_chosen": frequency(self.chosen),
        }

    @property
    def fully(self) -> Flags:
        """(targets,): of whom the informed attacker recovers every hidden rating that was asked for."""
        return np.asarray(self.informed.with_target.recovered == self.with_target.hidden)

    @property
    def fully_without(self) -> Flags:
        """(targets,): the same in the world without the target."""
        return np.asarray(self.informed.without_target.recovered == self.with_target.hidden)

    @property
    def gain(self) -> float:
        """The mean advantage over targets: the same for attackers who ask for all ratings and for some."""
        inside, outside = self.informed.with_target, self.informed.without_target
        return float(((inside.recovered - outside.recovered) / inside.hidden).mean())

    @property
    def counts(self) -> Counts:
        """Hidden ratings, predictions of these, and which round to them."""
        told = self.with_target
        return Counts(told.hidden, told.predicted, told.recovered)

    @property
    def rules(self) -> dict[str, list[str]]:
        """How the informed attacker guesses and what they believe in each world, for each half of the targets."""
        return {name: list(each) for name, each in self.informed.rules.items()}

    @property
    def mae(self) -> float:
        """Mean absolute error over the hidden ratings that got a prediction: lower is more disclosure."""
        return self.estimates["mae"].value

    @property
    def coverage(self) -> float:
        """The share of the hidden ratings that got a prediction."""
        return self.estimates["coverage"].value

    @property
    def recovery(self) -> float:
        """The share of all hidden ratings that the informed attacker recovers exactly."""
        return self.estimates["recovery"].value

    @property
    def raw_recovery(self) -> float:
        """The share of all hidden ratings to which the prediction rounds; no prediction counts as none."""
        return self.estimates["raw_recovery"].value

    @property
    def exact(self) -> float:
        """The share of all hidden ratings that the prediction equals to 1e-6."""
        return self.estimates["exact"].value

    @property
    def raw_advantage(self) -> float:
        """The same of the predictions alone."""
        return self.estimates["raw_advantage"].value

    @property
    def guess(self) -> float:
        """The recovery of guessing alone: by the best of a few rules, from what everybody else rated."""
        return self.estimates["guess"].value

    @checked
    def table(self, *, ids: bool = False) -> pa.Table:
        """Return one line for each target, numbered from 0; with the caller's own ids only if `ids`."""
        columns: dict[str, npt.NDArray[Any]] = {"target": np.arange(self.n_targets)}
        if ids:
            columns["user"] = self.ratings.users[self.rows]
        hidden, counted = self.with_target.hidden, self.informed
        recovery = counted.with_target.recovered / hidden
        without = counted.without_target.recovered / hidden
        columns |= {
            "hidden": hidden.astype(np.int64),
            "recovery": recovery,
            "recovery_without": without,
            "advantage": recovery - without,
            **_scores(self.with_target, ""),
            **_scores(self.without_target, "_without"),
            "target_chosen": self.chosen,
            "guess": counted.guessed.recovered / hidden,
        }
        # What does not exist is null: no error without a prediction, no neighbours without a neighbourhood.
        arrays = {name: pa.array(column, from_pandas=True) for name, column in columns.items()}
        return pa.table(arrays)


def _confident(suffix: str, sure: Tally) -> dict[str, Estimate]:
    """Return how often what the attacker knows to be right is, and how much of all that is."""
    return {
        f"confident_precision{suffix}": share(sure.recovered, sure.predicted),
        f"confident_coverage{suffix}": share(sure.predicted, sure.hidden),
    }


def as_plain(found: Any) -> dict[str, Any]:
    """Return a named tuple of values and estimates as plain values."""
    return {
        name: value._asdict() if isinstance(value, Estimate) else value
        for name, value in found._asdict().items()
    }


def _scores(tally: Tally, suffix: str) -> dict[str, Floats]:
    predicted = np.where(tally.predicted > 0, tally.predicted, np.nan)
    return {
        f"mae{suffix}": tally.error / predicted,
        f"coverage{suffix}": tally.predicted / tally.hidden,
        f"raw_recovery{suffix}": tally.recovered / tally.hidden,
        f"exact{suffix}": tally.exact / tally.hidden,
    }
