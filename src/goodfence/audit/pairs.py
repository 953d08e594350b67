"""Neighbouring data sets on which a promise is hardest to keep: extremes first, then climbing from the worst.

A promise of differential privacy is about every pair of neighbouring data sets, so the auditor may make them up. They
are small, because what others rated moves both sums alike and hides nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from goodfence.arrays import Floats
from goodfence.audit.dp_audit import Transcripts
from goodfence.audit.lower_bound import CONFIDENCE, LowerBound, lower_bound
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale
from goodfence.errors import require
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.models.private.base import FROM_RATINGS, PrivateRecommender
from goodfence.models.private.cf import PrivateCF
from goodfence.models.recommender import unfitted_copy
from goodfence.privacy.guarantee import Unit
from goodfence.rng import RNG, Streams
from goodfence.selection.counterexample import Counterexample
from goodfence.selection.mechanism import Mechanism, shortest_list

N_ITEMS, N_OTHERS = 60, 20
_COUNTS = (0, 1, 3, 8, 15, 21, 30, 45, N_ITEMS)
_CLIMBS = 40

Moved: TypeAlias = Callable[["Pair"], float]


@dataclass(frozen=True, eq=False)
class Pair:
    """Two data sets: with one rating, or one user, and without."""

    without: Ratings
    with_it: Ratings
    values: Floats
    """The ratings of the person in whom they differ, at the first items; the last is the rating in question."""

    def __repr__(self) -> str:
        people, items = self.with_it.shape
        return f"Pair({people} people, {items} items)"


def made_pair(values: Floats, unit: Unit, scale: Scale, n_items: int = N_ITEMS) -> Pair:
    """Return others and one user with these ratings, and the same without their last rating or without the user."""
    kept = len(values) - 1 if unit == "rating" else None
    without = _ratings(values, kept, scale, n_items)
    return Pair(without, _ratings(values, len(values), scale, n_items), values)


def for_made_up_items(model: PrivateRecommender) -> PrivateRecommender:
    """Return a copy of the model for made-up items: as many as it has a catalogue and features of, at most `N_ITEMS`.

    A promise holds whatever the catalogue, so the auditor may make that up too; of public features the first rows are
    taken. All other settings stay.

    Examples
    --------
    >>> from goodfence.models.private.means import PrivateMeans
    >>> for_made_up_items(PrivateMeans(epsilon=1.0, catalogue=["a", "b"])).catalogue
    range(0, 2)
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

    Parameters
    ----------
    model
        As `for_made_up_items` returns it, where it has a catalogue or features.
    scale
        The scale of the made-up ratings, declared.
    rng
        For the search; the fits take noise from the operating system.
    """
    declared = Scale(scale.lowest, scale.highest, scale.step)
    chance = Streams(rng).at(0)

    def moved(pair: Pair) -> float:
        fits = Transcripts(model, pair.without, pair.with_it)
        return (fits.moved(0) + fits.moved(1)) / 2

    n_items = N_ITEMS if model.catalogue is None else len(model.catalogue)
    tried = extreme_pairs(model.unit, declared, n_items)
    distances = [moved(pair) for pair in tried]
    place = int(np.argmax(distances))

    def made(values: Floats) -> Pair:
        return made_pair(values, model.unit, declared, n_items)

    return _climb(tried[place], distances[place], moved, made, declared, chance)


def extreme_pairs(unit: Unit, scale: Scale, n_items: int = N_ITEMS) -> list[Pair]:
    """Return pairs in whom one person's ratings are at the ends of the scale, few or many of them."""
    return [made_pair(values, unit, scale, n_items) for values in _extremes(scale, n_items)]


def _climb(
    pair: Pair,
    distance: float,
    moved: Moved,
    made: Callable[[Floats], Pair],
    scale: Scale,
    chance: np.random.Generator,
) -> tuple[Pair, float]:
    """Change one rating at a time, and keep what moves more."""
    for _ in range(_CLIMBS):
        values = pair.values.copy()
        values[chance.integers(len(values))] = chance.choice([scale.lowest, scale.highest])
        candidate = made(values)
        found = moved(candidate)
        if found > distance:
            pair, distance = candidate, found
    return pair, distance


def _extremes(scale: Scale, n_items: int) -> Iterator[Floats]:
    """Yield persons whose other ratings are all alike, or half and half, and whose last is an extreme."""
    ends = (
        float(scale.lowest),
        float(scale.highest),
    )  # whole ones, too: half a star may take their place
    for count in sorted({min(count, n_items - 1) for count in _COUNTS}):
        for old in ends:
            for new in ends:
                yield np.append(np.full(count, old), new)
        yield np.append(np.resize(ends, count), scale.highest)


def _ratings(values: Floats, kept: int | None, scale: Scale, n_items: int) -> Ratings:
    """Return the others' ratings and the first `kept` of the user; None leaves the user out altogether."""
    levels = scale.round(np.linspace(scale.lowest, scale.highest, 5))
    others = [
        (np.arange(row, n_items, 3), levels[(np.arange(row, n_items, 3) + row) % 5])
        for row in range(N_OTHERS)
    ]
    rows = others if kept is None else [*others, (np.arange(kept), values[:kept])]
    ends = np.cumsum([0, *(len(items) for items, _ in rows)])
    cells = np.concatenate([items for items, _ in rows])
    data = np.concatenate([each for _, each in rows])
    csr = sparse.csr_array((data, cells, ends), shape=(len(rows), n_items))
    return Ratings(csr, users=range(len(rows)), items=range(n_items), scale=scale)


AskedAnswers: TypeAlias = Callable[[int], Floats]
"""One run on data set 0 or 1: what the asker is told, NaN where nothing."""

_TINY = 1e-12
_ALIKE = (5.0, 4.0, 0.0, 0.0)
_OTHERS = np.array([[4.0, 5.0, 0.0, 2.0], [0.0, 3.0, 0.0, 5.0], [3.0, 0.0, 0.0, 4.0]])


def bound_of_answers(
    answers: AskedAnswers, trials: int, *, delta: float = 0.0, confidence: float = CONFIDENCE
) -> LowerBound:
    """Return what runs on two data sets prove, when all that is known of the law is what comes out.

    A third of the runs teaches which answers differ (the means' difference over the variance, each answer by itself,
    and whether there is one at all), the rest are scored by that.

    Examples
    --------
    >>> told = lambda which: np.array([float(which), np.nan])
    >>> bound_of_answers(told, 300).epsilon > 3
    True
    """
    require(trials >= 30, "trials", "at least 30", trials)
    n_learning = trials // 3
    runs = [np.array([_seen(answers(which)) for _ in range(trials)]) for which in (0, 1)]
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
        if callable(getattr(fitted, "predict", None)):
            users = np.repeat(ratings.users[[asker]], len(items))
            return np.asarray(fitted.predict(users, items), dtype=np.float64)
        row = ratings.csr[[asker]].tocoo()
        profile = dict(zip(items[row.coords[1]].tolist(), row.data.tolist(), strict=True))
        return np.asarray(fitted.answer(profile, items), dtype=np.float64)

    return answers


def dense_pair(with_it: Floats, without: Floats) -> tuple[Ratings, Ratings]:
    """Return two data sets given as matrices in which 0 is no rating: without, with."""
    users, items = range(len(with_it)), range(with_it.shape[1])
    made = [
        Ratings(sparse.csr_array(each), users=users, items=items, scale=(1, 5))
        for each in (without, with_it)
    ]
    return made[0], made[1]


def plain_pair(n_people: int) -> tuple[Ratings, Ratings]:
    """Return two data sets of so many people: without, with.

    Somebody asks who is like one other, and that one alone rated the third item, or not.

    Examples
    --------
    >>> [each.n_ratings for each in plain_pair(20)]
    [46, 47]
    """
    others = np.resize(_OTHERS, (max(n_people - 2, 0), len(_ALIKE)))
    with_it = np.concatenate([[_ALIKE, _ALIKE], others])
    with_it[1, 2] = 5
    without = with_it.copy()
    without[1, 2] = 0
    return dense_pair(with_it, without)


def _seen(answers: Floats) -> Floats:
    missing = np.isnan(answers)
    return np.concatenate([np.where(missing, 0.0, answers), missing.astype(np.float64)])


_EVENT = "a prediction is made for an item that nobody but one candidate rated"
_ASKER = (5.0, 4.0, 0.0, 0.0, 0.0)
_TARGET = (5.0, 4.0, 5.0, 0.0, 0.0)  # their third rating is in one data set only
_NEARER = (5.0, 4.0, 0.0, 0.0, 0.0)
_FARTHER = (0.0, 1.0, 0.0, 5.0, 2.0)
_COLUMN = 2
_LONGEST = 1 << 14


def settings_witness(mechanism: Mechanism) -> Counterexample | None:
    """Return the likeliest witness against the mechanism, as it is set; None if none was found.

    One candidate alone rated an item. If they are chosen the asker gets an answer for it; without that rating there is
    never one. The candidate is tried as the nearest of all, and as the last that the mechanism looks at.

    Examples
    --------
    >>> from goodfence.selection.ppns import PPNS
    >>> with_it, without = settings_witness(PPNS(k=50, beta=7)).probabilities()
    >>> round(with_it, 2), without
    (0.98, 0.0)
    """
    shortest = shortest_list(mechanism, at_most=_LONGEST - 1)
    if shortest is None:
        return None
    needed = max(shortest, 2)
    found = [_witness(mechanism, n_nearer, needed) for n_nearer in (0, needed - 1)]
    best = max(found, key=lambda witness: witness.probabilities()[0])
    with_it, without = best.probabilities()
    return best if with_it > 0 and without == 0 else None


def witness_against(model: NeighbourCF) -> Counterexample | None:
    """Return the witness against a neighbourhood model, where its law is the one that witnesses are computed by."""
    plain = model.similarity.is_plain_cosine and not model.traits.needs_refits
    return settings_witness(model.mechanism) if plain else None


def _witness(mechanism: Mechanism, n_nearer: int, needed: int) -> Counterexample:
    """Return a witness in whose list the candidate stands after so many, and which is k longer than needed."""
    farther = [_FARTHER] * (needed + mechanism.k - n_nearer - 1)
    ratings: Floats = np.array([_ASKER, *[_NEARER] * n_nearer, _TARGET, *farther])
    rating = (n_nearer + 1, _COLUMN)
    return Counterexample(mechanism, ratings, rating=rating, event=_EVENT, chosen=None)
