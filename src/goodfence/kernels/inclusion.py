"""Who is among the first `take` to fire: the Poisson-binomial integral, node by node.

Candidate i fires at time T_i, exponential with rate w_i; she is included if fewer than `take`
others fired before. With x = log t, p_j = P[T_j <= t] and N_i the number of others that have fired,

    mu_i = integral over x of  (w_i t e^{-w_i t})  P[N_i <= take - 1]  dx .

The second factor falls from 1 to 0 in a narrow stretch. Left of it the integral is 1 - e^{-w_i t};
across it panels of Gauss-Legendre nodes, as wide as the fall is steep, reach rounding error.

The law of N_i is the law of everybody's count with one taken out again. Taking out is stable for
p_i <= 1/2 when the fired are counted, and for p_i >= 1/2 when those who have not fired are, so each
is done where it is stable.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from goodfence.kernels.compiled import kernel

Floats = npt.NDArray[np.float64]

_STEPS = 40
_WIDEST = 0.6
_LARGE = 40.0  # exp(-exp(40)) is 0
_FEW = 400
_NOTHING = 1e-30


@kernel
def chances(log_weights: Floats, x: float, fired: Floats, unfired: Floats, density: Floats) -> None:
    """Fill P[T <= e^x], P[T > e^x] and the density of log T at x, for each candidate."""
    for place in range(log_weights.size):
        log_rate = min(log_weights[place] + x, _LARGE)
        rate = math.exp(log_rate)
        fired[place] = -math.expm1(-rate)
        unfired[place] = math.exp(-rate)
        density[place] = math.exp(log_rate - rate)


@kernel
def count_law(yes: Floats, no: Floats, length: int) -> tuple[Floats, int]:
    """Return P[m successes] of independent trials, for m below `length`, and the first m above 0.

    Only the band of counts that can be is carried along; what is below 1e-30 is 0.
    """
    law, following = np.zeros(length + 1), np.zeros(length + 1)
    law[0] = 1.0
    low, high = 0, 0
    for place in range(yes.size):
        p, q = yes[place], no[place]
        law[high + 1] = 0.0
        high = min(high + 1, length - 1)
        following[low] = law[low] * q
        for m in range(low + 1, high + 1):
            following[m] = law[m] * q + law[m - 1] * p
        while low < high and following[low] < _NOTHING:
            following[low] = 0.0
            low += 1
        while low < high and following[high] < _NOTHING:
            high -= 1
        law, following = following, law
    law[:low] = 0.0
    law[high + 1 :] = 0.0
    return law[:length], low


@kernel
def below_without_one(law: Floats, low: int, yes: Floats, no: Floats) -> Floats:
    """Return P[successes of the others < len(law)] for each trial; needs yes <= no."""
    last, total, inverse = np.zeros(yes.size), np.zeros(yes.size), 1.0 / no
    for m in range(low, law.size):
        for place in range(yes.size):
            last[place] = (law[m] - yes[place] * last[place]) * inverse[place]
            total[place] += last[place]
    return total


@kernel
def others_below(fired: Floats, unfired: Floats, take: int) -> Floats:
    """Return for each candidate P[fewer than `take` of the others have fired]."""
    below = np.empty(fired.size)
    early, late = fired <= 0.5, fired > 0.5
    if early.any():
        law, low = count_law(fired, unfired, take)
        below[early] = below_without_one(law, low, fired[early], unfired[early])
    if late.any():
        law, low = count_law(unfired, fired, fired.size - take)
        below[late] = 1.0 - below_without_one(law, low, unfired[late], fired[late])
    return np.minimum(np.maximum(below, 0.0), 1.0)


@kernel
def middle_of_firing(log_weights: Floats, take: int) -> float:
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


@kernel
def _width(fired: Floats, unfired: Floats, density: Floats) -> float:
    """Return how wide a panel may be: four standard deviations of the count, on the scale of x."""
    spread, slope = math.sqrt((fired * unfired).sum()), density.sum()
    return _WIDEST if 4.0 * spread >= _WIDEST * slope else 4.0 * spread / slope


@kernel
def inclusion(log_weights: Floats, take: int, nodes: Floats, node_weights: Floats) -> Floats:
    """Return the inclusion probability of each candidate, 1 <= take < n.

    Parameters
    ----------
    log_weights
        Shifted so that the `take`-th largest is 0, and within -700 and 700.
    nodes, node_weights
        A Gauss-Legendre rule on (-1, 1).
    """
    n = log_weights.size
    fired, unfired, density = np.empty(n), np.empty(n), np.empty(n)
    included = np.zeros(n)
    tolerance = max(1e-15, n * 1e-17)
    start = middle_of_firing(log_weights, take)
    for side in (1.0, -1.0):
        edge = start
        for _ in range(_FEW):
            chances(log_weights, edge, fired, unfired, density)
            below = count_law(fired, unfired, take)[0].sum()
            if (side > 0 and below < tolerance) or (side < 0 and 1.0 - below < tolerance):
                break
            half = 0.5 * _width(fired, unfired, density)
            centre = edge + side * half
            for node in range(nodes.size):
                chances(log_weights, centre + half * nodes[node], fired, unfired, density)
                included += (
                    (half * node_weights[node]) * density * others_below(fired, unfired, take)
                )
            edge += side * 2.0 * half
    chances(log_weights, edge, fired, unfired, density)
    return np.minimum(included + fired, 1.0)
