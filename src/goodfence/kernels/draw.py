"""Gumbel top-k inside pools: successive sampling without replacement, in one pass; and Laplace noise.

Candidate i fires at time E_i / w_i, with E_i a standard exponential; the first `take` to fire are those that successive
draws with probability proportional to w would have chosen. The logarithm of the firing time, minus the Gumbel key, is
compared here, as an unevaluated sum of two floats: equal weights stay equal chances even where log-weights are 1e14.
Logarithms are taken only of candidates that can still be among the first, by the largest log-weight of their block.

Randomness is a pure function of (key, purpose, asker, candidate): Philox4x32-10, a counter-based generator.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np

from goodfence.arrays import Floats, Integers, Rows, Words
from goodfence.kernels import ZERO, inlined, inner, kernel
from goodfence.kernels.order import sort_ascending

Word: TypeAlias = np.uint64
Counter: TypeAlias = tuple[Word, Word, Word, Word]

DRAW = Word(0)  # the purpose of the numbers that choose neighbours
NOISE = Word(1)  # the purpose of the numbers that become Laplace noise
N_VALUES = 2.0**52  # how many different uniforms there are

_ROUNDS = 10
_ZERO = Word(0)
_ONE = Word(1)
_LOW = Word(0xFFFFFFFF)
_WORD = Word(32)
_DROPPED = Word(12)
_MULTIPLIERS = (Word(0xD2511F53), Word(0xCD9E8D57))
_WEYL = (Word(0x9E3779B9), Word(0xBB67AE85))
_BLOCK = 128
_EVERY = Word(1 << 52)
_SLACK = 1e-9
_ROUNDING = 1e-15
_SURELY = 4.0  # exp(exp(4)) is beyond 2**53: everybody has fired


class PoolArrays(NamedTuple):
    """Pools as kernels take them: (pools,) for one list, (targets, pools) for several."""

    starts: Integers
    stops: Integers
    takes: Integers


@inlined
def philox(c0: Word, c1: Word, c2: Word, c3: Word, k0: Word, k1: Word) -> Counter:
    """Return the four 32-bit words of a counter of four words under a key of two."""
    for _ in range(_ROUNDS):
        first = _MULTIPLIERS[0] * c0
        second = _MULTIPLIERS[1] * c2
        c0 = (second >> _WORD) ^ c1 ^ k0
        c2 = (first >> _WORD) ^ c3 ^ k1
        c1 = second & _LOW
        c3 = first & _LOW
        k0 = (k0 + _WEYL[0]) & _LOW
        k1 = (k1 + _WEYL[1]) & _LOW
    return c0, c1, c2, c3


@kernel
def hash_candidates(key: Word, purpose: Word, asker: Word, candidates: Rows, out: Words) -> None:
    """Fill `out` with 52 random bits for each candidate, which depend on (key, purpose, asker, row number) only."""
    low_key, high_key = key & _LOW, key >> _WORD
    for place in range(candidates.size):
        candidate = Word(candidates[place]) & _LOW
        low, high, _, _ = philox(candidate, asker, purpose, _ZERO, low_key, high_key)
        out[place] = ((high << _WORD) | low) >> _DROPPED


@kernel
def to_uniform(value: Word) -> float:
    """Return the middle of interval `value` of 2**52 equal ones of (0, 1): exact, never 0 or 1."""
    return (float(value) + 0.5) / N_VALUES


@kernel
def uniform_and_coin(key: Word, purpose: Word, asker: Word, candidate: Word) -> tuple[float, bool]:
    """Return a uniform in (0, 1), an odd multiple of 2**-53, and a fair coin independent of it."""
    low, high, other, _ = philox(candidate, asker, purpose, _ZERO, key & _LOW, key >> _WORD)
    return to_uniform(((high << _WORD) | low) >> _DROPPED), (other & _ONE) == _ONE


@inner
def _firing_time(value: Word, log_weight: float) -> tuple[float, float]:
    fired = math.log(-math.log1p(-to_uniform(value)))
    rounded = fired - log_weight
    shift = rounded - fired
    remainder = (fired - (rounded - shift)) - (log_weight + shift)
    return rounded, remainder


@kernel
def _later(times: Floats, rests: Floats, places: Integers, one: int, other: int) -> bool:
    if times[one] == times[other] and rests[one] == rests[other]:
        return bool(places[one] > places[other])
    return bool(rests[one] > rests[other] if times[one] == times[other] else times[one] > times[other])


@inner
def _swap(times: Floats, rests: Floats, places: Integers, one: int, other: int) -> None:
    times[one], times[other] = times[other], times[one]
    rests[one], rests[other] = rests[other], rests[one]
    places[one], places[other] = places[other], places[one]


@inner
def _rise(times: Floats, rests: Floats, places: Integers, node: int) -> None:
    while node > 0 and _later(times, rests, places, node, (node - 1) // 2):
        _swap(times, rests, places, node, (node - 1) // 2)
        node = (node - 1) // 2


@inner
def _sink(times: Floats, rests: Floats, places: Integers, size: int) -> None:
    node = ZERO
    while True:
        last = node
        for child in (2 * node + 1, 2 * node + 2):
            if child < size and _later(times, rests, places, child, last):
                last = child
        if last == node:
            return
        _swap(times, rests, places, node, last)
        node = last


@inner
def _limit(latest: float, highest: float) -> Word:
    """Return the bits below which a log-weight of at most `highest` may fire before `latest`."""
    margin = _SLACK + _ROUNDING * (abs(latest) + abs(highest))
    bound = latest + highest + margin
    if bound >= _SURELY:
        return _EVERY
    reached = -math.expm1(-math.exp(bound)) * N_VALUES
    if reached < 0.5:
        return _ZERO
    return Word(min(reached + 1.0, N_VALUES))


@inner
def _block_tops(log_weights: Floats) -> tuple[Floats, int]:
    """Return the largest log-weight of each block, and how many are above -inf."""
    tops = np.full((log_weights.size + _BLOCK - 1) // _BLOCK, -np.inf)
    n_weighted = 0
    for block in range(tops.size):
        top = -np.inf
        for place in range(block * _BLOCK, min((block + 1) * _BLOCK, log_weights.size)):
            n_weighted += log_weights[place] > -np.inf
            top = max(top, log_weights[place])
        tops[block] = top
    return tops, n_weighted


@inner
def _race(log_weights: Floats, tops: Floats, rows: Rows, key: Word, asker: Word, out: Integers) -> None:
    """Fill `out` with the positions of the first to fire; those of log-weight -inf do not run."""
    take, top = out.size, tops.max()
    times, rests = np.empty(take), np.empty(take)
    hashes = np.empty(_BLOCK, Word)
    size = ZERO
    for block in range(tops.size):
        first, end = block * _BLOCK, min((block + 1) * _BLOCK, rows.size)
        limit = _limit(times[0], tops[block] - top) if size == take else _EVERY
        if limit == _ZERO:
            continue
        hash_candidates(key, DRAW, asker, rows[first:end], hashes)
        for place in range(first, end):
            if hashes[place - first] >= limit or log_weights[place] == -np.inf:
                continue
            time, rest = _firing_time(hashes[place - first], log_weights[place] - top)
            if size < take:
                times[size], rests[size], out[size] = time, rest, place
                _rise(times, rests, out, size)
                size += 1
            elif time < times[0] or (time == times[0] and rest < rests[0]):
                times[0], rests[0], out[0] = time, rest, place
                _sink(times, rests, out, take)


@inner
def _draw_pool(log_weights: Floats, rows: Rows, key: Word, asker: Word, out: Integers) -> None:
    """Fill `out` from one pool; candidates of weight 0 come last, uniformly."""
    if out.size == rows.size:
        out[:] = np.arange(rows.size)
        return
    tops, n_weighted = _block_tops(log_weights)
    if n_weighted >= out.size:
        _race(log_weights, tops, rows, key, asker, out)
        return
    equal = np.full(rows.size, -np.inf)
    size = 0
    for place in range(rows.size):
        if log_weights[place] > -np.inf:
            out[size] = place
            size += 1
        else:
            equal[place] = 0.0
    _race(equal, np.zeros(tops.size), rows, key, asker, out[size:])


@kernel
def draw(log_weights: Floats, rows: Rows, pools: PoolArrays, key: Word, asker: Word, out: Integers) -> None:
    """Fill `out`, (sum of takes,), with the chosen positions of one list, ascending; see the top of this file."""
    filled = 0
    for pool in range(pools.takes.size):
        take = pools.takes[pool]
        if take > 0:
            start, stop = pools.starts[pool], pools.stops[pool]
            part = out[filled : filled + take]
            _draw_pool(log_weights[start:stop], rows[start:stop], key, asker, part)
            part += start
            filled += take
    sort_ascending(out)


@kernel
def draw_rows(log_weights: Floats, rows: Rows, pools: PoolArrays, key: Word, askers: Rows, out: Integers) -> None:
    """Fill each row of `out` by `draw`; every array has one more axis, the targets."""
    for row in range(out.shape[0]):
        own = PoolArrays(pools.starts[row], pools.stops[row], pools.takes[row])
        draw(log_weights[row], rows[row], own, key, Word(askers[row]), out[row])


@kernel
def fill_laplace(key: Word, askers: Rows, rows: Rows, scales: Floats, out: Floats) -> None:
    """Fill `out`, (rows, k), with Laplace noise, one number for each (asker, neighbour)."""
    for row in range(out.shape[0]):
        asker = Word(askers[row])
        for place in range(out.shape[1]):
            chance, up = uniform_and_coin(key, NOISE, asker, Word(rows[row, place]))
            size = -math.log(chance) * scales[row, place]
            out[row, place] = size if up else -size
