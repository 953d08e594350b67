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

    places: Rows  # (items,): where an item is among the chosen, -1 if it is not
    chosen: Integers  # (chosen,): their columns
    popularity: Floats  # (items,): how popular each item is
    others: Integers  # the columns of the items that are not chosen, the most popular first
    weights: Float32s  # (tiles, chosen + 2, TILE): what each adds to the scores of a tile
    rough: npt.NDArray[np.uint8]  # the same in steps from ZERO, wrong by at most 1/2; the halves of a tile alternate
    steps: Float32s  # (tiles, TILE): how large an item's steps are: so that no sum overflows 16 bits


@inner
def _lay_out(profiles: Csr, model: ItemWeights, along: Floats) -> Csr:
    """Return the places that the profiles hold, of each a multiple of UNROLL; write how popular they are."""
    n_rows, n_held = along.size, 0
    room = profiles.starts[n_rows] - profiles.starts[0] + UNROLL * n_rows
    held, starts = np.empty(room, dtype=np.uint16), np.zeros(n_rows + 1, dtype=np.int64)
    for row in range(n_rows):
        held[n_held], along[row] = model.chosen.size, HEAD_START
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
    return Csr(starts, held, profiles.values)


@kernel
def score_by_weights(profiles: Csr, model: ItemWeights, scores: Floats, exact: Float32s) -> None:
    """Write the scores of all items, (profiles, items), those of the chosen ones by way of `exact`, (tiles * TILE,)."""
    along = np.empty(scores.shape[0])
    held = _lay_out(profiles, model, along)
    for row in range(along.size):
        for tile in range(model.steps.shape[0]):
            sum_rows(model.weights, tile, held, row, exact[tile * TILE : (tile + 1) * TILE])
        scores[row] = along[row] * model.popularity
        scores[row, model.chosen] = exact[: model.chosen.size]


@kernel
def rank_by_weights(profiles: Csr, model: ItemWeights, allowed: Flags, columns: Rows, scores: Floats) -> None:
    """Write for every profile the best items that are allowed and not in it; those not chosen score by popularity."""
    (n_rows, n), along = columns.shape, np.empty(columns.shape[0])
    held = _lay_out(profiles, model, along)
    n_best = _rank_hot(held, model, allowed, columns, scores)
    _add_likely(held, model, allowed, columns, scores, n_best)
    for row in range(n_rows):
        own = profiles.columns[profiles.starts[row] : profiles.starts[row + 1]]
        for column in model.others:
            score = along[row] * model.popularity[column]
            if n_best[row] == n and score < scores[row, -1]:
                break
            if allowed[column] and not (own == column).any():
                n_best[row] = insert(column, score, columns[row], scores[row], n_best[row])
        columns[row, n_best[row] :], scores[row, n_best[row] :] = NO_ITEM, np.nan


@inner
def _rank_hot(held: Csr, model: ItemWeights, allowed: Flags, columns: Rows, scores: Floats) -> Integers:
    """Write the lists of the first items; return how long they are."""
    n_rows, chosen, n_tiles = columns.shape[0], model.chosen, min(HOT, model.steps.shape[0])
    hot, n_best = np.empty((n_rows, (n_tiles + 1) * TILE), dtype=np.float32), np.empty(n_rows, dtype=np.int64)
    highest, n_hot = np.empty(TILE, dtype=np.float32), min(n_tiles * TILE, chosen.size)
    barred = np.flatnonzero(~allowed[chosen[:n_hot]])
    for tile in range(n_tiles):
        for row in range(n_rows):
            sum_rows(model.weights, tile, held, row, hot[row, tile * TILE : (tile + 1) * TILE])
    hot[:, n_hot:] = -np.inf
    for row in range(n_rows):
        hot[row, barred] = -np.inf
        for place in held.columns[held.starts[row] : held.starts[row + 1]]:
            hot[row, min(place, n_hot)] = -np.inf
        least, n_best[row] = _lower_bound(hot[row, : n_tiles * TILE], columns.shape[1], highest), 0
        for place in range(n_hot):
            if hot[row, place] >= least:
                n_best[row] = insert(chosen[place], hot[row, place], columns[row], scores[row], n_best[row])
    return n_best


@inner
def _add_likely(held: Csr, model: ItemWeights, allowed: Flags, columns: Rows, scores: Floats, n_best: Integers) -> None:
    """Put the better ones of the other items into the lists: those whose rough score may be high are scored."""
    sums, reach = np.empty(TILE, dtype=np.int16), np.empty(TILE, dtype=np.float32)
    exact = np.empty(TILE, dtype=np.float32)
    for tile in range(HOT, model.steps.shape[0]):
        for row in range(n_best.size):
            sum_rows(model.rough, tile, held, row, sums)
            own, n_likely, known = held.columns[held.starts[row] : held.starts[row + 1]], 0, False
            # Each item held may be wrong by half a step; the rest is for rounding.
            slack = np.float32(own.size // 2 + own.size // 64 + 2)
            least = np.float32(scores[row, -1] if n_best[row] == columns.shape[1] else _LOWEST)
            for item in range(TILE):
                reach[item] = (np.float32(sums[item]) + slack) * model.steps[tile, item]
                n_likely += reach[item] >= least
            for item in range(min(TILE, model.chosen.size - tile * TILE) if n_likely > 0 else 0):
                column = model.chosen[tile * TILE + item]
                if reach[item] >= least and allowed[column] and not (own == tile * TILE + item).any():
                    if not known:
                        sum_rows(model.weights, tile, held, row, exact)
                        known = True
                    n_best[row] = insert(column, exact[item], columns[row], scores[row], n_best[row])


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


def sum_rows(table: Any, tile: int, held: Csr, row: int, sums: AnyIntegers | Float32s) -> None:
    """Write the sums of the rows of a tile that a profile holds; of bytes in steps, one half after the other."""
    rows = table[tile, held.columns[held.starts[row] : held.starts[row + 1]]]
    if table.dtype == np.float32:
        sums[:] = rows.reshape(-1, 2, 2, TILE).sum(axis=2).sum(axis=1).sum(axis=0)
    else:
        sums[:] = (rows.astype(np.int64) - ZERO).sum(axis=0).reshape(-1, 2).T.ravel()


@overload(sum_rows)
def _compiled_sum_rows(table: Any, tile: Any, held: Any, row: Any, sums: Any) -> Any:
    zero = as_dtype(table.dtype).type(0)

    def add(table: Any, tile: Any, held: Any, row: Any, sums: Any) -> None:
        first, count = held.starts[row], held.starts[row + 1] - held.starts[row]
        rows, items = table.ctypes.data + tile * table.strides[0], held.columns.ctypes.data + 2 * first
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
