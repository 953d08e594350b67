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
from numba import float32, types, uintp
from numba.extending import intrinsic, overload

from goodfence.arrays import Csr, Flags, Float32s, Floats, Integers, Rows, Words
from goodfence.kernels import inner, kernel
from goodfence.kernels.lists import NO_ITEM, insert
from goodfence.kernels.tiles.strips import lowest_bit

HEAD_START = np.float32(1e-4)
"""What every profile adds to popularity, so that an empty one is listed what is popular."""
TILE = 64
"""So many items are scored at a time, one for each bit of a word."""
HOT = 10
"""So many tiles are scored exactly for every profile."""
_HALVINGS = 10
"""How often the limits of what n scores reach are halved."""
_UNROLL = 4
"""Items of a profile added in one turn; profiles are filled up with an item of no weight."""
ZERO = 128
"""What stands for no step."""
_I16, _I64 = ir.IntType(16), ir.IntType(64)
_FLOATS, _WORDS = ir.VectorType(ir.FloatType(), TILE), ir.VectorType(_I16, TILE // 2)
_LOWEST = np.finfo(np.float32).min


class ItemWeights(NamedTuple):
    """Weights between the *chosen* items as the kernels take them, the items that most lists have first.

    One more item, the last that a profile may hold, has no weight for any. Items that fill the last tile score 0.
    """

    places: Rows
    """(items,): where an item is among the chosen, -1 if it is not."""
    chosen: Integers
    """(chosen,): their columns."""
    popularity: Floats
    """(items,): how popular each item is."""
    others: Integers
    """The columns of the items that are not chosen, the most popular first."""
    popular: Float32s
    """(tiles * TILE,): how popular the chosen items are, not less than 0."""
    weights: Float32s
    """(tiles, chosen + 1, TILE): what each adds to the score of the items of a tile."""
    turned: Float32s
    """(chosen, chosen + 1): the same, by the item that is scored."""
    rough: npt.NDArray[np.uint8]
    """As `weights`, in steps and more by ZERO, none wrong by more than 1/2; no sum of steps overflows 16 bits."""
    steps: Float32s
    """(tiles * TILE,): how large the steps of an item's scores are."""


class _Block(NamedTuple):
    """Some profiles, laid out."""

    held: npt.NDArray[np.uint16]
    """The places of their items; of each profile a multiple of _UNROLL, not 0."""
    starts: Integers
    """(profiles + 1,): where the items of each begin."""
    along: Floats
    """(profiles,): how popular their items are."""
    barred: Words
    """(tiles, profiles): the bits of the items of a tile that are not to be listed."""


@inner
def _lay_out(profiles: Csr, model: ItemWeights, barred: Words) -> _Block:
    n_rows = profiles.starts.size - 1
    room = profiles.starts[n_rows] - profiles.starts[0] + _UNROLL * n_rows
    held, starts = np.empty(room, dtype=np.uint16), np.zeros(n_rows + 1, dtype=np.int64)
    along, own = np.empty(n_rows), np.empty((barred.size, n_rows), dtype=np.uint64)
    for tile in range(barred.size):
        own[tile] = barred[tile]
    for row in range(n_rows):
        n_held, popular = starts[row], float(HEAD_START)
        for at in range(profiles.starts[row], profiles.starts[row + 1]):
            place = model.places[profiles.columns[at]]
            if place >= 0:
                held[n_held] = place
                n_held += 1
                popular += model.popular[place]
                own[place // TILE, row] |= np.uint64(1) << np.uint64(place % TILE)
        while n_held == starts[row] or (n_held - starts[row]) % _UNROLL > 0:
            held[n_held] = model.chosen.size
            n_held += 1
        starts[row + 1], along[row] = n_held, popular
    return _Block(held, starts, along, own)


@kernel
def add_weights(profiles: Csr, model: ItemWeights, scores: Float32s, along: Floats) -> None:
    """Write the scores of the chosen items, (profiles, tiles * TILE), and how popular those in the profiles are."""
    block = _lay_out(profiles, model, np.zeros(model.weights.shape[0], dtype=np.uint64))
    along[:], block.barred[:] = block.along, np.uint64(0)
    _score_tiles(block, model, scores)


@inner
def _score_tiles(block: _Block, model: ItemWeights, scores: Float32s) -> None:
    """Write the scores of the items of the first tiles, minus infinity for those not to be listed."""
    for tile in range(scores.shape[1] // TILE):
        start = HEAD_START * model.popular[tile * TILE : (tile + 1) * TILE]
        for row in range(scores.shape[0]):
            sum_rows(model.weights, start, tile, row, block, scores)


@kernel
def rank_by_weights(profiles: Csr, model: ItemWeights, allowed: Flags, columns: Rows, scores: Floats) -> None:
    """Write for every profile the best items that are allowed and not in it; those not chosen score by popularity."""
    n_rows, n_tiles = columns.shape[0], model.weights.shape[0]
    barred = np.zeros(n_tiles, dtype=np.uint64)
    for place in range(n_tiles * TILE):
        if place >= model.chosen.size or not allowed[model.chosen[place]]:
            barred[place // TILE] |= np.uint64(1) << np.uint64(place % TILE)
    block = _lay_out(profiles, model, barred)
    hot = np.empty((n_rows, min(HOT, n_tiles) * TILE), dtype=np.float32)
    _score_tiles(block, model, hot)
    n_best = _rank_hot(hot, model.chosen, columns, scores)
    least = np.full(n_rows, _LOWEST, dtype=np.float32)
    for tile in range(HOT, n_tiles):
        for row in range(n_rows):
            if n_best[row] == columns.shape[1]:
                least[row] = scores[row, -1]
            mask = may_reach(model, tile, row, block, least[row])
            while mask != 0:
                place = tile * TILE + lowest_bit(mask)
                score = _score(place, row, block, model)
                n_best[row] = insert(model.chosen[place], score, columns[row], scores[row], n_best[row])
                mask &= mask - np.uint64(1)
    for row in range(n_rows):
        own = profiles.columns[profiles.starts[row] : profiles.starts[row + 1]]
        n_listed = _add_others(own, block.along[row], model, allowed, columns[row], scores[row], n_best[row])
        columns[row, n_listed:] = NO_ITEM
        scores[row, n_listed:] = np.nan


@inner
def _rank_hot(hot: Float32s, chosen: Integers, columns: Rows, scores: Floats) -> Integers:
    """Write the lists of the first items; return how long they are."""
    n_rows, n_hot = hot.shape
    highest = np.empty(TILE, dtype=np.float32)
    likely, of_likely = np.empty(n_hot + 1, dtype=np.int32), np.empty(n_hot + 1, dtype=np.float32)
    n_best = np.empty(n_rows, dtype=np.int64)
    for row in range(n_rows):
        found, n_likely = hot[row], 0
        least = _lower_bound(found, columns.shape[1], highest)
        for item in range(TILE):
            if highest[item] >= least:
                for place in range(item, n_hot, TILE):
                    likely[n_likely], of_likely[n_likely] = chosen[place], found[place]
                    n_likely += found[place] >= least
        _sort_into(likely[:n_likely], of_likely[:n_likely], columns[row], scores[row])
        n_best[row] = min(columns.shape[1], n_likely)
    return n_best


@inner
def _lower_bound(found: Float32s, n: int, highest: Float32s) -> Any:
    """Return what at least n scores reach, and find the highest of every so many; they are not minus infinity."""
    highest[:] = -np.inf
    for first in range(0, found.size, TILE):
        some = found[first : first + TILE]
        for item in range(TILE):
            highest[item] = max(highest[item], some[item])
    some, low, high, n_scores = highest if n <= TILE else found, np.float32(np.inf), np.float32(-np.inf), 0
    for score in some:
        n_scores += score > -np.inf
        low, high = min(low, score if score > -np.inf else low), max(high, score)
    if n_scores < n:
        return _LOWEST
    for _ in range(_HALVINGS):
        middle, n_scores = (low + high) * np.float32(0.5), 0
        for item in range(some.size):
            n_scores += some[item] >= middle
        low, high = (middle, high) if n_scores >= n else (low, middle)
    return low


@inner
def _sort_into(likely: Rows, of_likely: Float32s, columns: Rows, scores: Floats) -> None:
    """Write the best, best first: the place of each is how many are better."""
    for at in range(likely.size):
        column, score, before = likely[at], of_likely[at], 0
        for other in range(likely.size):
            before += (of_likely[other] > score) | ((of_likely[other] == score) & (likely[other] < column))
        if before < columns.size:
            columns[before], scores[before] = column, score


@inner
def _score(place: int, row: int, block: _Block, model: ItemWeights) -> Any:
    """Return the score of one chosen item for a profile, added up as in a tile."""
    total, weights, held = HEAD_START * model.popular[place], model.turned[place], block.held
    for at in range(block.starts[row], block.starts[row + 1], _UNROLL):
        total += (weights[held[at]] + weights[held[at + 1]]) + (weights[held[at + 2]] + weights[held[at + 3]])
    return total


@inner
def _add_others(
    own: Rows, along: float, model: ItemWeights, allowed: Flags, columns: Rows, scores: Floats, n_best: int
) -> int:
    """Put into a list those of the items not chosen that are better; return its new length."""
    for column in model.others:
        score = along * model.popularity[column]
        if n_best == columns.size and score < scores[n_best - 1]:
            break
        if allowed[column] and not (own == column).any():
            n_best = insert(column, score, columns, scores, n_best)
    return n_best


def sum_rows(weights: Float32s, start: Float32s, tile: int, row: int, block: _Block, scores: Float32s) -> None:
    """Write the scores of the items of a tile for one profile, minus infinity for those not to be listed."""
    held = block.held[block.starts[row] : block.starts[row + 1]]
    total = start.copy()
    for first in range(0, held.size, _UNROLL):
        a, b, c, d = weights[tile, held[first : first + _UNROLL]]
        total += (a + b) + (c + d)
    scores[row, tile * TILE : (tile + 1) * TILE] = np.where(_flags(block.barred[tile, row]), -np.inf, total)


def may_reach(model: ItemWeights, tile: int, row: int, block: _Block, least: float) -> Any:
    """Return which items of a tile may have a score of at least `least` for one profile, as the bits of a word."""
    held = block.held[block.starts[row] : block.starts[row + 1]]
    total = model.rough[tile, held].sum(axis=0, dtype=np.int64) - ZERO * held.size + _slack(held.size)
    part = slice(tile * TILE, (tile + 1) * TILE)
    reached = HEAD_START * model.popular[part] + model.steps[part] * total.astype(np.float32) >= least
    return sum(np.uint64(1 << item) for item in np.flatnonzero(reached & ~_flags(block.barred[tile, row])).tolist())


def _flags(word: Any) -> Flags:
    return np.array([int(word) >> item & 1 == 1 for item in range(TILE)])


@inner
def _slack(n_held: int) -> int:
    """Return by how many steps a rough score may be too low: half of one for each item, and what is rounded."""
    return n_held // 2 + n_held // 64 + 2


@overload(sum_rows)
def _compiled_sum_rows(weights: Any, start: Any, tile: Any, row: Any, block: Any, scores: Any) -> Any:
    def add(weights: Any, start: Any, tile: Any, row: Any, block: Any, scores: Any) -> None:
        first = block.starts[row]
        _sum_rows(  # type: ignore[call-arg]  # numba passes the first argument itself
            uintp(weights.ctypes.data + tile * weights.strides[0]),
            uintp(start.ctypes.data),
            uintp(block.held.ctypes.data + first * block.held.itemsize),
            uintp(block.starts[row + 1] - first),
            block.barred[tile, row],
            uintp(scores.ctypes.data + row * scores.strides[0] + tile * TILE * scores.itemsize),
        )

    return add


@intrinsic
def _sum_rows(_context: Any, weights: Any, start: Any, held: Any, count: Any, barred: Any, out: Any) -> Any:
    """Do what `sum_rows` says; all but count and barred are addresses."""
    signature = types.void(*[types.uintp] * 4, types.uint64, types.uintp)

    def emit(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        weights, start, held, count, barred, out = arguments
        (total,) = _emit_sums(builder, weights, [_emit_load(builder, start, _FLOATS)], held, count)
        lowest = ir.Constant(total.type, [float("-inf")] * TILE)
        total = builder.select(builder.bitcast(barred, ir.VectorType(ir.IntType(1), TILE)), lowest, total)
        builder.store(total, builder.inttoptr(out, total.type.as_pointer())).align = 4
        return context.get_dummy_value()

    return signature, emit


@overload(may_reach)
def _compiled_may_reach(model: Any, tile: Any, row: Any, block: Any, least: Any) -> Any:
    def reach(model: Any, tile: Any, row: Any, block: Any, least: Any) -> Any:
        first, count = block.starts[row], block.starts[row + 1] - block.starts[row]
        return ~block.barred[tile, row] & _may_reach(  # type: ignore[call-arg]
            uintp(model.rough.ctypes.data + tile * model.rough.strides[0]),
            uintp(block.held.ctypes.data + first * block.held.itemsize),
            uintp(count),
            np.int16(_slack(count) - ZERO * count),
            uintp(model.steps.ctypes.data + tile * TILE * model.steps.itemsize),
            uintp(model.popular.ctypes.data + tile * TILE * model.popular.itemsize),
            float32(least),
        )

    return reach


@intrinsic
def _may_reach(
    _context: Any, rough: Any, held: Any, count: Any, slack: Any, steps: Any, popular: Any, least: Any
) -> Any:
    """Do what `may_reach` says; all but count, slack and least are addresses."""
    signature = types.uint64(*[types.uintp] * 3, types.int16, types.uintp, types.uintp, types.float32)

    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        rough, held, count, slack, steps, popular, least = arguments
        # A row is read as 32 words of two bytes each; the sums of the upper bytes tell those of the lower ones.
        words, upper = _emit_sums(builder, rough, [ir.Constant(_WORDS, None)] * 2, held, count)
        lower = builder.sub(words, builder.shl(upper, ir.Constant(_WORDS, [8] * (TILE // 2))))
        in_order = [item // 2 + item % 2 * (TILE // 2) for item in range(TILE)]
        total = builder.shuffle_vector(lower, upper, ir.Constant(ir.VectorType(ir.IntType(32), TILE), in_order))
        total = builder.add(total, _spread(builder, slack))
        steps, popular = _emit_load(builder, steps, _FLOATS), _emit_load(builder, popular, _FLOATS)
        start = builder.fmul(popular, ir.Constant(popular.type, [float(HEAD_START)] * TILE))
        score = builder.fadd(start, builder.fmul(builder.sitofp(total, steps.type), steps))
        return builder.bitcast(builder.fcmp_ordered(">=", score, _spread(builder, least)), _I64)

    return signature, emit


def _spread(builder: Any, value: Any) -> Any:
    """Emit a vector of one value."""
    empty = ir.Constant(ir.VectorType(value.type, TILE), ir.Undefined)
    one = builder.insert_element(empty, value, ir.Constant(_I64, 0))
    return builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(ir.IntType(32), TILE), [0] * TILE))


def _emit_load(builder: Any, address: Any, kind: Any) -> Any:
    """Emit the load of a row of a tile."""
    row = builder.load(builder.inttoptr(address, kind.as_pointer()))
    row.align = 2
    return row


def _emit_sums(builder: Any, weights: Any, starts: list[Any], held: Any, count: Any) -> list[Any]:
    """Emit a loop over the items held; return the starts with their rows added up, and of words also the upper bytes."""
    before, loop = builder.block, builder.function.append_basic_block("sum_rows")
    after = builder.function.append_basic_block("sums")
    builder.branch(loop)
    builder.position_at_end(loop)
    kind, size = (_FLOATS, 4 * TILE) if len(starts) == 1 else (_WORDS, TILE)
    turn, totals = builder.phi(_I64), [builder.phi(kind) for _ in starts]
    numbers = builder.inttoptr(builder.add(held, builder.shl(turn, ir.Constant(_I64, 1))), _I16.as_pointer())
    rows = []
    for step in range(_UNROLL):
        place = builder.zext(builder.load(builder.gep(numbers, [ir.Constant(_I64, step)])), _I64)
        rows.append(_emit_load(builder, builder.add(weights, builder.mul(place, ir.Constant(_I64, size))), kind))
    parts, add = [rows], builder.fadd
    if kind == _WORDS:
        eight = ir.Constant(_WORDS, [8] * (TILE // 2))
        parts, add = [rows, [builder.lshr(row, eight) for row in rows]], builder.add
    added = [add(total, add(add(a, b), add(c, d))) for total, (a, b, c, d) in zip(totals, parts, strict=True)]
    following = builder.add(turn, ir.Constant(_I64, _UNROLL))
    for register, start, end in zip([turn, *totals], [ir.Constant(_I64, 0), *starts], [following, *added], strict=True):
        register.add_incoming(start, before)
        register.add_incoming(end, loop)
    builder.cbranch(builder.icmp_unsigned("<", following, count), loop, after)
    builder.position_at_end(after)
    return added
