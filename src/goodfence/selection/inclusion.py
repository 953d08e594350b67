"""How likely each candidate is to be a neighbour; the expected sum of similarities [ACCURACY]."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from scipy.optimize import brentq

from goodfence.errors import SettingError, require
from goodfence.kernels.inclusion import inclusion
from goodfence.selection.mechanism import RS, Floats, Mechanism, weights_if_drawn

Method: TypeAlias = Literal["exact", "manly"]

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
_EXTREME = 700.0  # beyond e^700 to 1 an order is certain


def inclusion_probabilities(
    mechanism: Mechanism, similarities: Floats, sensitivity: RS = None, *, method: Method = "exact"
) -> Floats:
    """Return the probability mu of each candidate of one list to be among the k neighbours.

    Parameters
    ----------
    similarities
        Shape (n,), descending.
    sensitivity
        RS of the target; with `scope="pair"` of shape (n,).
    method
        `exact`, or Manly's approximation [approx].

    Examples
    --------
    >>> from goodfence.selection.npns import NPNS
    >>> inclusion_probabilities(NPNS(k=1), np.array([0.5, 0.3, 0.2])).round(6)
    array([0.5, 0.3, 0.2])
    """
    require(method in ("exact", "manly"), "method", "'exact' or 'manly'", method)
    listed = _checked(similarities)
    pools = mechanism.pools(listed, sensitivity)
    log_weights = weights_if_drawn(mechanism, pools, listed, sensitivity)
    included = np.zeros(listed.shape)
    for pool in pools:
        start, stop, take = int(pool.start), int(pool.stop), int(pool.take)
        included[start:stop] = pool_inclusion(log_weights[start:stop], take, method=method)
    return included


def alpha(
    mechanism: Mechanism, similarities: Floats, sensitivity: RS = None, *, method: Method = "exact"
) -> float:
    """Return the expected sum of the k neighbours' similarities [ACCURACY].

    Examples
    --------
    >>> from goodfence.selection.knn import KNN
    >>> alpha(KNN(k=2), np.array([0.5, 0.25, 0.2]))
    0.75
    """
    listed = _checked(similarities)
    return float(listed @ inclusion_probabilities(mechanism, listed, sensitivity, method=method))


def pool_inclusion(log_weights: Floats, take: int, *, method: Method = "exact") -> Floats:
    """Return the inclusion probabilities of `take` successive draws from one pool.

    Candidates of log-weight -inf are drawn last, uniformly.

    Examples
    --------
    >>> pool_inclusion(np.log([3.0, 2.0, 1.0]), 2).round(6)
    array([0.85    , 0.733333, 0.416667])
    """
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


def _among_weighted(log_weights: Floats, take: int, method: Method) -> Floats:
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
