"""`survey`: an audit with what stands around it: other attackers, other knowledge, and other ways to recommend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from goodfence.attack.adaptive import AdaptiveAttack
from goodfence.attack.attack import Attack, mechanism_in
from goodfence.attack.knn_attack import CoverAttack, KNNAttack
from goodfence.attack.report import AttackReport
from goodfence.auditing.audit import leak, promise_of
from goodfence.auditing.compared import Compared, name_of, short_list
from goodfence.auditing.exposed import SMALLEST, Group, by_activity, by_popularity
from goodfence.auditing.frontier import Frontier, frontier
from goodfence.auditing.frontier_point import applied
from goodfence.auditing.pace import find_pace
from goodfence.auditing.report import AuditReport
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale
from goodfence.engines.progress import bar
from goodfence.privacy.guarantee import Guarantee
from goodfence.rng import RNG, seed_of

KNOWN = (1, 2, 4, 8, 16, 32, 64)
TARGETS, FRONTIER_TARGETS = 1000, 100
"""How many people other attackers attack, and how many are attacked in each way to recommend."""
ATTACKER_SECONDS, WAY_SECONDS = 10.0, 25.0
"""How long each of these may take before fewer people are attacked: only large data, or a model that is refitted."""

Run: TypeAlias = "Callable[[Attack], AttackReport | None]"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Survey:
    """An audit, and what stands around it. Figures only: no id and no rating leaves it."""

    audit: AuditReport
    """The audit itself."""
    by_known: tuple[AttackReport, ...]
    """The same attacker with less knowledge and with more, ascending; the audit's own among them."""
    by_strategy: tuple[AttackReport, ...]
    """Other attackers with as much knowledge; the audit's own first."""
    by_activity: tuple[Group, ...]
    """What was read of people with few ratings and with many."""
    by_popularity: tuple[Group, ...]
    """What was read of items that few rated, and many."""
    frontier: Frontier
    """Other ways to recommend, on the same ratings; the audited one first."""
    promises: tuple[Guarantee, ...]
    """What each of these promises."""
    n_skipped: int
    """How many other attackers would have taken too long, even for ten people: they are not here."""
    neighbours: bool
    """Whether the audited one chooses neighbours among people, as the attack supposes."""
    scale: Scale
    """On which ratings can be given; where it is only observed, the private ways took it as declared."""

    def __repr__(self) -> str:
        return (
            f"Survey({self.audit.audited}: {len(self.by_known)} amounts of knowledge, {len(self.by_strategy)} "
            f"attackers, {len(self.frontier.points)} ways)"
        )


def survey(
    audit: AuditReport,
    audited: Compared,
    attack: Attack,
    *,
    compared: Sequence[Compared] | None = None,
    targets: int = TARGETS,
    rng: RNG = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Survey:
    """Attack again with other knowledge and by other attackers, and measure what else could be used.

    Parameters
    ----------
    audit
        What `audit` returned.
    audited, attack, rng
        What it was given.
    compared
        Other ways to recommend; None for kNN, PPNS, nPNS, PNCF and two private models.
    targets
        How many people other attackers attack, and no more than the audit did. Fewer where it would take long, as on
        the frontier: each report says how many.
    threads, progress
        As in `KNNAttack.run`.

    Examples
    --------
    >>> import goodfence as gf
    >>> films, fence = gf.load("movietweetings"), gf.KNN(k=20)
    >>> report = gf.audit(films, fence, targets=40, trials=0, rng=7)
    >>> ways = [gf.PPNS(k=20, beta=3)]
    >>> found = survey(report, fence, gf.KNNAttack(known=8), compared=ways, targets=20, rng=7)
    >>> [point.family for point in found.frontier.points], len(found.by_known) > 3
    (['kNN', 'PPNS'], True)
    """
    ratings, seed = audit.leakage.ratings, seed_of(rng)
    knowing = _knowing(attack, ratings)
    others = _strategies(attack, audited, ratings.shape[0])
    run = partial(_attacked, audit, audited, targets, seed, threads)
    with bar("other attackers", len(knowing) + len(others), show=progress) as advance:
        by_known = [audit.leakage, *_each(run, knowing, advance)]
        by_strategy = [audit.leakage, *_each(run, others, advance)]
    n_done = len(by_known) + len(by_strategy) - 2
    if compared is None:
        compared = short_list(ratings.shape[0], mechanism_in(audited))
    ways = [audited, *(way for way in compared if name_of(way) != name_of(audited))]
    return Survey(
        audit=audit,
        by_known=tuple(sorted(by_known, key=known_of)),
        by_strategy=tuple(by_strategy),
        by_activity=by_activity(audit.leakage),
        by_popularity=by_popularity(audit.leakage),
        frontier=frontier(
            _declared(ratings),
            ways,
            known=attack.known,
            targets=min(FRONTIER_TARGETS, targets),
            seconds=WAY_SECONDS,
            rng=seed,
            threads=threads,
            progress=progress,
        ),
        promises=tuple(promise_of(way) for way in ways),
        n_skipped=len(knowing) + len(others) - n_done,
        neighbours=mechanism_in(audited) is not None,
        scale=ratings.scale,
    )


def known_of(report: AttackReport) -> int:
    """Return how many ratings the attacker of a report knew."""
    return int(report.settings["settings"]["known"])


def _attacked(
    audit: AuditReport,
    audited: Compared,
    targets: int,
    seed: RNG,
    threads: int | None,
    attack: Attack,
) -> AttackReport | None:
    """Attack as many people as the audit did, `targets` at most, and fewer where it would take long.

    None where that would be fewer than ten: such figures say little, and are about too few.
    """
    ratings = audit.leakage.ratings

    def some(n: int) -> AttackReport:
        return leak(
            ratings, audited, attack=attack, targets=n, rng=seed, threads=threads, progress=False
        )

    most = min(targets, audit.leakage.n_targets)
    n_targets = find_pace(some, most, longest=ATTACKER_SECONDS).n_targets
    return None if n_targets < min(SMALLEST, most) else some(n_targets)


def _each(
    run: Run, attacks: Sequence[Attack], advance: Callable[[int], None]
) -> list[AttackReport]:
    reports = []
    for attack in attacks:
        reports.append(run(attack))
        advance(1)
    return [report for report in reports if report is not None]


def _knowing(attack: Attack, ratings: Ratings) -> list[Attack]:
    """Return the same attacker with other knowledge, as far as half of the people have more ratings than that."""
    if not isinstance(attack.choose, str):
        return []
    half = float(np.median(np.diff(ratings.csr.indptr)))
    return [replace(attack, known=m) for m in KNOWN if m != attack.known and m < half]


def _strategies(attack: Attack, audited: Compared, n_users: int) -> list[Attack]:
    """Return the other attackers that can attack this recommender, each once."""
    if not isinstance(attack.choose, str):
        return []
    given: dict[str, Any] = {"known": attack.known, "fakes": attack.fakes}
    plans: list[Attack] = [
        KNNAttack(**given),
        KNNAttack(**given, ask="all"),
        CoverAttack(known=attack.known),
        KNNAttack(**given, choose="rarest"),
        KNNAttack(**given, choose="most_popular"),
        KNNAttack(known=attack.known, fakes=1),
    ]
    if mechanism_in(audited) is not None and (attack.fakes is None or attack.fakes > 1):
        plans.insert(3, AdaptiveAttack(**given))
    chosen: list[Attack] = []
    seen = {_numbered(attack, audited, n_users)}
    for plan in plans:
        possible = applied(plan, audited, n_users)
        if possible is not None and _numbered(possible, audited, n_users) not in seen:
            seen.add(_numbered(possible, audited, n_users))
            chosen.append(possible)
    return chosen


def _numbered(attack: Attack, audited: Compared, n_users: int) -> tuple[object, ...]:
    """Return what tells attackers apart: a cover of k accounts is k accounts that all ask."""
    n_fakes = attack.n_fakes(audited, n_users)
    kind = "adaptive" if isinstance(attack, AdaptiveAttack) else "knn"
    settings = (getattr(attack, name, None) for name in ("ask", "combine", "rounds"))
    return kind, attack.known, attack.choose, n_fakes, *settings


def _declared(ratings: Ratings) -> Ratings:
    """Return the ratings with their scale as if somebody vouched for it: to try what would come of it."""
    scale = ratings.scale
    if scale.declared:
        return ratings
    return Ratings(
        ratings.csr, ratings.users, ratings.items, replace(scale, declared=True), ratings.titles
    )
