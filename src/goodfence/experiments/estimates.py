"""Shares and errors over targets, their differences and trends, and how far chance may have moved them.

Every number is a ratio of two sums over targets, so its error is that of a ratio estimator with the target as the
unit: what one target got under all seeds is added up first. Numbers of the same targets are compared pair by pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from goodfence.experiments.definition import Number
from goodfence.experiments.tallies import Floats

METRICS: dict[str, tuple[str, str]] = {
    "mae": ("error", "predicted"),
    "mae_clipped": ("error_clipped", "predicted"),
    "mae_common": ("error_common", "common"),
    "mae_common_clipped": ("error_common_clipped", "common"),
    "coverage": ("predicted", "cells"),
    "recovery": ("recovered", "cells"),
    "recovery_without": ("recovered_without", "cells"),
    "advantage": ("gained", "cells"),
    "exact": ("exact", "cells"),
    "target_chosen": ("chosen", "targets"),
    "guess": ("guessed", "cells"),
}
"""Each metric as the ratio of two counts."""
BOUNDS = {"advantage": (-1.0, 1.0), **dict.fromkeys(("mae", "mae_clipped"), (0.0, np.inf))}
BOUNDS |= dict.fromkeys(("mae_common", "mae_common_clipped"), (0.0, np.inf))
"""What a metric can be; the others are shares."""
PAPER_METRICS = ("mae", "mae_clipped", "mae_common", "mae_common_clipped", "coverage")
ATTACK_METRICS = tuple(METRICS)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number, its standard error, and how many targets it rests on."""

    value: float
    error: float
    n: int

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return Student's interval.

        Examples
        --------
        >>> low, high = Estimate(1.0, 0.1, 1000).interval()
        >>> round(low, 3), round(high, 3)
        (0.804, 1.196)
        """
        half = critical(self.n, 1 - confidence) * self.error
        return self.value - half, self.value + half


def critical(n: int, false_alarm: float) -> float:
    """Return how many standard errors a two-sided test at this false alarm allows, for n targets."""
    return float(stats.t.ppf(1 - false_alarm / 2, max(n - 1, 1)))


@dataclass(frozen=True, eq=False, repr=False)
class Sums:
    """The counts of a figure: for each point and series one number for each target, over all seeds."""

    counts: dict[tuple[Number, str], dict[str, Floats]]
    """By (x, series): name of the count to an array of shape (targets,)."""

    def estimate(self, metric: str, series: str, x: Number) -> Estimate:
        """Return one metric of one series at one point."""
        return self.contrast([(1.0, metric, series, x)])

    def band(self, metric: str, series: str, x: Number) -> tuple[float, float]:
        """Return the 95% interval of a metric, inside what is possible."""
        lowest, highest = BOUNDS.get(metric, (0.0, 1.0))
        low, high = self.estimate(metric, series, x).interval()
        return max(low, lowest), min(high, highest)

    def difference(self, metric: str, first: str, second: str, xs: Sequence[Number]) -> Estimate:
        """Return the first series' metric minus the second's, the mean over `xs`, paired over targets."""
        share = 1.0 / len(xs)
        terms = [(share, metric, first, x) for x in xs]
        return self.contrast(terms + [(-share, metric, second, x) for x in xs])

    def mean(self, metric: str, series: str, xs: Sequence[Number]) -> Estimate:
        """Return the mean of a metric over `xs`."""
        return self.contrast([(1.0 / len(xs), metric, series, x) for x in xs])

    def trend(
        self, metric: str, series: str, xs: Sequence[Number], *, log: bool = False
    ) -> Estimate:
        """Return how much the straight line through the metric rises from the first x to the last."""
        places = np.log(xs) if log else np.asarray(xs, dtype=np.float64)
        centred = places - places.mean()
        weights = centred / (centred @ centred) * (places[-1] - places[0])
        pairs = zip(weights.tolist(), xs, strict=True)
        return self.contrast([(weight, metric, series, x) for weight, x in pairs])

    def contrast(self, terms: Sequence[tuple[float, str, str, Number]]) -> Estimate:
        """Return a weighted sum of metrics, (weight, metric, series, x) each."""
        value, residuals = 0.0, np.zeros(0)
        for weight, metric, series, x in terms:
            counts = self.counts[x, series]
            above, below = (counts[name] for name in METRICS[metric])
            total = float(below.sum())
            if total == 0.0:
                return Estimate(np.nan, np.nan, 0)
            ratio = float(above.sum()) / total
            value += weight * ratio
            residuals = (residuals if residuals.size else 0.0) + weight * (
                above - ratio * below
            ) / total
        n = len(residuals)
        error = float(np.sqrt((residuals**2).sum() * n / max(n - 1, 1)))
        return Estimate(value, error, n)
