"""One answer out of many: what the attacker makes of what several fakes were told, or one of them several times."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from goodfence.attack.targets import Floats
from goodfence.data.scale import Scale

Combine: TypeAlias = Literal["mode", "mean"]


def combined(answers: Floats, how: Combine, scale: Scale) -> Floats:
    """Return one answer for each hidden rating from `answers`, (askers, hidden), NaN where nobody got one.

    A single answer stays as it is. `mode` takes the most frequent of the rounded answers, the lowest of these
    if there are several.

    Examples
    --------
    >>> told = np.array([[2.9, 4.0], [3.1, np.nan], [5.0, np.nan]])
    >>> combined(told, "mode", Scale(1, 5)), combined(told, "mean", Scale(1, 5))
    (array([3., 4.]), array([3.66666667, 4.        ]))
    """
    if len(answers) == 1:
        return np.asarray(answers[0])
    if how == "mode":
        return _mode(scale.round(answers))
    made = ~np.isnan(answers)
    sums = np.where(made, answers, 0.0).sum(axis=0)
    counts = made.sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _mode(answers: Floats) -> Floats:
    """Return the most frequent value of each column, the lowest among equally frequent ones."""
    ordered = np.sort(answers, axis=0)  # NaN last
    best = np.full(answers.shape[1], np.nan)
    longest = np.zeros(answers.shape[1], dtype=np.int64)
    length = np.zeros(answers.shape[1], dtype=np.int64)
    for place in range(len(ordered)):
        same = (
            ordered[place] == ordered[place - 1] if place else np.zeros(len(best), dtype=np.bool_)
        )
        length = np.where(same, length + 1, 1)
        longer = (length > longest) & ~np.isnan(ordered[place])
        best = np.where(longer, ordered[place], best)
        longest = np.where(longer, length, longest)
    return best
