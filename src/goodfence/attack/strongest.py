"""Who attacks where no attack is given, and which of them is the strongest: the same for audit, frontier and pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, get_args

import numpy as np

from goodfence.attack import (
    ADAPTIVE_ITEMS,
    DEFAULT_FAKES,
    DEFAULT_KNOWN,
    DEFAULT_TARGETS,
    DEFAULT_TARGETS_REFITTED,
    FAKES_TRIED,
)
from goodfence.attack.attack import Attack, Choose, Subject
from goodfence.attack.knn_attack import AdaptiveAttack, Combine, CoverAttack, Helpers, KNNAttack
from goodfence.attack.list_attack import ListAttack
from goodfence.attack.report import LeakReport, NotTried, Tried
from goodfence.attack.scoring import first_half
from goodfence.attack.targets import Wanted, find_targets
from goodfence.errors import BlackBoxProblem, SettingError
from goodfence.parallel import bar
from goodfence.registry import find_kind
from goodfence.rng import RNG, Streams, seed_of

_NEVER_TRIED = {
    "related-items lists over time": "they need the lists of several days",
    "membership": "whether somebody is in the data at all was not asked",
    "shilling over time": "accounts that rate on, or are opened, between many refits",
    "knowledge of everybody else": "the attacker knew data of the target only",
    "timing, caches and errors": "only the answers themselves were used",
    "inside access": "whoever sees the data, the model or the logs needs no fake accounts",
}
_ONLY_RATINGS = "only predicted ratings were asked for; gf.ListAttack asks which items are shown"
_ONLY_LISTS = "only which items are shown, and in which order, was used"
NEVER_TRIED = {
    "explicit": tuple(map(NotTried._make, [("recommended lists", _ONLY_RATINGS), *_NEVER_TRIED.items()])),
    "implicit": tuple(map(NotTried._make, [("scores of the listed items", _ONLY_LISTS), *_NEVER_TRIED.items()])),
}
"""What an attack on ratings, and one on lists, does not try, whatever is attacked."""
LEAST = 10
"""So many users are attacked however long it takes."""
MOST_CHOOSING = 20
"""On no more users than these the strongest is chosen where every question needs fits."""


def usual_attackers(subject: Subject, *, known: int = DEFAULT_KNOWN, choose: Choose = "random") -> tuple[Attack, ...]:
    """Return the attackers of a recommender where none is given: all that its traits, and a few questions, allow."""
    k = subject.traits.n_neighbours
    numbers: tuple[int | None, ...] = (None,) if k else FAKES_TRIED
    if subject.ratings.feedback == "implicit":
        return _list_attackers(subject, numbers, known, choose)
    plain: list[Attack] = [KNNAttack(known=known, choose=choose, fakes=n) for n in numbers]
    if k != 1:
        plain.append(KNNAttack(known=known, choose=choose, fakes=1))
    if subject.answers_differ and k != 1:
        combined: tuple[Any, ...] = get_args(Combine) if subject.traits.mechanism is None else ("mode",)
        plain += [
            KNNAttack(known=known, choose=choose, fakes=n, ask="all", combine=how)
            for n, how in product(numbers, combined)
        ]
    plain += _covers(subject, known, choose)
    kinds: list[Any] = [find_kind(name) for name in subject.traits.attackers]
    plain += [kind(known=known, choose=choose) for kind in kinds]
    helps = k != 1 and subject.ratings.scale.lowest < subject.ratings.scale.highest
    return (*plain, *_adaptive(subject, numbers, known, choose)) if helps else tuple(plain)


def _list_attackers(subject: Subject, numbers: Sequence[int | None], known: int, choose: Choose) -> tuple[Attack, ...]:
    """Return the attackers of lists: one asks, all ask, all click and ask again, and as many as cover the list."""
    plain = ListAttack(known=known, choose=choose)
    listed: list[Attack] = [replace(plain, fakes=n) for n in (*numbers, 1)]
    if subject.lists_differ:
        listed += [replace(plain, fakes=n, ask="all") for n in numbers]
    listed += [replace(plain, fakes=n, adaptive=True) for n in numbers]
    covers = _covers(subject, known, choose)
    listed += [replace(plain, fakes=_n_fakes(one, subject), ask="all") for one in covers]
    return tuple(listed)


def _covers(subject: Subject, known: int, choose: Choose) -> list[Attack]:
    """Return the attacker who covers the list, if that needs more fakes than there are neighbours."""
    cover = applied(CoverAttack(known=known, choose=choose), subject)
    more = cover is not None and _n_fakes(cover, subject) > (subject.traits.n_neighbours or 0)
    return [cover] if cover is not None and more else []


def _adaptive(subject: Subject, numbers: Sequence[int | None], known: int, choose: Choose) -> list[Attack]:
    """Return the attackers whose fakes rate the hidden item too: the same questions, and several equations."""
    if not subject.traits.needs_refits:
        return [AdaptiveAttack(known=known, choose=choose, items=None, centred=False)]
    items = ADAPTIVE_ITEMS if subject.shares_fits else 1
    adaptive = AdaptiveAttack(known=known, choose=choose, items=items)
    helping = product(numbers, (False, True), get_args(Helpers))
    return [replace(adaptive, fakes=n, centred=c, helpers=how) for n, c, how in helping]


def _n_fakes(attack: Attack, subject: Subject) -> int:
    return attack.n_fakes(subject.recommender, subject.ratings.shape[0])


def applied(attack: Attack, subject: Subject) -> Attack | None:
    """Return the attack with as many fakes as the recommender calls for; None if it cannot be made."""
    mechanism, covers = subject.traits.mechanism, isinstance(attack, CoverAttack)
    within = getattr(mechanism, "within", None)
    if attack.fakes is None and mechanism is not None and covers and within:
        return replace(attack, fakes=within * mechanism.k)
    if attack.fakes is None and mechanism is None and not covers:
        return replace(attack, fakes=subject.traits.n_neighbours or DEFAULT_FAKES)
    try:
        _n_fakes(attack, subject)
    except SettingError:
        return None
    return attack


def strongest(
    subject: Subject,
    attackers: Sequence[Attack],
    *,
    targets: Wanted | None = None,
    rng: RNG = None,
    progress: bool | None = None,
) -> LeakReport:
    """Return the report of the attacker who gains most on one half of the targets, about the other half.

    So nobody is reported for having been lucky. One attacker attacks all targets, and a single target is for both.
    """
    if targets is None:
        targets = DEFAULT_TARGETS_REFITTED if subject.traits.needs_refits else DEFAULT_TARGETS
    missing = (*_others(attackers), *NEVER_TRIED[subject.ratings.feedback])
    if len(attackers) == 1:
        report = attackers[0].run_on(subject, targets=targets, rng=rng, progress=progress)
        return replace(report, not_tried=missing)
    # The same targets for every attacker.
    seed = Streams(rng).key(0) if seed_of(rng) is None else rng
    streams, most = Streams(seed), max(attackers, key=lambda attack: attack.known)
    found, _ = find_targets(subject.ratings, targets, most.known, most.choose, streams)
    ids, first = subject.ratings.users[found.rows], first_half(len(found), streams)
    if subject.traits.needs_refits:
        first &= np.cumsum(first) <= MOST_CHOOSING
    choosing, judging = (ids[first], ids[~first]) if first.any() else (ids, ids)
    reports, failures = _all_reports(subject, attackers, choosing, seed, progress)
    best = max(reports, key=lambda attack: reports[attack].gain)
    try:
        report = best.run_on(subject, targets=judging, rng=seed, progress=progress)
    except BlackBoxProblem as problem:  # what was found so far is kept
        report, failures = reports[best], {**failures, best: str(problem)}
    return replace(
        report,
        settings={**report.settings, "seed": seed_of(rng)},
        n_choosing=int(first.sum()),
        tried=tuple(_tried(one, reports.get(one), failures.get(one), best) for one in attackers),
        not_tried=missing,
    )


def _all_reports(
    subject: Subject, attackers: Sequence[Attack], targets: Wanted, seed: RNG, progress: bool | None
) -> tuple[dict[Attack, LeakReport], dict[Attack, str]]:
    """Return what each attacker finds, and of which the recommender failed; an error only if of all."""
    reports: dict[Attack, LeakReport] = {}
    failures: dict[Attack, str] = {}
    with bar("attackers", len(attackers), show=progress) as advance:
        for attack in attackers:
            try:
                reports[attack] = attack.run_on(subject, targets=targets, rng=seed, progress=False)
            except BlackBoxProblem as problem:
                if len(failures) == len(attackers) - 1:
                    raise
                failures[attack] = str(problem)
            advance(1)
    return reports, failures


def _tried(attack: Attack, report: LeakReport | None, failed: str | None, best: Attack) -> Tried:
    tried = Tried(repr(attack), attack.describe(), strongest=attack is best, failed=failed)
    if report is None:
        return tried
    return tried._replace(
        n_fakes=report.n_fakes,
        n_targets=report.n_targets,
        recovery=report.found,
        recovery_without=report.found_without,
        advantage=report.estimates["advantage"],
        fully_recovered=report.fully_recovered,
    )


def _others(attackers: Sequence[Attack]) -> list[NotTried]:
    """Return the kinds of fake-account attacks that are not among these."""
    given = "or another attack was given"
    missing = []
    if all(getattr(one, "ask", "one") == "one" for one in attackers):
        missing.append(NotTried("all fakes ask", f"equal profiles get equal answers, {given}"))
    if not any(isinstance(one, AdaptiveAttack) or getattr(one, "adaptive", 0) for one in attackers):
        missing.append(NotTried("adaptive", f"it needs two neighbours and two ratings, {given}"))
    if all(getattr(one, "rounds", 1) == 1 for one in attackers):
        missing.append(NotTried("repeated refits", "each attacker was told the answers of one fit"))
    return missing
