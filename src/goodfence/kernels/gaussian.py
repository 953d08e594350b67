"""Exact draws of the integer Gaussian from random bits, with integer arithmetic only.

The algorithms are those of Canonne, Kamath and Steinke, *The Discrete Gaussian for Differential Privacy* (2020), for a
sigma that is a power of two. `docs/mechanisms/noise.md` proves the distribution, and accounts for |k| > 120 sigma.

When the words run out in the middle of a draw, the kernel returns where that draw began, so that the caller goes on
with the same words followed by new ones: to discard them would prefer draws that need few words.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from goodfence.arrays import AnyIntegers
from goodfence.kernels import ZERO, inner, kernel

Whole: TypeAlias = int | np.signedinteger[Any]
"""Kept apart from uint64 by hand: the compiler makes a float of a signed and an unsigned integer together."""

_DICE = np.uint64(15)  # the low bits of a word choose one of K, the other 49 are a fraction
_SIDES = np.int64(1 << 15)
_FRACTION = 49
_WRONG = np.int64(-1)  # the words ran out
_FARTHEST = 120
_ONE = np.int64(1)
_ANY = np.int64((1 << 63) - 1)


@inner
def _bernoulli_exp(words: AnyIntegers, position: Whole, numerator: Whole, bits: int) -> tuple[bool, Whole]:
    """Return whether an event of probability exp(-numerator/2^bits) happened, and the next position.

    `numerator` is at most 2^bits, and `bits` at most 49. Trial K succeeds with probability numerator/2^bits/K;
    the first failure is at an odd K with the probability wanted (their Algorithm 1).
    """
    trial = 1
    threshold = np.uint64(numerator) << np.uint64(_FRACTION - bits)
    while True:
        if position >= len(words):
            return False, _WRONG
        word = words[position]
        position += 1
        side = np.int64(word & np.uint64(_SIDES - 1))
        if side >= _SIDES - _SIDES % trial:
            continue  # one of the sides left over, so that all that are kept fall fairly on 0..trial-1
        if side % trial != 0 or (word >> _DICE) >= threshold:
            return trial % 2 == 1, position
        trial += 1


@inner
def _count_exp_one(words: AnyIntegers, position: Whole, most: Whole) -> tuple[Whole, Whole]:
    """Return how many events of probability exp(-1) happened before the first that did not, `most` at most."""
    count = np.int64(0)
    while count < most:
        happened, position = _bernoulli_exp(words, position, _ONE, ZERO)
        if position == _WRONG or not happened:
            break
        count += 1
    return count, position


@inner
def _one_gaussian(words: AnyIntegers, position: Whole, bits: int) -> tuple[Whole, Whole]:
    """Return one integer Gaussian of sigma 2^bits (their Algorithms 2 and 3, with t = sigma)."""
    sigma = np.int64(1) << bits
    while True:
        if position >= len(words):
            return 0, _WRONG
        low = np.int64(words[position] & np.uint64(sigma - 1))
        negative = (words[position] >> np.uint64(63)) == np.uint64(1)
        position += 1
        kept, position = _bernoulli_exp(words, position, low, bits)
        if position == _WRONG:
            return 0, _WRONG
        if not kept:
            continue
        high, position = _count_exp_one(words, position, _ANY)
        if position == _WRONG:
            return 0, _WRONG
        if (negative and high == 0 and low == 0) or high > _FARTHEST:
            continue
        magnitude = high * sigma + low
        # gamma = (|y| - sigma)²/(2 sigma²); its whole part and its fraction are tried one after the other.
        squared = (magnitude - sigma) * (magnitude - sigma)
        scale = 2 * bits + 1
        whole, position = _count_exp_one(words, position, squared >> scale)
        if position == _WRONG:
            return 0, _WRONG
        if whole < squared >> scale:
            continue
        rest = squared & ((np.int64(1) << scale) - 1)
        kept, position = _bernoulli_exp(words, position, rest, scale)
        if position == _WRONG:
            return 0, _WRONG
        if kept:
            return (-magnitude if negative else magnitude), position


@kernel
def fill_gaussians(words: AnyIntegers, bits: int, out: AnyIntegers) -> tuple[int, Whole]:
    """Fill `out` (int64) with integer Gaussians of sigma 2^bits, 0 <= bits <= 24, from uniform 64-bit words.

    Return how many draws were made, and the position of the first word that no finished draw has used.
    """
    position: Whole = ZERO
    for done in range(len(out)):
        value, after = _one_gaussian(words, position, bits)
        if after == _WRONG:
            return done, position
        out[done] = value
        position = after
    return len(out), position
