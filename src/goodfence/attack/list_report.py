"""`ListAttackReport`: how much of what fakes are shown is the target's own, with the target's data and without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from goodfence.arrays import Flags, Floats, Rows
from goodfence.attack.report import Counts, LeakReport
from goodfence.attack.scoring import (
    Estimate,
    combination,
    difference,
    frequency,
    share,
    worst_tenth_loss,
)
from goodfence.attack.targets import Targets
from goodfence.data.columns import Feedback
from goodfence.kernels.list_attack import find_hidden
from goodfence.settings import checked


@dataclass(frozen=True, eq=False)
class ListHits:
    """What the lists of some targets got, for each target: arrays of shape (targets,)."""

    listed: Floats
    """How many items were claimed to be the target's."""
    hits: Floats
    """How many of these are: hidden items of the target."""

    def __repr__(self) -> str:
        return f"ListHits({len(self.hits):,} targets)"

    @classmethod
    def of(cls, lists: Rows, targets: Targets) -> ListHits:
        """Count for each target what its list, (targets, n), got."""
        found = is_listed(lists, targets)
        hits = np.bincount(targets.owners, weights=found, minlength=len(targets))
        return cls((lists >= 0).sum(axis=1).astype(np.float64), hits.astype(np.float64))


def is_listed(lists: Rows, targets: Targets) -> Flags:
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

    hidden: Floats
    """(targets,): how many items of each the attacker does not know."""
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

    @property
    def possible(self) -> Floats:
        """(targets,): how many hits a list can have."""
        return np.minimum(self.hidden, self.n_claimed)

    @property
    def n_hidden(self) -> int:
        """How many items of the targets the attacker does not know."""
        return int(self.hidden.sum())

    @property
    def fully(self) -> Flags:
        """(targets,): of whom every claimed item is their own, or every hidden item is claimed."""
        return np.asarray(self.informed.hits == self.possible)

    @property
    def fully_without(self) -> Flags:
        """(targets,): the same in the world without the target."""
        return np.asarray(self.informed_without.hits == self.possible)

    @property
    def gain(self) -> float:
        """The mean advantage over targets."""
        return float(((self.informed.hits - self.informed_without.hits) / self.possible).mean())

    @property
    def counts(self) -> Counts:
        """How many hits there could be, how many items were listed, and how many of these are the target's."""
        return Counts(self.possible, self.with_target.listed, self.with_target.hits)

    @property
    def rules(self) -> dict[str, list[str]]:
        """What the informed attacker believes in each world, for each half of the targets."""
        return {name: list(each) for name, each in self.beliefs.items()}

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Every number of the report with its 95% interval over targets; all but the raw ones are means over these."""
        each = np.ones(self.n_targets)
        raw, raw_without = self.with_target, self.without_target
        precision, without = (
            one.hits / self.possible for one in (self.informed, self.informed_without)
        )
        recall, recall_without = (
            one.hits / self.hidden for one in (self.informed, self.informed_without)
        )
        terms = [(1.0, raw.hits, raw.listed), (-1.0, raw_without.hits, raw_without.listed)]
        return {
            "precision": share(precision, each),
            "precision_without": share(without, each),
            "advantage": difference(precision, without, each),
            "fully_recovered": frequency(self.fully.astype(float)),
            "fully_recovered_without": frequency(self.fully_without.astype(float)),
            "worst_tenth_loss": worst_tenth_loss(precision, without),
            "popularity": share(self.popular.hits / self.possible, each),
            "recall": share(recall, each),
            "recall_without": share(recall_without, each),
            "raw_precision": share(raw.hits, raw.listed),
            "raw_precision_without": share(raw_without.hits, raw_without.listed),
            "raw_advantage": combination(terms).estimate(lowest=-1.0, highest=1.0),
            "listed": share(raw.listed, self.n_claimed * each),
            "listed_without": share(raw_without.listed, self.n_claimed * each),
            "target_chosen": frequency(self.chosen),
            "target_alone": frequency(self.alone),
        }

    @property
    def precision(self) -> float:
        """The share of the claimed items that are the target's own, with the target in the data."""
        return self.found.value

    @property
    def precision_without(self) -> float:
        """The same in the world without the target."""
        return self.found_without.value

    @property
    def popularity(self) -> float:
        """The precision of the most popular items of everybody else."""
        return self.guessed.value

    @property
    def recall(self) -> float:
        """The share of the target's hidden items that are claimed."""
        return self.estimates["recall"].value

    @property
    def target_alone(self) -> float:
        """How often the target is the only real neighbour of an asking fake."""
        return self.estimates["target_alone"].value

    @checked
    def table(self, *, ids: bool = False) -> pa.Table:
        """Return one line for each target, numbered from 0; with the caller's own ids only if `ids`."""
        columns: dict[str, npt.NDArray[Any]] = {"target": np.arange(self.n_targets)}
        if ids:
            columns["user"] = self.ratings.users[self.rows]
        precision = self.informed.hits / self.possible
        without = self.informed_without.hits / self.possible
        columns |= {
            "hidden": self.hidden.astype(np.int64),
            "precision": precision,
            "precision_without": without,
            "advantage": precision - without,
            "recall": self.informed.hits / self.hidden,
            "recall_without": self.informed_without.hits / self.hidden,
            "popularity": self.popular.hits / self.possible,
            "listed": self.with_target.listed.astype(np.int64),
            "raw_hits": self.with_target.hits.astype(np.int64),
            "listed_without": self.without_target.listed.astype(np.int64),
            "raw_hits_without": self.without_target.hits.astype(np.int64),
            "target_chosen": self.chosen,
            "target_alone": self.alone,
        }
        arrays = {name: pa.array(column, from_pandas=True) for name, column in columns.items()}
        return pa.table(arrays)
