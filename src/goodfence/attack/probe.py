"""`probe`: spend a few accounts on how a recommender behaves before it is attacked.

Planted victims are accounts of the attacker's own, whose hidden ratings the attacker knows. They tell how the accounts
of an attack must look, and whether an attack could have worked at all. A real attacker can do all of it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from goodfence.arrays import Floats, Integers
from goodfence.attack.designed import asked_together, evidence, kernels_of
from goodfence.attack.designed_lists import SHORTER, listed_together
from goodfence.attack.fakes import AccountPlan, Catalogue, Copied, Design, Distinct, FakeCells, merged
from goodfence.attack.refits import RefitWorlds
from goodfence.attack.scoring import is_recovered
from goodfence.attack.targets import Targets
from goodfence.errors import BlackBoxProblem
from goodfence.models.recommender import Traits
from goodfence.parallel import bar
from goodfence.rng import Streams

LOOKS: tuple[tuple[int, Distinct], ...] = (
    (0, "no"),
    (0, "low"),
    (0, "high"),
    (12, "no"),
    (12, "low"),
    (30, "no"),
    (30, "low"),
    (60, "low"),
)
"""Padding of the accounts, and whether each is distinct: tried in turn, the plainest first."""
SIZES = (2, 3, 5, 10, 20, 40, 80, 160, 320, 640)
"""How many accounts attack one victim: doubled until they crowd it out."""
HELPING = (10, 20, 40, 80, 160)
CONTRARY = (30, 100)
"""How many helpers are tried, and how many popular items they rate against their mean."""
WAITS = (0.0, 0.1, 0.15, 0.75, 1.0, 2.0)
"""Seconds to wait for a change to appear, one after the other."""
_REFITS = 4
"""How many fits with the same accounts are compared, to see whether answers are of an earlier one."""
_PATIENCE = 1.5
"""So many times as long as a change took is waited for the next."""
_VICTIMS, _NEW, _FEWER, _FIRST_SIZE = 6, 3, 3, 20
_HIDDEN = (8, 50)
_SMALL_SIZE = 3
_STEP = 0.05
"""An account design must recover so much more of the planted victims to be preferred to a simpler one."""
_WORKS, _WELL, _WHOLE = 0.3, 0.5, 0.5
_SOME = (1, 4)
_SECOND: tuple[Copied, Copied] = ("two", "one")
_LIFTED, _LIFTERS, _MOST_LIFTERS = (100, 40), 5, 5_000
_MOST_DESIGNS = 3
_HEARD, _TRACE, _CLEARLY = 0.2, 0.02, 3.0
_TRACED = [Design(fakes=n, padding=padding, distinct=own) for padding, own in LOOKS[::7] for n in (20, 5, 1)]
"""Accounts in whose answers planted ratings are looked for."""
_CROWD = 50
_PROBED = 5
_LISTED = 10
_PLANTS, _SEED = 77, 0


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What probing found: how accounts must look, and whether they have any influence."""

    designs: tuple[Design, ...]
    """The account designs worth trying, the most successful first."""
    planted: float
    """The share of the hidden ratings of planted victims, or of listed items, that the best design recovers, less
    what guessing recovers."""
    influence: bool
    """Whether accounts change what others are told."""
    unread: bool
    """Whether planted ratings show in what their copies are told, and no design reads them."""
    wait: float
    """Seconds until a change appears."""
    n_fits: int
    """How often the recommender was fitted for it."""

    @property
    def found(self) -> str:
        """What was found, in words."""
        best = self.designs[0]
        told = [f"{best.fakes} accounts"]
        told += [f"padded with {best.padding} rare items"] if best.padding else []
        told += ["each different"] if best.distinct != "no" else []
        told += [f"{self.wait:g} s until the recommender has learnt"] if self.wait else []
        return ", ".join(told)

    def to_dict(self) -> dict[str, Any]:
        """Return what was found as plain values."""
        told = {name: getattr(self, name) for name in ("planted", "influence", "unread", "wait", "n_fits")}
        return {"designs": [asdict(one) for one in self.designs], **told}


class Prober:
    """Asks one recommender about victims that it plants."""

    def __init__(self, worlds: RefitWorlds, known: int) -> None:
        self.worlds, self.ratings = worlds, worlds.ratings
        self.catalogue, self.streams = worlds.catalogue, Streams(_SEED)
        self.lists = worlds.ratings.feedback == "implicit"
        self.victims = _plant(self.catalogue, known, self.streams)
        self.n_fits, self.shown = 0, 0.0
        self.indirect: set[Design] = set()
        """Designs of which answers say less than what is decoded from them."""
        self._scores: dict[tuple[Design, int], float] = {}

    def score(self, design: Design, n_victims: int = _VICTIMS) -> float:
        """Return what a design recovers of some victims, less what guessing does; 0 where the recommender fails."""
        key = design, n_victims
        if key not in self._scores:
            # Helpers of several victims would disturb each other.
            part = self.victims.part(0, n_victims if design.helping in ("none", "some") else 1)
            self._scores[key] = self._found(design, part)
        return self._scores[key]

    def stale(self, design: Design) -> bool:
        """Return whether a design that works for victims of earlier fits fails for new ones: learning takes time."""
        return self._found(design, self.victims.part(_VICTIMS, len(self.victims))) < self.score(design) / 2

    def _found(self, design: Design, victims: Targets) -> float:
        self.n_fits += 1 if design.helping == "none" else 2
        try:
            return self._listed(design, victims) if self.lists else self._recovered(design, victims)
        except BlackBoxProblem:
            return 0.0

    def _recovered(self, design: Design, victims: Targets) -> float:
        planted = _profiles(victims)
        guesses = self.catalogue.means[victims.columns]
        told = asked_together(self.worlds, design, victims, _SEED, planted)[0]
        seen = evidence(told, design, victims, guesses, self.ratings.scale)
        shares = [_share(value, victims, self.worlds) for value in seen.values.values()]
        if shares[0] < max(shares) - _STEP:
            self.indirect.add(design)
        return max(shares) - _share(guesses, victims, self.worlds)

    def _listed(self, design: Design, victims: Targets) -> float:
        found = listed_together(self.worlds, design, victims, (_SEED, True), _profiles(victims))
        hits, by_chance = [], []
        self.shown = max(self.shown, *(float(np.isfinite(one[0].ranks).mean()) for one in found))
        for at, shown in enumerate(found):
            hidden = victims.columns[victims.starts[at] : victims.starts[at + 1]]
            ranks = np.where(np.isnan(shown[0].ranks), np.inf, shown[0].ranks)
            first = np.lexsort((self.catalogue.counts, ranks))[:_LISTED]
            popular = self.catalogue.without(self.catalogue.popular, victims.known_of(at)[0], _LISTED)
            hits.append(np.isin(first, hidden).mean())
            by_chance.append(np.isin(popular, hidden).mean())
        return float(np.mean(hits) - np.mean(by_chance))

    @cached_property
    def fresh(self) -> bool:
        """Whether equal profiles, or equal questions, get other answers."""
        stated = self.worlds.traits.fresh_answers
        if self.lists or (stated is False and self.worlds.traits.answers_alike):
            return False
        held = self.catalogue.popular[: 2 * _PROBED]
        asker = merged((held[:_PROBED], np.full(len(held[:_PROBED]), self.catalogue.low)))
        plan = AccountPlan(-1, [asker, asker], 2, np.sort(held[_PROBED:]))
        self.n_fits += 1
        try:
            beside = self.worlds.fitted_beside([plan], _SEED, True)
            told = [self.worlds.told_by(beside, [plan])[0] for _ in range(2)]
        except BlackBoxProblem:
            return False
        return not (_equal(told[0], told[1]) and _equal(told[0][0], told[0][1]))

    def few(self, design: Design) -> float:
        """Return the score of a design, with few victims where it has many accounts."""
        many = _VICTIMS * design.fakes > self.ratings.shape[0] // 2
        return self.score(design, _FEWER if many else _VICTIMS)

    def best_look(self, size: int = _FIRST_SIZE, *, calibrated: bool = False) -> Design:
        """Return how accounts must look: the plainest design that recovers about as much as any."""
        askers = size if self.fresh else 1
        plain = Design(fakes=size, askers=askers, calibrated=calibrated)
        looks = [replace(plain, padding=one, distinct=distinct) for one, distinct in LOOKS]
        scores = [self.score(one) for one in looks]
        if max(scores) < _STEP and size > _SMALL_SIZE:  # too many for a small neighbourhood, maybe
            return self.best_look(_SMALL_SIZE)
        best = looks[next(at for at, score in enumerate(scores) if score >= max(scores) - _STEP)]
        return self.best_look(size, calibrated=True) if best in self.indirect and not calibrated else best

    def best_size(self, looks: Sequence[Design], sizes: Sequence[int] = SIZES) -> Design:
        """Return the design with as many accounts as fill a neighbourhood beside the victim: the most that help."""
        able = [n for n in sizes if n <= max(4 * self.ratings.shape[0], sizes[0])]
        tried = [self.sized(look, n) for look in looks for n in able]
        best = max(tried, key=self.few)
        most = self.few(best)
        heard = max((one.fakes for one in tried if self.few(one) > _STEP), default=best.fakes)
        for low, least in ((best.fakes, most / 2), (heard, _STEP)) if most > _STEP else ():
            high = min((n for n in able if n > low), default=low)
            while high - low > 1:  # more accounts than there are places crowd the victim out
                tried.append(self.sized(best, (low + high) // 2))
                low, high = (tried[-1].fakes, high) if self.few(tried[-1]) > least else (low, tried[-1].fakes)
        return max(tried, key=lambda one: (self.few(one), one.fakes))

    def sized(self, look: Design, n: int) -> Design:
        """Return a design of so many accounts, all of which ask where answers differ."""
        return replace(look, fakes=n, askers=n if self.fresh and look.helping == "none" else 1)

    def best_helping(self, look: Design) -> list[Design]:
        """Return the best designs with helpers of all items and of each, and with accounts of contrary opinion."""
        kind = replace(look, askers=1, helping="all", distinct="no")
        n = self.n_helpers(replace(kind, contrary=CONTRARY[0]))
        of_each = self.best_size([replace(kind, helping="each")], (*HELPING, n))
        contrary = max((replace(look, contrary=one) for one in CONTRARY), key=self.few)
        some = self.best_size([replace(look, helping="some", lifters=one) for one in _SOME], SIZES[2:8])
        return [*(replace(kind, fakes=n, contrary=one) for one in CONTRARY), of_each, contrary, some]

    def n_helpers(self, design: Design) -> int:
        """Return how many accounts leave one place beside the helpers: with one more nothing but them is heard."""
        heard = {n: self.heard(replace(design, fakes=n)) for n in HELPING}
        most = max(heard.values())
        if most < _HEARD:
            return HELPING[1]
        low = max(n for n in HELPING if heard[n] > most / 2)
        high = min((n for n in HELPING if n > low), default=low)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.heard(replace(design, fakes=middle)) > most / 2 else (low, middle)
        return low

    def smallest(self, look: Design, known: int) -> list[Design]:
        """Return designs of accounts with one or two known items, padded only where that helps."""
        one = max((Design(fakes=known, copied="one", padding=n) for n in (0, look.padding)), key=self.few)
        kinds: tuple[Copied, ...] = ("two", "opposed", "agreeing")
        levels = replace(one, copied="levels", helping="each", padding=0)
        more = [levels] if any(x is not None for x in kernels_of(self.worlds)) else []
        return [one, *(replace(one, copied=kind) for kind in kinds), *more]

    def lifting(self, look: Design, known: int) -> list[Design]:
        """Return designs that lift items into lists: by popularity, and beside each known item."""
        most = min(int(self.catalogue.counts.max(initial=0)) + 1, _MOST_LIFTERS)
        popular = self.best_size([replace(look, lifted=_LIFTED[0], lifters=most)], SIZES[::2])
        each = Design(fakes=known, copied="one", padding=look.padding, lifted=_LIFTED[1], lifters=_LIFTERS)
        return [popular, each]

    def heard(self, design: Design) -> float:
        """Return the share of the victim's hidden ratings of which the answers say anything beside the helpers'."""
        self.n_fits += 2
        part = self.victims.part(0, 1)
        try:
            told = asked_together(self.worlds, design, part, _SEED, _profiles(part))[0]
        except BlackBoxProblem:
            return 0.0
        # With helpers alone, one of the two ways to solve the equations finds nothing left.
        return float((np.isfinite(told[2]) & np.isfinite(told[4])).mean())

    def trace(self, design: Design) -> float:
        """Return which part of planted ratings shows in the answers to copies and in no stranger's; 0 if unclear.

        The hidden ratings are at the ends of the scale, and then each at the other end.
        """
        part, scale, told = self.victims.part(0, _VICTIMS), self.ratings.scale, []
        signs = np.where(np.arange(len(part.columns)) % 2, -1.0, 1.0)
        self.n_fits += 2
        for turned in (signs, -signs):
            planted = _profiles(replace(part, ratings=np.where(turned > 0, scale.highest, scale.lowest)))
            try:
                rows = asked_together(self.worlds, design, part, _SEED, planted)[0]
            except BlackBoxProblem:
                return 0.0
            told.append(rows[0] - rows[1])
        moved = signs * (told[0] - told[1]) / (scale.highest - scale.lowest)
        moved = moved[np.isfinite(moved)]
        clear = len(moved) > 1 and moved.mean() > _CLEARLY * moved.std() / np.sqrt(len(moved))
        return float(moved.mean()) if clear else 0.0

    def influence(self) -> tuple[bool, float]:
        """Return whether a crowd of accounts changes what a stranger is told, and after how many seconds.

        Two crowds hold the same items; one rates them highest, the other lowest. For lists, only one crowd is there.
        """
        middle = self.catalogue.popular[self.ratings.shape[1] // 4 :][: 2 * _PROBED]
        if len(middle) < 2 * _PROBED:
            return True, 0.0  # too few items to spare any
        try:
            return self._influence(middle)
        except BlackBoxProblem:  # it cannot hold a crowd, so nothing is known
            return False, 0.0

    def _influence(self, middle: Integers) -> tuple[bool, float]:
        wait = 0.0 if isinstance(getattr(self.worlds.recommender, "traits", None), Traits) else self._delay(middle)
        self.worlds.memory.update(wait=wait, refits=0)
        told = [self._asked(*self._crowd(middle, high=False)) for _ in range(_REFITS)]
        settled = [at for at in range(_REFITS) if all(_equal(one, told[-1]) for one in told[at:])]
        self.worlds.memory["refits"] = settled[0] if len(settled) > 1 else 0
        if wait or self.worlds.memory["refits"]:
            self._scores.clear()  # they are answers of earlier fits
        low, high = (self._asked(*self._crowd(middle, high=high)) for high in (False, True))
        return not _equal(low, high), wait

    def _delay(self, middle: Integers) -> float:
        """Return how many seconds after a fit the answers still change; 0 where equal questions get other answers."""
        fitted, plan = self._crowd(middle, high=True)
        began, last, first = time.monotonic(), 0.0, self._asked(fitted, plan)
        for seconds in WAITS:
            time.sleep(seconds)
            now = self._asked(fitted, plan)
            if not _equal(first, now):
                first, last = now, time.monotonic() - began
        noisy = not _equal(first, self._asked(fitted, plan))
        return 0.0 if noisy else _PATIENCE * last

    def _crowd(self, middle: Integers, *, high: bool) -> tuple[Any, AccountPlan]:
        """Return the recommender fitted beside a crowd, and the plan by which a stranger asks."""
        scale, (probed, held) = self.ratings.scale, (middle[:_PROBED], middle[_PROBED:])
        n_crowd = max(_CROWD, self.ratings.shape[0] // 50)
        end = float(scale.highest if high else scale.lowest)
        held = np.union1d(held, self.catalogue.without(self.catalogue.rare, middle, LOOKS[-1][0]))  # no cold start
        asker = merged((held, np.full(len(held), self.catalogue.low)))
        rated = merged((probed, np.full(len(probed), end)), asker)
        crowd = [rated] * n_crowd if high or not self.lists else [asker] * n_crowd
        plan = AccountPlan(-1, [asker, *crowd], 1, np.sort(probed))
        self.n_fits += 1
        return self.worlds.fitted_beside([plan], _SEED, True), plan

    def _asked(self, fitted: Any, plan: AccountPlan) -> Floats:
        """Return what a stranger is told; nothing where the recommender fails because it has not learnt yet."""
        try:
            if self.lists:
                return self.worlds.ranked_by(fitted, [plan], min(SHORTER, self.ratings.shape[1]))[0][0].ranks
            return np.asarray(self.worlds.told_by(fitted, [plan])[0][0])
        except BlackBoxProblem:
            return np.full(len(plan.columns), np.nan)


def _equal(one: Floats, other: Floats) -> bool:
    return bool(np.allclose(one, other, rtol=0, atol=1e-9, equal_nan=True))


def probe(worlds: RefitWorlds, known: int, *, progress: bool | None = None) -> Probe:
    """Return how accounts must look to attack this recommender, with `known` ratings of each target.

    Where the recommender says that no answer rests on a few users alone, one design is enough to see that.
    """
    prober = Prober(worlds, known)
    plain = Design(fakes=50, askers=50 if prober.fresh else 1)
    if worlds.traits.released:
        influence, wait = prober.influence()
        small = Design(fakes=known, copied="one")
        designs = [plain, replace(plain, fakes=1, askers=1), small, replace(small, copied=_SECOND[prober.lists])]
        return _made(designs, prober, influence, wait)
    with bar("probing", 4, show=progress) as advance:
        look = prober.best_look()
        advance(1)
        influence, wait = True, 0.0
        if prober.score(look) < _WORKS or prober.stale(look):
            influence, wait = prober.influence()
            if not prober._scores:
                look = prober.best_look()
        advance(1)
        # What is best for a few accounts may not be so for many: the plainest look is sized as well.
        sized = [prober.best_size([one]) for one in dict.fromkeys([replace(look, padding=0, distinct="no"), look])]
        sized.append(prober.best_size([prober.best_look(max(sized, key=prober.few).fakes)]))
        most = max(map(prober.few, sized))
        advance(1)
        designs = [one for one in dict.fromkeys(sized) if prober.few(one) >= most - 2 * _STEP]
        designs = sorted(designs, key=lambda one: -prober.few(one))[:_MOST_DESIGNS]
        if most < _STEP:
            designs = [prober.sized(look, plain.fakes)]
        designs.append(replace(designs[0], fakes=1, askers=1))
        scale = worlds.ratings.scale
        if not prober.lists and most < _WORKS and scale.lowest < scale.highest:
            designs += [*prober.best_helping(look), *prober.smallest(look, known)]
        if prober.lists:
            designs.append(Design(fakes=known, copied="one", padding=look.padding))
            if most < _WELL and prober.shown < _WHOLE:
                designs += prober.lifting(look, known)
        advance(1)
    return _made(designs, prober, influence, wait)


def _made(designs: Sequence[Design], prober: Prober, influence: bool, wait: float) -> Probe:
    planted = max(prober.few(one) for one in designs if not (prober.lists and (one.copied != "all" or one.lifted)))
    prober.worlds.memory["wait"] = wait
    scale = prober.ratings.scale
    able = not (prober.lists or prober.worlds.traits.released or planted > _WORKS) and scale.lowest < scale.highest
    return Probe(
        designs=tuple(dict.fromkeys([*designs, *(replace(one, calibrated=False) for one in designs)])),
        planted=max(planted, 0.0),
        influence=influence,
        unread=able and any(prober.trace(one) > _TRACE for one in _TRACED),
        wait=wait,
        n_fits=prober.n_fits,
    )


def _plant(catalogue: Catalogue, known: int, streams: Streams) -> Targets:
    """Return victims with items as popular as people's, rated as these are rated."""
    ratings, generator = catalogue.ratings, streams.at(_PLANTS)
    n_items = ratings.shape[1]
    m = max(1, min(known, n_items // 3))
    usual = int(np.median(np.diff(ratings.csr.indptr))) - m
    n_hidden = max(1, min(max(usual, _HIDDEN[0]), _HIDDEN[1], n_items - m))
    chances = catalogue.counts + 1e-9
    scale = ratings.scale
    columns, values = [], []
    for _ in range(_VICTIMS + _NEW):
        chosen = generator.choice(n_items, size=m + n_hidden, replace=False, p=chances / chances.sum())
        spread = generator.normal(0.0, (scale.highest - scale.lowest) / 5, size=len(chosen))
        guessed = np.clip(catalogue.means[chosen] + spread, scale.lowest, scale.highest)
        columns.append(chosen)
        values.append(np.ones(len(chosen)) if ratings.feedback == "implicit" else scale.round(guessed))
    every, rated = np.stack(columns), np.stack(values)
    order = np.hstack([np.argsort(every[:, :m], axis=1), m + np.argsort(every[:, m:], axis=1)])
    every, rated = np.take_along_axis(every, order, axis=1), np.take_along_axis(rated, order, axis=1)
    starts = np.arange(len(every) + 1) * n_hidden
    hidden = every[:, m:].ravel(), rated[:, m:].ravel()
    return Targets(np.full(len(every), -1), every[:, :m], rated[:, :m], starts, *hidden)


def _profiles(victims: Targets) -> list[FakeCells]:
    parts = []
    for at in range(len(victims)):
        cells = slice(victims.starts[at], victims.starts[at + 1])
        parts.append(merged(victims.known_of(at), (victims.columns[cells], victims.ratings[cells])))
    return parts


def _share(values: Floats, victims: Targets, worlds: RefitWorlds) -> float:
    return float(is_recovered(values, victims, worlds.ratings).mean())
