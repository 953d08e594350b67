"""`DesignedAttack`: accounts of any design ask about many targets in one fit, and what they are told is decoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from goodfence.arrays import Flags, Floats
from goodfence.attack.attack import RatingAttack, Worlds
from goodfence.attack.decoders import SAME, Helped, agreed_on, alone, off_grid, rescaled, solved, voted
from goodfence.attack.fakes import (
    AccountPlan,
    Catalogue,
    Design,
    FakeCells,
    controls,
    held_back,
    helper_rating,
    hides,
    merged,
    n_turns,
    plans_of,
)
from goodfence.attack.knn_attack import combined
from goodfence.attack.refits import RefitWorlds
from goodfence.attack.scoring import Answers, all_guesses, is_rating, is_recovered, tolerance
from goodfence.attack.targets import Targets, world_seed
from goodfence.attack.trained import folds_of, most_credible, ridge_predictions
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale
from goodfence.errors import SettingError, require
from goodfence.parallel import bar, ranges
from goodfence.rng import Streams
from goodfence.settings import Count, checked

Decode: TypeAlias = Literal[
    "answer",
    "mode",
    "rescaled",
    "solved",
    "solved_centred",
    "measured",
    "measured_centred",
    "votes",
    "votes_shifted",
    "trained",
]
"""How answers become ratings; see `attack/decoders.py`."""
_IN_WORDS = {
    "answer": "the answer counts",
    "mode": "all ask, and the most frequent answer counts",
    "rescaled": "one unknown factor and one unknown mean for each user",
    "solved": "two equations for what is not the helpers'",
    "solved_centred": "two equations, with user means subtracted",
    "measured": "two equations, with helpers weighted by cosine",
    "measured_centred": "two equations, with user means subtracted and helpers weighted by cosine",
    "votes": "the rating that most answers are",
    "votes_shifted": "the rating that most answers are, less what known ratings show",
    "trained": "a model trained on other users chooses what to believe",
}
_SOLVED = {
    "solved": (False, False),
    "solved_centred": (True, False),
    "measured": (False, True),
    "measured_centred": (True, True),
}
"""The ways to solve the equations of helpers: whether users' means are taken away, and whether weights are measured."""
_KNOWN_GAP, _SINGULAR, _WHOLE = 1e-3, 1e5, 0.05
_UNDISTURBED = 0.7


class Evidence(NamedTuple):
    """What the accounts of one design were told in one world, and what each decoder concludes; (hidden,) each."""

    values: dict[str, Floats]
    """What each decoder concludes."""
    features: Floats
    """(hidden, features): what a trained attacker looks at beside it."""
    sure: dict[str, Flags]
    """What each decoder is certain about."""

    def __repr__(self) -> str:
        return f"Evidence({len(self.features):,} hidden ratings)"


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class DesignedAttack(RatingAttack):
    """Accounts of one or several designs ask for the hidden ratings; a decoder reads the answers.

    Targets share fits: the accounts of several stand side by side, and in the world without them all of these targets
    are removed, at most one user in a hundred.
    """

    designs: tuple[Design, ...] = ()
    """How the accounts look; a trained attacker may use several."""
    decode: Decode = "answer"
    """How answers become ratings."""
    items: Count | None = None
    """How many hidden items of each target are asked for, drawn by chance; None for all."""

    def __post_init__(self) -> None:
        RatingAttack.__post_init__(self)
        one = len(self.designs) == 1 or (self.decode == "trained" and len(self.designs) > 0)
        require(one, "designs", "one design, or several for a trained attacker", len(self.designs))

    def n_fakes(self, attacked: object, n_users: int) -> int:  # noqa: ARG002 - protocol
        """Return how many accounts the largest design has."""
        return max(one.fakes for one in self.designs)

    def describe(self, n_fakes: int = 2) -> str:  # noqa: ARG002 - the designs say it
        """As in `Attack`."""
        kinds = list(dict.fromkeys(one.describe() for one in self.designs))
        held = kinds[0] if len(kinds) == 1 else f"{len(kinds)} kinds of accounts"
        return f"{held}; {_IN_WORDS[self.decode]}"

    def _asked_for(self, targets: Targets, streams: Streams) -> Targets:
        return targets if self.items is None else targets.sampled(self.items, streams)

    def stated(self) -> dict[str, Any]:
        """Return the settings, for a manifest."""
        return RatingAttack.stated(self) | {"designs": [one.describe() for one in self.designs]}

    def answers(self, worlds: Worlds, targets: Targets, streams: Streams, *, progress: bool | None = None) -> Answers:
        """Return what is concluded about all targets, those that share a fit at a time."""
        if not isinstance(worlds, RefitWorlds):
            raise SettingError("designs must attack a recommender that is fitted in each world")
        found = [gathered(worlds, one, targets, streams, progress) for one in self.designs]
        unknown, values, sure = np.full(len(targets), np.nan), [], []
        for world in (0, 1):
            seen = [one[world] for one in found]
            if self.decode == "trained":
                values.append(believed(seen, targets, worlds.ratings, streams))
                sure.append(np.zeros(len(targets.columns), dtype=np.bool_))
            else:
                nothing = np.full(len(targets.columns), np.nan)
                values.append(seen[0].values.get(self.decode, nothing))
                sure.append(seen[0].sure.get(self.decode, np.isfinite(nothing)))
        scale = worlds.ratings.scale
        with_target, without = (np.clip(one, scale.lowest, scale.highest) for one in values)
        return Answers(with_target, without, unknown, sure[0], sure[1])

    def _answers(self, worlds: Worlds, targets: Targets, streams: Streams) -> Answers:
        return self.answers(worlds, targets, streams, progress=False)


def gathered(
    worlds: RefitWorlds, design: Design, targets: Targets, streams: Streams, progress: bool | None
) -> tuple[Evidence, Evidence]:
    """Return what the accounts of a design are told about all targets, with them and without; asked only once."""
    key = design, *(one.tobytes() for one in (targets.rows, targets.known_columns, targets.columns))
    if key not in worlds.memory:
        n_accounts = len(_plans(worlds, design, targets, 0)[0].accounts)
        size = worlds.together(n_accounts) if design.helping in ("none", "some") or worlds.traits.released else 1
        if size > 1 and _disturbed(worlds, design, targets.part(0, min(size, len(targets))), streams):
            size = 1
        pieces, parts = ranges(len(targets), size), []
        with bar("asking", len(pieces), show=progress) as advance:
            for piece in pieces:
                part = targets.part(*piece)
                seed = world_seed(streams, int(part.rows[0]))
                parts.append(asked_together(worlds, design, part, seed))
                advance(1)
        told = [np.concatenate(each, axis=-1) for each in zip(*parts, strict=True)]
        guesses = all_guesses(targets, worlds.ratings)[-1]
        worlds.memory[key] = tuple(evidence(one, design, targets, guesses, worlds.ratings.scale) for one in told)
    found: tuple[Evidence, Evidence] = worlds.memory[key]
    return found


def _disturbed(worlds: RefitWorlds, design: Design, targets: Targets, streams: Streams) -> bool:
    """Return whether accounts of several targets disturb each other: the first target's are told otherwise alone."""
    seed, first = world_seed(streams, int(targets.rows[0])), targets.part(0, 1)
    alone, beside = (asked_together(worlds, design, one, seed)[0][0, : len(first.columns)] for one in (first, targets))
    same = (np.abs(alone - beside) <= tolerance(worlds.ratings.scale)) | (np.isnan(alone) & np.isnan(beside))
    return bool(same.mean() < _UNDISTURBED)


def asked_together(
    worlds: RefitWorlds, design: Design, targets: Targets, seed: int, planted: Sequence[FakeCells] = ()
) -> list[Floats]:
    """Return for each hidden rating of some targets what was told, in the world with them and in that without.

    Rows are as in `_rows_of`. Where the targets are `planted`, only the first of these worlds is asked.
    """
    each = [_plans(worlds, design, targets, at, planted[at : at + 1]) for at in range(len(targets))]
    turns_each = n_turns(design)
    if design.copied == "levels":
        kernels_of(worlds)  # before anything else is asked
    asked = np.unique(np.concatenate([plans[0].columns for plans in each]))
    control = [controls(design, asked, worlds.catalogue)] if turns_each == 1 else []
    starts = np.concatenate([[0], np.cumsum([len(plans) // turns_each for plans in each])])
    found = []
    for there in (True,) if len(planted) else (True, False):
        turns = []
        for turn in range(turns_each):
            plans = [plan for plans in each for plan in plans[turn::turns_each]] + control
            turns.append(worlds.told_in(plans, seed, there))
        parts = []
        for at, plans in enumerate(each):
            told = [one[starts[at] : starts[at + 1]] for one in turns]
            base = np.full(len(plans[0].columns), np.nan)
            if control:
                everybody = np.where(hides(control[0]), np.nan, turns[0][-1][0])
                base = everybody[np.searchsorted(asked, plans[0].columns)]
            parts.append(_rows_of(worlds, design, plans, told, base, targets.known_of(at)))
        found.append(np.concatenate(parts, axis=1))
    return found


def _plans(
    worlds: RefitWorlds, design: Design, targets: Targets, at: int, planted: Sequence[FakeCells] = ()
) -> list[AccountPlan]:
    columns = targets.columns[targets.starts[at] : targets.starts[at + 1]]
    return plans_of(design, targets.known_of(at), columns, worlds.catalogue, int(targets.rows[at]), planted, at)


def _rows_of(
    worlds: RefitWorlds, design: Design, plans: Sequence[AccountPlan], told: Any, base: Floats, known: FakeCells
) -> Floats:
    """Return of one target, for each hidden rating, the answer, what controls are told, and what more there is.

    That is the most frequent of several answers or, with helpers, value and gap of each way in `_SOLVED`.
    """
    columns, ratings = plans[0].columns, worlds.ratings
    if design.copied == "levels":
        return _of_levels(worlds, plans, [one[0] for one in told], base, known)
    if design.copied != "all":
        return _votes(worlds, plans[0], told[0][0], base, known)
    n_back, turns_each = held_back(design, len(known[0])), len(told)
    n = len(columns) - n_back
    rows = np.full((2 + 2 * len(_SOLVED), len(columns)), np.nan)
    rows[1] = base
    for family, one in enumerate(told[0]):
        plan = plans[family * turns_each]
        free = ~hides(plan) & np.isnan(rows[0])
        rows[0] = np.where(free, combined(one, "mean", ratings.scale), rows[0])
        if len(one) > 1:
            rows[2] = np.where(free, combined(one, "mode", ratings.scale), rows[2])
        if turns_each == 1:
            continue
        turns = [(plans[family * turns_each + turn], told[turn][family][0]) for turn in (0, 1)]
        for at, (centred, measured) in enumerate(_SOLVED.values()):
            equations = [
                _equation(*each, turn, design, ratings, centred=centred, measured=measured)
                for turn, each in enumerate(turns)
            ]
            found = solved(equations[0], equations[1])
            rows[2 + 2 * at] = np.where(free, found.values, rows[2 + 2 * at])
            rows[3 + 2 * at] = np.where(free, found.weights, rows[3 + 2 * at])
    if turns_each > 1:
        _calibrate(rows, known, n)
    elif n_back:  # what is told of known ratings goes with every hidden one
        rows[3 : 3 + n_back], rows[3 + n_back : 3 + 2 * n_back] = rows[0, n:, np.newaxis], rows[1, n:, np.newaxis]
    return rows[:, :n]


def _votes(worlds: RefitWorlds, plan: AccountPlan, told: Floats, base: Floats, known: FakeCells) -> Floats:
    """Return the same for accounts with one or two known ratings: mean answer, vote and share, as told and shifted.

    What accounts are told of the other known ratings, less their means, shows by how much answers are shifted.
    """
    own = np.stack([np.isin(plan.columns, cells) for cells, _ in plan.accounts])
    means = np.array([[values.mean()] for _, values in plan.accounts])
    # Where nobody is near, the answer is what controls are told or, where means are subtracted, the account's own mean.
    answers = np.where(own | (np.abs(told - base) < SAME), np.nan, told)
    centred = np.where(np.abs(told - means) < SAME, np.nan, answers - means)
    return _ballots(worlds, plan.accounts, (answers, centred), base, known)


def _ballots(
    worlds: RefitWorlds, accounts: Sequence[FakeCells], told: tuple[Floats, Floats], base: Floats, known: FakeCells
) -> Floats:
    """Return what accounts vote, as `told` and less their means; more weighs who has items that fewer users have."""
    (answers, centred), scale, counts = told, worlds.ratings.scale, worlds.catalogue.counts
    weights = np.array([1 / np.sqrt(1.0 + counts[np.intersect1d(cells, known[0])].prod()) for cells, _ in accounts])
    n = answers.shape[1] - len(known[0])
    rows = np.full((2 + 2 * len(_SOLVED), n), np.nan)
    rows[0], rows[1] = combined(answers[:, :n], "mean", scale), base[:n]
    rows[2], rows[3] = voted(answers[:, :n], weights, scale)
    shift = agreed_on((known[1] - centred[:, n:]).ravel())
    rows[4], rows[5] = voted(centred[:, :n] + shift, weights, scale)
    return rows


def _of_levels(
    worlds: RefitWorlds, plans: Sequence[AccountPlan], told: Sequence[Floats], base: Floats, known: FakeCells
) -> Floats:
    """Return the same for accounts of all levels, each with helpers in one of two turns."""
    levels, n_known = worlds.catalogue.levels, len(known[0])
    plain = told[0].reshape(n_known, len(levels), -1)
    found = np.full((2, n_known, plain.shape[2]), np.nan)
    for at, rating in enumerate(known[1]):
        turn = 1 + at % 2
        cells, values = plans[turn].accounts[plans[0].n_asking + at // 2]
        helped = told[turn].reshape(plain.shape)[at]
        own = int(np.abs(levels - rating).argmin())
        asked = np.isin(plans[0].columns, np.setdiff1d(cells, known[0][[at]]))
        for kind, kernel in enumerate(kernels_of(worlds)):
            if kernel is None:
                continue
            less, mean = (levels[:, np.newaxis], values.mean()) if kind else (np.zeros((1, 1)), 0.0)
            given = np.full(plain.shape[2], levels[0] - mean)
            found[kind, at, asked] = alone(plain[at] - less, helped - less, given, kernel, own)[asked]
    accounts = [(known[0][[at]], known[1][[at]]) for at in range(n_known)]
    return _ballots(worlds, accounts, (found[0], found[1]), base, known)


Kernels: TypeAlias = "tuple[Floats | None, Floats | None]"
"""How accounts with one item weigh users who rated it otherwise, (levels, levels), if ratings count as they are and if
users' means are subtracted; None where the similarity does not depend on it."""


def kernels_of(worlds: RefitWorlds) -> Kernels:
    """Return how the similarity depends on ratings, as two helpers of a rare item show it."""
    if "kernels" not in worlds.memory:
        worlds.memory["kernels"] = _measured(worlds)
    found: Kernels = worlds.memory["kernels"]
    return found


def _measured(worlds: RefitWorlds) -> Kernels:
    levels, rare = worlds.catalogue.levels, worlds.catalogue.rare
    n, seed = len(levels), 0
    if n < 2 or len(rare) < 1 + 4 * n:
        return None, None
    item, others = rare[:1], np.sort(rare[1 : 1 + 4 * n])
    plan = AccountPlan(-1, [(item, levels[[at]]) for at in range(n)], n, others)
    told = worlds.told_in([plan], seed, True)[0]
    usual = np.nanmedian(np.where(np.isfinite(told), told, -1.0), axis=1, keepdims=True)
    free = np.flatnonzero((np.abs(np.where(np.isfinite(told), told, -1.0) - usual) < SAME).all(axis=0))[:n]
    if len(free) < n:
        return None, None
    low, high, middle = levels[[0]], levels[[-1]], levels[[n // 2]]
    helpers = []
    for at, column in enumerate(others[free]):
        asked = np.array([column])
        helpers += [merged((item, levels[[at]]), (asked, high)), merged((item, middle), (asked, low))]
    plan = plan._replace(accounts=[*plan.accounts, *helpers], columns=others[free])
    told = worlds.told_in([plan], seed, True)[0]
    kernels: list[Floats | None] = []
    for less in (0.0, 1.0):
        one, other = high - less * (levels + high) / 2, low - less * (middle + low) / 2
        moved = told - less * levels[:, np.newaxis]
        with np.errstate(divide="ignore", invalid="ignore"):
            kernel = (moved - other) / (one - moved)
        usable = np.isfinite(kernel).all() and (kernel > 0).all() and np.linalg.cond(kernel) < _SINGULAR
        kernels.append(kernel if usable else None)
    return kernels[0], kernels[1]


def _calibrate(rows: Floats, known: FakeCells, n: int) -> None:
    """Turn weights into gaps from the target's own weight, and add the target's mean: by known ratings held back."""
    truth = known[1][len(known[0]) - (rows.shape[1] - n) :]
    for at, (centred, _) in enumerate(_SOLVED.values()):
        values, weights = rows[2 + 2 * at], rows[3 + 2 * at]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(weights[n:])
            # The target weighs the same for all items; where others came before it the weights of known ones differ.
            alike = np.abs(logs[:, np.newaxis] - logs) < _KNOWN_GAP
            own = alike[alike.sum(axis=1).argmax()] if len(logs) else np.zeros(0, dtype=np.bool_)
            if own.sum() < 2:
                own = np.ones(len(logs), dtype=np.bool_)
            if centred:
                values += _mean_of((truth - values[n:])[own], default=float(known[1].mean()))
            weights[:] = np.abs(np.log(weights) - _mean_of(logs[own], default=np.nan))


def _equation(
    plan: AccountPlan, answers: Floats, turn: int, design: Design, ratings: Ratings, *, centred: bool, measured: bool
) -> Helped:
    """Return one equation for each item: the answer, and what the helpers rated and count, less means if centred.

    Helpers count alike, or as the cosine of their profile with that of the one who asks, `measured` over all items.
    """
    columns, own = plan.columns, plan.accounts[0][1]
    rated = helper_rating(columns, turn, design, ratings)
    if design.helping != "each":
        held = plan.accounts[-1][1]
        total, squares, n_held = np.full(len(columns), held.sum()), np.full(len(columns), (held**2).sum()), len(held)
    else:
        total, squares, n_held = own.sum() + rated, (own**2).sum() + rated**2, len(own) + 1
    means, mean = total / n_held, float(own.mean())
    weights = np.ones(len(columns))
    if measured:
        length = (own**2).sum() - (len(own) * mean**2 if centred else 0.0)
        helper = squares - (n_held * means**2 if centred else 0.0)
        weights = np.sqrt(max(length, SAME) / np.maximum(helper, SAME))
    weights = weights * (design.lifters if design.helping == "some" else design.fakes - 1)
    if not centred:
        return Helped(answers, rated, weights)
    return Helped(answers - mean, rated - means, weights)


def _mean_of(values: Floats, *, default: float) -> float:
    made = values[np.isfinite(values)]
    return float(np.median(made)) if len(made) else default


def evidence(told: Floats, design: Design, targets: Targets, guesses: Floats, scale: Scale) -> Evidence:
    """Decode what was told about all targets in one world."""
    if design.copied == "all":
        told = np.vstack([told[:1], np.where(np.isnan(told[1:2]), guesses, told[1:2]), told[2:]])
    answers, base, most_frequent = told[0], told[1], told[2]
    moved = ~(np.abs(answers - base) <= SAME)
    values: dict[str, Floats]
    if design.copied != "all":
        values = {"answer": answers, "votes": told[2], "votes_shifted": told[4]}
        sure = {name: np.zeros(len(answers), dtype=np.bool_) for name in values}
    elif design.helping != "none":
        values = {name: told[2 + 2 * at] for at, name in enumerate(_SOLVED)}
        gaps = np.where(np.isfinite(told[3::2]), told[3::2], 1.0)
        sure = {name: (gaps[at] < _KNOWN_GAP) & is_rating(values[name], scale) for at, name in enumerate(_SOLVED)}
    else:
        values = {
            "answer": answers,
            "mode": most_frequent,
            "rescaled": _rescaled(np.where(moved, told, np.nan), design, targets, guesses, scale),
        }
        sure = {name: moved & is_rating(one, scale) for name, one in values.items()}
    grid = off_grid(answers, scale)
    features = np.column_stack([answers, base, answers - base, grid, told[2:].T, np.isfinite(answers)])
    return Evidence(values, features, sure)


def _rescaled(told: Floats, design: Design, targets: Targets, guesses: Floats, scale: Scale) -> Floats:
    """Return what `rescaled` concludes: whole steps by known ratings asked about, the mean of all, or the guesses."""
    n, step, owners = len(targets), scale.step or 1.0, targets.owners
    known = [targets.known_of(at)[1] for at in range(n)]
    back = np.array([held_back(design, len(one)) for one in known])
    counts = np.array([len(one) for one in known]) - back
    sums = np.array([one[:m].sum() for one, m in zip(known, counts, strict=True)])
    n_low, n_high = design.padding + (design.distinct == "low"), int(design.distinct == "high")
    own = (sums + n_low * (scale.lowest or step) + n_high * scale.highest) / (counts + n_low + n_high)
    # What is told of the known ratings that are left out stands behind the rest.
    first, some = told[:, targets.starts[:-1][back > 0]], np.flatnonzero(back)
    answers, base = (np.concatenate([told[at], *first[3 + 2 * at : 5 + 2 * at]]) for at in (0, 1))
    truth = np.array([known[at][-2:] for at in some]).reshape(-1, 2).T.ravel()
    every = np.concatenate([owners, some, some])
    found, means = rescaled(answers, base, every, own, scale)
    values, less = found[: len(owners)], truth - found[len(owners) :]
    told_steps = np.array([agreed_on(np.round(less[every[len(owners) :] == at] / step)) for at in range(n)])
    made = np.isfinite(values)
    totals, n_made = np.bincount(owners, np.where(made, values, 0.0), n), np.bincount(owners, made, n)
    apart = np.bincount(owners, np.where(made, guesses - values, 0.0), n) / np.maximum(n_made, 1) / step
    whole = (sums + totals - (counts + n_made) * means) / counts / step
    whole = np.where(np.abs(whole - np.round(whole)) < _WHOLE, whole, apart)
    return np.asarray(values + step * np.round(np.where(np.isfinite(told_steps), told_steps, whole))[owners])


def believed(seen: Sequence[Evidence], targets: Targets, ratings: Ratings, streams: Streams) -> Floats:
    """Return what a model trained on the other targets holds for most probably right, for each hidden rating."""
    scale, guesses = ratings.scale, all_guesses(targets, ratings)
    groups = folds_of(len(targets), streams)[targets.owners]
    counts = np.log1p(Catalogue(ratings).counts[targets.columns])
    # Means of others to the last digit would give every rating away that is part of a mean: that is other knowledge.
    coarse = np.round(guesses / tolerance(scale)) * tolerance(scale)
    concluded = np.stack([value for one in seen for value in one.values.values()])
    informative = np.column_stack([*(one.features for one in seen), coarse.T, np.round(counts)])
    filled = np.where(np.isnan(concluded), coarse[0], concluded)
    linear = ridge_predictions(np.column_stack([filled.T, informative]), targets.ratings, groups)
    candidates = np.vstack([concluded, guesses, linear])
    rounded = _graded(candidates, scale)
    right = np.stack([is_recovered(one, targets, ratings) for one in candidates])
    beside = np.column_stack([informative, np.abs(candidates - coarse[0]).T, off_grid(candidates, scale).T])
    best = most_credible(rounded, right, beside, groups)
    chosen: Floats = np.take_along_axis(candidates, best[np.newaxis], axis=0)[0]
    return chosen


def _graded(values: Floats, scale: Scale) -> Floats:
    """Return values rounded to the scale, or to what counts as the same on a scale without steps."""
    if scale.step is not None:
        return np.asarray(scale.round(values))
    width = 2 * tolerance(scale)
    return np.asarray(np.round(values / width) * width)
