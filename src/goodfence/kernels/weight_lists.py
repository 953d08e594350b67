"""Lists by a dense matrix of weights between items, for many profiles of ones.

An item's score is the sum of what the items of the profile weigh for it, in single precision and always in the same
order, so that a list does not depend on how many are made together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from goodfence.arrays import Csr, Flags, Float32s, Floats, Integers, Rows
from goodfence.kernels import inner, kernel
from goodfence.kernels.lists import NO_ITEM, insert
from goodfence.kernels.order import kth_largest

HEAD_START = np.float32(1e-4)
"""What every profile adds to popularity, so that an empty one is listed what is popular."""
TILE, _TOGETHER = 128, 256
"""So many items are scored at a time, for so many profiles: the weights of a tile stay in the nearest memory."""
_CHAINS = 64
"""The scores are cut into so many parts, whose highest give a lower bound of the best."""


class ItemWeights(NamedTuple):
    """Weights between the *chosen* items, which are in ascending order, as the kernels take them."""

    places: Rows
    """(items,): where an item is among the chosen, -1 if it is not."""
    chosen: Integers
    """(chosen,): their columns."""
    popular: Float32s
    """(tiles * TILE,): how popular they are, the last tile filled with zeros."""
    tiles: Float32s
    """(tiles, chosen, TILE): what each adds to the score of the items of a tile, the last one filled with zeros."""


@kernel
def add_weights(profiles: Csr, model: ItemWeights, scores: Float32s, along: Floats) -> None:
    """Write the scores of the chosen items, (profiles, tiles * TILE), and how popular those in the profiles are."""
    held = np.empty(profiles.starts[scores.shape[0]] - profiles.starts[0], dtype=np.int32)
    starts = np.zeros(scores.shape[0] + 1, dtype=np.int64)
    for row in range(scores.shape[0]):
        n_held, popular = starts[row], float(HEAD_START)
        for at in range(profiles.starts[row], profiles.starts[row + 1]):
            place = model.places[profiles.columns[at]]
            if place >= 0:
                held[n_held] = place
                n_held += 1
                popular += model.popular[place]
        starts[row + 1], along[row] = n_held, popular
    for tile in range(model.tiles.shape[0]):
        part = slice(tile * TILE, (tile + 1) * TILE)
        for row in range(scores.shape[0]):
            _add_rows(held[starts[row] : starts[row + 1]], model.tiles[tile], model.popular[part], scores[row, part])


@inner
def _add_rows(held: Rows, weights: Float32s, popular: Float32s, sums: Float32s) -> None:
    """Write the sum of the rows of the items that are held, four at a time."""
    for item in range(TILE):
        sums[item] = HEAD_START * popular[item]
    whole = held.size - held.size % 4
    for first in range(0, whole, 4):
        a, b = weights[held[first]], weights[held[first + 1]]
        c, d = weights[held[first + 2]], weights[held[first + 3]]
        for item in range(TILE):
            sums[item] += (a[item] + b[item]) + (c[item] + d[item])
    for rest in range(whole, held.size):
        a = weights[held[rest]]
        for item in range(TILE):
            sums[item] += a[item]


@kernel
def rank_by_weights(
    profiles: Csr, model: ItemWeights, allowed: Flags, columns: Rows, scores: Floats, along: Floats
) -> None:
    """Write for every profile the best chosen items that are allowed and not in it, and how popular its items are."""
    (n_rows, n), n_chosen = columns.shape, model.chosen.size
    barred = np.flatnonzero(~allowed[model.chosen])
    found = np.empty((min(_TOGETHER, n_rows), model.popular.size), dtype=np.float32)
    highest = np.empty(_CHAINS, dtype=np.float32)
    likely = np.empty(n_chosen, dtype=np.int32)
    best = np.empty(min(n, n_chosen), dtype=np.int32)
    of_best = np.empty(best.size, dtype=np.float32)
    for first in range(0, n_rows, _TOGETHER):
        last = min(first + _TOGETHER, n_rows)
        some = Csr(profiles.starts[first : last + 1], profiles.columns, profiles.values)
        add_weights(some, model, found[: last - first], along[first:last])
        for row in range(first, last):
            mine = found[row - first, :n_chosen]
            mine[barred] = -np.inf
            for column in profiles.columns[profiles.starts[row] : profiles.starts[row + 1]]:
                if model.places[column] >= 0:
                    mine[model.places[column]] = -np.inf
            n_best = _best_of(mine, highest, likely, best, of_best)
            for place in range(n_best):
                columns[row, place], scores[row, place] = model.chosen[best[place]], of_best[place]
            columns[row, n_best:] = NO_ITEM
            scores[row, n_best:] = np.nan


@inner
def _best_of(scores: Float32s, highest: Float32s, likely: Rows, best: Rows, of_best: Float32s) -> int:
    """Write the places of the best scores, best first, and return how many; `likely` is filled without a branch."""
    least, n_likely, n_best = _lower_bound(scores, highest, best.size), 0, 0
    for place in range(scores.size):
        likely[n_likely] = place
        n_likely += scores[place] >= least
    for place in likely[:n_likely]:
        if scores[place] > -np.inf:
            n_best = insert(place, scores[place], best, of_best, n_best)
    return n_best


@inner
def _lower_bound(scores: Float32s, highest: Float32s, n: int) -> float:
    """Return what at least n scores reach: the n-th of the highest of every so many; minus infinity for many."""
    if not 0 < n <= highest.size:
        return -np.inf
    highest[:] = -np.inf
    for first in range(0, scores.size - highest.size + 1, highest.size):
        some = scores[first : first + highest.size]
        for chain in range(highest.size):
            highest[chain] = some[chain] if some[chain] > highest[chain] else highest[chain]
    return float(kth_largest(highest, n))
