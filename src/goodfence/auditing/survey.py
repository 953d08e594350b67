"""`survey`: an audit with its surroundings: other attackers, other knowledge, and other recommenders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from goodfence.arrays import Flags, Floats, Integers
from goodfence.attack import DEFAULT_FAKES, FRONTIER_TARGETS
from goodfence.attack.attack import Attack, Subject
from goodfence.attack.report import LeakReport, as_plain
from goodfence.attack.scoring import CONFIDENCE, Estimate, Outcomes, combination
from goodfence.attack.strongest import PILOT_REFITTED, usual_attackers
from goodfence.attack.targets import RULES
from goodfence.auditing.audit import AuditReport
from goodfence.auditing.frontier import Compared, Comparison, Frontier, compare, name_of
from goodfence.data.ratings import Ratings
from goodfence.errors import DataError
from goodfence.models.method import as_recommender, default_recommenders
from goodfence.models.recommender import guarantee_of
from goodfence.parallel import bar
from goodfence.privacy.guarantee import Guarantee

KNOWN = (1, 2, 4, 8, 16, 32, 64)
_TELLING = ["known", "choose", "ask", "combine", "rounds", "centred", "helpers", "n", "pages", "adaptive"]
"""The settings that tell attackers apart."""
TARGETS = 1000  # how many users other attackers attack


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Survey:
    """An audit and its surroundings. Figures only: no id and no rating leaves it."""

    audit: AuditReport
    """The audit itself."""
    by_known: tuple[LeakReport, ...]
    """The same attacker with less knowledge and with more, ascending; the audit's own among them."""
    by_strategy: tuple[LeakReport, ...]
    """Others with as many known ratings, the audit's own first; those among whom it was chosen are its `tried`."""
    by_activity: tuple[Group, ...]
    """What was recovered of users with few ratings and with many."""
    by_popularity: tuple[Group, ...]
    """What was recovered of items that few rated, and many."""
    frontier: Frontier
    """Other recommenders on the same ratings; the audited one first."""
    guarantees: tuple[Guarantee, ...]
    """What each of these guarantees."""
    neighbours: bool
    """Whether the audited one chooses neighbours among users, as the attack supposes."""

    def to_dict(self) -> dict[str, Any]:
        """Return every figure as plain values: no ids, no ratings."""
        leakage = self.audit.leakage.to_dict()
        return {
            "attack": leakage,
            "fully_recovered": leakage["estimates"]["fully_recovered"],
            "tested": self.audit.tested(),
            "neighbourhood": self.audit.neighbourhood,
            "guarantee": self.audit.guarantee.to_dict(),
            "by_known": [report.to_dict() for report in self.by_known],
            "by_strategy": [report.to_dict() for report in self.by_strategy],
            "by_activity": [as_plain(group) for group in self.by_activity],
            "by_popularity": [as_plain(group) for group in self.by_popularity],
            "frontier": {
                **self.frontier.to_dict(),
                "guarantees": [guarantee.to_dict() for guarantee in self.guarantees],
            },
        }

    def __repr__(self) -> str:
        return (
            f"Survey({self.audit.audited}: {len(self.by_known)} amounts of knowledge, {len(self.by_strategy)} "
            f"attackers, {len(self.frontier.points)} recommenders)"
        )


def survey(
    audit: AuditReport,
    *,
    compared: Sequence[Compared] | None = None,
    targets: int = TARGETS,
    progress: bool | None = None,
) -> Survey:
    """Attack again with other knowledge and by other attackers, and compare other recommenders, as `audit_page` says.

    Each further attacker attacks `targets` users: no more than the audit did, and 60 where every target needs fits.
    """
    leakage, ratings = audit.leakage, audit.leakage.ratings
    subject, seed = Subject(ratings, audit.recommender), leakage.settings["seed"]
    if compared is None:
        k = subject.traits.n_neighbours or DEFAULT_FAKES
        compared = default_recommenders("page", ratings.shape[0], ratings.feedback, k)
    others = [
        as_recommender(one, threads=subject.threads) for one in compared if name_of(one) != name_of(subject.recommender)
    ]
    everything = [subject.recommender, *others]
    fewer = min(PILOT_REFITTED, targets)
    how = Comparison(leakage.known, None, min(FRONTIER_TARGETS, targets), fewer)
    running: dict[str, Any] = {"rng": seed, "progress": progress}
    n_targets = min(fewer if subject.traits.needs_refits else targets, leakage.n_targets)
    knowing, strategies = _knowing(leakage.attacker, ratings), _strategies(leakage, subject)
    reports: dict[Attack, LeakReport] = {}
    with bar("other attackers", len(knowing) + len(strategies), show=progress) as advance:
        for one in (*knowing, *strategies):
            reports[one] = one.run_on(subject, targets=n_targets, rng=seed, progress=False)
            advance(1)
    by_known = [leakage, *(reports[one] for one in knowing)]
    return Survey(
        audit=audit,
        by_known=tuple(sorted(by_known, key=lambda report: report.known)),
        by_strategy=(leakage, *(reports[one] for one in strategies)),
        by_activity=by_activity(leakage),
        by_popularity=by_popularity(leakage),
        # The audited recommender is not attacked again: the same question has the same answer.
        frontier=compare(_declared(ratings), everything, how, reports=[leakage], **running),
        guarantees=tuple(guarantee_of(one) for one in everything),
        neighbours=subject.traits.mechanism is not None,
    )


def _knowing(attack: Attack, ratings: Ratings) -> list[Attack]:
    """Return the same attacker with other knowledge, as far as half of the users have more ratings than that."""
    if not isinstance(attack.choose, str):
        return []
    half = float(np.median(np.diff(ratings.csr.indptr)))
    return [replace(attack, known=m) for m in KNOWN if m != attack.known and m < half]


def _strategies(leakage: LeakReport, subject: Subject) -> list[Attack]:
    """Return who else attacks: one who knows other ratings, and, unless the audit tried them, the usual ones."""
    own: Attack = leakage.attacker
    if not isinstance(own.choose, str):
        return []
    plans = [replace(own, choose=choose) for choose in RULES]
    if not leakage.tried:
        plans = [*usual_attackers(subject, known=own.known), *plans]

    def numbered(attack: Attack) -> tuple[object, ...]:
        """Return what tells attackers apart: a cover of k fakes is k fakes that all ask."""
        n_fakes = attack.n_fakes(subject.recommender, subject.ratings.shape[0])
        return n_fakes, *(getattr(attack, name, None) for name in _TELLING)

    chosen = {numbered(own): own}
    for plan in plans:
        chosen.setdefault(numbered(plan), plan)
    return list(chosen.values())[1:]


def _declared(ratings: Ratings) -> Ratings:
    """Return the ratings with their scale as if somebody vouched for it: to try what would come of it."""
    scale = ratings.scale
    if scale.declared or ratings.feedback == "implicit":
        return ratings
    return Ratings(ratings.csr, ratings.users, ratings.items, replace(scale, declared=True), ratings.titles)


SMALLEST = 10  # a group of fewer users is merged with the next: its figures would be about somebody
_STEPS = (1, 2, 5)


class Group(NamedTuple):
    """Some of those attacked, and what was recovered of them.

    The intervals of all groups of a table hold together: each is that much wider (Bonferroni).
    """

    least: int  # the fewest ratings of a member, a round number
    below: int | None
    """Members have fewer ratings than this round number; None for the last group, so that the largest is not told."""
    n_users: int
    n_hidden: int
    recovery: Estimate
    recovery_without: Estimate
    advantage: Estimate
    guess: Estimate


def by_activity(report: LeakReport) -> tuple[Group, ...]:
    """Return what was recovered of users with few ratings and with many; nothing below ten users."""
    n_ratings = np.diff(report.ratings.csr.indptr)[report.rows]
    found = _outcomes(report)
    return _grouped(n_ratings[found.owners], found)


def by_popularity(report: LeakReport) -> tuple[Group, ...]:
    """Return what was recovered of ratings of rare items and of popular ones; nothing below ten users.

    A user is in every group of which they rated an item.
    """
    csr = report.ratings.csr
    found = _outcomes(report)
    return _grouped(np.bincount(csr.indices, minlength=csr.shape[1])[found.columns], found)


def _outcomes(report: LeakReport) -> Outcomes:
    if report.outcomes is None:
        raise DataError("the report must know what became of each hidden rating: run the attack")
    return report.outcomes


def _grouped(sizes: Integers, found: Outcomes) -> tuple[Group, ...]:
    """Return groups by round numbers (1, 2, 5, 10, ...), merged until each is of enough users; none if all are few."""
    edges = [1]
    while edges[-1] <= sizes.max(initial=1):
        power, step = divmod(len(edges), len(_STEPS))
        edges.append(_STEPS[step] * 10**power)
    spans: list[tuple[int, int]] = []
    first = 0
    for last in range(1, len(edges)):
        cells = (sizes >= edges[first]) & (sizes < edges[last])
        if len(np.unique(found.owners[cells])) >= SMALLEST:
            spans.append((first, last))
            first = last
    if spans:
        spans[-1] = spans[-1][0], len(edges) - 1
    together = 1 - (1 - CONFIDENCE) / max(len(spans), 1)
    groups = []
    for first, last in spans:
        cells = (sizes >= edges[first]) & (sizes < edges[last])
        below = None if last == len(edges) - 1 else edges[last]
        groups.append(_group(edges[first], below, cells, found, together))
    return tuple(groups)


def _group(least: int, below: int | None, cells: Flags, found: Outcomes, confidence: float) -> Group:
    _, owners = np.unique(found.owners[cells], return_inverse=True)
    hidden = np.bincount(owners).astype(np.float64)

    def counted(happened: Flags) -> Floats:
        return np.bincount(owners, weights=happened[cells]).astype(np.float64)

    def shared(counts: Floats, lowest: float = 0.0) -> Estimate:
        found = combination([(1.0, counts, hidden)])
        return found.estimate(lowest=lowest, highest=1.0, confidence=confidence)

    with_target, without = counted(found.recovered), counted(found.recovered_without)
    return Group(
        least=least,
        below=below,
        n_users=len(hidden),
        n_hidden=int(hidden.sum()),
        recovery=shared(with_target),
        recovery_without=shared(without),
        advantage=shared(with_target - without, lowest=-1.0),
        guess=shared(counted(found.guessed)),
    )
