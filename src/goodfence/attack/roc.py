"""ROC curves of membership: thresholds, the area below, and true positive rates at low false positive rates."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from scipy import optimize, stats

from goodfence.arrays import Floats
from goodfence.attack.scoring import CONFIDENCE, UNKNOWN, Estimate, highest_rate, lowest_rate
from goodfence.errors import require


def roc_table(members: Floats, others: Floats) -> pa.Table:
    """Return the ROC curve, one row for each score: the shares of others and of members at or above it.

    It begins at (0, 0) and ends at (1, 1); scores themselves are left out.
    """
    scores = np.unique(np.concatenate([members, others]))[::-1]
    curve = {"false_positive_rate": others, "true_positive_rate": members}
    below = {
        name: np.searchsorted(np.sort(values), scores, side="left") / len(values) for name, values in curve.items()
    }
    return pa.table({name: np.concatenate([[0.0], 1.0 - share]) for name, share in below.items()})


def true_positives_at(members: Floats, others: Floats, rate: float) -> Estimate:
    """Return the true positive rate at a false positive `rate`, with an interval; unknown with too few `others`.

    The threshold t is the lowest that a share `rate` of non-members exceeds at most. Of n non-members binomially many,
    n `rate` in expectation, exceed it, so that two of their order statistics enclose t; Clopper and Pearson's bounds
    are then of the members above these. Each of the four bounds fails with 1.25% at most, whatever the distribution,
    and whether or not members and others are the same users in two worlds.
    """
    n = len(others)
    threshold = threshold_at(others, rate)
    if n * rate < 1 - 1e-9:  # a single false positive would be too many
        return UNKNOWN
    risk, ordered = (1 - CONFIDENCE) / 4, np.sort(others)[::-1]
    few, many = (int(stats.binom.ppf(level, n, rate)) for level in (risk, 1 - risk))
    fewest = (members > ordered[few - 1]).sum() if few else 0
    most = (members > ordered[many]).sum() if many < n else len(members)
    low = lowest_rate(np.array(float(fewest)), len(members), risk)
    high = highest_rate(np.array(float(most)), len(members), risk)
    return Estimate(float((members > threshold).mean()), float(low), float(high))


def threshold_at(scores: Floats, rate: float) -> float:
    """Return the lowest of the scores that at most this share of them exceeds."""
    require(0 <= rate < 1, "rate", "at least 0 and below 1", rate)
    return float(np.sort(scores)[::-1][math.floor(rate * len(scores) + 1e-9)])


def auc(members: Floats, others: Floats) -> Estimate:
    """Return how often a member scores above another user, ties half, with Newcombe's score interval.

    The interval (2006, method 5) solves `|A - theta| = z sqrt(V(theta))`, with Hanley and McNeil's variance V. It takes
    the two sets of scores as independent, and so is too wide where the same users are in both.
    """
    n, m = len(members), len(others)
    ranks = stats.rankdata(np.concatenate([members, others]))[:n]
    value = float((ranks.sum() - n * (n + 1) / 2) / (n * m))
    z, pairs = float(stats.norm.ppf(0.5 + CONFIDENCE / 2)), (n + m) / 2 - 1

    def gap(theta: float) -> float:
        spread = 1 + pairs * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        variance = theta * (1 - theta) * spread / (n * m)
        return abs(value - theta) - z * math.sqrt(max(variance, 0.0))

    ends = [end if value == end else optimize.brentq(gap, end, value + (end - value) * 1e-9) for end in (0.0, 1.0)]
    return Estimate(value, *map(float, ends))


def true_positive_bound(epsilon: float, delta: float, rate: float) -> float:
    """Return the largest true positive rate at a false positive `rate` under (epsilon, delta)-differential privacy.

    TPR <= min(e^epsilon FPR + delta, 1 - e^-epsilon (1 - delta - FPR)).
    """
    grown = math.exp(min(epsilon, 700.0)) * rate + delta
    return min(1.0, grown, 1.0 - math.exp(-epsilon) * (1.0 - delta - rate))
