"""Post-processing: item effects and factors from the noisy half step, shrunk as the noise deserves."""

from __future__ import annotations

import numpy as np

from goodfence.models.private.empirical_bayes import ItemEffects
from goodfence.models.private.half_step import HalfStep
from goodfence.models.private.local_ridge import bounded
from goodfence.privacy.fixed_point import Floats

RATIO = 1.9
"""A rating's weight in the half step over its weight in the item sums, for residuals of ordinary size."""
_SPREAD = 0.7
_WEIGHT = 0.11
_STEPS = 15
_FIRST_VARIANCE = 0.15**2


def refine(step: HalfStep, items: ItemEffects, directions: Floats) -> tuple[ItemEffects, Floats]:
    """Return effects and directions after the half step.

    Item i's row is taken as W_i P theta_i plus noise, where W_i is its count, P the mean moment of (1, score) and
    theta_i = (change of effect, change of directions), about 0. How far directions change is estimated over all
    items.
    """
    moment = _moment(step.scores)
    counts = RATIO * items.counts
    n_factors = directions.shape[1]
    data = counts[:, None, None] * moment
    eye = np.eye(n_factors + 1)
    noise = step.items_noise**2 * eye + (_SPREAD * _WEIGHT) * data
    solved = np.linalg.solve(noise, data)  # noise^-1 W P; both are symmetric
    precision = data @ solved
    pull = np.einsum("ijk,ij->ik", solved, step.items)
    variance = np.full((n_factors, n_factors), 0.0)
    variance[np.arange(n_factors), np.arange(n_factors)] = _FIRST_VARIANCE
    share = items.counts / max(float(items.counts.sum()), 1e-12)
    for _ in range(_STEPS):
        spread = np.linalg.inv(precision + _prior_precision(items.variances, variance))
        change = np.einsum("ijk,ik->ij", spread, pull)
        factors, around = change[:, 1:], spread[:, 1:, 1:]
        variance = np.einsum("i,ij,ik->jk", share, factors, factors)
        variance += np.einsum("i,ijk->jk", share, around) + 1e-6 * np.eye(n_factors)
    moved = np.clip(items.effects + change[:, 0], -2.5, 2.5)
    sure = np.ascontiguousarray(spread[:, 0, 0], dtype=np.float64)
    return ItemEffects(moved, sure, items.counts), bounded(directions + change[:, 1:])


def _moment(scores: Floats) -> Floats:
    """Return the mean moment of (1, score): the noisy sum over the noisy number, made positive."""
    values, vectors = np.linalg.eigh(scores / max(float(scores[0, 0]), 1.0))
    return np.asarray((vectors * np.clip(values, 1e-3, None)) @ vectors.T)


def _prior_precision(variances: Floats, factors: Floats) -> Floats:
    n_factors = len(factors)
    out = np.zeros((len(variances), n_factors + 1, n_factors + 1))
    out[:, 0, 0] = 1 / variances
    out[:, 1:, 1:] = np.linalg.inv(factors)
    return out
