"""`DesignedListAttack`: accounts of any design are shown lists, and what they rank high is claimed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from goodfence.arrays import Floats, Integers, Rows
from goodfence.attack.attack import Worlds
from goodfence.attack.fakes import AccountPlan, Catalogue, Design, FakeCells, plans_of
from goodfence.attack.list_attack import Claims, ListAttack
from goodfence.attack.refits import Ranking, RefitWorlds
from goodfence.attack.targets import Targets, world_seed
from goodfence.attack.trained import folds_of, ranked_by_others
from goodfence.data.ratings import Ratings
from goodfence.errors import BlackBoxProblem, SettingError, require
from goodfence.kernels.lists import NO_ITEM
from goodfence.parallel import bar, ranges
from goodfence.rng import Streams
from goodfence.settings import checked

DecodeLists: TypeAlias = Literal["listed", "trained"]
SHORTER = 100
"""How many items are asked for where a recommender refuses to rank all."""
_TOPS = (10, 50)
_CONTROLS, _LIFTED_TOGETHER = 20, 3
"""How many control accounts lifted items are compared with, and how many targets share a fit there."""


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class DesignedListAttack(ListAttack):
    """Accounts of one or several designs are shown lists; the highest ranked items are claimed.

    A trained attacker reads the whole ranking, with its scores where they are shown, and learns from other users what
    a rank says of an item. Targets share fits as in `DesignedAttack`.
    """

    designs: tuple[Design, ...] = ()
    """How the accounts look; a trained attacker may use several."""
    decode: DecodeLists = "listed"
    """The lists count as they are, or a model trained on other users ranks the items."""

    def __post_init__(self) -> None:
        ListAttack.__post_init__(self)
        one = len(self.designs) == 1 or (self.decode == "trained" and len(self.designs) > 0)
        require(one, "designs", "one design, or several for a trained attacker", len(self.designs))

    def n_fakes(self, attacked: object, n_users: int) -> int:  # noqa: ARG002 - protocol
        """Return how many accounts the largest design has."""
        return max(self.known if one.copied != "all" else one.fakes for one in self.designs)

    def describe(self, n_fakes: int = 2) -> str:  # noqa: ARG002 - the designs say it
        """As in `Attack`."""
        if self.decode == "trained":
            return "a model trained on other users reads the whole rankings of several accounts"
        return f"{self.designs[0].describe()}; what is listed counts"

    def answers(self, worlds: Worlds, targets: Targets, streams: Streams, *, progress: bool | None = None) -> Claims:
        """Return what is claimed of all targets, those that share a fit at a time."""
        if not isinstance(worlds, RefitWorlds):
            raise SettingError("designs must attack a recommender that is fitted in each world")
        found = [rankings(worlds, one, targets, streams, progress) for one in self.designs]
        n, claimed = self.n_claimed(worlds.ratings), []
        for world in (0, 1):
            seen = [one[world] for one in found]
            claimed.append(
                _trained(seen, targets, worlds.ratings, n, streams)
                if self.decode == "trained"
                else np.stack([_listed(each, n) for each in seen[0]])
            )
        unknown = np.full(len(targets), np.nan)
        return Claims(claimed[0], claimed[1], unknown, unknown)

    def _answers(self, worlds: Worlds, targets: Targets, streams: Streams) -> Claims:
        return self.answers(worlds, targets, streams, progress=False)


def rankings(
    worlds: RefitWorlds, design: Design, targets: Targets, streams: Streams, progress: bool | None
) -> tuple[list[list[Ranking]], list[list[Ranking]]]:
    """Return what the accounts of each target are shown, with the targets in the data and without; asked only once."""
    key = "lists", design, *(one.tobytes() for one in (targets.rows, targets.known_columns))
    if key not in worlds.memory:
        size = worlds.together(design.fakes)
        if design.lifted:
            size = min(size, _LIFTED_TOGETHER)
        found: tuple[list[Any], list[Any]] = ([], [])
        pieces = ranges(len(targets), size)
        with bar("asking", len(pieces), show=progress) as advance:
            for piece in pieces:
                part = targets.part(*piece)
                seed = world_seed(streams, int(part.rows[0]))
                for there, kept in zip((True, False), found, strict=True):
                    kept.extend(listed_together(worlds, design, part, (seed, there)))
                advance(1)
        worlds.memory[key] = found
    told: tuple[list[list[Ranking]], list[list[Ranking]]] = worlds.memory[key]
    return told


def listed_together(
    worlds: RefitWorlds, design: Design, targets: Targets, world: tuple[int, bool], planted: Sequence[FakeCells] = ()
) -> list[list[Ranking]]:
    """Return what the accounts of some targets are shown in one world, given by its seed and whether they are there."""
    nothing, plans = np.zeros(0, dtype=np.int64), []
    for at in range(len(targets)):
        given = worlds.catalogue, int(targets.rows[at]), planted[at : at + 1], at
        plans.append(plans_of(design, targets.known_of(at), nothing, *given)[0])
    return _lifted(worlds, design, plans, world) if design.lifted else whole_rankings(worlds, plans, *world)


def _lifted(
    worlds: RefitWorlds, design: Design, plans: list[AccountPlan], world: tuple[int, bool]
) -> list[list[Ranking]]:
    """Return the same where some items are lifted at a time: the position of each among those that are with it."""
    nothing = np.zeros(0, dtype=np.int64)
    popular, n = worlds.catalogue.popular, worlds.ratings.shape[1]
    order = popular[::-1]
    compared = design.copied == "one"
    if compared:
        spread = popular[np.linspace(0, n - 1, _CONTROLS).astype(np.int64)]
        plans.append(AccountPlan(-1, [events_of(spread[[at]]) for at in range(_CONTROLS)], _CONTROLS, nothing))
    found = [np.full((plan.n_asking, n), np.nan) for plan in plans]
    for start in range(0, n, design.lifted):
        group = order[start : start + design.lifted]
        if compared:
            beside = [_beside(plan, group, design.lifters) for plan in plans]
        else:
            beside = [*plans, AccountPlan(-1, [events_of(group)] * design.lifters, 0, nothing)]
        for ranks, shown in zip(found, whole_rankings(worlds, beside, *world), strict=False):
            among = np.stack([one.ranks for one in shown])[:, group]
            order_within = np.argsort(np.where(np.isnan(among), np.inf, among), axis=1, kind="stable")
            ranks[:, group] = np.where(np.isnan(among), np.nan, np.argsort(order_within, axis=1) + 1.0)
    if compared:
        *found, controls = found
        lowest = np.where(np.isnan(controls), np.inf, controls)
        found = [np.stack([_above(one, lowest) for one in np.where(np.isnan(each), np.inf, each)]) for each in found]
    return [[Ranking(one, np.full(n, np.nan)) for one in each] for each in found]


def events_of(columns: Integers) -> FakeCells:
    """Return an account that holds these items."""
    return np.sort(columns), np.ones(len(columns))


def _beside(plan: AccountPlan, group: Integers, n: int) -> AccountPlan:
    """Return a plan with more accounts that hold all its items and those of a group."""
    held = np.unique(np.concatenate([group, *(columns for columns, _ in plan.accounts)]))
    return plan._replace(accounts=[*plan.accounts, *[events_of(held)] * n])


def _above(ranks: Floats, controls: Floats) -> Floats:
    """Return the rank of one account among controls, for each item: from 1 if it has the item higher than any."""
    return np.asarray(1.0 + (controls < ranks).sum(axis=0) + 0.5 * (controls == ranks).sum(axis=0))


def whole_rankings(worlds: RefitWorlds, plans: Sequence[Any], seed: int, there: bool) -> list[list[Ranking]]:
    """Return rankings of all items, or of as many as the recommender is willing to rank."""
    n = worlds.memory.setdefault("ranked", worlds.ratings.shape[1])
    try:
        return worlds.ranked_by(worlds.fitted_beside(plans, seed, there), plans, n)
    except BlackBoxProblem:
        if n <= SHORTER:
            raise
        worlds.memory["ranked"] = SHORTER
        return whole_rankings(worlds, plans, seed, there)


def _listed(shown: Sequence[Ranking], n: int) -> Rows:
    """Return the n items with the best mean rank over the accounts of one target."""
    ranks = np.stack([one.ranks for one in shown])
    worst = ranks.shape[1] + 1.0
    mean = np.where(np.isnan(ranks), worst, ranks).mean(axis=0)
    able = np.asarray(~np.isnan(ranks).all(axis=0))
    order = np.argsort(np.where(able, mean, np.inf), kind="stable")[:n]
    return np.where(able[order], order, NO_ITEM).astype(np.int32)


def _trained(
    seen: Sequence[Sequence[Sequence[Ranking]]], targets: Targets, ratings: Ratings, n: int, streams: Streams
) -> Rows:
    """Return the items that are most probably each target's own, as learnt from the others."""
    popularity = np.log1p(Catalogue(ratings).counts)
    features, own, items = [], [], []
    for at in range(len(targets)):
        able = np.setdiff1d(np.arange(ratings.shape[1]), targets.known_of(at)[0])
        hidden = targets.columns[targets.starts[at] : targets.starts[at + 1]]
        features.append(_features([one[at] for one in seen], popularity)[able])
        own.append(np.isin(able, hidden))
        items.append(able)
    odds = ranked_by_others(features, own, folds_of(len(targets), streams))
    claimed = np.full((len(targets), n), NO_ITEM, dtype=np.int32)
    for at, (able, score) in enumerate(zip(items, odds, strict=True)):
        best = able[np.argsort(-score, kind="stable")[:n]]
        claimed[at, : len(best)] = best
    return claimed


def _features(shown: Sequence[Sequence[Ranking]], popularity: Floats) -> Floats:
    """Return what the accounts of one target were shown of each item, (items, features), beside its popularity."""
    columns = [popularity, popularity**2]
    for accounts in shown:
        ranks = np.stack([one.ranks for one in accounts])
        near = np.where(np.isnan(ranks), -np.log(ranks.shape[1] + 1.0), -np.log(np.where(np.isnan(ranks), 1.0, ranks)))
        best = np.sort(near, axis=0)[::-1]
        columns += [near.mean(axis=0), best[0], best[len(best) // 2], best[-1], near.mean(axis=0) * popularity]
        columns += [(ranks <= top).mean(axis=0) for top in _TOPS]
        scores = np.stack([one.scores for one in accounts])
        if np.isfinite(scores).any():
            columns += _of_scores(scores)
    return np.column_stack(columns)


def _of_scores(scores: Floats) -> list[Floats]:
    """Return of each item the mean score, its least and greatest, logarithms, and how many accounts see none.

    An item that shares nobody with a known one is not the target's.
    """
    low = np.nanmin(scores)
    filled = np.where(np.isfinite(scores), scores, low)
    spread = np.maximum(filled.std(axis=1, keepdims=True), 1e-12)
    scaled = (filled - filled.mean(axis=1, keepdims=True)) / spread
    logs = np.log(np.maximum(filled, 0.0) + 1e-3 * np.abs(filled).max() + 1e-12)
    nothing = (np.abs(filled) <= 1e-9 * np.abs(filled).max()).mean(axis=0)
    return [scaled.mean(axis=0), scaled.max(axis=0), scaled.min(axis=0), logs.mean(axis=0), logs.min(axis=0), nothing]
