"""Attackers who learn from other people: which of several conclusions to believe, and what an item's rank says.

Each target is judged by what was learnt from the other targets (cross-fitting), in each world by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from goodfence.arrays import Flags, Floats, Integers
from goodfence.attack.scoring import Estimate
from goodfence.rng import Streams

FOLDS = 5
_FOLD_STREAM = 91
_STEPS, _HALVED, _RIDGE, _CLOSE = 25, 12, 1.0, 1e-9
_MOST_ROWS, _FEWEST = 40_000, 30


def folds_of(n_targets: int, streams: Streams) -> Integers:
    """Return the fold of each target, by the seed."""
    order = streams.order(n_targets, _FOLD_STREAM)
    folds = np.empty(n_targets, dtype=np.int64)
    folds[order] = np.arange(n_targets) % min(FOLDS, max(n_targets, 1))
    return folds


def wider(one: Estimate, lowest: float) -> Estimate:
    """Return an interval for folds that share training data, by Nadeau and Bengio's factor, the root of 1 + K/(K-1)."""
    by = float(np.sqrt(1 + FOLDS / (FOLDS - 1)))
    low, high = one.value - by * (one.value - one.low), one.value + by * (one.high - one.value)
    return Estimate(one.value, max(low, lowest), min(high, 1.0))


def logistic(features: Floats, happened: Flags) -> Floats:
    """Return the weights of a logistic regression with a ridge, the intercept first, by Newton's method."""
    design, target = _with_intercept(features), happened.astype(np.float64)
    share = np.clip(target.mean(), 1e-4, 1 - 1e-4) if len(target) else 0.5
    start = np.zeros(design.shape[1])
    start[0] = np.log(share / (1 - share))
    return _minimum(design, target, start)


def without_each(features: Floats, happened: Flags, groups: Integers) -> dict[int, Floats]:
    """Return for each group the weights of `logistic` on the rows of the others.

    Each search begins where that on all rows ends, and keeps the curvature there less what the group gave.
    """
    design, target = _with_intercept(features), happened.astype(np.float64)
    every = logistic(features, happened)
    own = {group: groups == group for group in np.unique(groups).tolist()}
    parts = {group: _curvature(design[inside], every) for group, inside in own.items()}
    total = np.sum(list(parts.values()), axis=0)
    return {
        group: _minimum(design[~inside], target[~inside], every, total - parts[group]) for group, inside in own.items()
    }


def _with_intercept(features: Floats) -> Floats:
    return np.column_stack([np.ones(len(features)), features])


def _chances(design: Floats, weights: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(design @ weights, -30, 30))))


def _curvature(design: Floats, weights: Floats) -> Floats:
    chance = _chances(design, weights)
    spread = np.sqrt(np.maximum(chance * (1 - chance), 1e-6))
    scaled = design * spread[:, np.newaxis]
    return np.asarray(scaled.T @ scaled)  # of a matrix and itself: half the work


def _minimum(design: Floats, target: Floats, weights: Floats, curvature: Floats | None = None) -> Floats:
    """Return the weights of least loss, from these on; with a `curvature` that stays, or anew at each step."""
    penalty = np.full(design.shape[1], _RIDGE)
    penalty[0] = 1e-6
    loss = _loss(design, target, weights, penalty)
    for _ in range(_STEPS):
        slope = design.T @ (target - _chances(design, weights)) - penalty * weights
        bent = _curvature(design, weights) if curvature is None else curvature
        move = np.linalg.solve(bent + np.diag(penalty), slope)
        for halved in 0.5 ** np.arange(_HALVED):
            tried = _loss(design, target, weights + halved * move, penalty)
            if tried < loss:
                break
        else:
            break
        weights, done, loss = weights + halved * move, loss - tried < _CLOSE * loss, tried
        if done:
            break
    return weights


def _loss(design: Floats, target: Floats, weights: Floats, penalty: Floats) -> float:
    odds = design @ weights
    return float((np.logaddexp(0.0, odds) - target * odds).sum() + (penalty * weights**2).sum() / 2)


def standardised(features: Floats) -> Floats:
    """Return features with mean 0 and spread 1; one that never varies is 0, and what is missing is the mean."""
    made = np.isfinite(features)
    counts = np.maximum(made.sum(axis=0), 1)
    filled = np.where(made, features, 0.0)
    means = filled.sum(axis=0) / counts
    centred = np.where(made, features - means, 0.0)
    spread = np.sqrt((centred**2).sum(axis=0) / counts)
    return np.asarray(centred / np.where(spread > 1e-12, spread, np.inf))


def ridge_predictions(features: Floats, ratings: Floats, groups: Integers) -> Floats:
    """Return for each row what a linear regression on the other groups predicts."""
    scaled, found = standardised(features), np.full(len(ratings), np.nan)
    design = _with_intercept(scaled)
    penalty = 1e-3 * np.eye(design.shape[1])
    for group in np.unique(groups):
        inside = groups == group
        train = design[~inside]
        if len(train) > design.shape[1]:
            weights = np.linalg.solve(train.T @ train + penalty, train.T @ ratings[~inside])
            found[inside] = design[inside] @ weights
    return found


def most_credible(candidates: Floats, right: Flags, features: Floats, groups: Integers) -> Integers:
    """Return for each row the candidate that is most probably right, as learnt from the other groups.

    Parameters
    ----------
    candidates : array of shape (candidates, rows)
        What each rule concludes, rounded; NaN where it concludes nothing.
    right : array of shape (candidates, rows)
        Which of it is right.
    features : array of shape (rows, features)
        What the attacker sees beside it.
    """
    agree = np.stack([(candidates == one).astype(np.float64) for one in candidates])  # (candidates, candidates, rows)
    odds = np.full(candidates.shape, -np.inf)
    base = standardised(features)
    for place, one in enumerate(candidates):
        made = np.isfinite(one)
        inputs = np.column_stack([base, agree[place].T])
        learnt = without_each(inputs[made], right[place, made], groups[made])
        for group, weights in learnt.items():
            train, apply = made & (groups != group), made & (groups == group)
            enough = train.sum() >= _FEWEST
            odds[place, apply] = _with_intercept(inputs[apply]) @ weights if enough else -20.0 - place
    return np.asarray(odds.argmax(axis=0))


def ranked_by_others(features: Sequence[Floats], own: Sequence[Flags], folds: Integers) -> list[Floats]:
    """Return for each target the log-odds that each item is its own, learnt from the targets of other folds.

    Parameters
    ----------
    features : for each target an array of shape (items, features)
    own : for each target, which items are its own
    """
    scaled = standardised(np.concatenate(features))
    parts = np.split(scaled, np.cumsum([len(one) for one in features])[:-1])
    found: list[Floats] = [np.zeros(len(one)) for one in own]
    for fold in np.unique(folds):
        train = np.flatnonzero(folds != fold).tolist()
        if len(train) == 0:
            continue
        inputs, labels = np.concatenate([parts[at] for at in train]), np.concatenate([own[at] for at in train])
        if len(labels) > _MOST_ROWS:  # all that is one's own, and every n-th of the rest
            rest = np.flatnonzero(~labels)
            every = rest[:: max(1, len(rest) // _MOST_ROWS)]
            kept = np.sort(np.concatenate([np.flatnonzero(labels), every]))
            inputs, labels = inputs[kept], labels[kept]
        weights = logistic(inputs, labels)
        for at in np.flatnonzero(folds == fold).tolist():
            found[at] = _with_intercept(parts[at]) @ weights
    return found
