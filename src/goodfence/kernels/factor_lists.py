"""Lists by popularity and factors, for many profiles of ones.

Scores are made in single precision, which is fast; the best are ranked by double precision, so a list does not depend
on how many are made together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from goodfence.arrays import AnyIntegers, Csr, Flags, Float32s, Floats, Integers, Rows
from goodfence.kernels import inner, kernel
from goodfence.kernels.lists import NO_ITEM, insert
from goodfence.kernels.order import kth_largest

FEW = 6.0
"""So many items in a profile are few: n of them count by n/(n + FEW (1 - t)/t) along a factor that is trusted by t."""
OWN = 2.0
"""An account's items may carry a factor so many times as much as they carry all factors in the mean."""
HEAD_START = 1e-3
"""What is added to a profile's weight along popularity, so that an empty profile is listed what is popular."""
TILE, _TOGETHER = 512, 16
"""So many items are scored at a time, for so many profiles."""
_CHAINS = 64
"""The scores are cut into so many parts, whose highest give a lower bound of the best."""
_SPARE = 4
"""How many more than the best are scored again: single precision misplaces neighbours in a list, and not these."""


class Loadings(NamedTuple):
    """Popularity and factors as the kernels take them. Items with factors are *chosen*, in ascending order."""

    places: Rows
    """(items,): where an item is among the chosen, -1 if it is not."""
    liked: Floats
    """(items,): popularity, as far as it is positive."""
    chosen: Integers
    """(chosen,): their columns."""
    factors: Float32s
    """(chosen, factors): loadings in single precision."""
    table: Floats
    """(chosen, 1 + factors): popularity, and loadings."""
    tiles: Float32s
    """(tiles, 1 + factors, TILE): the same in single precision, item beside item, the last tile filled with zeros."""
    lengths: Floats
    """(factors,): the sum of the squared loadings of each."""
    in_mean: Floats
    """(chosen,): an item's share of that, in the mean over the factors."""


@inner
def _weigh_profile(columns: AnyIntegers, model: Loadings, sums: Float32s, weights: Floats) -> None:
    """Write what popularity and each factor count for a profile, (1 + factors,); `sums` is space, (2, factors)."""
    popular, in_mean, n_chosen = 0.0, 0.0, 0
    sums[:] = np.float32(0.0)
    along, carried = sums[0], sums[1]
    for column in columns:
        popular += model.liked[column]
        place = model.places[column]
        if place >= 0:
            n_chosen += 1
            in_mean += model.in_mean[place]
            own = model.factors[place]
            for factor in range(along.size):
                along[factor] += own[factor]
                carried[factor] += own[factor] * own[factor]
    weights[0] = popular + HEAD_START
    for factor in range(along.size):
        length = model.lengths[factor]
        trust = min(length, 1.0)
        told = max(n_chosen, 1) * trust
        counted = told / (told + FEW * (1.0 - trust) + 1e-300)
        # Fakes that hold the same items make a factor of their own, which would show what else goes with these.
        most = OWN * in_mean * length
        if carried[factor] > most:
            counted *= (most / carried[factor]) ** 4
        weights[factor + 1] = along[factor] * counted


@kernel
def weigh_profiles(profiles: Csr, model: Loadings, weights: Floats) -> None:
    """Write the weights of every profile, (profiles, 1 + factors)."""
    sums = np.empty((2, model.lengths.size), dtype=np.float32)
    for row in range(weights.shape[0]):
        own = profiles.columns[profiles.starts[row] : profiles.starts[row + 1]]
        _weigh_profile(own, model, sums, weights[row])


@inner
def _score(weights: Floats, loadings: Floats) -> float:
    """Return the score of one item: four sums side by side, which do not wait for each other."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = weights.size - weights.size % 4
    for first in range(0, whole, 4):
        a += weights[first] * loadings[first]
        b += weights[first + 1] * loadings[first + 1]
        c += weights[first + 2] * loadings[first + 2]
        d += weights[first + 3] * loadings[first + 3]
    for rest in range(whole, weights.size):
        a += weights[rest] * loadings[rest]
    return (a + b) + (c + d)


@kernel
def rank_by_factors(
    profiles: Csr, model: Loadings, allowed: Flags, columns: Rows, scores: Floats, popular: Floats
) -> None:
    """Write for every profile the best chosen items that are allowed and not in it, and its weight of popularity."""
    (n_rows, n), n_chosen, n_factors = columns.shape, model.chosen.size, model.lengths.size
    barred = np.flatnonzero(~allowed[model.chosen])
    weights = np.zeros((_TOGETHER, n_factors + 1))
    rough_weights = np.zeros((_TOGETHER, n_factors + 1), dtype=np.float32)
    sums = np.empty((2, n_factors), dtype=np.float32)
    rough = np.empty((_TOGETHER, model.tiles.shape[0], TILE), dtype=np.float32)
    highest = np.empty(_CHAINS, dtype=np.float32)
    likely = np.empty(n_chosen, dtype=np.int32)
    best = np.empty(min(n + _SPARE, n_chosen), dtype=np.int32)
    best_rough = np.empty(best.size, dtype=np.float32)
    for first in range(0, n_rows, _TOGETHER):
        last = min(first + _TOGETHER, n_rows)
        for row in range(first, last):
            own = profiles.columns[profiles.starts[row] : profiles.starts[row + 1]]
            _weigh_profile(own, model, sums, weights[row - first])
            popular[row] = weights[row - first, 0]
        rough_weights[:] = weights
        _add_up(rough_weights, model.tiles, rough)
        for row in range(first, last):
            mine = rough[row - first].reshape(-1)[:n_chosen]
            mine[barred] = -np.inf
            for column in profiles.columns[profiles.starts[row] : profiles.starts[row + 1]]:
                if model.places[column] >= 0:
                    mine[model.places[column]] = -np.inf
            n_best, n_listed = _best_of(mine, highest, likely, best, best_rough), 0
            for place in best[:n_best]:
                score = _score(weights[row - first], model.table[place])
                n_listed = insert(model.chosen[place], score, columns[row], scores[row], n_listed)
            columns[row, n_listed:] = NO_ITEM
            scores[row, n_listed:] = np.nan


@inner
def _add_up(weights: Float32s, tiles: Float32s, scores: Float32s) -> None:
    """Write the scores of all chosen items, (profiles, tiles, TILE), for a multiple of four profiles, tile by tile."""
    n_lines = tiles.shape[1]
    whole = 1 + (n_lines - 1) // 4 * 4
    for tile in range(tiles.shape[0]):
        for row in range(0, weights.shape[0], 4):
            for profile in range(row, row + 4):
                _begin(weights[profile, 0], tiles[tile, 0], scores[profile, tile])
            for line in range(1, whole, 4):
                _add_lines(
                    weights[row : row + 4, line : line + 4],
                    tiles[tile, line : line + 4],
                    scores[row, tile],
                    scores[row + 1, tile],
                    scores[row + 2, tile],
                    scores[row + 3, tile],
                )
            for line in range(whole, n_lines):
                for profile in range(row, row + 4):
                    _add_line(weights[profile, line], tiles[tile, line], scores[profile, tile])


@inner
def _begin(weight: float, line: Float32s, sums: Float32s) -> None:
    for item in range(TILE):
        sums[item] = weight * line[item]


@inner
def _add_line(weight: float, line: Float32s, sums: Float32s) -> None:
    for item in range(TILE):
        sums[item] += weight * line[item]


@inner
def _add_lines(weights: Float32s, lines: Float32s, p: Float32s, q: Float32s, r: Float32s, s: Float32s) -> None:
    """Add four lines of a tile, each times its weight, to the sums p, q, r, s of four profiles."""
    a, b, c, d = lines[0], lines[1], lines[2], lines[3]
    pa, pb, pc, pd = weights[0, 0], weights[0, 1], weights[0, 2], weights[0, 3]
    qa, qb, qc, qd = weights[1, 0], weights[1, 1], weights[1, 2], weights[1, 3]
    ra, rb, rc, rd = weights[2, 0], weights[2, 1], weights[2, 2], weights[2, 3]
    sa, sb, sc, sd = weights[3, 0], weights[3, 1], weights[3, 2], weights[3, 3]
    for item in range(TILE):
        at_a, at_b, at_c, at_d = a[item], b[item], c[item], d[item]
        p[item] += (pa * at_a + pb * at_b) + (pc * at_c + pd * at_d)
        q[item] += (qa * at_a + qb * at_b) + (qc * at_c + qd * at_d)
        r[item] += (ra * at_a + rb * at_b) + (rc * at_c + rd * at_d)
        s[item] += (sa * at_a + sb * at_b) + (sc * at_c + sd * at_d)


@inner
def _best_of(rough: Float32s, highest: Float32s, likely: Rows, best: Rows, best_rough: Float32s) -> int:
    """Write the places of the best scores, best first, and return how many; `likely` is filled without a branch."""
    least, n_likely, n_best = _lower_bound(rough, highest, best.size), 0, 0
    for place in range(rough.size):
        likely[n_likely] = place
        n_likely += rough[place] >= least
    for place in likely[:n_likely]:
        if rough[place] > -np.inf:
            n_best = insert(place, rough[place], best, best_rough, n_best)
    return n_best


@inner
def _lower_bound(rough: Float32s, highest: Float32s, n: int) -> float:
    """Return what at least n scores reach: the n-th of the highest of every so many; minus infinity for many."""
    if not 0 < n <= highest.size:
        return -np.inf
    highest[:] = -np.inf
    for first in range(0, rough.size - highest.size + 1, highest.size):
        some = rough[first : first + highest.size]
        for chain in range(highest.size):
            highest[chain] = some[chain] if some[chain] > highest[chain] else highest[chain]
    return float(kth_largest(highest, n))
