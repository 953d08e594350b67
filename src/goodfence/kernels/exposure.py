"""The inclusion probabilities of single candidates beside the same others, for c draws and for c - 1.

As in `goodfence.kernels.inclusion`, with x the logarithm of the time and N how many of the others have fired,

    mu(w; c) = integral over x of  (w t e^{-wt})  P[N <= c - 1]  dx .

Here the others do not change, so one law of N serves every candidate and both numbers of draws.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from goodfence.kernels.compiled import kernel
from goodfence.kernels.inclusion import chances, count_law, middle_of_firing

Floats = npt.NDArray[np.float64]

_WIDEST = 0.6
_LARGE = 40.0  # exp(-exp(40)) is 0
_FEW = 400
_TOLERANCE = 1e-14


@kernel
def included_beside(
    others: Floats, candidates: Floats, take: int, nodes: Floats, node_weights: Floats
) -> Floats:
    """Return mu of each candidate beside the others, (2, candidates): in `take` draws and in `take` - 1.

    Parameters
    ----------
    others, candidates
        Log-weights, shifted so that the `take`-th largest of the others is 0, and within -700 and 700.
    take
        At least 2, at most the number of the others.
    nodes, node_weights
        A Gauss-Legendre rule on (-1, 1).
    """
    fired, unfired, density = np.empty(others.size), np.empty(others.size), np.empty(others.size)
    included = np.zeros((2, candidates.size))
    start = middle_of_firing(others, take)
    edge = start
    for side in (1.0, -1.0):
        edge = start
        for _ in range(_FEW):
            chances(others, edge, fired, unfired, density)
            law = count_law(fired, unfired, take)[0]
            below = law.sum()
            fewer = below - law[take - 1]
            if (side > 0 and below < _TOLERANCE) or (side < 0 and 1.0 - fewer < _TOLERANCE):
                break
            spread, slope = math.sqrt((fired * unfired).sum()), density.sum()
            half = 0.5 * (_WIDEST if 4.0 * spread >= _WIDEST * slope else 4.0 * spread / slope)
            centre = edge + side * half
            for node in range(nodes.size):
                x = centre + half * nodes[node]
                chances(others, x, fired, unfired, density)
                law = count_law(fired, unfired, take)[0]
                below = law.sum()
                for place in range(candidates.size):
                    log_rate = min(candidates[place] + x, _LARGE)
                    mass = half * node_weights[node] * math.exp(log_rate - math.exp(log_rate))
                    included[0, place] += mass * below
                    included[1, place] += mass * (below - law[take - 1])
            edge += side * 2.0 * half
    for place in range(candidates.size):
        # Left of the last edge nobody is shut out yet.
        first = -math.expm1(-math.exp(min(candidates[place] + edge, _LARGE)))
        included[0, place] = min(included[0, place] + first, 1.0)
        included[1, place] = min(included[1, place] + first, 1.0)
    return included
