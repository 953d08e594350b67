"""The questions of the membership attack: known ratings or items, left out one at a time, and whether they come back.

Asked in a fit each, or all about one target in one fit; of predicted ratings, or of lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from goodfence.arrays import Floats, Integers, Rows
from goodfence.attack.attack import Subject, Worlds, seeds
from goodfence.attack.list_worlds import Accounts, ListWorlds, listed_columns
from goodfence.attack.targets import Asked, Targets, world_seed
from goodfence.attack.targets import attacked as with_fakes
from goodfence.data.scale import Scale
from goodfence.models.recommender import unfitted_copy
from goodfence.parallel import bar, ranges
from goodfence.rng import Streams

LEFT_OUT = 16
"""A stream below the seed of an attack, beside those of `targets`."""


def left_out_questions(targets: Targets, n: int, streams: Streams) -> Targets:
    """Return `n` questions for each target: one known rating is hidden, the other m - 1 are known."""
    m = targets.known_columns.shape[1]
    places = [np.sort(streams.order(m, LEFT_OUT, row)[:n]) for row in targets.rows.tolist()]
    kept = np.arange(m) != np.concatenate(places)[:, np.newaxis]
    owners = np.repeat(np.arange(len(targets)), n)
    columns, values = targets.known_columns[owners], targets.known_ratings[owners]
    return Targets(
        targets.rows[owners],
        columns[kept].reshape(-1, m - 1),
        values[kept].reshape(-1, m - 1),
        np.arange(len(owners) + 1),
        columns[~kept],
        values[~kept],
    )


def in_a_fit_each(
    worlds: Worlds, questions: Targets, *, n: int, streams: Streams, progress: bool | None
) -> tuple[Floats, Floats]:
    """Return the scores with and without the target, (questions,) each; every question has its own worlds."""
    # Round 0 is that of the hidden ratings.
    each = seeds(questions, streams, 1 + np.arange(len(questions)) % n)
    parts = []
    blocks = ranges(len(questions), worlds.at_once(1))
    with bar("membership", len(blocks), show=progress) as advance:
        for first, last in blocks:
            parts.append(worlds.ask(questions.part(first, last), each[first:last], 1))
            advance(1)
    told, scale = Asked.joined(parts), worlds.ratings.scale
    return (
        scores_of(told.with_target[0], questions, scale),
        scores_of(told.without_target[0], questions, scale),
    )


def lists_in_a_fit_each(
    worlds: ListWorlds,
    questions: Targets,
    n_listed: int,
    *,
    n: int,
    streams: Streams,
    progress: bool | None,
) -> tuple[Floats, Floats]:
    """Return the same of lists of `n_listed` items."""
    turns = 1 + np.arange(len(questions)) % n
    found = np.empty((2, len(questions)))
    blocks = ranges(len(questions), worlds.at_once(1))
    with bar("membership", len(blocks), show=progress) as advance:
        for first, last in blocks:
            asked = questions.part(first, last)
            fresh = partial(seeds, asked, streams, turns[first:last])
            shown = worlds.shown(Accounts.knowing(asked, fresh), 1, n_listed, (True, False))
            for number, world in enumerate(shown):
                found[number, first:last] = list_scores(world.lists[:, 0], asked.columns)
            advance(1)
    return found[0], found[1]


def _fits_of(
    subject: Subject, questions: Targets, n: int, streams: Streams
) -> Iterator[tuple[int, slice, Targets, Any, Any]]:
    """Yield for each target and world: its number, which questions, these, the fitted model, and the fakes' ids.

    Fake j of a target knows all but rating j.
    """
    ratings, fresh = subject.ratings, subject.traits.fresh_noise
    for first, last in ranges(len(questions), n):
        asked = questions.part(first, last)
        row = int(asked.rows[0])
        for number, removed in enumerate((None, row)):
            world, ids = with_fakes(
                ratings, removed, list(asked.known_columns), list(asked.known_ratings)
            )
            seed = None if fresh else world_seed(streams, row, 1)
            fitted = unfitted_copy(subject.recommender, seed).fit(world)
            yield number, slice(first, last), asked, fitted, ids


def in_one_fit(
    subject: Subject, questions: Targets, *, n: int, streams: Streams
) -> tuple[Floats, Floats]:
    """Return the scores where all questions about a target are asked in one fit."""
    ratings, found = subject.ratings, np.empty((2, len(questions)))
    for number, part, asked, fitted, ids in _fits_of(subject, questions, n, streams):
        told = fitted.predict(ids, ratings.items[asked.columns])
        found[number, part] = scores_of(np.asarray(told), asked, ratings.scale)
    return found[0], found[1]


def lists_in_one_fit(
    subject: Subject, questions: Targets, n_listed: int, *, n: int, streams: Streams
) -> tuple[Floats, Floats]:
    """Return the same of lists."""
    ratings, found = subject.ratings, np.empty((2, len(questions)))
    for number, part, asked, fitted, ids in _fits_of(subject, questions, n, streams):
        lists = [
            listed_columns(fitted.recommend(one, n_listed), ratings, held, n_listed)
            for one, held in zip(ids, asked.known_columns, strict=True)
        ]
        found[number, part] = list_scores(np.stack(lists), asked.columns)
    return found[0], found[1]


def list_scores(lists: Rows, left_out: Integers) -> Floats:
    """Return the part of each question in the score: how high the left-out item is on its list, 1 at the top.

    Examples
    --------
    >>> list_scores(np.array([[7, 3], [7, 3], [7, -1]]), np.array([7, 3, 3]))
    array([1. , 0.5, 0. ])
    """
    there = lists == left_out[:, np.newaxis]
    places = np.where(there.any(axis=1), there.argmax(axis=1), lists.shape[1])
    scores: Floats = 1.0 - places / lists.shape[1]
    return scores


def scores_of(answers: Floats, questions: Targets, scale: Scale) -> Floats:
    """Return the part of each question in the score: minus its error in steps, at most one; no answer is one wrong.

    Examples
    --------
    >>> asked = Targets(np.zeros(3), np.empty((3, 0)), np.empty((3, 0)), np.arange(4), np.arange(3), np.full(3, 4.0))
    >>> scores_of(np.array([4.25, 1.0, np.nan]), asked, Scale(1, 5))
    array([-0.25, -1.  , -1.  ])
    """
    step = (scale.highest - scale.lowest) / 4 if scale.step is None else scale.step
    errors = np.abs(answers - questions.ratings) / (step or 1.0)
    return -np.where(np.isnan(errors), 1.0, np.minimum(errors, 1.0))
