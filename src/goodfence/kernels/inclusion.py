"""Inclusion probabilities of the first `take` to fire: the Poisson-binomial integral, node by node.

Candidate i fires at time T_i, exponential with rate w_i, and is included if fewer than `take` others fired before. With
x = log t, p_j = P[T_j <= t] and N_i the number of others that have fired,

    mu_i = integral over x of  (w_i t e^{-w_i t})  P[N_i <= take - 1]  dx .

The second factor falls from 1 to 0 in a narrow stretch. Left of it the integral is 1 - e^{-w_i t}; across it panels of
Gauss-Legendre nodes reach rounding error. The distribution of N_i is that of all with one taken out: stable for
p_i <= 1/2 when the fired are counted, and for p_i >= 1/2 when the others are.
"""

from __future__ import annotations

import math

import numpy as np

from goodfence.arrays import Floats
from goodfence.kernels import inner, kernel

_STEPS = 40
_WIDEST = 0.6
_LARGE = 40.0  # exp(-exp(40)) is 0
_FEW = 400
_NOTHING = 1e-30
_TOLERANCE = 1e-14


@inner
def _chances(log_weights: Floats, x: float, fired: Floats, unfired: Floats, density: Floats) -> None:
    """Fill P[T <= e^x], P[T > e^x] and the density of log T at x, for each candidate."""
    for place in range(log_weights.size):
        log_rate = min(log_weights[place] + x, _LARGE)
        rate = math.exp(log_rate)
        fired[place] = -math.expm1(-rate)
        unfired[place] = math.exp(-rate)
        density[place] = math.exp(log_rate - rate)


@inner
def _count_distribution(yes: Floats, no: Floats, length: int) -> tuple[Floats, int]:
    """Return P[m successes] of independent trials for m < `length`, and the first m above 0; below 1e-30 is 0."""
    distribution, following = np.zeros(length + 1), np.zeros(length + 1)
    distribution[0] = 1.0
    low, high = 0, 0
    for place in range(yes.size):
        p, q = yes[place], no[place]
        distribution[high + 1] = 0.0
        high = min(high + 1, length - 1)
        following[low] = distribution[low] * q
        for m in range(low + 1, high + 1):
            following[m] = distribution[m] * q + distribution[m - 1] * p
        while low < high and following[low] < _NOTHING:
            low += 1
        while low < high and following[high] < _NOTHING:
            high -= 1
        distribution, following = following, distribution
    distribution[:low] = 0.0
    distribution[high + 1 :] = 0.0
    return distribution[:length], low


@inner
def _below_without_one(distribution: Floats, low: int, yes: Floats, no: Floats) -> Floats:
    """Return P[successes of the others < len(distribution)] for each trial; needs yes <= no."""
    last, total, inverse = np.zeros(yes.size), np.zeros(yes.size), 1.0 / no
    for m in range(low, distribution.size):
        for place in range(yes.size):
            last[place] = (distribution[m] - yes[place] * last[place]) * inverse[place]
            total[place] += last[place]
    return total


@kernel
def others_below(fired: Floats, unfired: Floats, take: int) -> Floats:
    """Return for each candidate P[fewer than `take` of the others have fired]."""
    below = np.empty(fired.size)
    early, late = fired <= 0.5, fired > 0.5
    if early.any():
        distribution, low = _count_distribution(fired, unfired, take)
        below[early] = _below_without_one(distribution, low, fired[early], unfired[early])
    if late.any():
        distribution, low = _count_distribution(unfired, fired, fired.size - take)
        below[late] = 1.0 - _below_without_one(distribution, low, unfired[late], fired[late])
    return np.minimum(np.maximum(below, 0.0), 1.0)


@inner
def _middle_of_firing(log_weights: Floats, take: int) -> float:
    """Return the x at which take - 1/2 are expected to have fired."""
    low, high = -math.log(2.0 * log_weights.size) - 1.0, math.log(math.log(2.0 * take) + 1.0) + 1.0
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        expected = 0.0
        for place in range(log_weights.size):
            expected -= math.expm1(-math.exp(min(log_weights[place] + middle, _LARGE)))
        if expected < take - 0.5:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@inner
def _panels(log_weights: Floats, take: int, least: int, tolerance: float) -> tuple[list[tuple[float, float]], float]:
    """Return centre and half width of the panels across the fall, and its left edge.

    It ends where P[fewer than `take` have fired] is nearly 0, and begins where P[fewer than `least`] is nearly 1.
    """
    n = log_weights.size
    fired, unfired, density = np.empty(n), np.empty(n), np.empty(n)
    start = _middle_of_firing(log_weights, take)
    panels, edge = [(start, 0.0)], start
    for side in (1.0, -1.0):
        edge = start
        for _ in range(_FEW):
            _chances(log_weights, edge, fired, unfired, density)
            distribution = _count_distribution(fired, unfired, take)[0]
            below = distribution.sum()
            if side < 0 and least < take:
                below -= distribution[take - 1]
            if (side > 0 and below < tolerance) or (side < 0 and 1.0 - below < tolerance):
                break
            # A panel is as wide as four standard deviations of the count, on the scale of x.
            spread, slope = math.sqrt((fired * unfired).sum()), density.sum()
            half = 0.5 * (_WIDEST if 4.0 * spread >= _WIDEST * slope else 4.0 * spread / slope)
            panels.append((edge + side * half, half))
            edge += side * 2.0 * half
    return panels[1:], edge


@kernel
def inclusion(log_weights: Floats, take: int, nodes: Floats, node_weights: Floats) -> Floats:
    """Return the inclusion probability of each candidate, 1 <= take < n, by a Gauss-Legendre rule on (-1, 1).

    `log_weights` are shifted so that the `take`-th largest is 0, and within -700 and 700.
    """
    n = log_weights.size
    fired, unfired, density = np.empty(n), np.empty(n), np.empty(n)
    included = np.zeros(n)
    panels, edge = _panels(log_weights, take, take, max(1e-15, n * 1e-17))
    for centre, half in panels:
        for node in range(nodes.size):
            _chances(log_weights, centre + half * nodes[node], fired, unfired, density)
            included += (half * node_weights[node]) * density * others_below(fired, unfired, take)
    _chances(log_weights, edge, fired, unfired, density)
    return np.minimum(included + fired, 1.0)


@kernel
def included_beside(others: Floats, candidates: Floats, take: int, nodes: Floats, node_weights: Floats) -> Floats:
    """Return mu of each candidate beside the others, (2, candidates): in `take` draws and in `take` - 1.

    Log-weights are shifted so that the `take`-th largest of the others is 0; 2 <= take <= number of others.
    """
    fired, unfired, density = np.empty(others.size), np.empty(others.size), np.empty(others.size)
    included = np.zeros((2, candidates.size))
    panels, edge = _panels(others, take, take - 1, _TOLERANCE)
    for centre, half in panels:
        for node in range(nodes.size):
            x = centre + half * nodes[node]
            _chances(others, x, fired, unfired, density)
            distribution = _count_distribution(fired, unfired, take)[0]
            below = distribution.sum()
            for place in range(candidates.size):
                log_rate = min(candidates[place] + x, _LARGE)
                mass = half * node_weights[node] * math.exp(log_rate - math.exp(log_rate))
                included[0, place] += mass * below
                included[1, place] += mass * (below - distribution[take - 1])
    for place in range(candidates.size):
        # Left of the last edge nobody is shut out yet.
        first = -math.expm1(-math.exp(min(candidates[place] + edge, _LARGE)))
        included[0, place] = min(included[0, place] + first, 1.0)
        included[1, place] = min(included[1, place] + first, 1.0)
    return included
