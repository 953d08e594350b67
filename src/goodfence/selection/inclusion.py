"""How likely each candidate is to be a neighbour; the expected sum of similarities [ACCURACY]."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp

from goodfence.arrays import Floats
from goodfence.errors import SettingError, require
from goodfence.kernels.inclusion import inclusion
from goodfence.selection.mechanism import RS, Mechanism, weights_if_drawn
from goodfence.settings import checked

InclusionMethod: TypeAlias = Literal["exact", "manly"]

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
_EXTREME = 700.0  # beyond e^700 to 1 an order is certain
_MOST = 12  # the sum of `choice_probability` goes over all subsets of the chosen


@checked
def inclusion_probabilities(
    mechanism: Mechanism, similarities: Floats, sensitivity: RS = None, *, method: InclusionMethod = "exact"
) -> Floats:
    """Return the probability mu of each candidate of one list to be among the k neighbours.

    Parameters
    ----------
    mechanism : Mechanism
        `KNN`, `NPNS`, `PNCF`, `PPNS`, or one of your own.
    similarities : array of float
        Shape (n,), descending.
    sensitivity : float or array of float, optional
        RS of the target; with `scope="pair"` of shape (n,). None where the mechanism needs none.
    method : {"exact", "manly"}, default "exact"
        Exact, or Manly's approximation [approx].

    Examples
    --------
    >>> from goodfence.selection.npns import NPNS
    >>> inclusion_probabilities(NPNS(k=1), np.array([0.5, 0.3, 0.2])).round(6)
    array([0.5, 0.3, 0.2])
    """
    listed = _checked(similarities)
    pools = mechanism.pools(listed, sensitivity)
    log_weights = weights_if_drawn(mechanism, pools, listed, sensitivity)
    included = np.zeros(listed.shape)
    for pool in pools:
        start, stop, take = int(pool.start), int(pool.stop), int(pool.take)
        included[start:stop] = pool_inclusion(log_weights[start:stop], take, method=method)
    return included


@checked
def alpha(
    mechanism: Mechanism, similarities: Floats, sensitivity: RS = None, *, method: InclusionMethod = "exact"
) -> float:
    """Return the expected sum of the k neighbours' similarities [ACCURACY]; parameters as `inclusion_probabilities`.

    Examples
    --------
    >>> from goodfence.selection.knn import KNN
    >>> alpha(KNN(k=2), np.array([0.5, 0.25, 0.2]))
    0.75
    """
    listed = _checked(similarities)
    return float(listed @ inclusion_probabilities(mechanism, listed, sensitivity, method=method))


def list_metrics(
    mechanism: Mechanism, similarities: Floats, sensitivity: RS = None, *, method: InclusionMethod = "exact"
) -> tuple[float, int]:
    """Return `alpha`, and beta: across how many of the nearest partitions of k the neighbours are drawn."""
    listed = _checked(similarities)
    included = inclusion_probabilities(mechanism, listed, sensitivity, method=method)
    last = int(np.flatnonzero(included)[-1])
    return float(listed @ included), last // mechanism.k + 1


def pool_inclusion(log_weights: Floats, take: int, *, method: InclusionMethod = "exact") -> Floats:
    """Return the inclusion probabilities of `take` draws from one pool; those of log-weight -inf come last, evenly."""
    weighted = log_weights > -np.inf
    n_weighted = int(weighted.sum())
    included = np.zeros(log_weights.shape)
    if n_weighted <= take:
        included[weighted] = 1.0
        if take > n_weighted:
            included[~weighted] = (take - n_weighted) / (included.size - n_weighted)
        return included
    if take > 0:
        included[weighted] = _among_weighted(log_weights[weighted], take, method)
    return included


def _among_weighted(log_weights: Floats, take: int, method: InclusionMethod) -> Floats:
    """Return the probabilities of 1 <= take < n draws with positive weights."""
    if log_weights.max() == log_weights.min():
        return np.full(log_weights.size, take / log_weights.size)
    # Around the take-th largest weight the order is open. A difference is exact even at 1e14.
    pivot = np.partition(log_weights, log_weights.size - take)[log_weights.size - take]
    shifted = np.clip(log_weights - pivot, -_EXTREME, _EXTREME)
    if method == "manly":
        return _manly(shifted, take)
    # Farther from the pivot than this the order is certain to 1e-20: surely in, or surely not.
    certain = 50.0 + np.log(2.0 * log_weights.size)
    included = np.where(shifted > certain, 1.0, np.exp(np.minimum(shifted, 0.0)))
    open_ = np.abs(shifted) <= certain
    included[open_] = _among_open(shifted[open_], take - int((shifted > certain).sum()))
    return included


def _among_open(log_weights: Floats, take: int) -> Floats:
    if take == log_weights.size:
        return np.ones(take)
    if take == 1:
        weights = np.exp(log_weights - log_weights.max())
        return np.asarray(weights / weights.sum())
    return inclusion(np.ascontiguousarray(log_weights), take, _NODES, _NODE_WEIGHTS)


def _manly(log_weights: Floats, take: int) -> Floats:
    """Return `mu_i = 1 - exp(-w_i t)` with the one t that makes them sum to `take` [approx]."""

    def fired(log_time: float) -> Floats:
        return np.asarray(-np.expm1(-np.exp(np.minimum(log_weights + log_time, 50.0))))

    def surplus(log_time: float) -> float:
        return float(fired(log_time).sum() - take)

    lowest, highest = -np.log(2.0 * log_weights.size) - 1.0, 8.0
    if surplus(highest) <= 0:  # the others are so light that rounding hides them
        return fired(highest)
    return fired(float(brentq(surplus, lowest, highest, xtol=1e-14, rtol=1e-14)))


def _checked(similarities: Floats) -> Floats:
    listed: Floats = np.asarray(similarities, dtype=np.float64)
    if listed.ndim != 1 or not np.isfinite(listed).all() or (np.diff(listed) > 0).any():
        raise SettingError("similarities must be one list of finite numbers, descending")
    return listed


def choice_probability(
    mechanism: Mechanism, similarities: Floats, chosen: Sequence[int], sensitivity: RS = None
) -> float:
    """Return the probability that exactly the positions `chosen` become the neighbours (for small k)."""
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
    """Return the probability that successive draws from one pool give `chosen` in any order."""
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
