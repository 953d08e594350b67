"""Philox4x32-10: chance as a pure function of (key, purpose, asker, candidate).

The counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
1, 2, 3" (2011). There is no state: a draw does not depend on what was drawn before it, so it is the
same in any order, on any thread, in any tile and on any machine of a cluster.

All words are 32 bits kept in 64, so that no product overflows, compiled or not.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from goodfence.arrays import Rows, Words
from goodfence.kernels import inlined, kernel

Word: TypeAlias = np.uint64
Counter: TypeAlias = "tuple[np.uint64, np.uint64, np.uint64, np.uint64]"

DRAW = Word(0)
"""The purpose of the numbers that choose neighbours."""
NOISE = Word(1)
"""The purpose of the numbers that become Laplace noise."""
N_VALUES = 2.0**52
"""How many different uniforms there are."""

_ROUNDS = 10
_ZERO = Word(0)
_ONE = Word(1)
_LOW = Word(0xFFFFFFFF)
_WORD = Word(32)
_DROPPED = Word(12)
_MULTIPLIERS = (Word(0xD2511F53), Word(0xCD9E8D57))
_WEYL = (Word(0x9E3779B9), Word(0xBB67AE85))


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
    """Fill `out` with 52 random bits for each candidate, as an integer below 2**52.

    Parameters
    ----------
    key
        64 bits, from `Streams.key`.
    purpose
        `DRAW` or `NOISE`: what the number is for, so that two uses never share one.
    asker, candidates
        Row numbers, at least 0 and below 2**32.
    """
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
