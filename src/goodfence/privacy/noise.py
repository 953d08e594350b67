"""Integer Gaussian noise, and the one door through which anything leaves the data.

The noise comes from the operating system where privacy is guaranteed, from a seed in experiments. It always has the
same parameter, `SIGMA` = 2^24: what is released is scaled to a grid instead, so that its sensitivity fits the budget
(`privacy/fixed_point.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np

from goodfence.arrays import Integers, Words
from goodfence.errors import require
from goodfence.kernels.gaussian import fill_gaussians
from goodfence.privacy.accounting import Account, Release
from goodfence.privacy.guarantee import Unit
from goodfence.rng import Streams

BITS = 24
SIGMA = 1 << BITS
"""The parameter of every integer Gaussian here; its standard deviation is the same to more than 300 digits."""
MOST_MU = 64
"""Sensitivities up to this many sigma: the noise ends at 121 sigma, and what lies beyond must stay negligible."""
WORDS_A_DRAW = 16
"""Roughly what a draw reads on average; only a guess of how many words to fetch at once."""
_PIECE = 1 << 16

WordSource: TypeAlias = Callable[[int], Words]


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
    """Noise from the operating system's randomness, made with integer arithmetic only; several threads."""

    private = True

    def draw(self, n: int) -> Integers:
        """Return n independent draws."""
        out = np.empty(n, dtype=np.int64)
        pieces = [out[start : start + _PIECE] for start in range(0, n, _PIECE)]
        with ThreadPoolExecutor(max(1, min(len(pieces), os.cpu_count() or 1))) as pool:
            list(pool.map(lambda piece: integer_gaussians(piece, BITS, system_words), pieces))
        return out


def system_words(n: int) -> Words:
    """Return n 64-bit words of the operating system's randomness."""
    return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


def integer_gaussians(out: Integers, bits: int, words: WordSource) -> None:
    """Fill `out` with integer Gaussians of sigma 2^bits, from the words that `words` supplies.

    An unfinished draw reads its words again: the draws do not depend on the pieces in which words are fetched.
    """
    done, left = 0, np.empty(0, dtype=np.uint64)
    while done < len(out):
        fetched = np.concatenate([left, words(WORDS_A_DRAW * (len(out) - done) + 64)])
        made, used = fill_gaussians(fetched, bits, out[done:])
        done, left = done + made, fetched[used:]


class SeededNoise:
    """Repeatable noise: rounded real Gaussians of the same sigma as `SystemNoise`."""

    private = False

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._drawn = 0

    def draw(self, n: int) -> Integers:
        """Return n draws of the next stream below the seed."""
        generator = self._streams.at(self._drawn)
        self._drawn += 1
        return np.rint(generator.normal(0.0, SIGMA, n)).astype(np.int64)


@dataclass
class Publisher:
    """The one door through which anything leaves the data: integers go in, the same with noise come out."""

    noise: Noise
    account: Account = field(default_factory=Account)
    unit: Unit | None = None
    """What the sensitivities are to, one rating or one user, where that is stated."""
    listed: int = 0
    """For how many items a release of pairs must leave room."""
    sd: float = SIGMA
    """The standard deviation of the noise in what was published last."""

    def publish(self, name: str, totals: Integers, sensitivity: int) -> Integers:
        """Return the totals plus noise, and enter the privacy cost in the account."""
        require(totals.dtype == np.int64, "totals", "64-bit integers", totals.dtype)
        release = Release(name=name, sensitivity=sensitivity, sigma=SIGMA, dimension=totals.size, unit=self.unit)
        self.account = Account((*self.account.releases, release))
        return totals + self.noise.draw(totals.size).reshape(totals.shape)

    def pairs(self, n: int) -> tuple[Integers, Integers]:
        """Return where the pairs of n items lie above the diagonal, in the order in which they are published."""
        return np.triu_indices(n, 1)

    def effective(self, mu: float) -> float:
        """Return the mu of one fit whose noise is that of a release at privacy cost mu."""
        return mu
