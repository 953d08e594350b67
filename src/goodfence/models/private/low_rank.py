"""Post-processing: item factors from a noisy covariance, by variational Bayes.

The covariance of items i and j is taken as a_i a_j q_i·q_j plus noise of known size, where a_i says how much of the
ratings item i has. Each factor's strength is estimated (automatic relevance determination), so that one which is all
noise shrinks to nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import eigsh

from goodfence.models.private.covariance import Covariance
from goodfence.privacy.fixed_point import Floats

MOST_FACTORS = 40
_SPARE = 4
"""Factors tried beyond those whose eigenvalue stands out of the noise."""
_STEPS = 25
_DAMPING = 0.5

Float32s = npt.NDArray[np.float32]


def factorise(covariance: Covariance, reach: Floats, chance: float) -> Floats:
    """Return the items' factors q, one row an item.

    Parameters
    ----------
    covariance
        What was released.
    reach
        a, one number an item.
    chance
        Besides the noise, who happened to rate both items makes their covariance vary, by this times a_i a_j.
    """
    reach = np.maximum(reach, max(float(reach.max()), 1e-12) * 1e-3)
    # noise² + chance a_i a_j is nearly n_i n_j with these n; dividing by their roots makes all entries equally noisy.
    spread = np.sqrt(covariance.noise**2 + chance * reach**2)
    scale = (1 / np.sqrt(spread)).astype(np.float32)
    even = Covariance(covariance.matrix * scale[:, None] * scale[None, :], 1.0)
    return _factors(even, reach * scale)


def _factors(covariance: Covariance, reach: Floats) -> Floats:
    """Return the factors of a covariance whose entries are all equally noisy."""
    factors = _start(covariance, reach)
    n_items, rank = factors.shape
    if rank == 0:
        return factors
    spread = np.zeros((n_items, rank, rank))
    strength = 1 / (_mean_square(factors, reach) + 1e-6)
    squared = reach**2
    precision = squared / covariance.noise**2
    for _ in range(_STEPS):
        loaded = reach[:, None] * factors
        own = loaded[:, :, None] * loaded[:, None, :] + squared[:, None, None] * spread
        inverse = precision[:, None, None] * (own.sum(axis=0) - own)
        inverse[:, np.arange(rank), np.arange(rank)] += strength
        spread = np.linalg.inv(inverse)
        pull = (covariance.matrix @ loaded.astype(np.float32)).astype(np.float64)
        pull *= (reach / covariance.noise**2)[:, None]
        found = np.einsum("ijk,ik->ij", spread, pull)
        factors = _DAMPING * factors + (1 - _DAMPING) * found
        diagonal = np.einsum("ijj->j", spread)
        strength = n_items / ((factors**2).sum(axis=0) + diagonal + 1e-9)
    return factors


def _start(covariance: Covariance, reach: Floats) -> Floats:
    """Return factors from the leading eigenvectors, their eigenvalues shrunk by what noise adds."""
    matrix, n_items = covariance.matrix, len(reach)
    most = min(MOST_FACTORS, n_items - 1)
    if most < 1:
        return np.zeros((n_items, 0))
    # A fixed start, not a random one: the same release gives the same factors.
    values, vectors = eigsh(matrix, k=most, which="LA", v0=np.ones(n_items, dtype=np.float32))
    order = np.argsort(-values)
    edge = 2 * covariance.noise * np.sqrt(n_items)
    rank = min(most, int((values > edge).sum()) + _SPARE)
    kept = np.maximum(values[order[:rank]].astype(np.float64), 1e-9)
    shrunk = np.sqrt(np.maximum(kept**2 - edge**2, (0.2 * kept) ** 2))
    factors = vectors[:, order[:rank]] * np.sqrt(shrunk) / reach[:, None]
    limit = 3 * np.sqrt(_mean_square(factors, reach))
    return np.asarray(np.clip(factors, -limit, limit))


def _mean_square(factors: Floats, reach: Floats) -> Floats:
    squares: Floats = (reach[:, None] ** 2 * factors**2).sum(axis=0) / (reach**2).sum()
    return squares
