"""Integer Gaussian noise: from the operating system where privacy is promised, from a seed in experiments.

All noise has the same parameter, `SIGMA` = 2^24. What is released is scaled to a grid instead, so that its
sensitivity fits the budget (`privacy/fixed_point.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.kernels.discrete_gaussian import fill_gaussians

BITS = 24
SIGMA = 1 << BITS
"""The parameter of every integer Gaussian here; its standard deviation is the same to more than 300 digits."""
MOST_MU = 64
"""Sensitivities up to this many sigma: the noise ends at 121 sigma, and what lies beyond must stay negligible."""
WORDS_A_DRAW = 16
"""Roughly what a draw reads on average; only a guess of how many words to fetch at once."""
_PIECE = 1 << 16

Integers: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = Callable[[int], npt.NDArray[np.uint64]]


class Noise(Protocol):
    """A source of integer Gaussian noise of parameter `SIGMA`."""

    @property
    def private(self) -> bool:
        """Whether nobody can know or repeat the noise."""
        ...

    def draw(self, n: int) -> Integers:
        """Return n independent draws."""
        ...


class SystemNoise:
    """Noise from the operating system's randomness, made with integer arithmetic only; several threads.

    Examples
    --------
    >>> noise = SystemNoise().draw(1000)
    >>> noise.dtype.name, bool(abs(noise.mean()) < 2**22), bool(0.8 < noise.std() / SIGMA < 1.2)
    ('int64', True, True)
    """

    private = True

    def draw(self, n: int) -> Integers:
        """Return n independent draws."""
        out = np.empty(n, dtype=np.int64)
        pieces = [out[start : start + _PIECE] for start in range(0, n, _PIECE)]
        with ThreadPoolExecutor(max(1, min(len(pieces), os.cpu_count() or 1))) as pool:
            for _ in pool.map(_fill, pieces):
                pass
        return out


def system_words(n: int) -> npt.NDArray[np.uint64]:
    """Return n 64-bit words of the operating system's randomness."""
    return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


def integer_gaussians(out: Integers, bits: int, words: Words) -> None:
    """Fill `out` with integer Gaussians of sigma 2^bits, from the words that `words` supplies.

    Words that an unfinished draw has read are read again, before any new ones: so the draws are those of one
    endless row of words, whatever the size of the pieces in which it is fetched.
    """
    done, left = 0, np.empty(0, dtype=np.uint64)
    while done < len(out):
        fetched = np.concatenate([left, words(WORDS_A_DRAW * (len(out) - done) + 64)])
        made, used = fill_gaussians(fetched, bits, out[done:])
        done, left = done + made, fetched[used:]


def _fill(piece: Integers) -> None:
    integer_gaussians(piece, BITS, system_words)
