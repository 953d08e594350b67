"""Neighbouring data sets on which a guarantee is hardest to keep, and what repeated runs on them prove.

Differential privacy is about every pair of neighbouring data sets, so the auditor may make them up. They are small,
because what others rated moves both sums alike and hides nothing: extremes first, then climbing from the worst. Where
all that is known of a recommender is what comes out, plain data sets do.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from goodfence.arrays import Floats
from goodfence.auditing.dp_audit import Transcripts
from goodfence.auditing.lower_bound import CONFIDENCE, LowerBound, lower_bound
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale
from goodfence.errors import require
from goodfence.models.private.base import FROM_RATINGS, PrivateRecommender
from goodfence.models.private.cf import PrivateCF
from goodfence.models.recommender import guarantee_of, unfitted_copy
from goodfence.privacy.guarantee import Unit
from goodfence.rng import RNG, Streams

N_ITEMS, N_OTHERS = 60, 20
_COUNTS = (0, 1, 3, 8, 15, 21, 30, 45, N_ITEMS)
_CLIMBS = 40
_SIZES = (20, 60, 200, 600)  # users in the plain data sets: the next number where one is too few
_TINY = 1e-12
_ALIKE = (5.0, 4.0, 0.0, 0.0)
_OTHERS = np.array([[4.0, 5.0, 0.0, 2.0], [0.0, 3.0, 0.0, 5.0], [3.0, 0.0, 0.0, 4.0]])

AskedAnswers: TypeAlias = Callable[[int], Floats]
"""One run on data set 0 or 1: what the asker is told, NaN where nothing."""


class Trials(NamedTuple):
    """How often a recommender is fitted on each data set, and how sure the bound is."""

    n: int
    confidence: float = CONFIDENCE


class Runs(NamedTuple):
    """What repeated runs on two neighbouring data sets gave."""

    pair: str  # the two data sets, in words
    bound: LowerBound | None = None
    claimed_mu: float | None = None
    moved: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Pair:
    """Two data sets: with one rating, or one user, and without."""

    without: Ratings
    with_it: Ratings
    values: Floats
    """The ratings of the user in whom they differ, at the first items; the last is the rating in question."""


def made_pair(values: Floats, unit: Unit, scale: Scale | None, n_items: int = N_ITEMS) -> Pair:
    """Return others and one user with these ratings, and the same without their last rating or without the user.

    Without a scale they are events, and the values are ones.
    """
    kept = None if unit == "user" else len(values) - 1
    without = _ratings(values, kept, scale, n_items)
    return Pair(without, _ratings(values, len(values), scale, n_items), values)


def for_made_up_items(model: PrivateRecommender) -> PrivateRecommender:
    """Return a copy of the model for at most `N_ITEMS` made-up items, with the first rows of its features.

    A guarantee holds for every catalogue, so the auditor may make that up too.
    """
    small = copy.copy(model)
    features = model.features if isinstance(model, PrivateCF) else None
    given = [public for public in (model.catalogue, features) if public is not None]
    n_items = min([N_ITEMS, *(len(public) for public in given)])
    if model.catalogue is not None or n_items < N_ITEMS:
        small.catalogue = range(n_items)
    else:
        small.items = FROM_RATINGS
    if isinstance(small, PrivateCF) and features is not None:
        small.features = features[:n_items]
    return small


def worst_pair(model: PrivateRecommender, scale: Scale, rng: RNG = None) -> tuple[Pair, float]:
    """Return the pair that moves most of what the model releases, and how far: the shift mu of one fit.

    The model is as `for_made_up_items` returns it. `rng` is for the search; noise comes from the operating system.
    """
    events = model.learns_from == "implicit"
    declared = None if events else Scale(scale.lowest, scale.highest, scale.step)
    n_items = N_ITEMS if model.catalogue is None else len(model.catalogue)
    chance = Streams(rng).at(0)

    def moved(pair: Pair) -> float:
        fits = Transcripts(model, pair.without, pair.with_it)
        return (fits.moved(0) + fits.moved(1)) / 2

    tried = extreme_pairs(model.unit, declared, n_items)
    distances = [moved(pair) for pair in tried]
    pair, distance = tried[int(np.argmax(distances))], max(distances)
    for _ in range(_CLIMBS):  # change one rating, or the number of events, and keep what moves more
        values = pair.values.copy()
        if declared is None:
            values = np.ones(int(np.clip(len(values) + chance.integers(-5, 6), 1, n_items)))
        else:
            values[chance.integers(len(values))] = chance.choice([scale.lowest, scale.highest])
        candidate = made_pair(values, model.unit, declared, n_items)
        found = moved(candidate)
        if found > distance:
            pair, distance = candidate, found
    return pair, distance


def extreme_pairs(unit: Unit, scale: Scale | None, n_items: int = N_ITEMS) -> list[Pair]:
    """Return pairs in which one user has few or many ratings at the ends of the scale; without a scale, events."""
    counts = sorted({min(count, n_items - 1) for count in _COUNTS})
    if scale is None:
        return [made_pair(np.ones(count + 1), unit, None, n_items) for count in counts]
    # As whole numbers: half a star may take their place.
    ends = (float(scale.lowest), float(scale.highest))
    profiles = []
    for count in counts:
        profiles += [np.append(np.full(count, old), new) for old in ends for new in ends]
        profiles.append(np.append(np.resize(ends, count), scale.highest))
    return [made_pair(values, unit, scale, n_items) for values in profiles]


def _ratings(values: Floats, kept: int | None, scale: Scale | None, n_items: int) -> Ratings:
    """Return the others' ratings and the first `kept` of the user; None leaves the user out altogether."""
    levels = np.ones(5)
    if scale is not None:
        levels = scale.round(np.linspace(scale.lowest, scale.highest, 5))
    rated = [np.arange(row, n_items, 3) for row in range(N_OTHERS)]
    others = [(items, levels[(items + row) % 5]) for row, items in enumerate(rated)]
    rows = others if kept is None else [*others, (np.arange(kept), values[:kept])]
    ends = np.cumsum([0, *(len(items) for items, _ in rows)])
    cells, data = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    csr = sparse.csr_array((data, cells, ends), shape=(len(rows), n_items))
    ids = range(len(rows)), range(n_items)
    return Ratings(csr, *ids, scale, feedback="implicit" if scale is None else "explicit")


def bound_of_answers(
    answers: AskedAnswers, trials: int, *, delta: float = 0.0, confidence: float = CONFIDENCE
) -> LowerBound:
    """Return what runs on two data sets prove if only the answers are known.

    A third of the runs shows which answers differ: the difference of their means over the variance, and whether there
    is an answer at all. The other runs are scored by that.
    """
    require(trials >= 30, "trials", "at least 30", trials)
    n_learning = trials // 3
    told = [np.array([answers(which) for _ in range(trials)]) for which in (0, 1)]
    runs = [np.hstack([np.where(np.isnan(each), 0.0, each), np.isnan(each)]) for each in told]
    first, second = (each[:n_learning] for each in runs)
    spread = first.var(axis=0) + second.var(axis=0)
    apart = second.mean(axis=0) - first.mean(axis=0)
    direction = apart / (spread + _TINY)
    # What is told for certain must not drown in its own weight: the scores only need an order.
    direction /= max(float(np.abs(direction).max()), _TINY)
    scores = [each[n_learning:] @ direction for each in runs]
    return lower_bound(*scores, delta=delta, confidence=confidence)


def asked_as(recommender: Any, pair: tuple[Ratings, Ratings], asker: int) -> AskedAnswers:
    """Return runs in which a copy is fitted, without a seed, and the user in row `asker` asks for every item."""
    items = pair[0].items

    def answers(which: int) -> Floats:
        ratings = pair[which]
        fitted = unfitted_copy(recommender, None).fit(ratings)
        whom: Any = np.repeat(ratings.users[[asker]], len(items))
        if getattr(recommender, "profiles_only", False):
            row = ratings.csr[[asker]].tocoo()
            whom = dict(zip(items[row.coords[1]].tolist(), row.data.tolist(), strict=True))
        return np.asarray(fitted.predict(whom, items), dtype=np.float64)

    return answers


def dense_pair(with_it: Floats, without: Floats) -> tuple[Ratings, Ratings]:
    """Return two data sets given as matrices in which 0 is no rating: without, with."""
    users, items = range(len(with_it)), range(with_it.shape[1])
    first, second = (
        Ratings(sparse.csr_array(each), users=users, items=items, scale=(1, 5)) for each in (without, with_it)
    )
    return first, second


def plain_pair(n_users: int) -> tuple[Ratings, Ratings]:
    """Return two data sets of n users: without, with. The only user like the asker rated the third item, or not."""
    others = np.resize(_OTHERS, (max(n_users - 2, 0), len(_ALIKE)))
    with_it = np.concatenate([[_ALIKE, _ALIKE], others])
    with_it[1, 2] = 5
    without = with_it.copy()
    without[1, 2] = 0
    return dense_pair(with_it, without)


def private_runs(model: PrivateRecommender, scale: Scale, trials: Trials, rng: RNG, progress: bool | None) -> Runs:
    """Fit on the worst pair that was found, and score what was released by its exact likelihood ratio."""
    small = for_made_up_items(model)
    pair, shift = worst_pair(small, scale, rng)
    fits = Transcripts(small, pair.without, pair.with_it)
    bound = None
    if trials.n:
        scores = [fits.scores(which, trials.n, progress) for which in (0, 1)]
        bound = lower_bound(*scores, delta=model.delta, confidence=trials.confidence)
    # `fits.mu` is what the guarantee allows, whatever the model charges itself.
    moved = max(shift / fits.mu, fits.largest_ratio if fits.largest_ratio > 1 else 0.0)
    return Runs(_described(pair.with_it), bound, fits.mu, moved)


def plain_runs(model: Any, n_users: int, trials: Trials) -> Runs:
    """Run on plain data sets that grow until the model can be fitted, at most to the size of the given ratings.

    An unknown recommender may need more neighbours than a few users have. If it fails on all, the result says so.
    """
    if not trials.n:
        return Runs("none: no trials were asked for")
    failed = ""
    for size in [*(size for size in _SIZES if size < n_users), max(n_users, _SIZES[0])]:
        pair = plain_pair(size)
        try:
            asked_as(model, pair, asker=0)(0)
        except Exception as error:  # a stranger's own error, of any kind
            failed = f"failed with its own {type(error).__name__}"
            continue
        return runs_on(model, pair, trials)
    return Runs(f"none: on made-up data the recommender {failed}")


def runs_on(model: Any, pair: tuple[Ratings, Ratings], trials: Trials) -> Runs:
    """Fit on both data sets, and let the first user ask."""
    answers, delta = asked_as(model, pair, asker=0), guarantee_of(model).delta or 0.0
    bound = bound_of_answers(answers, trials.n, delta=delta, confidence=trials.confidence)
    return Runs(_described(pair[0]), bound)


def _described(ratings: Ratings) -> str:
    return "{} made-up users, {} items".format(*ratings.shape)
