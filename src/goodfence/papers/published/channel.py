"""A finite channel: what is sent for each value there is, with probabilities that are integers over 2^53.

So the distribution is exact, and its epsilon is computed from the very table that is drawn from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from goodfence.arrays import Floats, Integers, Words
from goodfence.errors import SettingError, require
from goodfence.privacy.noise import system_words
from goodfence.rng import Streams

BITS = 53
TOTAL = 1 << BITS


@dataclass(frozen=True, eq=False)
class Channel:
    """How often, out of 2^53, each value that can be held (rows) is sent as each value that can be sent (columns)."""

    counts: Integers

    @classmethod
    def of(cls, probabilities: Floats, epsilon: float) -> Channel:
        """Return the channel of these probabilities on the grid of 2^-53, which must keep `epsilon`."""
        counts = np.floor(probabilities * TOTAL).astype(np.int64)
        largest = counts.argmax(axis=1)
        counts[np.arange(len(counts)), largest] += TOTAL - counts.sum(axis=1)
        channel = cls(counts)
        if not channel.epsilon <= epsilon * (1 + 1e-9):
            raise SettingError(f"epsilon must be smaller: 2^-{BITS} is too coarse, got {epsilon:g}")
        return channel

    @property
    def epsilon(self) -> float:
        """The logarithm of the largest ratio in which two rows send the same value: this is differential privacy."""
        least, most = self.counts.min(axis=0), self.counts.max(axis=0)
        sent = most > 0
        if (least[sent] == 0).any():
            return math.inf
        return float(np.log(most[sent] / least[sent]).max())

    def send(self, held: Integers, words: Words) -> Integers:
        """Return what is sent for each of the held values (their positions), by one random word each."""
        edges, draws = (
            np.cumsum(self.counts, axis=1),
            (words >> np.uint64(64 - BITS)).astype(np.int64),
        )
        sent = np.empty(len(held), dtype=np.int64)
        for value in np.unique(held).tolist():
            at = held == value
            sent[at] = np.searchsorted(edges[value], draws[at], side="right")
        return sent


def randomised_response(n_values: int, epsilon: float) -> Channel:
    """Return the channel that keeps a value with q = e^epsilon / (e^epsilon + V - 1), else sends another one evenly.

    Examples
    --------
    >>> bool(abs(randomised_response(5, 1.0).counts[0, 0] / TOTAL - 0.404610) < 1e-6)
    True
    """
    require(n_values >= 2, "scale", "of at least two values", n_values)
    below = epsilon * (1 - 1e-9)  # rounding to the grid must not lift the ratio above epsilon
    other = 1 / (math.exp(min(below, 700)) + n_values - 1)
    table = np.full((n_values, n_values), other)
    np.fill_diagonal(table, 1 - (n_values - 1) * other)
    return Channel.of(table, epsilon)


def laplace(n_values: int, finer: int, epsilon: float, beyond: int = 0) -> Channel:
    """Return Laplace noise of scale L/epsilon on a grid `finer` times as fine as the values.

    What would lie more than `beyond` steps of the grid outside the values' range is sent as the last of these.
    """
    require(n_values >= 2, "scale", "of at least two values", n_values)
    length = (n_values - 1) * finer
    steps = np.abs(np.arange(n_values)[:, None] * finer - np.arange(-beyond, length + 1 + beyond))
    decay = math.exp(-epsilon * (1 - 1e-9) / length)
    table = (1 - decay) / (1 + decay) * decay**steps
    table[:, [0, -1]] = decay ** steps[:, [0, -1]] / (1 + decay)
    return Channel.of(table, epsilon)


def words_for(streams: Streams, n: int, person: int) -> Words:
    """Return random words: a user's own ones below a seed, the operating system's where there is none."""
    return streams.words(n, person) if streams.seeded else system_words(n)
