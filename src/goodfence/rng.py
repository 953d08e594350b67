"""Where chance comes from: streams that depend on (seed, target) only, OS entropy by default.

A stream is named by a path of integers below one seed, never by how many draws came before it. So the draw for a target
is the same in any order, on any thread and on any machine of a cluster. Seeds are for experiments.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.errors import SettingError

RNG: TypeAlias = int | Sequence[int] | np.random.SeedSequence | np.random.Generator | None

_POOL, _WORD = 4, 0xFFFFFFFF


class Streams:
    """Independent random streams below one seed.

    Parameters
    ----------
    rng
        `None` for fresh entropy from the operating system, or a seed for a repeatable experiment: an integer,
        a sequence of integers, a `SeedSequence`, or a `Generator` (from which one seed is drawn).
    """

    def __init__(self, rng: RNG = None) -> None:
        self.seeded = rng is not None
        """Whether a seed was given: such randomness protects nobody."""
        self._entropy = _entropy(rng)

    def __repr__(self) -> str:
        return f"Streams({'seeded' if self.seeded else 'operating system entropy'})"

    def key(self, *path: int) -> int:
        """Return the 64-bit key of the stream at `path`, for counter-based draws in kernels."""
        return int(self._sequence(path).generate_state(1, np.uint64)[0])

    def keys(self, *path: npt.ArrayLike) -> npt.NDArray[np.uint64]:
        """Return the keys of many streams at once: `key` of each path, of integers below 2**32."""
        own = [self._entropy] if isinstance(self._entropy, int) else self._entropy
        words = [word for number in own for word in _words_of(number)]
        words += [0] * (_POOL - len(words))
        return _mixed([*words, *path])

    def at(self, *path: int) -> np.random.Generator:
        """Return the generator of the stream at `path`."""
        return np.random.Generator(np.random.Philox(self._sequence(path)))

    def words(self, n: int, *path: int) -> npt.NDArray[np.uint64]:
        """Return `n` raw 64-bit words of the stream at `path`: the same on every machine and NumPy version."""
        return np.random.Philox(self._sequence(path)).random_raw(n)

    def order(self, n: int, *path: int) -> npt.NDArray[np.int64]:
        """Return a random order of 0..n-1, the same on every machine."""
        return np.argsort(self.words(n, *path), kind="stable")

    def _sequence(self, path: tuple[int, ...]) -> np.random.SeedSequence:
        return np.random.SeedSequence(self._entropy, spawn_key=path)


def _entropy(rng: RNG) -> int | Sequence[int]:
    if rng is None:
        return secrets.randbits(128)
    if isinstance(rng, np.random.Generator):
        return [int(word) for word in rng.bit_generator.random_raw(4)]
    if isinstance(rng, np.random.SeedSequence):
        return [int(word) for word in rng.generate_state(4, np.uint64)]
    if isinstance(rng, bool | str | bytes) or not isinstance(rng, int | np.integer | Sequence):
        rule = "None, an integer, a SeedSequence or a Generator"
        raise SettingError(f"rng must be {rule}, got {type(rng).__name__}")
    seeds = _seeds([rng] if isinstance(rng, int | np.integer) else rng)
    return seeds[0] if len(seeds) == 1 else seeds


def _seeds(listed: Sequence[int]) -> list[int]:
    integers = all(isinstance(one, int | np.integer) and not isinstance(one, bool) for one in listed)
    if not listed or not integers or min(listed) < 0:
        raise SettingError("rng must be a seed of non-negative integers")
    return [int(seed) for seed in listed]


def _words_of(number: int) -> list[int]:
    return [number >> shift & _WORD for shift in range(0, max(number.bit_length(), 1), 32)]


def keys_of(seeds: Sequence[int]) -> npt.NDArray[np.uint64]:
    """Return `Streams(seed).key()` of each seed below 2**64."""
    numbers = np.array(seeds, dtype=np.uint64)
    return _mixed([numbers & np.uint64(_WORD), numbers >> np.uint64(32)])


def _mixed(words: Sequence[npt.ArrayLike]) -> npt.NDArray[np.uint64]:
    """Return the first 64 bits of NumPy's `SeedSequence` for these 32-bit words, each an array or one for all."""
    shape = np.broadcast_shapes(*map(np.shape, words))
    entropy = [np.broadcast_to(np.asarray(word, dtype=np.uint32), shape) for word in words]
    entropy += [np.zeros(shape, dtype=np.uint32)] * (_POOL - len(words))
    constant, factor = 0x43B0D7E5, 0x931E8875

    def hashed(values: Any) -> Any:
        nonlocal constant
        values = values ^ np.uint32(constant)
        constant = constant * factor & _WORD
        values = values * np.uint32(constant)
        return values ^ values >> np.uint32(16)

    def joined(one: Any, other: Any) -> Any:
        both = np.uint32(0xCA01F9DD) * one - np.uint32(0x4973F715) * hashed(other)
        return both ^ both >> np.uint32(16)

    pool = [hashed(word) for word in entropy[:_POOL]]
    for source in range(_POOL):
        for place in range(_POOL):
            if place != source:
                pool[place] = joined(pool[place], pool[source])
    for word in entropy[_POOL:]:
        pool = [joined(one, word) for one in pool]
    constant, factor = 0x8B51F9DD, 0x58F38DED
    low, high = (hashed(word).astype(np.uint64) for word in pool[:2])
    return np.asarray(low | high << np.uint64(32))


def fresh_seed() -> int:
    """Return a random seed to write down, for a result that can be repeated."""
    return secrets.randbelow(2**32)


def seed_of(rng: RNG) -> int | list[int] | None:
    """Return a seed as it can be written; a generator, or fresh entropy, leaves nothing to write."""
    if isinstance(rng, int | np.integer):
        return int(rng)
    return _seeds(rng) if isinstance(rng, Sequence) else None
