"""A lower bound on epsilon from repeated runs: how well two data sets can be told apart by what was released.

Under (epsilon, delta)-differential privacy every event E has P(E) <= e^epsilon P'(E) + delta. So an event that is seen
more often than that under one data set than under the other refutes the guarantee. The event is "the score is above a
threshold" (or at most the threshold); the threshold is chosen on one half of the runs, and both error rates are
bounded on the other half, so the choice costs nothing. Bounds on the rates are Clopper and Pearson's, which hold for
every number of runs.

If the guarantee comes from Gaussian noise it says more: it bounds the whole trade-off of the two error rates by that of
a normal shift mu (Dong, Roth and Su 2022). Then z(1 - false negative rate) - z(false positive rate) is at most mu, and
a bound on mu is far sharper than one on epsilon, whose delta lets the last runs in the tail decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from goodfence.arrays import Floats
from goodfence.attack.scoring import highest_rate, lowest_rate
from goodfence.errors import require

CONFIDENCE = 0.95
_THRESHOLDS, _CAREFUL = 400, 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerBound:
    """What the runs prove, with `confidence`, about every true guarantee."""

    epsilon: float
    """No smaller epsilon holds together with `delta`; 0 if the runs prove nothing."""
    mu: float
    """No smaller shift holds, where the guarantee is one of Gaussian noise."""
    delta: float
    """The delta that was granted."""
    false_positive_rate: float
    """How often the event of the epsilon bound was seen where it should be rarer."""
    false_negative_rate: float
    """How often it was not seen where it should be more frequent."""
    n_trials: int
    """Runs on each data set: half chose the thresholds, half measured."""
    confidence: float
    """How sure each of the two bounds is."""

    def __str__(self) -> str:
        return (
            f"epsilon at least {self.epsilon:.3f} at delta={self.delta:g} "
            f"({self.confidence:.6g} confidence, {self.n_trials:,} runs on each data set, "
            f"false positive rate {self.false_positive_rate:.4f}, false negative rate {self.false_negative_rate:.4f})"
        )


def lower_bound(without: Floats, with_it: Floats, *, delta: float = 0.0, confidence: float = CONFIDENCE) -> LowerBound:
    """Return what the scores of runs on two neighbouring data sets prove, each bound with this confidence.

    One score for each run, as many for each data set, in the order of the runs. Any score gives a true bound; the
    log-likelihood ratio of what was released gives the best.
    """
    require(0 <= delta < 1, "delta", "at least 0 and less than 1", delta)
    require(0 < confidence < 1, "confidence", "between 0 and 1", confidence)
    n_trials = len(without)
    require(n_trials == len(with_it) and n_trials >= 4, "scores", "as many, at least 4", n_trials)
    half, risk = n_trials // 2, (1 - confidence) / 2
    choosing, measuring = (without[:half], with_it[:half]), (without[half:], with_it[half:])

    def of_epsilon(rare: Floats, frequent: Floats, n: int, risk: float) -> Floats:
        gained = np.maximum(lowest_rate(frequent, n, risk) - delta, 0.0)
        with np.errstate(divide="ignore"):
            return np.log(gained) - np.log(highest_rate(rare, n, risk))

    def of_mu(rare: Floats, frequent: Floats, n: int, risk: float) -> Floats:
        return np.asarray(ndtri(lowest_rate(frequent, n, risk)) - ndtri(highest_rate(rare, n, risk)))

    epsilon, rare, frequent = _best(of_epsilon, choosing, measuring, risk)
    mu, _, _ = _best(of_mu, choosing, measuring, risk)
    return LowerBound(
        epsilon=max(0.0, epsilon),
        mu=max(0.0, mu),
        delta=delta,
        false_positive_rate=rare,
        false_negative_rate=1 - frequent,
        n_trials=n_trials,
        confidence=confidence,
    )


def _best(
    bound: Callable[[Floats, Floats, int, float], Floats],
    choosing: tuple[Floats, Floats],
    measuring: tuple[Floats, Floats],
    risk: float,
) -> tuple[float, float, float]:
    """Return the bound at the threshold chosen on other runs, and how often its event was seen in each data set."""
    thresholds = _thresholds(np.concatenate(choosing))
    above = [_above(scores, thresholds) for scores in choosing]
    n = len(choosing[0])
    # Hundreds of thresholds are tried: at a far smaller risk, lucky ones in the tails are not chosen.
    careful = min(_CAREFUL, risk)
    upper = bound(above[0], above[1], n, careful)
    lower = bound(n - above[1], n - above[0], n, careful)
    high = bool(upper.max() >= lower.max())
    threshold = thresholds[[int(np.argmax(upper if high else lower))]]
    n_fresh = len(measuring[0])
    seen = [_above(scores, threshold) for scores in measuring]
    rare, frequent = (seen[0], seen[1]) if high else (n_fresh - seen[1], n_fresh - seen[0])
    value = float(bound(rare, frequent, n_fresh, risk)[0])
    found = value if math.isfinite(value) else 0.0
    return found, float(rare[0]) / n_fresh, float(frequent[0]) / n_fresh


def _thresholds(scores: Floats) -> Floats:
    """Return thresholds between the scores: many, the tails denser."""
    ordered = np.unique(scores)
    if len(ordered) == 1:
        return ordered
    middles = (ordered[1:] + ordered[:-1]) / 2
    if len(middles) <= _THRESHOLDS:
        return middles
    side = np.geomspace(1, len(middles) / 2, _THRESHOLDS // 2).astype(np.int64)
    places = np.unique(np.concatenate([side - 1, len(middles) - side]))
    return np.asarray(middles[places])


def _above(scores: Floats, thresholds: Floats) -> Floats:
    """Return how many scores are above each threshold."""
    places = np.searchsorted(np.sort(scores), thresholds, side="right")
    return (len(scores) - places).astype(np.float64)
