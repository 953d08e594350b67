"""Who attacks where no attack is given, and which of them is the strongest: the same for audit, frontier and pages."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from goodfence.arrays import Flags
from goodfence.attack import DEFAULT_FAKES, DEFAULT_KNOWN, DEFAULT_TARGETS
from goodfence.attack.attack import Attack, Subject
from goodfence.attack.designed import Decode, DesignedAttack
from goodfence.attack.designed_lists import DesignedListAttack
from goodfence.attack.fakes import Design
from goodfence.attack.knn_attack import AdaptiveAttack, CoverAttack, KNNAttack
from goodfence.attack.list_attack import ListAttack
from goodfence.attack.probe import Probe, probe
from goodfence.attack.report import LeakReport, NotTried, Tried
from goodfence.attack.scoring import Answers, first_half
from goodfence.attack.targets import Targets, Wanted, find_targets
from goodfence.errors import BlackBoxProblem, SettingError
from goodfence.kernels.lists import NO_ITEM
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
_ITEMS_HELPED = 20
"""For how many hidden items of each target is asked where each of them needs helpers of its own."""
_CUT = "the time limit cut this audit short"
_PILOT_STREAM, _MOST_GROWTH = 92, 4.0
_MOST_READ, _MOST_REFITTED = 2 * 10**9, 3 * 10**7
"""Ratings that an audit may read, where nothing is fitted and where each target needs fits: about a minute."""
_HEADLINES = {
    "advantage": (),
    "fully_recovered": ("fully_recovered", "fully_recovered_without"),
    "worst_tenth_loss": ("worst_tenth_loss",),
}
"""The headline figures, and the estimates that each replaces: they are of the attackers that are best at them."""
PRECISION = 0.03
"""So wide may half of the interval of the advantage be, unless another precision or number of users is asked for."""
PILOT, PILOT_REFITTED = 400, 60
"""So many users all attackers attack; the strongest of them attack the rest."""


def usual_attackers(subject: Subject, *, known: int = DEFAULT_KNOWN) -> tuple[Attack, ...]:
    """Return the attackers of a recommender where none is given: all that its traits, and a few questions, allow."""
    if subject.traits.needs_refits:
        return _designed(subject, known)
    k = subject.traits.n_neighbours
    if subject.ratings.feedback == "implicit":
        return _list_attackers(subject, known)
    plain: list[Attack] = [KNNAttack(known=known)]
    if k != 1:
        plain.append(KNNAttack(known=known, fakes=1))
    if subject.answers_differ and k != 1:
        plain.append(KNNAttack(known=known, ask="all"))
    plain += [*_covers(subject, known), *_made_for(subject, known)]
    if k != 1 and subject.ratings.scale.lowest < subject.ratings.scale.highest:
        plain.append(AdaptiveAttack(known=known, items=None, centred=False))
    return tuple(plain)


def _designed(subject: Subject, known: int) -> tuple[Attack, ...]:
    """Return the attackers of a recommender that is fitted in each world: the designs that probing found, decoded."""
    found = probed(subject, known)
    given: dict[str, Any] = {"known": known}
    if subject.ratings.feedback == "implicit":
        lists: list[Attack] = [DesignedListAttack(**given, designs=(one,)) for one in found.designs]
        return *lists, DesignedListAttack(**given, designs=found.designs, decode="trained")
    single = found.designs
    if any(one.helping == "each" for one in single):
        given["items"] = _ITEMS_HELPED

    def decoders(design: Design) -> tuple[Decode, ...]:
        if design.copied != "all":
            return "votes", "votes_shifted"
        if design.helping != "none":
            return "solved", "solved_centred", "measured", "measured_centred"
        return ("answer", "rescaled", "mode") if design.askers > 1 else ("answer", "rescaled")

    plain: list[Attack] = [
        DesignedAttack(**given, designs=(one,), decode=decode) for one in single for decode in decoders(one)
    ]
    return *plain, DesignedAttack(**given, designs=single, decode="trained"), *_made_for(subject, known)


def _made_for(subject: Subject, known: int) -> list[Attack]:
    """Return the attackers that the recommender names in its traits."""
    kinds: list[Any] = [find_kind(name) for name in subject.traits.attackers]
    return [kind(known=known) for kind in kinds]


def probed(subject: Subject, known: int, progress: bool | None = None) -> Probe:
    """Return what probing finds of a recommender that is fitted in each world; it is probed once."""
    key = "probe", known
    if key not in subject.memory:
        worlds: Any = subject.worlds(1)
        subject.memory[key] = probe(worlds, known, progress=progress)
    found: Probe = subject.memory[key]
    return found


def _list_attackers(subject: Subject, known: int) -> tuple[Attack, ...]:
    """Return the attackers of lists: one asks, all ask, all click and ask again, and as many as cover the list."""
    plain = ListAttack(known=known)
    listed: list[Attack] = [plain, replace(plain, fakes=1)]
    if not subject.traits.answers_alike:
        listed.append(replace(plain, ask="all"))
    listed.append(replace(plain, adaptive=True))
    listed += [replace(plain, fakes=_n_fakes(one, subject), ask="all") for one in _covers(subject, known)]
    return tuple(listed)


def _covers(subject: Subject, known: int) -> list[Attack]:
    """Return the attacker who covers the list, if that needs more fakes than there are neighbours."""
    cover = applied(CoverAttack(known=known), subject)
    return [cover] if cover and _n_fakes(cover, subject) > (subject.traits.n_neighbours or 0) else []


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
    attackers: Sequence[Attack] | None = None,
    *,
    known: int = DEFAULT_KNOWN,
    targets: Wanted | None = None,
    effort: Effort | None = None,
    rng: RNG = None,
    progress: bool | None = None,
) -> LeakReport:
    """Return what the strongest attackers get, each judged on other targets than those it was chosen on.

    All attackers attack a pilot of the targets. Of its two halves each is judged by the attacker who is strongest on
    the other, and all further targets by who is strongest on the pilot. So nobody is reported for having been lucky.
    Where `targets` is None, as many are attacked as the `effort` calls for.
    """
    precision, max_seconds = effort or Effort()
    ends = time.monotonic() + (np.inf if max_seconds is None else max_seconds)
    seed = Streams(rng).key(0) if seed_of(rng) is None else rng
    if attackers is None:
        if subject.traits.needs_refits:
            probed(subject, known, progress)
        attackers = usual_attackers(subject, known=known)
    if len({(one.known, one.choose) for one in attackers}) > 1:
        return _of_unlike(subject, attackers, targets or DEFAULT_TARGETS, seed, progress)
    contest = Contest(subject, attackers, Streams(seed), ends, progress)
    wanted = subject.ratings.shape[0] if targets is None else targets
    given = wanted, attackers[0].known, attackers[0].choose
    found, n_left_out = find_targets(subject.ratings, *given, contest.streams, few=True)
    found = min((one._asked_for(found, contest.streams) for one in attackers), key=lambda one: len(one.columns))
    report = contest.held(found, None if targets is not None else precision)
    probe_found = subject.memory.get(("probe", attackers[0].known))
    return replace(
        report,
        settings={**report.settings, "seed": seed_of(rng)},
        n_left_out=n_left_out,
        probe=probe_found,
        not_tried=(*_others(attackers), *NEVER_TRIED[subject.ratings.feedback]),
    )


class Effort(NamedTuple):
    """How much is attacked where nobody says how many users."""

    precision: float = PRECISION
    """Half of the width of the interval of the advantage, at most."""
    max_seconds: float | None = None
    """When to stop trying; None for never, so that nothing depends on the clock."""


class Contest:
    """Attackers of one recommender, on the same targets."""

    def __init__(
        self, subject: Subject, attackers: Sequence[Attack], streams: Streams, ends: float, progress: bool | None
    ) -> None:
        self.subject, self.attackers, self.streams = subject, attackers, streams
        self.ends, self.progress = ends, progress
        self.failures: dict[Attack, str] = {}
        self.cut = ""

    def held(self, targets: Targets, precision: float | None) -> LeakReport:
        """Return the report on all of these targets, or on as many as the precision calls for."""
        refits = self.subject.traits.needs_refits
        order = self.streams.order(len(targets), _PILOT_STREAM)
        pilot = targets.some(np.sort(order[: PILOT_REFITTED if refits else PILOT]))
        told = self._all_told(pilot)
        best = Ballot(self, told, pilot)
        done, wanted = len(pilot), len(targets)
        while not self.cut:
            if precision is not None:
                wanted = min(self._called_for(best, done, precision), len(targets))
            if done >= wanted:
                break
            best.add(targets.some(np.sort(order[done:wanted])))
            done = wanted
        return best.report()

    def _called_for(self, best: Ballot, n: int, precision: float) -> int:
        """Return how many targets the precision calls for, if `n` show what they show; no more than the data allow."""
        most = most_targets(self.subject)
        if not self.subject.traits.needs_refits:
            return most
        gained = best.report().estimates["advantage"]
        half = (gained.high - gained.low) / 2
        return min(int(np.ceil(n * min((half / precision) ** 2, _MOST_GROWTH))), most)

    def _all_told(self, targets: Targets) -> dict[Attack, Any]:
        """Return what each attacker concludes; an error of the recommender only if it fails all of them."""
        told: dict[Attack, Any] = {}
        with bar("attackers", len(self.attackers), show=self.progress) as advance:
            for attack in self.attackers:
                if told and time.monotonic() > self.ends:
                    self.cut = f"{_CUT}: {len(told)} of {len(self.attackers)} attackers tried"
                    break
                try:
                    told[attack] = self.told(attack, targets)
                except BlackBoxProblem as problem:
                    self.failures[attack] = str(problem)
                    if len(self.failures) == len(self.attackers):
                        raise
                advance(1)
        return told

    def told(self, attack: Attack, targets: Targets, progress: bool | None = False) -> Any:
        """Return what one attacker concludes about some targets."""
        worlds = self.subject.worlds(attack.n_fakes(self.subject.recommender, self.subject.ratings.shape[0]))
        fitting = attack._fitting(self.subject)
        return fitting.answers(worlds, targets, self.streams, progress=progress)


class Ballot:
    """Who is best at what: the advantage, users fully recovered, and the most exposed tenth."""

    def __init__(self, contest: Contest, told: dict[Attack, Any], targets: Targets) -> None:
        self.contest, self.told, self.targets = contest, told, targets
        self.first = first_half(len(targets), contest.streams)
        self.reports = {one: self._judged(one, each, targets) for one, each in told.items()}
        self.extra: list[tuple[Targets, dict[str, Any]]] = []
        # On whom the attacker is chosen: of the first half, of the second, and of everybody else.
        others = (~self.first, self.first, np.ones_like(self.first)) if self.first.any() else (~self.first,) * 3
        self.chosen = {name: tuple(self._best(name, half) for half in others) for name in _HEADLINES}

    def _best(self, name: str, some: Flags) -> Attack:
        """Return who is best at a headline, on some of the targets."""
        return max(self.told, key=lambda one: _gain(self.reports[one], name, some))

    def add(self, targets: Targets) -> None:
        """Let the strongest of the pilot attack further targets; what is known already stays if that fails."""
        contest, told = self.contest, {}
        for attack in dict.fromkeys(each[2] for each in self.chosen.values()):
            if time.monotonic() > contest.ends:
                contest.cut = f"{_CUT}: fewer users were attacked than the precision calls for"
                return
            try:
                told[attack] = contest.told(attack, targets, contest.progress)
            except BlackBoxProblem as problem:
                contest.cut = f"the recommender failed before all users were attacked: {problem}"
                return
        self.extra.append((targets, {name: told[each[2]] for name, each in self.chosen.items()}))

    def report(self) -> LeakReport:
        """Return the report of the attacker with the greatest advantage, with the other headlines of who is best."""
        main, contest = self._composed("advantage"), self.contest
        found = {
            name: main if each == self.chosen["advantage"] else self._composed(name)
            for name, each in self.chosen.items()
        }
        best = self.chosen["advantage"][2]
        others = {name: one.estimates for name, one in found.items() if one is not main}
        headlines = {key: others[name][key] for name, keys in _HEADLINES.items() if name in others for key in keys}
        tried = [
            _tried(one, self.reports.get(one), contest.failures.get(one), best)
            for one in contest.attackers
            if one in self.reports or one in contest.failures
        ]
        several = len(contest.attackers) > 1
        return replace(
            main,
            headlines=headlines,
            n_choosing=len(self.targets) if several else 0,
            tried=tuple(tried) if several else (),
            cut=contest.cut,
        )

    def _composed(self, name: str) -> LeakReport:
        """Return the report on everybody, each judged by the attacker of a headline that was chosen on others."""
        ours, theirs, beyond = self.chosen[name]
        alike = ours == theirs == beyond
        first, second = (self.told[one] if alike else standing_by(self.told[one]) for one in (ours, theirs))
        parts, targets = [chosen_between(first, second, self.first, self.targets)], [self.targets]
        for more, each in self.extra:
            parts.append(each[name] if alike else standing_by(each[name]))
            targets.append(more)
        every = Targets.joined(targets)
        joined = type(first)(*(np.concatenate(one) for one in zip(*padded(parts), strict=True)))
        return self._judged(beyond, joined, every)

    def _judged(self, attack: Attack, told: Any, targets: Targets) -> LeakReport:
        contest = self.contest
        return attack.reported(told, targets, contest.subject, contest.streams)


def _gain(report: LeakReport, name: str, some: Flags) -> float:
    """Return how good an attacker is at a headline, on some of the targets."""
    counts = report.counts
    gained = (counts.informed - counts.informed_without)[some] / counts.possible[some]
    if name == "fully_recovered":
        return float(report.fully[some].mean() - report.fully_without[some].mean())
    if name == "worst_tenth_loss":
        return float(np.sort(gained)[-max(1, len(gained) // 10) :].mean())
    return float(gained.mean())


def standing_by(told: Any) -> Any:
    """Return what an attacker concludes, all of it sure if nothing is: beside one who is, it would not be believed."""
    if not isinstance(told, Answers) or told.sure.any() or told.sure_without.any():
        return told
    return told._replace(sure=np.isfinite(told.with_target), sure_without=np.isfinite(told.without_target))


def chosen_between(first: Any, second: Any, in_first: Flags, targets: Targets) -> Any:
    """Return what one attacker concludes about the targets in the first half, and another about those in the second."""
    parts = []
    for one, other in zip(*padded([first, second]), strict=True):
        mine = in_first if len(one) == len(targets) else in_first[targets.owners]
        parts.append(np.where(mine.reshape(-1, *[1] * (one.ndim - 1)), one, other))
    return type(first)(*parts)


def padded(parts: Sequence[Any]) -> list[Any]:
    """Return claims of lists with as many places each: those of shorter lists stay free."""
    wide = max((one.shape[1] for part in parts for one in part if one.ndim == 2), default=0)

    def widened(one: Any) -> Any:
        if one.ndim == 1:
            return one
        return np.pad(one, ((0, 0), (0, wide - one.shape[1])), constant_values=NO_ITEM)

    return [type(part)(*map(widened, part)) for part in parts]


def most_targets(subject: Subject) -> int:
    """Return how many users to attack at most by default: everybody, or fewer where the data are large.

    The budget counts ratings and not seconds, so the figures are the same on every machine.
    """
    n_users, n_ratings = subject.ratings.shape[0], max(subject.ratings.n_ratings, 1)
    if subject.traits.needs_refits:
        fewest, most = PILOT_REFITTED, _MOST_REFITTED // n_ratings
    else:
        fewest, most = DEFAULT_TARGETS, _MOST_READ // n_ratings
    return min(n_users, max(fewest, most))


def _of_unlike(
    subject: Subject, attackers: Sequence[Attack], targets: Wanted, seed: RNG, progress: bool | None
) -> LeakReport:
    """Return the report on half of the targets of who is strongest on the others: attackers who know other things."""
    streams, most = Streams(seed), max(attackers, key=lambda attack: attack.known)
    found, _ = find_targets(subject.ratings, targets, most.known, most.choose, streams)
    ids, first = subject.ratings.users[found.rows], first_half(len(found), streams)
    choosing, judging = (ids[first], ids[~first]) if first.any() else (ids, ids)
    reports = {one: one.run_on(subject, targets=choosing, rng=seed, progress=False) for one in attackers}
    best = max(reports, key=lambda attack: reports[attack].gain)
    report = best.run_on(subject, targets=judging, rng=seed, progress=progress)
    missing = (*_others(attackers), *NEVER_TRIED[subject.ratings.feedback])
    tried = tuple(_tried(one, each, None, best) for one, each in reports.items())
    return replace(report, n_choosing=int(first.sum()), tried=tried, not_tried=missing)


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
