"""Neighbouring data sets on which a promise is hardest to keep: extremes first, then climbing from the worst.

A promise of differential privacy is about every pair of neighbouring data sets, so the auditor may make them up. They
are small, because what others rated moves both sums alike and hides nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import sparse

from goodfence.auditing.bounds import Floats
from goodfence.auditing.transcripts import Transcripts
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale
from goodfence.models.private.base import PrivateRecommender
from goodfence.models.private.people import Unit
from goodfence.models.private_cf import PrivateCF
from goodfence.rng import RNG, Streams

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
    """Return some others and one person with these ratings, and the same without her last rating, or without her."""
    kept = len(values) - 1 if unit == "rating" else None
    without = _ratings(values, kept, scale, n_items)
    return Pair(without, _ratings(values, len(values), scale, n_items), values)


def for_made_up_items(model: PrivateRecommender) -> PrivateRecommender:
    """Return a copy of the model for made-up items: as many as it has a catalogue and features of, at most `N_ITEMS`.

    A promise holds whatever the catalogue, so the auditor may make that up too; of public features the first rows are
    taken. All other settings stay.

    Examples
    --------
    >>> from goodfence.models.private_means import PrivateMeans
    >>> for_made_up_items(PrivateMeans(epsilon=1.0, catalogue=["a", "b"])).catalogue
    range(0, 2)
    """
    small = copy.copy(model)
    features = model.features if isinstance(model, PrivateCF) else None
    given = [public for public in (model.catalogue, features) if public is not None]
    n_items = min([N_ITEMS, *(len(public) for public in given)])
    if model.catalogue is not None or n_items < N_ITEMS:
        small.catalogue = range(n_items)
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
    """Return the others' ratings and the first `kept` of hers; None leaves her out altogether."""
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
