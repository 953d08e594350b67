"""Who attacks where no attack is given, and which of them is the strongest: the same for audit, frontier and pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from goodfence.attack import (
    ADAPTIVE_ITEMS,
    DEFAULT_FAKES,
    DEFAULT_KNOWN,
    DEFAULT_TARGETS,
    DEFAULT_TARGETS_REFITTED,
    FAKES_TRIED,
)
from goodfence.attack.attack import Attack, Choose, Subject, settings_of
from goodfence.attack.knn_attack import AdaptiveAttack, CoverAttack, KNNAttack
from goodfence.attack.report import AttackReport, NotTried, Tried
from goodfence.attack.scoring import UNKNOWN, first_half
from goodfence.attack.targets import Wanted, find_targets
from goodfence.errors import BlackBoxProblem, SettingError
from goodfence.neighbours.threads import bar
from goodfence.report.wording import strategy
from goodfence.rng import RNG, Streams, seed_of

NEVER_TRIED = (
    NotTried(
        "recommended lists", "only predicted ratings were asked for, not which items are shown"
    ),
    NotTried("related-items lists over time", "they need the lists of several days"),
    NotTried("membership", "whether somebody is in the data at all was not asked"),
    NotTried("shilling over time", "accounts that rate on, or are opened, between many refits"),
    NotTried("knowledge of everybody else", "the attacker knew ratings of the target only"),
    NotTried("timing, caches and errors", "only the answers themselves were used"),
    NotTried(
        "inside access", "whoever sees the data, the model or the logs needs no fake accounts"
    ),
)
"""What this laboratory does not try, whatever is attacked."""


def usual_attackers(
    subject: Subject, *, known: int = DEFAULT_KNOWN, choose: Choose = "random"
) -> tuple[Attack, ...]:
    """Return the attackers of a recommender where none is given: all that its traits, and a few questions, allow.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> [type(one).__name__ for one in usual_attackers(Subject(films, gf.PPNS(k=20, beta=3)))]
    ['KNNAttack', 'KNNAttack', 'KNNAttack', 'CoverAttack', 'AdaptiveAttack']
    """
    k = subject.traits.n_neighbours
    numbers: tuple[int | None, ...] = FAKES_TRIED if k is None else (None if k else DEFAULT_FAKES,)
    plain: list[Attack] = [KNNAttack(known=known, choose=choose, fakes=n) for n in numbers]
    if k is None or k > 1:
        plain.append(KNNAttack(known=known, choose=choose, fakes=1))
    if subject.answers_differ and k != 1:
        combined = ("mode", "mean") if subject.traits.mechanism is None else ("mode",)
        plain += [
            KNNAttack(known=known, choose=choose, fakes=n, ask="all", combine=how)  # type: ignore[arg-type]
            for n, how in product(numbers, combined)
        ]
    cover = applied(CoverAttack(known=known, choose=choose), subject)
    if cover is not None and cover.n_fakes(subject.recommender, subject.ratings.shape[0]) > (
        k or 0
    ):
        plain.append(cover)
    return (*plain, *_adaptive(subject, numbers, known, choose))


def _adaptive(
    subject: Subject, numbers: Sequence[int | None], known: int, choose: Choose
) -> list[Attack]:
    """Return the attackers whose fakes rate the hidden item too: the same questions, and several equations."""
    k, scale = subject.traits.n_neighbours, subject.ratings.scale
    if k in (0, 1) or scale.lowest == scale.highest:
        return []
    if not subject.traits.needs_refits:
        return [AdaptiveAttack(known=known, choose=choose, items=None, centred=False)]
    return [
        AdaptiveAttack(
            known=known,
            choose=choose,
            fakes=n,
            items=ADAPTIVE_ITEMS if subject.shares_fits else 1,
            centred=centred,
            helpers=helpers,  # type: ignore[arg-type]
        )
        for n, centred, helpers in product(numbers, (False, True), ("measured", "equal"))
    ]


def applied(attack: Attack, subject: Subject) -> Attack | None:
    """Return the attack with as many fakes as the recommender calls for; None if it cannot be made."""
    mechanism = subject.traits.mechanism
    within = getattr(mechanism, "within", None)
    if (
        attack.fakes is None
        and mechanism is not None
        and isinstance(attack, CoverAttack)
        and within
    ):
        return replace(attack, fakes=within * mechanism.k)
    if attack.fakes is None and mechanism is None and not isinstance(attack, CoverAttack):
        return replace(attack, fakes=subject.traits.n_neighbours or DEFAULT_FAKES)
    try:
        attack.n_fakes(subject.recommender, subject.ratings.shape[0])
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
) -> AttackReport:
    """Return the report of the attacker who gains most on one half of the targets, about the other half.

    So nobody is reported for having been lucky. One attacker attacks all targets, and a single target is for both.

    Parameters
    ----------
    targets
        How many users are attacked, or which; None for 200, or 30 where every target needs fits.
    """
    if targets is None:
        targets = DEFAULT_TARGETS_REFITTED if subject.traits.needs_refits else DEFAULT_TARGETS
    if len(attackers) == 1:
        report = attackers[0].run_on(subject, targets=targets, rng=rng, progress=progress)
        return replace(report, not_tried=(*_others(attackers), *NEVER_TRIED))
    seed = (
        Streams(rng).key(0) if seed_of(rng) is None else rng
    )  # the same targets for every attacker
    streams, most = Streams(seed), max(attackers, key=lambda attack: attack.known)
    found, _ = find_targets(subject.ratings, targets, most.known, most.choose, streams)
    ids, first = subject.ratings.users[found.rows], first_half(len(found), streams)
    choosing, judging = (ids[first], ids[~first]) if first.any() else (ids, ids)
    reports, failures = _all_reports(subject, attackers, choosing, seed, progress)
    best = max(reports, key=lambda attack: _gain(reports[attack]))
    try:
        report = best.run_on(subject, targets=judging, rng=seed, progress=progress)
    except BlackBoxProblem as problem:  # what was found so far is kept
        report, failures = reports[best], {**failures, best: str(problem)}
    return replace(
        report,
        settings={**report.settings, "seed": seed_of(rng)},
        n_choosing=int(first.sum()),
        tried=tuple(_tried(one, reports.get(one), failures.get(one), best) for one in attackers),
        not_tried=(*_others(attackers), *NEVER_TRIED),
    )


def _all_reports(
    subject: Subject,
    attackers: Sequence[Attack],
    targets: Wanted,
    seed: RNG,
    progress: bool | None,
) -> tuple[dict[Attack, AttackReport], dict[Attack, str]]:
    """Return what each attacker finds, and of which the recommender failed; an error only if of all."""
    reports: dict[Attack, AttackReport] = {}
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


def _gain(report: AttackReport) -> float:
    """Return the mean advantage over targets: the same for attackers who ask for all ratings and for some."""
    inside, outside = report.informed.with_target, report.informed.without_target
    return float(((inside.recovered - outside.recovered) / inside.hidden).mean())


def _tried(attack: Attack, report: AttackReport | None, failed: str | None, best: Attack) -> Tried:
    found = {} if report is None else report.estimates
    return Tried(
        attack=repr(attack),
        what=strategy(settings_of(attack)),
        n_fakes=0 if report is None else report.n_fakes,
        n_targets=0 if report is None else report.n_targets,
        recovery=found.get("recovery", UNKNOWN),
        recovery_without=found.get("recovery_without", UNKNOWN),
        advantage=found.get("advantage", UNKNOWN),
        fully_recovered=found.get("fully_recovered", UNKNOWN),
        strongest=attack is best,
        failed=failed,
    )


def _others(attackers: Sequence[Attack]) -> list[NotTried]:
    """Return the kinds of fake-account attacks that are not among these."""
    everybody = any(getattr(one, "ask", "one") == "all" for one in attackers)
    helping = any(isinstance(one, AdaptiveAttack) for one in attackers)
    missing = []
    if not everybody:
        missing.append(
            NotTried(
                "all fakes ask", "equal profiles get equal answers, or another attack was given"
            )
        )
    if not helping:
        missing.append(
            NotTried(
                "adaptive", "no answer rests on a few users alone, or another attack was given"
            )
        )
    if all(getattr(one, "rounds", 1) == 1 for one in attackers):
        missing.append(NotTried("repeated refits", "each attacker was told the answers of one fit"))
    return missing
