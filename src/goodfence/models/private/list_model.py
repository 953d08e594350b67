"""What `PrivateTopN` makes of its releases, and how a profile is scored with it (post-processing)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from goodfence.arrays import AnyFloats, Csr, Flags, Float32s, Floats
from goodfence.kernels.factor_lists import TILE, Loadings, rank_by_factors, weigh_profiles
from goodfence.kernels.lists import merge_lists
from goodfence.models.private.estimation import leading_eigenvectors
from goodfence.models.private.releases import Noisy
from goodfence.neighbours.lists import Ranked, as_csr, no_lists, rank_alike
from goodfence.parallel import ranges, run

MOST_FACTORS = 64
FARTHEST = 1e3
"""No popularity or factor loading is farther from 0: far beyond what is found, whatever the noise."""
_SPARE_FACTORS = 4
"""Factors kept beyond those whose eigenvalue stands out of the noise, but no more than these are."""
_DOUBT = 2.0
"""How much of a factor is doubted: it counts by w²/(w² + _DOUBT·edge²/4), w being its eigenvalue."""
_TOGETHER = 1024
"""How many lists a thread makes at a time."""
_ROUNDS = 2
"""How often the diagonal, which is not released, is filled in from the factors."""


@dataclass(frozen=True, eq=False)
class ListModel:
    """Every item's popularity and its loadings on the factors: all that is kept of the releases."""

    popularity: Floats
    """(items,): noisy counts, those of the chosen items of length 1."""
    factors: Floats
    """(items, factors): loadings, zero for items that were not chosen."""

    @cached_property
    def loadings(self) -> Loadings:
        """The same as the kernels take it."""
        chosen = np.flatnonzero(self.factors.any(axis=1))
        places = np.full(len(self.factors), -1, dtype=np.int32)
        places[chosen] = np.arange(len(chosen))
        own = self.factors[chosen]
        table = np.concatenate([self.popularity[chosen, None], own], axis=1)
        lengths = (own**2).sum(axis=0)
        shares = own**2 / np.maximum(lengths, 1e-300)
        return Loadings(
            places,
            np.maximum(self.popularity, 0.0),
            chosen,
            own.astype(np.float32),
            np.ascontiguousarray(table),
            _in_tiles(table),
            lengths,
            shares.sum(axis=1) / max(len(lengths), 1),
        )

    def weigh(self, profiles: sparse.csr_array) -> Floats:
        """Return the weights of popularity and of each factor for some profiles of ones, (profiles, 1 + factors).

        That of popularity is its sum, as far as it is positive, over the profile, plus 0.001; that of a factor the sum
        of its loadings, less the less it is trusted, the fewer items with factors the profile has, and the more of the
        factor these items carry alone.
        """
        weights = np.empty((profiles.shape[0], 1 + self.factors.shape[1]))
        weigh_profiles(as_csr(profiles), self.loadings, weights)
        return weights

    def scores(self, weights: Floats) -> Floats:
        """Return the scores of all items for profiles of these weights: their sum over popularity and loadings."""
        found: Floats = weights[:, :1] * self.popularity
        chosen, table = self.loadings.chosen, self.loadings.table
        found[:, chosen] += weights[:, 1:] @ table[:, 1:].T
        return found

    def rank(self, profiles: sparse.csr_array, allowed: Flags, n: int) -> Ranked:
        """Return the lists of some profiles.

        Items with factors are scored for each; the others are in the same order for everybody.
        """
        model, popularity = self.loadings, self.popularity.copy()
        popularity[model.chosen] = np.nan
        others = rank_alike(popularity, profiles, allowed, n)
        lists = no_lists(profiles.shape[0], n, profiles.shape[1])

        def work(piece: tuple[int, int]) -> None:
            first, last = piece
            own = Csr(profiles.indptr[first : last + 1], profiles.indices, profiles.data)
            out = lists.columns[first:last], lists.scores[first:last]
            of_popularity = np.empty(last - first)
            rank_by_factors(own, model, allowed, *out, of_popularity)
            scores = others.scores[first:last] * of_popularity[:, np.newaxis]
            merge_lists(others.columns[first:last], scores, *out)

        run(work, ranges(profiles.shape[0], _TOGETHER))
        return lists


def _in_tiles(table: Floats) -> Float32s:
    """Return a table, (items, lines), tile by tile of items, each (lines, TILE): what is beyond the last item is 0."""
    n_items, n_lines = table.shape
    n_tiles = -(-n_items // TILE)
    padded = np.zeros((n_tiles * TILE, n_lines), dtype=np.float32)
    padded[:n_items] = table
    return np.ascontiguousarray(padded.reshape(n_tiles, TILE, n_lines).swapaxes(1, 2))


def list_factors(found: Noisy, centre: Floats) -> Floats:
    """Return the loadings of the chosen items on what stands out of the noise, each factor as long as it is trusted.

    Eigenvectors, without what the centre explains. The diagonal is not released; it is filled in from the factors.
    """
    n_items = len(found.values)
    most = min(MOST_FACTORS, n_items - 1)
    if most < 1:
        return np.zeros((n_items, 0))
    edge = 2 * found.noise * math.sqrt(n_items)
    matrix: Float32s = found.values.astype(np.float32)
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
    return np.asarray(rest * np.sqrt(trust))


def _true_values(values: AnyFloats, edge: float) -> AnyFloats:
    """Return what an eigenvector above the edge is expected to carry: its value without noise, as far as it is its own.

    Noise raises an eigenvalue l to l + e²/l and turns its eigenvector so that 1 - e²/l² of its square is left, where
    2 e is the edge [Benaych-Georges and Nadakuditi 2011].
    """
    true = (values + np.sqrt(np.maximum(values**2 - edge**2, 0.0))) / 2
    return np.asarray(true - (edge / 2) ** 2 / np.maximum(true, 1e-300))
