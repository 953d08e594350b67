"""What an attack found out, in total and for each target, beside what chance would have given.

`LeakReport` is what every attack reports; `AttackReport` measures predicted ratings, `ListAttackReport` lists.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import stats

from goodfence.arrays import Flags, Floats, Integers, Rows
from goodfence.attack import GUESSING
from goodfence.attack.scoring import (
    UNKNOWN,
    Estimate,
    Informed,
    Outcomes,
    Tally,
    combination,
    difference,
    frequency,
    more_often,
    ratio,
    share,
    worst_tenth_loss,
)
from goodfence.attack.targets import Targets
from goodfence.attack.trained import wider
from goodfence.data.columns import Feedback
from goodfence.data.ratings import Ratings
from goodfence.kernels.list_attack import find_hidden
from goodfence.markup import html_table
from goodfence.settings import checked

Judged: TypeAlias = Literal["value", "high"]
FEWEST = 30
"""On fewer judged users there is no verdict."""
BLUNT = 0.1
"""An audit that could only have seen more than this advantage finds nothing to be absent."""
_TWO_SIDED, _POWER, _CLEARLY = 1.96, 1.96 + 1.645, 2.58
"""Standard errors: of the 95% interval, of what is seen with 95% power, and of an advantage to be called a leak."""


class Tried(NamedTuple):
    """One of several attackers, and what they found on the half of the targets where the strongest was chosen."""

    attack: str
    """The attack, with its settings."""
    what: str
    """What its accounts do, in words."""
    n_fakes: int = 0
    n_targets: int = 0
    recovery: Estimate = UNKNOWN
    """What they found: recovery of ratings, precision of lists."""
    recovery_without: Estimate = UNKNOWN
    """The same in the world without the target."""
    advantage: Estimate = UNKNOWN
    fully_recovered: Estimate = UNKNOWN
    strongest: bool = False
    """Whether this one was chosen, and attacked the other half."""
    failed: str | None = None
    """Why there are no figures: the recommender's own error."""


class NotTried(NamedTuple):
    """An attack that was not tried, and why."""

    attack: str
    reason: str


Verdict: TypeAlias = Literal["leaks", "none found", "cannot tell"]


class Finding(NamedTuple):
    """The verdict on a recommender, why nothing can be told where that is so, and what would have been seen."""

    verdict: Verdict
    reason: str
    detectable: float
    """An advantage of this or more would have been seen with 95% power."""


class Counts(NamedTuple):
    """What there was to find, and what answers alone and the informed attacker got; arrays of shape (targets,)."""

    possible: Floats
    answered: Floats
    right: Floats
    informed: Floats
    informed_without: Floats


class Value:
    """The value of the estimate of this name, as an attribute of a report."""

    def __init__(self, meaning: str) -> None:
        self.__doc__ = meaning

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, report: Any, owner: type) -> float:
        """Return the value."""
        value: float = report.estimates[self.name].value
        return value


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LeakReport(ABC):
    """What every report of an attack has: who attacked whom, the main figures, and what else was tried.

    Whatever audits, compares or shows an attack asks for no more than this, be it of ratings or of lists.
    """

    measure: ClassVar[str]
    """Which estimate says how much the informed attacker finds; with `_without` that of the other world."""
    guessing: ClassVar[str]
    """Which estimate says how much is found without any attack."""
    feedback: ClassVar[Feedback]
    """Whether ratings were predicted (`explicit`) or lists shown (`implicit`)."""

    attack: str
    """The attack, with its settings."""
    attacked: str = ""
    """The mechanism with its settings, or the name of the recommender."""
    n_left_out: int = 0
    """How many users could not be attacked: they have too little, or nothing of a named item."""
    n_fakes: int = 0
    """How many fakes attacked each target."""
    n_few: int = 0
    """Of how many targets the attacker knew less, because they have few ratings: half of them."""
    hidden: Floats
    """(targets,): how many ratings or items of each the attacker does not know, of those asked for."""
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
    headlines: Mapping[str, Estimate] = field(default_factory=dict)
    """Estimates of attackers that are better at them than the one of this report."""
    probe: Any = None
    """What probing found, a `Probe`; None where nothing was probed."""
    cut: str = ""
    """Why less was attacked than was asked for: a time limit, or a recommender that failed. Empty where nothing was."""
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    """When it was made."""

    advantage = Value("What is found with the target in the data less what is found without.")
    target_chosen = Value("How often the target is among the neighbours of an asking fake.")

    @abstractmethod
    def _estimates(self) -> dict[str, Estimate]:
        """Return every number of this attacker with its 95% interval over targets."""

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """Every number of the report with its 95% interval over targets; headlines are those of who is best at them."""
        found = {**self._estimates(), **self.headlines}
        if getattr(self.attacker, "decode", "") == "trained":
            found["advantage"] = wider(found["advantage"], -1.0)
        return found

    @property
    @abstractmethod
    def counts(self) -> Counts:
        """What there was to find, and what was found."""

    @property
    @abstractmethod
    def rules(self) -> dict[str, list[str]]:
        """How the informed attacker guesses and what they believe in each world, for each half of the targets."""

    @abstractmethod
    def _columns(self) -> dict[str, Any]:
        """Return the columns of `table` that only this measure has."""

    @property
    def n_hidden(self) -> int:
        """How many ratings or items of the targets the attacker does not know, of those asked for."""
        return int(self.hidden.sum())

    @property
    def fully(self) -> Flags:
        """(targets,): who is fully recovered."""
        return np.asarray(self.counts.informed == self.counts.possible)

    @property
    def fully_without(self) -> Flags:
        """(targets,): the same in the world without the target."""
        return np.asarray(self.counts.informed_without == self.counts.possible)

    @property
    def gain(self) -> float:
        """The mean advantage over targets: the same for attackers who ask for everything and for some."""
        counts = self.counts
        return float(((counts.informed - counts.informed_without) / counts.possible).mean())

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
    def fully_recovered(self) -> Estimate:
        """The share of the targets who are fully recovered."""
        return self.estimates["fully_recovered"]

    @property
    def detectable(self) -> float:
        """The advantage that would have been seen with 95% power; where nothing varies, by the rule of three."""
        gained = self.estimates["advantage"]
        error = (gained.high - gained.low) / 2 / _TWO_SIDED
        return max(_POWER * error, 3 / max(self.n_targets, 1)) if error == error else 1.0

    @property
    def finding(self) -> Finding:
        """The verdict: the recommender leaks, no leak was found that would have been seen, or nothing can be told."""
        gained, n, seen = self.estimates["advantage"], self.n_targets, self.detectable
        if n < FEWEST:
            return Finding("cannot tell", f"only {n} users were judged, and {FEWEST} are needed", seen)
        sure = gained.value > max(GUESSING, _CLEARLY * (gained.high - gained.low) / 2 / _TWO_SIDED)
        if sure or more_often(self.fully, self.fully_without):
            return Finding("leaks", "", seen)
        if self.probe is not None and not self.probe.influence:
            return Finding("cannot tell", "accounts do not influence the answers", seen)
        if self.probe is not None and self.probe.unread:
            return Finding("cannot tell", "single ratings show in the answers, but no attacker tried reads them", seen)
        if seen > BLUNT:
            return Finding("cannot tell", f"{n} users are too few to see an advantage below {seen:.2f}", seen)
        return Finding("none found", "", seen)

    @property
    def leaks(self) -> bool | None:
        """Whether the verdict is that it leaks; None where it cannot be told."""
        return {"leaks": True, "none found": False, "cannot tell": None}[self.finding.verdict]

    @checked
    def above(self, limit: float, judged: Judged = "value") -> tuple[str, ...]:
        """Return what is more than `limit`, a share: `advantage`, `fully_recovered`, both or nothing.

        The share of users counts where it is more than in the world without the target by more than chance. `high`
        judges the upper ends of the intervals; where there is none (one target) it cannot tell, and says yes.
        """
        names = ["advantage"]
        if more_often(self.fully, self.fully_without):
            names.append("fully_recovered")
        found = self.estimates
        return tuple(name for name in names if not getattr(found[name], judged) <= limit)

    @checked
    def table(self, *, ids: bool = False) -> pa.Table:
        """Return one line for each target, numbered from 0; with the caller's own ids only if `ids`."""
        counts = self.counts
        found, without = np.array([counts.informed, counts.informed_without]) / counts.possible
        columns: dict[str, npt.NDArray[Any]] = {
            "target": np.arange(self.n_targets),
            **({"user": self.ratings.users[self.rows]} if ids else {}),
            "hidden": self.hidden.astype(np.int64),
            self.measure: found,
            f"{self.measure}_without": without,
            "advantage": found - without,
            **self._columns(),
        }
        # What does not exist is null: no error without a prediction, no neighbours without a neighbourhood.
        arrays = {name: pa.array(column, from_pandas=True) for name, column in columns.items()}
        return pa.table(arrays)

    def risk(self) -> pa.Table:
        """Return how exposed each target is, with the caller's own ids: personal data.

        Decile 10 holds the tenth with the highest advantage, decile 1 the tenth with the lowest; ties share a decile.
        """
        table = self.table(ids=True)
        deciles = np.ceil(10 * stats.rankdata(table["advantage"]) / self.n_targets).astype(np.int64)
        names = ["user", "hidden", self.measure, f"{self.measure}_without", "advantage"]
        fully = table.select(names).append_column("fully_recovered", pa.array(self.fully))
        return fully.append_column("risk_decile", pa.array(deciles))

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
        names = {"recovery": self.measure, "recovery_without": f"{self.measure}_without"}
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
            "finding": self.finding._asdict(),
            "cut": self.cut,
            "few": self.n_few,
            "probe": None if self.probe is None else self.probe.to_dict(),
            "guessing": self.rules,
            "estimates": {name: one._asdict() for name, one in self.estimates.items()},
            "tried": [{names.get(key, key): value for key, value in as_plain(one).items()} for one in self.tried],
            "not_tried": [one._asdict() for one in self.not_tried],
        }


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SharesReport(ABC):
    """What a report of shares other than recovered ratings has. It shows and saves no rating, class or id."""

    attack: str
    """The attack, with its settings."""
    attacked: str = ""
    n_fakes: int = 0
    n_left_out: int = 0
    """How many users have too few ratings to be attacked."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings of the attack, and the seed."""

    @property
    @abstractmethod
    def n_targets(self) -> int:
        """How many users were attacked."""

    @property
    @abstractmethod
    def estimates(self) -> dict[str, Estimate]:
        """Every share with its 95% interval over targets; `advantage` is the leak."""

    def __repr__(self) -> str:
        head = f"{type(self).__name__}({self.attack} on {self.attacked}: {self.n_targets:,} targets)"
        return "\n".join([head, *(f"  {name:<28} {one}" for name, one in self.estimates.items())])

    def to_dict(self) -> dict[str, Any]:
        """Return settings and figures as plain values."""
        stated = {name: self.settings[name] for name in ("settings", "seed")}
        counts = {"fakes": self.n_fakes, "targets": self.n_targets, "left_out": self.n_left_out}
        return {**stated, **counts, "estimates": {name: one._asdict() for name, one in self.estimates.items()}}


def as_plain(found: Any) -> dict[str, Any]:
    """Return a named tuple of values and estimates as plain values."""
    return {name: value._asdict() if isinstance(value, Estimate) else value for name, value in found._asdict().items()}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AttackReport(LeakReport):
    """What fake profiles learnt about some targets from predicted ratings.

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

    mae = Value("Mean absolute error over the hidden ratings that got a prediction.")
    coverage = Value("The share of the hidden ratings that got a prediction.")
    recovery = Value("The share of the hidden ratings that the informed attacker recovers exactly.")
    raw_recovery = Value("The share of the hidden ratings to which the prediction rounds.")
    exact = Value("The share of the hidden ratings that the prediction equals to 1e-6.")
    raw_advantage = Value("The advantage of the predictions alone.")
    guess = Value("The recovery of guessing alone, by the best of a few rules.")

    @property
    def counts(self) -> Counts:
        """Hidden ratings, predictions of these, which round to them, and what the informed attacker recovers."""
        told, counted = self.with_target, self.informed
        found = counted.with_target.recovered, counted.without_target.recovered
        return Counts(told.hidden, told.predicted, told.recovered, *found)

    @property
    def rules(self) -> dict[str, list[str]]:
        """As in `LeakReport`."""
        return {name: list(each) for name, each in self.informed.rules.items()}

    def _estimates(self) -> dict[str, Estimate]:
        raw, raw_without = self.with_target, self.without_target
        counted = self.informed
        inside, outside, guess = counted.with_target, counted.without_target, counted.guessed
        hidden, told, told_without = raw.hidden, raw.estimates(), raw_without.estimates()
        most = np.maximum(hidden, 1.0)
        return {
            "recovery": share(inside.recovered, hidden),
            "recovery_without": share(outside.recovered, hidden),
            "advantage": difference(inside.recovered, outside.recovered, hidden),
            "fully_recovered": frequency(self.fully.astype(float)),
            "fully_recovered_without": frequency(self.fully_without.astype(float)),
            "worst_tenth_loss": worst_tenth_loss(inside.recovered / most, outside.recovered / most),
            "guess": share(guess.recovered, hidden),
            "within_one_step": share(inside.near, hidden),
            "within_one_step_without": share(outside.near, hidden),
            "mae_gain": ratio(guess.error - inside.error, hidden, lowest=-np.inf),
            "mae_gain_without": ratio(guess.error - outside.error, hidden, lowest=-np.inf),
            **{
                f"confident_{name}{suffix}": share(*parts)
                for suffix, sure in (("", counted.sure), ("_without", counted.sure_without))
                for name, parts in (
                    ("precision", (sure.recovered, sure.predicted)),
                    ("coverage", (sure.predicted, sure.hidden)),
                )
            },
            "raw_recovery": told.pop("recovery"),
            "raw_recovery_without": told_without.pop("recovery"),
            "raw_advantage": difference(raw.recovered, raw_without.recovered, hidden),
            **told,
            **{f"{name}_without": found for name, found in told_without.items()},
            "target_chosen": frequency(self.chosen),
        }

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        for suffix, tally in (("", self.with_target), ("_without", self.without_target)):
            columns |= {
                f"mae{suffix}": tally.error / np.where(tally.predicted > 0, tally.predicted, np.nan),
                f"coverage{suffix}": tally.predicted / tally.hidden,
                f"raw_recovery{suffix}": tally.recovered / tally.hidden,
                f"exact{suffix}": tally.exact / tally.hidden,
            }
        guess = self.informed.guessed.recovered / self.hidden
        return {**columns, "target_chosen": self.chosen, "guess": guess}


@dataclass(frozen=True, eq=False, repr=False)
class ListHits:
    """What the lists of some targets got, for each target: arrays of shape (targets,)."""

    listed: Floats
    """How many items were claimed to be the target's."""
    hits: Floats
    """How many of these are: hidden items of the target."""

    @classmethod
    def of(cls, lists: Rows, targets: Targets) -> ListHits:
        """Count for each target what its list, (targets, n), got."""
        found = is_claimed(lists, targets)
        hits = np.bincount(targets.owners, weights=found, minlength=len(targets))
        return cls((lists >= 0).sum(axis=1).astype(np.float64), hits.astype(np.float64))


def is_claimed(lists: Rows, targets: Targets) -> Flags:
    """Return for each hidden item whether it is in the list of its target."""
    found = np.zeros(len(targets.columns), dtype=np.bool_)
    find_hidden(lists, targets.starts, targets.columns, found)
    return found


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ListAttackReport(LeakReport):
    """What fake profiles learnt about some targets from the lists that they were shown.

    All that is listed is claimed to be the target's. *Precision* is the share of the claimed items that are: hidden
    items of the target, divided by the number claimed, or by that of the hidden items where these are fewer (no list
    has more hits). It is the informed attacker's: where a list is empty or short, the most popular items of everybody
    else take its free places, in both worlds, and where no list is worth believing they take all. Chance is in both
    worlds, so only the advantage is leakage. `raw_precision` is of what was listed alone.
    """

    measure: ClassVar[str] = "precision"
    guessing: ClassVar[str] = "popularity"
    feedback: ClassVar[Feedback] = "implicit"

    n_claimed: int
    """How many items are claimed of each target, at most."""
    with_target: ListHits
    """What the lists alone got."""
    without_target: ListHits
    """What they got in the world without the target."""
    informed: ListHits
    """What the informed attacker got."""
    informed_without: ListHits
    """The same in the world without the target."""
    popular: ListHits
    """What the most popular items of everybody else get: no attack is needed for that."""
    alone: Floats
    """For each target the share of the asking fakes with no real neighbour but the target; NaN where not known."""
    beliefs: Mapping[str, tuple[str, str]]
    """What the informed attacker believes in each world, for each half of the targets."""

    precision = Value("The share of the claimed items that are the target's own.")
    precision_without = Value("The same in the world without the target.")
    popularity = Value("The precision of the most popular items of everybody else.")
    recall = Value("The share of the target's hidden items that are claimed.")
    target_alone = Value("How often the target is the only real neighbour of an asking fake.")

    @property
    def possible(self) -> Floats:
        """(targets,): how many hits a list can have."""
        return np.minimum(self.hidden, self.n_claimed)

    @property
    def counts(self) -> Counts:
        """How many hits there could be, items listed, hits among these, and hits of the informed attacker."""
        raw, found = self.with_target, (self.informed.hits, self.informed_without.hits)
        return Counts(self.possible, raw.listed, raw.hits, *found)

    @property
    def rules(self) -> dict[str, list[str]]:
        """As in `LeakReport`."""
        return {name: list(each) for name, each in self.beliefs.items()}

    def _estimates(self) -> dict[str, Estimate]:
        each = np.ones(self.n_targets)
        raw, raw_without = self.with_target, self.without_target
        found, found_without = self.informed.hits, self.informed_without.hits
        precision, without = found / self.possible, found_without / self.possible
        terms = [(1.0, raw.hits, raw.listed), (-1.0, raw_without.hits, raw_without.listed)]
        return {
            "precision": share(precision, each),
            "precision_without": share(without, each),
            "advantage": difference(precision, without, each),
            "fully_recovered": frequency(self.fully.astype(float)),
            "fully_recovered_without": frequency(self.fully_without.astype(float)),
            "worst_tenth_loss": worst_tenth_loss(precision, without),
            "popularity": share(self.popular.hits / self.possible, each),
            "recall": share(found / self.hidden, each),
            "recall_without": share(found_without / self.hidden, each),
            "raw_precision": share(raw.hits, raw.listed),
            "raw_precision_without": share(raw_without.hits, raw_without.listed),
            "raw_advantage": combination(terms).estimate(lowest=-1.0, highest=1.0),
            "listed": share(raw.listed, self.n_claimed * each),
            "listed_without": share(raw_without.listed, self.n_claimed * each),
            "target_chosen": frequency(self.chosen),
            "target_alone": frequency(self.alone),
        }

    def _columns(self) -> dict[str, Any]:
        raw, without = self.with_target, self.without_target
        return {
            "recall": self.informed.hits / self.hidden,
            "recall_without": self.informed_without.hits / self.hidden,
            "popularity": self.popular.hits / self.possible,
            "listed": raw.listed.astype(np.int64),
            "raw_hits": raw.hits.astype(np.int64),
            "listed_without": without.listed.astype(np.int64),
            "raw_hits_without": without.hits.astype(np.int64),
            "target_chosen": self.chosen,
            "target_alone": self.alone,
        }
