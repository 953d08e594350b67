"""Audit of anything that can be fitted and asked: what comes out, run after run, on two neighbouring data sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from goodfence.auditing.bounds import CONFIDENCE, Floats, LowerBound, lower_bound
from goodfence.data.ratings import Ratings
from goodfence.errors import require

Answers: TypeAlias = Callable[[int], Floats]
"""One run on data set 0 or 1: what the asker is told, NaN where nothing."""

_TINY = 1e-12
_ALIKE = (5.0, 4.0, 0.0, 0.0)
_OTHERS = np.array([[4.0, 5.0, 0.0, 2.0], [0.0, 3.0, 0.0, 5.0], [3.0, 0.0, 0.0, 4.0]])


def bound_of_answers(
    answers: Answers, trials: int, *, delta: float = 0.0, confidence: float = CONFIDENCE
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


def asked_as(recipe: Any, pair: tuple[Ratings, Ratings], asker: int) -> Answers:
    """Return runs in which a copy of the recipe is fitted and the user in row `asker` asks for every item."""
    items = pair[0].items

    def answers(which: int) -> Floats:
        ratings = pair[which]
        fitted = recipe.fit(ratings)
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
