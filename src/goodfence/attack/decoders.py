"""What answers say of hidden ratings where the recommender does not show them as they are.

Ratings are on a grid, and that is what every decoder here rests on: an unknown factor, or an unknown mean, that a whole
profile shares is found because only the right one puts all of the profile on the grid.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from goodfence.arrays import Floats, Integers
from goodfence.data.scale import Scale

SAME = 1e-6
"""Answers this near to each other are the same."""
_VOTES, _MOST_VALUES = 0.01, 101
_SLOPES, _ANCHORS, _NEAR, _NEARER, _MOST_ON = np.geomspace(0.02, 2.5, 2400)[:, np.newaxis], 8, 0.05, 0.01, 0.7
_COARSER, _FEWEST, _MOST_SEARCHED = 0.02, 6, 40
_CONCENTRATED, _ALONE = 0.9, 0.05


def off_grid(values: Floats, scale: Scale) -> Floats:
    """Return how far values are from the grid of the scale, in steps; 1 for what is outside the scale."""
    step = scale.step or 1.0
    places = (values - scale.lowest) / step
    outside = (values < scale.lowest - step / 2) | (values > scale.highest + step / 2)
    return np.where(outside, 1.0, np.abs(places - np.round(places)))


def rescaled(answers: Floats, controls: Floats, owners: Integers, own: Floats, scale: Scale) -> tuple[Floats, Floats]:
    """Return ratings from `answer = factor * rating + offset + part * control`, with factor and offset of each target.

    The part is 0, 1 or 1 - factor, whichever puts more ratings on the grid: standard scores, other scales, mixtures.
    Ratings are right up to whole steps for each target; also told is to which rating an answer of `own`, (targets,),
    belongs: the mean rating of who asks.
    """
    found, most = (np.full(len(answers), np.nan), np.full(len(own), np.nan)), 0
    for part, less in ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0)) if scale.step else ():
        base = part * controls if part else np.zeros(len(answers))
        values, means, total = np.full(len(answers), np.nan), np.full(len(own), np.nan), 0
        told = np.isfinite(answers + base)
        for owner in np.unique(owners[told]):
            cells = np.flatnonzero(told & (owners == owner))
            factor, offset, n_on = _line(answers[cells] - base[cells], less * base[cells], scale)
            values[cells] = (answers[cells] - base[cells] - offset) / factor + less * base[cells]
            means[owner], total = (np.nan if part else (own[owner] - offset) / factor), total + n_on
        found, most = ((values, means), total) if total > most else (found, most)
        if most > _CONCENTRATED * told.sum():
            break
    return found


def _line(moved: Floats, less: Floats, scale: Scale) -> tuple[float, float, int]:
    """Return the factor and the offset that put most of `(moved - offset) / factor + less` on the grid, or NaN."""
    if len(moved) < _FEWEST:
        return np.nan, np.nan, 0
    step, some = scale.step or 1.0, np.linspace(0, len(moved) - 1, min(len(moved), _MOST_SEARCHED)).astype(np.int64)
    places = (moved[some] / _SLOPES + less[some]) / step
    scores, anchors = np.zeros(len(_SLOPES)), np.zeros(len(_SLOPES), dtype=np.int64)
    for anchor in range(0, len(some), max(1, len(some) // _ANCHORS)):
        apart = places - places[:, [anchor]]
        on = (np.abs(apart - np.round(apart)) < _NEAR) & (np.abs(apart) * step < scale.highest - scale.lowest + step)
        better = on.mean(axis=1) > scores
        scores, anchors = np.where(better, on.mean(axis=1), scores), np.where(better, anchor, anchors)
    at = int((scores + _COARSER * np.log(_SLOPES[:, 0])).argmax())
    factor, first = float(_SLOPES[at, 0]), some[anchors[at]]
    offset = float(moved[first] + factor * less[first]) if scores[at] >= _MOST_ON else np.nan
    for near in (_NEAR, _NEARER):
        places = ((moved - offset) / factor + less) / step
        whole, on = np.round(places), np.abs(places - np.round(places)) < near
        if len(np.unique(whole[on])) < 3 or np.ptp((step * whole - less)[on]) < _NEAR * step:
            return np.nan, np.nan, 0
        factor, offset = np.polyfit(step * whole[on] - less[on], moved[on], 1).tolist()
    return factor, offset, int(on.sum())


def voted(answers: Floats, weights: Floats, scale: Scale) -> tuple[Floats, Floats]:
    """Return the rating for which most answers, (accounts, hidden), are, and its share of the weight of all answers.

    An answer that is on the grid is probably one person's rating; one that is not is a mean, and votes for nothing.
    """
    missing = np.full(answers.shape[1], np.nan)
    n_values = 0 if scale.step is None else round((scale.highest - scale.lowest) / scale.step) + 1
    if not 2 <= n_values <= _MOST_VALUES:
        return missing, missing
    near = off_grid(answers, scale) < _VOTES
    places = np.where(near, np.round((answers - scale.lowest) / (scale.step or 1.0)), 0).astype(np.int64)
    tally = np.zeros((n_values, answers.shape[1]))
    for account, weight in enumerate(weights):
        cells = np.flatnonzero(near[account])
        tally[np.clip(places[account, cells], 0, n_values - 1), cells] += weight
    total = np.where(np.isfinite(answers), weights[:, np.newaxis], 0.0).sum(axis=0)
    best = tally.argmax(axis=0)
    most = tally.max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = most / total
    value = scale.lowest + best * (scale.step or 1.0)
    return np.where(most > 0, value, np.nan), np.where(most > 0, shares, np.nan)


class Solved(NamedTuple):
    """What two answers with different helpers say: arrays of shape (hidden,)."""

    values: Floats
    """The mean rating of the neighbours who are no helpers; NaN where there are none."""
    weights: Floats
    """What these count, where all helpers together count 1."""


class Helped(NamedTuple):
    """One answer, and what the helpers beside it rated and count: arrays of shape (hidden,)."""

    answers: Floats
    ratings: Floats
    weights: Floats


def solved(first: Helped, second: Helped) -> Solved:
    """Return rating and weight of the rest from two equations `answer (h + weight) = h helpers' + weight rating`."""
    missing = [one.weights * (one.ratings - one.answers) for one in (first, second)]
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = (missing[0] - missing[1]) / (first.answers - second.answers)
        values = first.answers - missing[0] / weights
    told = np.isfinite(values) & (weights > SAME) & (np.abs(first.answers - second.answers) > SAME)
    return Solved(np.where(told, values, np.nan), np.where(told, weights, np.nan))


def agreed_on(values: Floats) -> float:
    """Return the number on which most of the values agree, or else their median; NaN for none."""
    found = values[np.isfinite(values)]
    if len(found) == 0:
        return np.nan
    alike = (np.abs(found[:, np.newaxis] - found) < SAME).sum(axis=1)
    return float(found[alike.argmax()] if alike.max() > 1 else np.median(found))


def alone(answers: Floats, helped: Floats, helper: Floats, kernel: Floats, own: int) -> Floats:
    """Return for each item the rating of the only user who has it and rated the known item in the `own` level.

    Accounts with the known item in each level weigh users by how these rated it, (levels, levels) in `kernel`. With and
    without a `helper` of the own level, (items,), the `answers`, (levels, items), are two equations for the sum of
    weights and that of weighted ratings; the kernel is inverted. NaN where there is nobody, or more than one.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = kernel[:, [own]] * (helped - helper) / (answers - helped)
    weights = np.where(np.isfinite(weights), weights, 0.0)
    sums = np.where(weights == 0.0, 0.0, weights * answers)
    counts, totals = (np.linalg.solve(kernel, one)[own] for one in (weights, sums))
    return np.where(np.abs(counts - 1) < _ALONE, totals, np.nan)
