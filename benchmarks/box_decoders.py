"""Hand-made attackers that decode: accounts with one or two known items, and arithmetic on what they are told."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

import goodfence as gf
from benchmarks.box_attackers import KNOWN, Account, Concluded, Target, World, account, agreed_on, voted
from goodfence.arrays import Floats, Integers


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """An account for each pair of known items that the target rated differently: who rated both alike is near.

    Everybody with two common items in the same order has a correlation of 1. So the neighbours of a pair of rare items
    are few, the target is one of them, and all weigh alike. What is likely follows from how many raters there may be.
    """

    def __call__(self, world: World, target: Target) -> Concluded:
        """Return what is concluded in one world."""
        pairs = [
            (first, second)
            for first, second in combinations(range(len(target.columns)), 2)
            if target.values[first] != target.values[second]
        ]
        if not pairs:
            return nothing(target)
        accounts = [(target.columns[list(pair)], target.values[list(pair)]) for pair in pairs]
        told = world.told(accounts, target.asked)
        n = world.ratings.shape[0]
        alike = [0.5 * float(target.counts[columns].prod()) / n for columns, _ in accounts]
        expected = 1.5 * np.outer(alike, target.counts[target.asked] / n)
        return likeliest(mean_likelihoods(told, expected, target), target.scale)


def nothing(target: Target) -> Concluded:
    """Return that nothing is concluded."""
    return np.full(len(target.asked), np.nan), np.zeros(len(target.asked), dtype=np.bool_)


SPREAD = 1.6
"""How far ratings of one item are from its mean, about."""


def rating_shares(target: Target, columns: Integers, bias: float = 0.0) -> Floats:
    """Return how likely each rating of some items is, (items, ratings), by what others gave on average."""
    ratings = np.arange(target.scale.highest + 1)
    away = ratings - np.clip(target.means[columns] + bias, 1, target.scale.highest)[:, np.newaxis]
    likely = np.exp(-((away / SPREAD) ** 2) / 2)
    return np.asarray(likely / likely.sum(axis=1, keepdims=True))


def prior(target: Target) -> Floats:
    """Return log P(rating) of what is asked, (asked, ratings), by the items' means and the target's bias."""
    bias = float((target.values - target.means[target.columns]).mean()) * KNOWN / (KNOWN + 4)
    return np.log(rating_shares(target, target.asked, bias) + 1e-6)


def sums_of(shares: Floats, most: int) -> list[Floats]:
    """Return how likely each sum of 0, 1, ... draws is, (items, sums) each."""
    found = [np.ones((len(shares), 1))]
    for _ in range(most):
        found.append(np.stack([np.convolve(*pair) for pair in zip(found[-1], shares, strict=True)]))
    return found


def chances(sums: Floats, rest: Floats, exact: float) -> Floats:
    """Return how likely it is that a draw is `rest`, (items, ratings): 0 unless that is an integer."""
    near = np.round(np.nan_to_num(rest, nan=-1.0)).astype(np.int64)
    fits = (np.abs(rest - near) < exact) & (near >= 0) & (near < sums.shape[1])
    inside = np.clip(near, 0, sums.shape[1] - 1)
    return np.where(fits, np.take_along_axis(sums, inside, axis=1), 0.0)


def poisson(rates: Floats, n: int) -> Floats:
    """Return how likely n are where `rates` are expected, (rates, 1)."""
    return np.asarray(np.exp(-rates + n * np.log(rates + 1e-9) - math.lgamma(n + 1)))[:, np.newaxis]


def mean_likelihoods(told: Floats, expected: Floats, target: Target, most: int = 6) -> Floats:
    """Return log P(answers | rating), (asked, ratings): each is the mean of the target and of a Poisson number more."""
    found, ratings = prior(target), np.arange(target.scale.highest + 1)
    parts = sums_of(rating_shares(target, target.asked), most)
    for answers, rates in zip(told, expected, strict=True):
        chance = np.full(found.shape, 1e-3)
        for others, sums in enumerate(parts):
            rest = answers[:, np.newaxis] * (others + 1) - ratings
            chance += poisson(rates, others) * chances(sums, rest, 1e-4)
        found += np.log(chance)
    return found


def sum_likelihoods(counts: Floats, totals: Floats, target: Target, most: int = 8) -> Floats:
    """Return log P(totals | rating), (asked, ratings): each is the sum of the target's and of `counts` - 1 others."""
    found, ratings = prior(target), np.arange(target.scale.highest + 1)
    parts = sums_of(rating_shares(target, target.asked), most)
    for numbers, sums in zip(counts, totals, strict=True):
        chance = np.full(found.shape, 1e-3)
        for others, draws in enumerate(parts):
            there = np.abs(numbers - others - 1) < 0.05
            chance += there[:, np.newaxis] * chances(draws, sums[:, np.newaxis] - ratings, 0.05)
        found += np.log(chance)
    return found


def likeliest(likelihoods: Floats, scale: gf.Scale, sure: float = 0.9) -> Concluded:
    """Return the likeliest ratings, and which of them are likelier than `sure`."""
    relative = np.exp(likelihoods - likelihoods.max(axis=1, keepdims=True))
    posterior = relative / relative.sum(axis=1, keepdims=True)
    best = posterior.argmax(axis=1)
    return np.clip(best.astype(np.float64), scale.lowest, scale.highest), posterior.max(axis=1) > sure


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """For boxes with MSD among raters: how many raters of an item gave each rating to a known one, and their sum.

    Accounts with one known item, rated v = 0, 1, ..., 10, weigh those who rated it u by w(v, u) = 1 / (1 + (v - u)^2).
    A helper with that item, who rates everything asked for, makes a second equation of each answer: together they tell
    the sums of weights and of weighted ratings. Both are linear in what is wanted: the matrix w is inverted. Among
    those who rated the known item as the target did, often only the target rated the other.
    """

    centred: bool = False
    helper_rating: float = 0.0

    def __call__(self, world: World, target: Target) -> Concluded:
        """Return what is concluded in one world."""
        counts, sums = self._groups(world, target, target.asked)
        if not self.centred:
            return likeliest(sum_likelihoods(counts, sums, target), target.scale)
        alone = np.abs(counts - 1) < 0.05
        return voted(np.where(alone, self._mean(world, target) + sums, np.nan), target.scale)

    def _groups(self, world: World, target: Target, asked: Integers) -> tuple[Floats, Floats]:
        """Return for each known item how many agree with the target on it and rated what is asked, and their sums."""
        ratings = np.arange(target.scale.lowest, target.scale.highest + 1)
        accounts = [(column[np.newaxis], np.array([rating])) for column in target.columns for rating in ratings]
        plain = world.told(accounts, asked).reshape(KNOWN, len(ratings), -1)
        helpers = [self._helper(target, place, asked) for place in range(KNOWN)]
        if np.isin(asked, target.columns).any():  # helpers of one known item would be near to those who have another
            own = [accounts[place * len(ratings) : (place + 1) * len(ratings)] for place in range(KNOWN)]
            moved = np.stack([world.told(own[place], asked, [helpers[place]]) for place in range(KNOWN)])
        else:
            moved = world.told(accounts, asked, helpers).reshape(plain.shape)
        solved = [
            self._solved(ratings, target.values[place], plain[place], moved[place], helpers[place])
            for place in range(KNOWN)
        ]
        return np.array([counts for counts, _ in solved]), np.array([sums for _, sums in solved])

    def _helper(self, target: Target, place: int, asked: Integers) -> Account:
        column, value = target.columns[place : place + 1], target.values[place : place + 1]
        wanted = asked[asked != column[0]]
        return account((column, value), (wanted, np.full(len(wanted), self.helper_rating)))

    def _solved(
        self, ratings: Floats, value: float, plain: Floats, moved: Floats, helper: Account
    ) -> tuple[Floats, Floats]:
        """Return how many rated the known item with `value`, and the sum of their ratings, by the helper's effect."""
        given = self.helper_rating
        if self.centred:
            plain, moved = (told - ratings[:, np.newaxis] for told in (plain, moved))
            given = given - float(helper[1].mean())
        weights, row = 1 / (1 + (ratings[:, np.newaxis] - ratings) ** 2), int(value - ratings[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = weights[:, row][:, np.newaxis] * (moved - given) / (plain - moved)
        weight = np.where(np.isfinite(weight), weight, 0.0)
        return np.linalg.solve(weights, weight)[row], np.linalg.solve(weights, weight * plain)[row]

    def _mean(self, world: World, target: Target) -> float:
        """Return the target's mean: known ratings less what is told of them, where the target alone tells it."""
        counts, sums = self._groups(world, target, target.columns)
        alone = np.abs(counts - 1) < 0.05
        np.fill_diagonal(alone, val=False)
        return agreed_on((target.values - sums)[alone].tolist())


@dataclass(frozen=True, kw_only=True)
class CoRatings:
    """For item kNN: the sum over all users of the product of their ratings of two items, exactly.

    An account that rates a known item 10 and a rare one, the ruler, 0 is told 10 s / (s + t), where s and t are the
    similarities of what is asked for to the two. A fake that rates the ruler and everything asked for makes t known,
    one that rates the known items and some rare ones makes known how long the columns are. What is left is s, and with
    it the sum of products: the target's product, and those of the few others who rated both.
    """

    rulers: int = 3
    marks: int = 25
    """How many rare items are rated by both fakes, to compare the lengths of columns."""

    def __call__(self, world: World, target: Target) -> Concluded:
        """Return what is concluded in one world."""
        products = np.max([self._products(world, target, place) for place in range(self.rulers)], axis=0)
        others = 1.5 * np.outer(target.counts[target.columns], target.counts[target.asked]) / world.ratings.shape[0]
        return likeliest(product_likelihoods(products, others, target), target.scale)

    def _products(self, world: World, target: Target, place: int) -> Floats:
        """Return the sums of products, (known, asked), by one of the rulers."""
        ruler, marks = target.rarest(1, place), target.rarest(self.marks, self.rulers)
        rated = np.concatenate([marks, target.asked])
        ruling = account((ruler, np.full(1, 10.0)), (rated, np.full(len(rated), 10.0)))
        marking = account((target.columns, np.full(KNOWN, 10.0)), (marks, np.full(len(marks), 10.0)))
        asking = [account((column[np.newaxis], np.full(1, 10.0)), (ruler, np.zeros(1))) for column in target.columns]
        told = world.told(asking, rated, [ruling, marking])
        ratios = told / np.maximum(10 - told, 1e-9)
        units = np.median(ratios[:, : len(marks)], axis=1, keepdims=True)
        return np.asarray(100.0 * ratios[:, len(marks) :] / np.maximum(units, 1e-9))


def product_likelihoods(products: Floats, others: Floats, target: Target, most: int = 5) -> Floats:
    """Return log P(sums of products | rating), (asked, ratings), where a Poisson number of others rated both."""
    found, ratings = prior(target), np.arange(target.scale.highest + 1)
    asked, known = (rating_shares(target, columns) for columns in (target.asked, target.columns))
    cells = np.outer(ratings, ratings).ravel().astype(np.int64)
    for totals, value, rates, shares in zip(products, target.values, others, known, strict=True):
        one = np.stack([np.bincount(cells, np.outer(each, shares).ravel()).astype(np.float64) for each in asked])
        rest = totals[:, np.newaxis] - value * ratings
        chance = np.where(rest > -0.5, 1e-4, 1e-6)
        for n, sums in enumerate(sums_of(one, most)):
            chance += poisson(rates, n) * chances(sums, rest, 0.2)
        found += np.log(chance)
    return found


@dataclass(frozen=True, kw_only=True)
class Opposed:
    """For centred cosines among raters: accounts with one known item and a rare one, rated at the two ends.

    Near to such an account is who has the known item and likes it, or dislikes it, as the target does. What it is told
    less its own mean is a rating less the rater's mean, which known items tell of the target.
    """

    agreeing: bool = False
    """Whether the account rates the known item as the target does, and the rare one so that its mean is the middle."""

    def __call__(self, world: World, target: Target) -> Concluded:
        """Return what is concluded in one world."""
        middle, ends = target.values.mean(), (float(target.scale.lowest), float(target.scale.highest))
        rare, accounts = target.rarest(KNOWN), []
        for place, column in enumerate(target.columns):
            own, other = ends[::-1] if target.values[place] >= middle else ends
            if self.agreeing:
                own, other = float(target.values[place]), sum(ends) - float(target.values[place])
            accounts.append(
                account((column[np.newaxis], np.array([own])), (rare[place][np.newaxis], np.array([other])))
            )
        asked = np.concatenate([target.columns, target.asked])
        told = world.told(accounts, asked) - sum(ends) / 2
        told = np.where(np.abs(told) < 1e-9, np.nan, told)  # nobody is near
        told[np.arange(KNOWN), np.arange(KNOWN)] = np.nan
        offset = agreed_on((target.values - told[:, :KNOWN]).ravel().tolist())
        return voted(told[:, KNOWN:] + offset, target.scale)
