"""What an attack got: counts for each target, shares over all, and 95% intervals over targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from goodfence.attack.targets import Floats, Targets
from goodfence.data.ratings import Ratings

EXACT = 1e-6
"""A prediction this near to the hidden rating equals it."""
CONFIDENCE = 0.95


class Estimate(NamedTuple):
    """A number over all targets, and its 95% interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if np.isnan(self.value):
            return "not known"
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


@dataclass(frozen=True, eq=False)
class Tally:
    """What one set of answers got, for each target: arrays of shape (targets,)."""

    hidden: Floats
    """How many ratings were hidden."""
    predicted: Floats
    """How many of them got a prediction."""
    error: Floats
    """The sum of the absolute errors of these."""
    recovered: Floats
    """How many predictions round to the hidden rating."""
    exact: Floats
    """How many equal it."""

    def __repr__(self) -> str:
        return f"Tally({len(self.hidden):,} targets)"

    @classmethod
    def of(cls, answers: Floats, targets: Targets, ratings: Ratings) -> Tally:
        """Count for each target what `answers`, one for each hidden rating, got."""
        made = ~np.isnan(answers)
        errors = np.where(made, np.abs(answers - targets.ratings), 0.0)
        rounded = is_recovered(answers, targets, ratings)
        exact = made & (errors < EXACT)
        owners, n_targets = targets.owners, len(targets)

        def sums(part: npt.NDArray[Any]) -> Floats:
            return np.bincount(owners, weights=part, minlength=n_targets).astype(np.float64)

        parts = (np.ones(len(answers)), made, errors, rounded, exact)
        return cls(*(sums(part) for part in parts))

    def estimates(self) -> dict[str, Estimate]:
        """Return mae, coverage, recovery and exact."""
        return {
            "mae": ratio(self.error, self.predicted),
            "coverage": share(self.predicted, self.hidden),
            "recovery": share(self.recovered, self.hidden),
            "exact": share(self.exact, self.hidden),
        }


def is_recovered(answers: Floats, targets: Targets, ratings: Ratings) -> npt.NDArray[np.bool_]:
    """Return for each hidden rating whether the answer rounds to it; no answer does not."""
    # A value of the scale is a sum of steps, which may miss the rating by the last bit.
    recovered: npt.NDArray[np.bool_] = (
        np.abs(ratings.scale.round(answers) - targets.ratings) < EXACT
    )
    return recovered


def item_mean_guesses(targets: Targets, ratings: Ratings) -> Floats:
    """Return for each hidden rating the mean of the item's other ratings, NaN where it has none."""
    csr = ratings.csr
    counts = np.bincount(csr.indices, minlength=csr.shape[1])[targets.columns] - 1
    sums = np.bincount(csr.indices, weights=csr.data, minlength=csr.shape[1])[targets.columns]
    guesses: Floats = np.where(counts > 0, (sums - targets.ratings) / np.maximum(counts, 1), np.nan)
    return guesses


def ratio(
    numerators: Floats, denominators: Floats, *, lowest: float = 0.0, highest: float = np.inf
) -> Estimate:
    """Return the ratio of two sums over targets, with its interval over targets, inside what is possible.

    The ratio estimator of survey sampling: the spread of `numerator - ratio * denominator` over the targets,
    with Student's t. One target gives no interval, and neither do targets of which none has anything to count.

    Examples
    --------
    >>> print(ratio(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 4.0])))
    0.6000 (0.2057 to 0.9943)
    """
    total = float(denominators.sum())
    if total == 0 or np.isnan(numerators).any():
        return Estimate(np.nan, np.nan, np.nan)
    value = float(numerators.sum()) / total
    n_targets = len(numerators)
    if n_targets < 2:
        return Estimate(value, np.nan, np.nan)
    rests = numerators - value * denominators
    spread = float(np.sqrt((rests**2).sum() / (n_targets - 1) * n_targets)) / total
    half = float(stats.t.ppf(0.5 + CONFIDENCE / 2, n_targets - 1)) * spread
    return Estimate(value, max(value - half, lowest), min(value + half, highest))


def share(numerators: Floats, denominators: Floats) -> Estimate:
    """Return a share of all that the targets have, between 0 and 1."""
    return ratio(numerators, denominators, highest=1.0)


def frequency(happened: Floats) -> Estimate:
    """Return how often something happened, one value between 0 and 1 for each target.

    Where each target says yes or no the interval is Wilson's, which stays honest near 0 and 1.

    Examples
    --------
    >>> print(frequency(np.ones(100)))
    1.0000 (0.9630 to 1.0000)
    """
    if np.isnan(happened).any() or not np.isin(happened, (0.0, 1.0)).all():
        return share(happened, np.ones(len(happened)))
    test = stats.binomtest(int(happened.sum()), len(happened))
    interval = test.proportion_ci(CONFIDENCE, method="wilson")
    return Estimate(float(happened.mean()), float(interval.low), float(interval.high))
