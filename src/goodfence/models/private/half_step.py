"""Released quantity: one half step of alternating least squares, for the unit user.

Everybody scores herself on the item features known so far, and hands in her residuals times her score. The proof of
the sensitivity is in `docs/mechanisms/private-cf.md`; it is tested in integers, person by person.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from threading import Lock

import numpy as np

from goodfence.engines.local.threads import ranges, run
from goodfence.errors import require
from goodfence.kernels.half_step import add_half_steps
from goodfence.models.private.local_ridge import ItemModel
from goodfence.models.private.people import People
from goodfence.privacy.fixed_point import Floats, Publisher, whole_sensitivity
from goodfence.privacy.noise import SIGMA, Integers

ITEMS_NAME = "half step, items"
SCORES_NAME = "half step, scores"
WIDE = 1.5
"""Where residuals are cut."""
_PEOPLE = 2048
SCORES_SHARE = 0.03
"""The part of this stage's budget that the scores' moments take."""


@dataclass(frozen=True, slots=True)
class HalfStep:
    """For every item its noisy sum of residuals times (1, score), and the noisy moments of (1, score)."""

    items: Floats
    items_noise: float
    scores: Floats


def release_half_step(
    people: People, model: ItemModel, longest: float, mu: float, publisher: Publisher
) -> HalfStep:
    """Release the half step at the price mu; scores longer than `longest` are shortened to it."""
    item_limit = whole_sensitivity(mu * math.sqrt(1 - SCORES_SHARE))
    score_limit = whole_sensitivity(mu * math.sqrt(SCORES_SHARE))
    for limit in (item_limit, score_limit):
        require(1 <= limit < 1 << 30, "epsilon", "smaller, or larger, for integers of 64 bits", mu)
    items, scores = half_step_totals(people, model, longest, item_limit, score_limit)
    whole = 1 + longest**2
    noisy_items = publisher.publish(ITEMS_NAME, items, item_limit)
    noisy_scores = publisher.publish(SCORES_NAME, scores, score_limit)
    grid = item_limit / math.sqrt(whole)
    symmetric = (noisy_scores + noisy_scores.T) / 2
    return HalfStep(noisy_items / grid, SIGMA / grid, symmetric / (score_limit / whole))


def half_step_totals(
    people: People, model: ItemModel, longest: float, item_limit: int, score_limit: int
) -> tuple[Integers, Integers]:
    """Return both sums over people as integers; they are exact, so the order of the pieces does not matter."""
    n_features = model.features.shape[1]
    items = np.zeros((people.n_items, n_features), dtype=np.int64)
    scores = np.zeros((n_features, n_features), dtype=np.int64)
    n_people, adding = len(people.indptr) - 1, Lock()

    def work(piece: tuple[int, int]) -> None:
        first, last = piece
        own_items, own_scores = np.zeros_like(items), np.zeros_like(scores)
        add_half_steps(
            people.indptr[first : last + 1],
            people.indices,
            people.values,
            model.effects,
            model.features,
            model.weights,
            model.penalties,
            WIDE,
            longest,
            item_limit,
            score_limit,
            own_items,
            own_scores,
        )
        with adding:
            np.add(items, own_items, out=items)
            np.add(scores, own_scores, out=scores)

    run(work, ranges(n_people, _PEOPLE))
    return items, scores
