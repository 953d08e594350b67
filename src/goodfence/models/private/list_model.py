"""What `PrivateTopN` makes of its releases, and how a profile is scored with it (post-processing)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from goodfence.arrays import AnyFloats, AnyIntegers, Float32s, Floats, Integers
from goodfence.models.private.co_occurrence import CoOccurrence, ItemCounts
from goodfence.models.private.estimation import leading_eigenvectors

MOST_FACTORS = 64
FARTHEST = 1e3
"""No popularity or factor loading is farther from 0: far beyond what is found, whatever the noise."""
_SPARE_FACTORS = 4
"""Factors kept beyond those whose eigenvalue stands out of the noise, but no more than these are."""
_DOUBT = 2.0
"""How much of a factor is doubted: it counts by w²/(w² + _DOUBT·edge²/4), w being its eigenvalue."""
_FEW = 6.0
"""So many items in a profile are few: n of them count by n/(n + _FEW (1 - t)/t) along a factor that is trusted by t."""
_ROUNDS = 2
"""How often the diagonal, which is not released, is filled in from the factors."""
_HEAD_START = 1e-3
"""What is added to a profile's weight along popularity, so that an empty profile is listed what is popular."""


@dataclass(frozen=True, slots=True)
class ListModel:
    """Every item's popularity and its loadings on the factors: all that is kept of the releases."""

    popularity: Floats
    """(items,): noisy counts, those of the chosen items of length 1."""
    factors: Floats
    """(items, factors): loadings, zero for items that were not chosen."""

    def weigh(self, profiles: sparse.csr_array) -> Floats:
        """Return the weights of popularity and of each factor for some profiles of ones, (profiles, 1 + factors).

        That of popularity is its sum, as far as it is positive, over the profile, plus 0.001; that of a factor the sum
        of its loadings, less the less it is trusted and the fewer items with factors the profile has.
        """
        return self.weigher()(profiles)

    def weigher(self) -> Callable[[sparse.csr_array], Floats]:
        """Return what `weigh` does, prepared for many calls."""
        liked, known = np.maximum(self.popularity, 0.0), self.factors.any(axis=1)
        table = np.concatenate([np.stack([liked, known], axis=1), self.factors], axis=1)
        trust = np.minimum((self.factors**2).sum(axis=0), 1.0)

        def weigh(profiles: sparse.csr_array) -> Floats:
            found: Floats = profiles @ table
            told = np.maximum(found[:, 1:2], 1.0) * trust
            weights: Floats = found[:, 1:]
            weights[:, 0] = found[:, 0] + _HEAD_START
            weights[:, 1:] *= told / (told + _FEW * (1.0 - trust) + 1e-300)
            return weights

        return weigh

    def scores(self, weights: Floats, columns: AnyIntegers | slice = slice(None)) -> Floats:
        """Return the scores of items for profiles of these weights: their sum over popularity and loadings."""
        found: Floats = weights @ self.table(columns).T
        return found

    def table(self, columns: AnyIntegers | slice = slice(None)) -> Floats:
        """Return popularity and loadings of some items, (items, 1 + factors)."""
        return np.concatenate([self.popularity[columns, None], self.factors[columns]], axis=1)


def most_frequent(counts: Floats, n: int) -> Integers:
    """Return the columns of the n items with the largest noisy counts, ascending."""
    return np.sort(np.argsort(-counts, kind="stable")[:n]).astype(np.int64)


def positive_counts(items: ItemCounts, chosen: AnyIntegers) -> Floats:
    """Return the noisy counts of the chosen items, at least their noise each."""
    return np.maximum(items.counts[chosen], items.noise)


def popularity_of(items: ItemCounts, chosen: AnyIntegers) -> Floats:
    """Return all noisy counts over the length of those of the chosen items."""
    kept = positive_counts(items, chosen)
    return items.counts / math.sqrt(float(kept @ kept))


def factorise(found: CoOccurrence, centre: Floats) -> Floats:
    """Return the loadings of the chosen items on what stands out of the noise, each factor as long as it is trusted.

    Eigenvectors, without what the centre explains. The diagonal is not released; it is filled in from the factors.
    """
    n_items = len(found.matrix)
    most = min(MOST_FACTORS, n_items - 1)
    if most < 1:
        return np.zeros((n_items, 0))
    edge = 2 * found.noise * math.sqrt(n_items)
    matrix: Float32s = found.matrix.astype(np.float32)
    for _ in range(_ROUNDS):
        values, vectors = leading_eigenvectors(matrix, most)
        clear = values > edge
        np.fill_diagonal(matrix, (vectors[:, clear] ** 2) @ _true_values(values[clear], edge))
    values, vectors = leading_eigenvectors(matrix, most)
    n_clear = int((values > edge).sum())
    rank = min(most, n_clear + min(n_clear, _SPARE_FACTORS))
    kept = np.maximum(values[:rank].astype(np.float64), 0.0)
    trust = kept**2 / (kept**2 + _DOUBT * edge**2 / 4 + 1e-300)
    rest = vectors[:, :rank] - np.outer(centre, centre @ vectors[:, :rank])
    factors: Floats = rest * np.sqrt(trust)
    return factors


def _true_values(values: AnyFloats, edge: float) -> AnyFloats:
    """Return what an eigenvector above the edge is expected to carry: its value without noise, as far as it is its own.

    Noise raises an eigenvalue l to l + e²/l and turns its eigenvector so that 1 - e²/l² of its square is left, where
    2 e is the edge [Benaych-Georges and Nadakuditi 2011].
    """
    true = (values + np.sqrt(np.maximum(values**2 - edge**2, 0.0))) / 2
    carried: AnyFloats = true - (edge / 2) ** 2 / np.maximum(true, 1e-300)
    return carried
