"""Lists by a dense matrix of weights between items, for many profiles of ones.

An item's score is the sum of what the items of the profile weigh for it, in single precision and always in the same
order, so that a list does not depend on how many are made together. The items that most lists have are scored first.
Sums of 8-bit weights, whose error is bounded, then rule out nearly all others; the rest are scored one by one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types, uintp
from numba.extending import intrinsic, overload
from numba.np.numpy_support import as_dtype

from goodfence.arrays import AnyIntegers, Csr, Flags, Float32s, Floats, Integers, Rows
from goodfence.kernels import inner, kernel
from goodfence.kernels.lists import NO_ITEM, insert
from goodfence.kernels.tiles.strips import UNROLL, emit_load, emit_sums, spread

HEAD_START = np.float32(1e-4)
"""What every profile adds to popularity, so that an empty one is listed what is popular."""
TILE, HOT = 64, 10
"""So many items are scored at a time, and so many tiles of them exactly for every profile."""
ZERO = 128
"""The byte of a weight of 0."""
_LOWEST, _HALVINGS = np.finfo(np.float32).min, 10
_FLOATS, _WORDS = ir.VectorType(ir.FloatType(), TILE), ir.VectorType(ir.IntType(16), TILE // 2)


class ItemWeights(NamedTuple):
    """Weights between the *chosen* items as the kernels take them, the items that most lists have first.

    A profile holds two items more: the head start, which every profile has, and one of no weight to fill profiles up.
    """

    places: Rows
    """(items,): where an item is among the chosen, -1 if it is not."""
    chosen: Integers
    """(chosen,): their columns."""
    popularity: Floats
    """(items,): how popular each item is."""
    others: Integers
    """The columns of the items that are not chosen, the most popular first."""
    weights: Float32s
    """(tiles, chosen + 2, TILE): what each adds to the score of a tile's items; minus infinity to its own."""
    turned: Float32s
    """(chosen, chosen + 2): the same, by the item that is scored; nothing to its own."""
    rough: npt.NDArray[np.uint8]
    """As `weights`, in steps from ZERO, wrong by at most 1/2; the halves of a tile alternate."""
    steps: Float32s
    """(tiles, TILE): how large the steps of an item are: so that no sum overflows 16 bits."""


class _Held(NamedTuple):
    held: npt.NDArray[np.uint16]
    """The places of the items of some profiles; of each a multiple of UNROLL."""
    starts: Integers
    """(profiles + 1,): where the items of each begin."""
    along: Floats
    """(profiles,): how popular they are."""


@inner
def _lay_out(profiles: Csr, model: ItemWeights) -> _Held:
    n_rows, n_held = profiles.starts.size - 1, 0
    room = profiles.starts[n_rows] - profiles.starts[0] + UNROLL * n_rows
    held, starts = np.empty(room, dtype=np.uint16), np.zeros(n_rows + 1, dtype=np.int64)
    along = np.full(n_rows, float(HEAD_START))
    for row in range(n_rows):
        held[n_held] = model.chosen.size
        n_held += 1
        for column in profiles.columns[profiles.starts[row] : profiles.starts[row + 1]]:
            if model.places[column] >= 0:
                held[n_held] = model.places[column]
                n_held += 1
                along[row] += max(model.popularity[column], 0.0)
        while n_held % UNROLL > 0:
            held[n_held] = model.chosen.size + 1
            n_held += 1
        starts[row + 1] = n_held
    return _Held(held, starts, along)


@kernel
def add_weights(profiles: Csr, model: ItemWeights, scores: Float32s, along: Floats) -> None:
    """Write the scores of the chosen items, (profiles, tiles * TILE), and how popular those in the profiles are."""
    block = _lay_out(profiles, model)
    along[:] = block.along
    for row in range(along.size):
        for tile in range(model.steps.shape[0]):
            sum_rows(model.weights, tile, block, row, scores[row, tile * TILE : (tile + 1) * TILE])
        for place in block.held[block.starts[row] : block.starts[row + 1]]:
            if place < model.chosen.size:
                scores[row, place] = _score(model.turned[place], block, row)


@inner
def _score(weights: Float32s, block: _Held, row: int) -> Any:
    """Return the score of one item for a profile, added up as in a tile."""
    total = np.float32(0)
    for place in block.held[block.starts[row] : block.starts[row + 1]]:
        total += weights[place]
    return total


@kernel
def rank_by_weights(profiles: Csr, model: ItemWeights, allowed: Flags, columns: Rows, scores: Floats) -> None:
    """Write for every profile the best items that are allowed and not in it; those not chosen score by popularity."""
    block, (n_rows, n), n_tiles = _lay_out(profiles, model), columns.shape, model.steps.shape[0]
    hot = np.empty((n_rows, min(HOT, n_tiles) * TILE), dtype=np.float32)
    for tile in range(hot.shape[1] // TILE):
        for row in range(n_rows):
            sum_rows(model.weights, tile, block, row, hot[row, tile * TILE : (tile + 1) * TILE])
    hot[:, np.flatnonzero(~allowed[model.chosen[: hot.shape[1]]])] = -np.inf
    n_best = _rank_hot(hot, model.chosen, columns, scores)
    sums, least = np.empty(TILE, dtype=np.int16), np.full(n_rows, _LOWEST, dtype=np.float32)
    for tile in range(HOT, n_tiles):
        for row in range(n_rows):
            sum_rows(model.rough, tile, block, row, sums)
            if n_best[row] == n:
                least[row] = scores[row, -1]
            # Each item held may be wrong by half a step; the rest is for rounding.
            n_held = block.starts[row + 1] - block.starts[row]
            slack, n_likely = np.float32(n_held // 2 + n_held // 64 + 2), 0
            for item in range(TILE):
                n_likely += (np.float32(sums[item]) + slack) * model.steps[tile, item] >= least[row]
            for item in range(TILE if n_likely > 0 else 0):
                place = tile * TILE + item
                if (np.float32(sums[item]) + slack) * model.steps[tile, item] < least[row]:
                    continue
                if place < model.chosen.size and allowed[model.chosen[place]] and not _holds(block, row, place):
                    score = _score(model.turned[place], block, row)
                    n_best[row] = insert(model.chosen[place], score, columns[row], scores[row], n_best[row])
    for row in range(n_rows):
        own = profiles.columns[profiles.starts[row] : profiles.starts[row + 1]]
        for column in model.others:
            score = block.along[row] * model.popularity[column]
            if n_best[row] == n and score < scores[row, -1]:
                break
            if allowed[column] and not (own == column).any():
                n_best[row] = insert(column, score, columns[row], scores[row], n_best[row])
        columns[row, n_best[row] :] = NO_ITEM
        scores[row, n_best[row] :] = np.nan


@inner
def _holds(block: _Held, row: int, place: int) -> bool:
    return bool((block.held[block.starts[row] : block.starts[row + 1]] == place).any())


@inner
def _rank_hot(hot: Float32s, chosen: Integers, columns: Rows, scores: Floats) -> Integers:
    """Write the lists of the first items; return how long they are. The place of each is how many are better."""
    (n_rows, n_hot), n = hot.shape, columns.shape[1]
    highest, n_best = np.empty(TILE, dtype=np.float32), np.empty(n_rows, dtype=np.int64)
    likely, of_likely = np.empty(n_hot + 1, dtype=np.int32), np.empty(n_hot + 1, dtype=np.float32)
    for row in range(n_rows):
        least, n_likely = _lower_bound(hot[row], n, highest), 0
        for place in range(min(n_hot, chosen.size)):
            likely[n_likely], of_likely[n_likely] = chosen[place], hot[row, place]
            n_likely += hot[row, place] >= least
        for at in range(n_likely):
            column, score, before = likely[at], of_likely[at], 0
            for other in range(n_likely):
                before += (of_likely[other] > score) | ((of_likely[other] == score) & (likely[other] < column))
            if before < n:
                columns[row, before], scores[row, before] = column, score
        n_best[row] = min(n, n_likely)
    return n_best


@inner
def _lower_bound(found: Float32s, n: int, highest: Float32s) -> Any:
    """Return what at least n scores reach, by the highest of every so many; more than minus infinity."""
    highest[:] = -np.inf
    for place in range(0, found.size, TILE):
        some = found[place : place + TILE]
        for item in range(TILE):
            highest[item] = max(highest[item], some[item])
    least, high = highest.min(), highest.max()
    if n > TILE or least < _LOWEST:
        return _LOWEST
    for _ in range(_HALVINGS):
        middle, reached = (least + high) * np.float32(0.5), 0
        for item in range(TILE):
            reached += highest[item] >= middle
        least, high = (middle, high) if reached >= n else (least, middle)
    return least


def sum_rows(table: Any, tile: int, block: _Held, row: int, sums: AnyIntegers | Float32s) -> None:
    """Write the sums of the rows of a tile that a profile holds; of bytes in steps, and the halves one after the other."""
    rows = table[tile, block.held[block.starts[row] : block.starts[row + 1]]]
    if table.dtype == np.float32:
        sums[:] = rows.sum(axis=0)
    else:
        sums[:] = (rows.astype(np.int64) - ZERO).sum(axis=0).reshape(-1, 2).T.ravel()


@overload(sum_rows)
def _compiled_sum_rows(table: Any, tile: Any, block: Any, row: Any, sums: Any) -> Any:
    zero = as_dtype(table.dtype).type(0)

    def add(table: Any, tile: Any, block: Any, row: Any, sums: Any) -> None:
        first, count = block.starts[row], block.starts[row + 1] - block.starts[row]
        rows, items = table.ctypes.data + tile * table.strides[0], block.held.ctypes.data + 2 * first
        _sum_rows(uintp(rows), uintp(items), uintp(count), uintp(sums.ctypes.data), zero)  # type: ignore[call-arg]

    return add


@intrinsic
def _sum_rows(_context: Any, table: Any, items: Any, count: Any, sums: Any, zero: Any) -> Any:
    """Do what `sum_rows` says; the first four are addresses and a count, `zero` is of the kind of the table."""
    exact = zero == types.float32
    kind, size = (_FLOATS, 4 * TILE) if exact else (_WORDS, TILE)
    eight = ir.Constant(_WORDS, [8] * (TILE // 2))

    def emit(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        table, items, count, sums, _ = arguments

        def emit_row(number: Any) -> list[Any]:
            start = builder.add(table, builder.mul(number, ir.Constant(number.type, size)))
            row = emit_load(builder, start, kind)
            return [row] if exact else [row, builder.lshr(row, eight)]

        totals = emit_sums(builder, [kind] if exact else [kind] * 2, items, count, emit_row)
        if not exact:  # a word of a row is two bytes: the sums of the upper ones tell those of the lower ones
            zeros = builder.mul(builder.trunc(count, kind.element), ir.Constant(kind.element, ZERO))
            totals[0] = builder.sub(totals[0], builder.shl(totals[1], eight))
            totals = [builder.sub(total, spread(builder, kind, zeros)) for total in totals]
        out = builder.inttoptr(sums, kind.as_pointer())
        for place, total in enumerate(totals):
            builder.store(total, builder.gep(out, [ir.Constant(ir.IntType(32), place)])).align = 2
        return context.get_dummy_value()

    return types.void(*[types.uintp] * 4, zero), emit
