"""Hand-made attackers: for each black box somebody who knows how it works inside, and not what is in it.

A recipe is told what is known of one target and which ratings are asked for. It opens accounts in one world, asks, and
concludes. It runs in the world with the target and in the world without, and is scored as the audit scores.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

import goodfence as gf
from goodfence.arrays import Flags, Floats, Integers
from goodfence.attack.attack import RatingAttack, Worlds
from goodfence.attack.report import AttackReport
from goodfence.attack.scoring import Answers, is_rating
from goodfence.attack.targets import Targets, find_targets, with_fakes
from goodfence.rng import Streams

KNOWN, SEED = 8, 7

Account: TypeAlias = tuple[Integers, Floats]
"""The columns that a fake account rates, ascending, and its ratings."""
Concluded: TypeAlias = tuple[Floats, Flags]
"""The ratings that the attacker concludes, NaN for none, and which of them are sure."""


class World:
    """The data with one target or without: accounts are opened in it, and ask."""

    def __init__(
        self, ratings: gf.Ratings, train: Callable[..., Any], removed: int | None, wait: float = 0.0, fits: int = 1
    ) -> None:
        self.ratings, self.train, self.removed, self.wait, self.fits = ratings, train, removed, wait, fits

    def _fitted(self, accounts: Sequence[Account]) -> tuple[Any, Any]:
        cells = [columns for columns, _ in accounts], [values for _, values in accounts]
        world, ids = with_fakes(self.ratings, self.removed, *cells)
        for _ in range(self.fits):
            fitted = self.train(world)
        if self.wait:
            time.sleep(self.wait)
        return fitted, ids

    def told(self, accounts: Sequence[Account], columns: Integers, silent: Sequence[Account] = ()) -> Floats:
        """Return what each account is told, (accounts, columns), beside accounts that do not ask."""
        fitted, ids = self._fitted([*accounts, *silent])
        asking, items = ids[: len(accounts)], self.ratings.items[columns]
        predict = getattr(fitted, "predict", fitted)
        told = predict(np.repeat(asking, len(items)), np.tile(items, len(asking)))
        return np.asarray(told, dtype=np.float64).reshape(len(asking), -1)

    def listed(self, accounts: Sequence[Account], n: int, silent: Sequence[Account] = ()) -> list[Integers]:
        """Return the columns that each account is shown, at most n, beside accounts that do not ask."""
        fitted, ids = self._fitted([*accounts, *silent])
        recommend = getattr(fitted, "recommend", fitted)
        return [self.ratings.columns(recommend(one, n)) for one in ids[: len(accounts)]]


@dataclass(frozen=True, eq=False)
class Target:
    """What the attacker knows of one target, and what everybody knows."""

    columns: Integers
    """The known items, ascending."""
    values: Floats
    """How the target rated them."""
    counts: Integers
    """How many others rated each item."""
    means: Floats
    """How they rated it, on average."""
    scale: gf.Scale
    asked: Integers
    """The items whose ratings are asked for."""

    @property
    def known(self) -> Account:
        """The known ratings, as an account."""
        return self.columns, self.values

    def rarest(self, n: int, start: int = 0) -> Integers:
        """Return rare items that are neither known nor asked for, the rarest first."""
        free = np.setdiff1d(np.arange(len(self.counts)), np.concatenate([self.columns, self.asked]))
        return free[np.argsort(self.counts[free], kind="stable")][start : start + n]

    def without(self, place: int) -> Account:
        """Return the known ratings but one."""
        return np.delete(self.columns, place), np.delete(self.values, place)


Recipe: TypeAlias = Callable[[World, Target], Concluded]


def account(*parts: Account) -> Account:
    """Return one account with the ratings of several parts, which share no item."""
    columns, values = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    order = np.argsort(columns)
    return columns[order].astype(np.int64), values[order].astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandMade(RatingAttack):
    """A recipe, scored as every attack on ratings is."""

    def describe(self, n_fakes: int = 2) -> str:  # noqa: ARG002 - the recipe says it
        """As in `Attack`."""
        return "by hand"

    def _answers(self, worlds: Worlds, targets: Targets, streams: Streams) -> Answers:
        raise NotImplementedError("a recipe needs no worlds but its own")


def attacked(
    ratings: gf.Ratings,
    train: Callable[..., Any],
    recipe: Recipe,
    *,
    targets: int | Sequence[Any] = 60,
    items: int | None = None,
    wait: float = 0.0,
    fits: int = 1,
) -> AttackReport:
    """Return what a recipe finds out about some targets."""
    streams = Streams(SEED)
    found, _ = find_targets(ratings, targets, KNOWN, "random", streams)
    if items is not None:
        found = found.sampled(items, streams)
    told: list[list[Concluded]] = [[], []]
    for place in range(len(found)):
        one = found.part(place, place + 1)
        target = target_of(one, ratings)
        for world, removed in enumerate((None, int(one.rows[0]))):
            told[world].append(recipe(World(ratings, train, removed, wait, fits), target))
    (values, sure), (values_without, sure_without) = (
        [np.concatenate(part) for part in zip(*w, strict=True)] for w in told
    )
    answers = Answers(values, values_without, np.full(len(found), np.nan), sure, sure_without)
    return HandMade(known=KNOWN).judged(answers, found, ratings, streams)


def target_of(one: Targets, ratings: gf.Ratings) -> Target:
    """Return what is known of one target; what everybody knows does not rest on the target's data."""
    csr, row = ratings.csr, int(one.rows[0])
    own = slice(csr.indptr[row], csr.indptr[row + 1])
    counts = np.bincount(csr.indices, minlength=csr.shape[1])
    sums = np.bincount(csr.indices, csr.data, minlength=csr.shape[1])
    counts[csr.indices[own]] -= 1
    sums[csr.indices[own]] -= csr.data[own]
    means = np.where(counts > 0, sums / np.maximum(counts, 1), csr.data.mean())
    return Target(one.known_columns[0], one.known_ratings[0], counts, means, ratings.scale, one.columns)


def told_ratings(values: Floats, scale: gf.Scale) -> Concluded:
    """Return answers as conclusions: sure where they are ratings."""
    return np.clip(values, scale.lowest, scale.highest), is_rating(values, scale)


# Plain crowds.


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Fakes with the known ratings; one asks. Each may have more items, rated lowest, some of its own."""

    fakes: int = 20
    padding: int = 0
    """How many rare items all fakes rate lowest."""
    own: int = 0
    """How many rare items each fake but the first rates alone."""
    own_rating: float | None = None

    def __call__(self, world: World, target: Target) -> Concluded:
        """Return what is concluded in one world."""
        accounts = self.accounts(target, self.fakes)
        told = world.told(accounts[:1], target.asked, accounts[1:])
        return told_ratings(told[0], target.scale)

    def accounts(self, target: Target, n: int) -> list[Account]:
        """Return `n` fakes, the asking one first."""
        low = float(target.scale.lowest)
        shared = target.rarest(self.padding)
        first = account(target.known, (shared, np.full(len(shared), low)))
        found = [first]
        for place in range(n - 1):
            extra = target.rarest(self.own, self.padding + place * self.own)
            value = low if self.own_rating is None else self.own_rating
            found.append(account(first, (extra, np.full(len(extra), value))) if self.own else first)
        return found


@dataclass(frozen=True, kw_only=True)
class Accompanied:
    """A crowd, one of which rates everything lowest, and then a step higher: two equations for rating and weight."""

    crowd: Crowd = Crowd()

    def __call__(self, world: World, target: Target) -> Concluded:
        """Return what is concluded in one world."""
        accounts, length = self.crowd.accounts(target, self.crowd.fakes), float((target.values**2).sum())
        told, given, weights = [], target.scale.lowest + np.arange(2), []
        for low in given.tolist():
            rated = np.full(len(target.asked), low)
            helper = account(target.known, (target.asked, rated))
            told.append(world.told(accounts[:1], target.asked, [*accounts[1:-1], helper])[0])
            weights.append(np.sqrt(length / (length + (rated**2).sum())))
        rest = [weight * (low - answers) for weight, low, answers in zip(weights, given, told, strict=True)]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = told[0] - rest[0] / ((rest[1] - rest[0]) / (told[1] - told[0]))
        return told_ratings(np.where(np.isfinite(found), found, np.nan), target.scale)


@dataclass(frozen=True, kw_only=True)
class Views:
    """Crowds with several weightings of the known items, each after its own fit; the most frequent rating counts.

    The target of a long profile is not the nearest real user of a fake with the known ratings. It is of a fake that
    rates the rare ones high and the others low: hardly anybody else has these.
    """

    crowd: Crowd = Crowd()
    rare: tuple[int, ...] = (8, 4, 3, 2)
    """How many of the rarest known items a view has, or rates highest."""

    def __call__(self, world: World, target: Target) -> Concluded:
        """Return what is concluded in one world."""
        told = []
        for view in self.views(target):
            accounts = self.crowd.accounts(view, self.crowd.fakes)
            told.append(world.told(accounts[:1], target.asked, accounts[1:])[0])
        return voted(np.stack(told), target.scale)

    def views(self, target: Target) -> list[Target]:
        """Return the target as each view knows it."""
        order, found = np.argsort(target.counts[target.columns], kind="stable"), []
        for n in self.rare:
            some = np.sort(order[:n])
            found.append(replace(target, columns=target.columns[some], values=target.values[some]))
        return found


def voted(told: Floats, scale: gf.Scale) -> Concluded:
    """Return the most frequent of the answers that are ratings, (views, asked), or else the first answer."""
    rating = is_rating(told, scale)
    values = np.arange(scale.lowest, scale.highest + 0.5)
    votes = np.array([(rating & (np.abs(told - value) < 0.1)).sum(axis=0) for value in values])
    any_vote = votes.max(axis=0) > 0
    made = ~np.isnan(told)
    first = told[made.argmax(axis=0), np.arange(told.shape[1])]
    return np.where(any_vote, values[votes.argmax(axis=0)], first), any_vote


# Answers that are a rating, moved or scaled by something that is the same for all items of a target.


CONTROLS = 5


def controls(target: Target, n: int = CONTROLS) -> list[Account]:
    """Return accounts that hardly anybody is similar to: each has one rare item, rated lowest."""
    low = np.full(1, float(target.scale.lowest))
    return [(target.rarest(1, place), low) for place in range(100, 100 + n)]


def with_fallback(world: World, target: Target, asked: Integers, accounts: Sequence[Account]) -> tuple[Floats, Floats]:
    """Return what the first account is told beside the others, and the fallback: what most controls are told."""
    told = world.told([accounts[0], *controls(target)], asked, accounts[1:])
    return told[0], np.median(told[1:], axis=0)


@dataclass(frozen=True, kw_only=True)
class Rescaled:
    """A crowd, beside a control account that is told the fallback; `share` of the answer is the target's."""

    share: float
    crowd: Crowd = Crowd()

    def __call__(self, world: World, target: Target) -> Concluded:
        """Return what is concluded in one world."""
        accounts = self.crowd.accounts(target, self.crowd.fakes)
        told, fallback = with_fallback(world, target, target.asked, accounts)
        return told_ratings(fallback + (told - fallback) / self.share, target.scale)


@dataclass(frozen=True, kw_only=True)
class MovedBack:
    """A crowd asks a box that multiplies answers by a factor and adds an offset and a part of the asker's mean."""

    factor: float
    offset: float = 0.0
    own: float = 0.0
    crowd: Crowd = Crowd()

    def __call__(self, world: World, target: Target) -> Concluded:
        """Return what is concluded in one world."""
        accounts = self.crowd.accounts(target, self.crowd.fakes)
        told = world.told(accounts[:1], target.asked, accounts[1:])[0]
        return told_ratings((told - self.offset - self.own * accounts[0][1].mean()) / self.factor, target.scale)


@dataclass(frozen=True, kw_only=True)
class FoundShare:
    """As `Rescaled`, with a share of each target that makes most of the answers integers."""

    crowd: Crowd = Crowd()
    shares: tuple[float, float] = (0.02, 1.0)

    def __call__(self, world: World, target: Target) -> Concluded:
        """Return what is concluded in one world."""
        accounts = self.crowd.accounts(target, self.crowd.fakes)
        told, fallback = with_fallback(world, target, target.asked, accounts)
        share = best_share(told - fallback, fallback, target.scale, self.shares)
        return told_ratings(fallback + (told - fallback) / share, target.scale)


def best_share(moved: Floats, fallback: Floats, scale: gf.Scale, between: tuple[float, float]) -> float:
    """Return the share for which most of `fallback + moved / share` are ratings."""
    shares = np.geomspace(*between, 20_000)[:, np.newaxis]
    values = fallback + moved / shares
    inside = (values > scale.lowest - 0.01) & (values < scale.highest + 0.01)
    far = np.abs(values - np.round(values))
    good = (inside & (np.abs(moved) > 1e-9)) * np.exp(-((far / 0.01) ** 2))
    return float(shares[good.sum(axis=1).argmax(), 0])


@dataclass(frozen=True, kw_only=True)
class CalibratedShare:
    """As `Rescaled`; the share is found from known ratings, each asked for by a crowd that has only the others."""

    constant: float = 1.0
    crowd: Crowd = Crowd()

    def __call__(self, world: World, target: Target) -> Concluded:
        """Return what is concluded in one world."""
        lengths = [self._length(world, target, place) for place in range(len(target.columns))]
        if np.isnan(lengths).all():
            return np.full(len(target.asked), np.nan), np.zeros(len(target.asked), dtype=np.bool_)
        similarity = np.sqrt((target.values**2).sum()) / np.nanmedian(lengths)
        return Rescaled(share=similarity / (similarity + self.constant), crowd=self.crowd)(world, target)

    def _length(self, world: World, target: Target, place: int) -> float:
        """Return the length of the target's profile, from the share of one known rating in its prediction."""
        columns, values = target.without(place)
        accounts = self.crowd.accounts(replace(target, columns=columns, values=values), self.crowd.fakes)
        asked = target.columns[place : place + 1]
        told, fallback = (float(one[0]) for one in with_fallback(world, target, asked, accounts))
        away = target.values[place] - fallback
        share = (told - fallback) / away if away else np.nan
        if not 0.01 < share < 0.99:
            return np.nan
        return float(np.sqrt((values**2).sum()) * (1 - share) / (self.constant * share))


@dataclass(frozen=True, kw_only=True)
class CalibratedOffset:
    """A crowd asks a box that takes user means away; known ratings, asked for by the others, tell the target's mean."""

    crowd: Crowd = Crowd()

    def __call__(self, world: World, target: Target) -> Concluded:
        """Return what is concluded in one world."""
        offsets = [self._offset(world, target, place) for place in range(len(target.columns))]
        accounts = self.crowd.accounts(target, self.crowd.fakes)
        told = world.told(accounts[:1], target.asked, accounts[1:])[0]
        return told_ratings(told - accounts[0][1].mean() + agreed_on(offsets), target.scale)

    def _offset(self, world: World, target: Target, place: int) -> float:
        columns, values = target.without(place)
        accounts = self.crowd.accounts(replace(target, columns=columns, values=values), self.crowd.fakes)
        told = world.told(accounts[:1], target.columns[place : place + 1], accounts[1:])[0, 0]
        return float(target.values[place] - told + accounts[0][1].mean())


def agreed_on(values: Sequence[float]) -> float:
    """Return the number on which most of the values agree, or else their median."""
    found = np.array(values)[~np.isnan(values)]
    if len(found) == 0:
        return float("nan")
    alike = (np.abs(found[:, np.newaxis] - found) < 1e-6).sum(axis=1)
    return float(found[alike.argmax()] if alike.max() > 1 else np.median(found))


@dataclass(frozen=True, kw_only=True)
class Unclipped:
    """A crowd asks twice: the second time one of it rates all items asked for in the middle of the scale."""

    crowd: Crowd = Crowd()
    lowest: float = 2.0
    highest: float = 9.0

    def __call__(self, world: World, target: Target) -> Concluded:
        """Return what is concluded in one world."""
        accounts, middle = self.crowd.accounts(target, self.crowd.fakes), 5.0
        plain = world.told(accounts[:1], target.asked, accounts[1:])[0]
        helper = account(target.known, (target.asked, np.full(len(target.asked), middle)))
        pulled = world.told(accounts[:1], target.asked, [*accounts[1:-1], helper])[0]
        free = (plain > self.lowest) & (plain < self.highest) & (np.abs(plain - middle) > 0.1)
        shares = (pulled - middle)[free] / (plain - middle)[free]
        share = float(np.median(shares)) if len(shares) else 1.0
        at_end = (plain <= self.lowest) | (plain >= self.highest)
        return told_ratings(np.where(at_end, middle + (pulled - middle) / share, plain), target.scale)


@dataclass(frozen=True, kw_only=True)
class Averaged:
    """All fakes ask, in several rounds under new names; the mean answer counts."""

    fakes: int = 20
    rounds: int = 4

    def __call__(self, world: World, target: Target) -> Concluded:
        """Return what is concluded in one world."""
        told = []
        for turn in range(self.rounds):
            gone = controls(target, 1) * (self.fakes * turn)  # accounts that took the names used before
            told.append(world.told([*gone, *[target.known] * self.fakes], target.asked)[len(gone) :])
        means = np.concatenate(told).mean(axis=0)
        scale = target.scale
        near = np.abs(means - np.round(means)) < 0.25
        return np.clip(np.round(means), scale.lowest, scale.highest), near & ~np.isnan(means)
