"""The exact law of a choice: how likely one set of neighbours is."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from goodfence.errors import require
from goodfence.selection.mechanism import RS, Floats, Mechanism, weights_if_drawn

_MOST = 12  # the sum goes over all subsets of the chosen


def choice_probability(
    mechanism: Mechanism, similarities: Floats, chosen: Sequence[int], sensitivity: RS = None
) -> float:
    """Return the probability that exactly the positions `chosen` of one list become the neighbours.

    For small k only: the sum goes over every order in which they could have been drawn.

    Examples
    --------
    >>> from goodfence.selection.npns import NPNS
    >>> round(choice_probability(NPNS(k=2), np.array([0.5, 0.25, 0.25]), [1, 2]), 6)
    0.166667
    """
    require(len(chosen) <= _MOST, "chosen", f"at most {_MOST} positions", len(chosen))
    pools = mechanism.pools(similarities, sensitivity)
    log_weights = weights_if_drawn(mechanism, pools, similarities, sensitivity)
    left, probability = set(chosen), 1.0
    for pool in pools:
        start, stop = int(pool.start), int(pool.stop)
        inside = [place - start for place in left if start <= place < stop]
        left -= {place + start for place in inside}
        if len(inside) != int(pool.take):
            return 0.0
        probability *= drawn_probability(log_weights[start:stop], inside)
    return 0.0 if left else probability


def drawn_probability(log_weights: Floats, chosen: Sequence[int]) -> float:
    """Return the probability that successive draws from one pool give `chosen`, in any order.

    Candidates of log-weight -inf are drawn last, uniformly.

    Examples
    --------
    >>> round(drawn_probability(np.zeros(3), [0, 1]), 12)
    0.333333333333
    """
    weighted = {int(place) for place in np.flatnonzero(log_weights > -np.inf)}
    if len(weighted) >= len(chosen):
        return _in_any_order(log_weights, chosen) if weighted.issuperset(chosen) else 0.0
    if not weighted.issubset(chosen):
        return 0.0
    return 1.0 / math.comb(log_weights.size - len(weighted), len(chosen) - len(weighted))


def _in_any_order(log_weights: Floats, chosen: Sequence[int]) -> float:
    reached = {frozenset[int](): 1.0}
    for _ in chosen:
        following: defaultdict[frozenset[int], float] = defaultdict(float)
        for drawn, probability in reached.items():
            total = logsumexp(np.delete(log_weights, list(drawn)))
            for place in chosen:
                if place not in drawn:
                    share = math.exp(log_weights[place] - total)
                    following[drawn | {place}] += probability * share
        reached = dict(following)
    return float(sum(reached.values()))
