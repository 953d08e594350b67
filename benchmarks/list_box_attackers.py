"""Hand-made attackers of lists: what a recipe claims is scored as `ListAttack` scores its claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

import goodfence as gf
from benchmarks.box_attackers import KNOWN, SEED, Account, Target, World, account, target_of
from goodfence.arrays import Floats, Integers
from goodfence.attack.list_attack import LISTED, Claims, ListAttack
from goodfence.attack.report import ListAttackReport
from goodfence.attack.targets import find_targets
from goodfence.rng import Streams

ListRecipe: TypeAlias = Callable[[World, Target], Integers]
"""Returns the columns that are claimed to be the target's, best first."""


def attacked_lists(
    events: gf.Ratings, train: Callable[..., Any], recipe: ListRecipe, *, targets: int | Sequence[Any] = 60
) -> ListAttackReport:
    """Return what a recipe finds out about some targets."""
    streams = Streams(SEED)
    found, _ = find_targets(events, targets, KNOWN, "random", streams)
    claimed = np.full((2, len(found), LISTED), -1, dtype=np.int32)
    for place in range(len(found)):
        one = found.part(place, place + 1)
        target = target_of(one, events)
        for world, removed in enumerate((None, int(one.rows[0]))):
            claims = recipe(World(events, train, removed), target)[:LISTED]
            claimed[world, place, : len(claims)] = claims
    unknown = np.full(len(found), np.nan)
    return ListAttack(known=KNOWN).judged(Claims(claimed[0], claimed[1], unknown, unknown), found, events, streams)


def ones(columns: Integers) -> Account:
    """Return an account that has these items."""
    return np.sort(columns), np.ones(len(columns))


@dataclass(frozen=True, kw_only=True)
class CrowdLists:
    """Fakes with the known items; one asks, and all that it is shown is claimed."""

    fakes: int = 20
    padding: int = 0
    """How many rare items all fakes have as well."""

    def __call__(self, world: World, target: Target) -> Integers:
        """Return what is claimed in one world."""
        held = account(target.known, ones(target.rarest(self.padding)))
        return world.listed([held], LISTED, [held] * (self.fakes - 1))[0]


@dataclass(frozen=True, kw_only=True)
class Clicking:
    """A crowd that clicks all it is shown and asks again, until it has enough to claim."""

    fakes: int = 20
    rounds: int = 4

    def __call__(self, world: World, target: Target) -> Integers:
        """Return what is claimed in one world."""
        claimed = np.empty(0, dtype=np.int64)
        for _ in range(self.rounds):
            holding = account(target.known, ones(claimed))
            more = world.listed([holding], LISTED, [holding] * (self.fakes - 1))[0]
            claimed = np.concatenate([claimed, more])
            if len(more) == 0 or len(claimed) >= LISTED:
                break
        return claimed


@dataclass(frozen=True, kw_only=True)
class Boosted:
    """A crowd, beside accounts that make other items popular, some in each round, so that all come into the pool."""

    crowd: int = 20
    boosters: int = 260
    most: int = 200

    def __call__(self, world: World, target: Target) -> Integers:
        """Return what is claimed in one world."""
        order = np.argsort(-target.counts, kind="stable")
        order, claimed = order[~np.isin(order, target.columns)], []
        for start in range(0, len(order), self.most):
            lifted = ones(order[start : start + self.most])
            silent = [target.known] * (self.crowd - 1)
            boosters = [lifted] * (self.boosters if start else 0)
            claimed.append(world.listed([target.known], LISTED, [*silent, *boosters])[0])
        found = np.concatenate(claimed)
        return found[np.argsort(target.counts[found], kind="stable")]


def best(score: Floats, target: Target, n: int = LISTED) -> Integers:
    """Return the columns with the highest scores that are not known."""
    rest = np.array(score)
    rest[target.columns] = -np.inf
    return np.argsort(-rest, kind="stable")[:n]


@dataclass(frozen=True, kw_only=True)
class AgainstControls:
    """Accounts with one known item each, and as many controls with an item that the target need not have.

    An item stands higher in the lists of the known items than in those of the controls if the target has it. The
    evidence of an item of few users counts more: the target is a larger part of them.
    """

    controls: int = 150
    rarity: float = 0.25
    popularity: float = 0.5
    missing: float = 3.0
    """How much speaks against an item that is not listed for a known one."""

    def __call__(self, world: World, target: Target) -> Integers:
        """Return what is claimed in one world."""
        columns = np.concatenate([target.columns, self.drawn(target)])
        ranks = self.ranks(world, columns)
        ranks[np.arange(len(columns)), columns] = np.nan  # nobody is shown what they have
        weights = (target.counts[target.columns] + 1.0) ** -self.rarity
        evidence = weights / weights.mean() @ np.nan_to_num(self.evidence(ranks[:KNOWN], ranks[KNOWN:]))
        return best(evidence + self.popularity * np.log(target.counts + 1.0), target)

    def evidence(self, known: Floats, controls: Floats) -> Floats:
        """Return how much higher each item is in the list of each known one, (known, items), in deviations."""
        heights, others = -np.log(known + 3.0), -np.log(controls + 3.0)
        higher = (heights - np.nanmean(others, axis=0)) / (np.nanstd(others, axis=0) + 0.1)
        return np.asarray(higher - self.missing * (known >= known.shape[1]))

    def drawn(self, target: Target) -> Integers:
        """Return the controls: items of every popularity."""
        others = np.setdiff1d(np.arange(len(target.counts)), target.columns)
        order = others[np.argsort(target.counts[others], kind="stable")]
        return order[np.linspace(0, len(order) - 1, self.controls).astype(np.int64)]

    def ranks(self, world: World, columns: Integers) -> Floats:
        """Return the position of all items in the list of each of these, (columns, items)."""
        n_items = world.ratings.shape[1]
        lists = world.listed([ones(column[np.newaxis]) for column in columns], n_items)
        return np.stack([_ranks(one, n_items) for one in lists])


@dataclass(frozen=True, kw_only=True)
class Lifted(AgainstControls):
    """The same where only the most similar items are shown: fakes with all these items lift some others at a time.

    Items of about the same popularity are lifted together, so that little else can stand beside them.
    """

    controls: int = 20
    rarity: float = 0.5
    fakes: int = 5
    group: int = 40

    def evidence(self, known: Floats, controls: Floats) -> Floats:
        """Return how few controls have each item as high, (known, items): most of them do not list it at all."""
        lower = np.array([(controls < one).sum(axis=0) + 0.5 * (controls == one).sum(axis=0) for one in known])
        return np.asarray(-np.log((lower + 0.5) / (len(controls) + 0.5)))

    def ranks(self, world: World, columns: Integers) -> Floats:
        """As in `AgainstControls`, among those that are lifted together."""
        n_items = world.ratings.shape[1]
        order = np.argsort(np.bincount(world.ratings.csr.indices, minlength=n_items), kind="stable")
        found = np.full((len(columns), n_items), float(n_items))
        askers = [ones(column[np.newaxis]) for column in columns]
        for start in range(0, n_items, self.group):
            lifted = order[start : start + self.group]
            lists = world.listed(askers, n_items, [ones(np.union1d(lifted, columns))] * self.fakes)
            for place, listed in enumerate(lists):
                among = listed[np.isin(listed, lifted)]
                found[place, among] = np.arange(len(among))
        return found


@dataclass(frozen=True, kw_only=True)
class CoLikes:
    """For cosines of items: how many have two items, read off the order of lists by what is known of popularity.

    The list of a known item is ordered by G / sqrt(c), G who have both and c who have the other. Nothing below has a
    higher value, so G is at least what the next item in the list calls for. Where only the best K are shown, f fakes
    with each known item and some others lift these, at most K at a time: (G + f) / sqrt(c + 8 f) is their order.
    """

    fakes: int = 0
    group: int | None = None
    """How many items are lifted at a time; None for lists without an end."""
    spread: float = 5.0
    """The shape of the gamma distribution of what is expected."""
    missing: float = 3.0
    popularity: float = 1.0

    def __call__(self, world: World, target: Target) -> Integers:
        """Return what is claimed in one world."""
        both = self.counted(world, target)
        expected = np.outer(both.sum(axis=1) + 1, target.counts + 1.0) / (target.counts + 1.0).sum()
        shape = self.spread
        likely = np.log(np.maximum(both, 1) / (np.maximum(both, 1) - 1 + shape) * (shape + expected) / expected)
        score = np.where(both > 0, likely, -self.missing).sum(axis=0)
        return best(score + self.popularity * np.log(target.counts + 1.0), target)

    def counted(self, world: World, target: Target) -> Floats:
        """Return how many have each known item and each other, at least, (known, items)."""
        n_items = world.ratings.shape[1]
        order, found = np.argsort(target.counts, kind="stable"), np.zeros((KNOWN, n_items))
        askers = [ones(column[np.newaxis]) for column in target.columns]
        for start in range(0, n_items, self.group or n_items):
            lifted = order[start : start + (self.group or n_items)]
            fakes = [ones(np.union1d(lifted, [column])) for column in target.columns for _ in range(self.fakes)]
            for place, listed in enumerate(world.listed(askers, n_items, fakes)):
                among = listed[np.isin(listed, lifted)]
                found[place, among] = self._at_least(target.counts[among])
        return found

    def _at_least(self, counts: Integers) -> Floats:
        """Return the least G of items in the order of a list, so that their values fall."""
        having = counts + KNOWN * self.fakes
        lengths, needed = np.sqrt(having), 0.0
        found = np.zeros(len(counts))
        for place in range(len(counts) - 1, -1, -1):
            off = 1 - 0.6 / (having[place] + 1.0)  # the target may be one of them
            found[place] = max(np.ceil(needed * off * lengths[place] - self.fakes - 1e-9), 0.0 if self.fakes else 1.0)
            needed = max(needed, (found[place] + self.fakes) / max(lengths[place], 1.0))
        return found


def _ranks(listed: Integers, n_items: int) -> Floats:
    """Return the position of each item in a list; what is not listed comes last."""
    ranks = np.full(n_items, float(n_items))
    ranks[listed] = np.arange(len(listed))
    return ranks
