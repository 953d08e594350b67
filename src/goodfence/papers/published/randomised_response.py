"""`RandomisedResponse` and `LocalLaplace`: each rating's value is changed on the user's side, by an exact channel.

What a channel sends for each value has probabilities that are integers over 2^53. So the distribution is exact, and its
epsilon is computed from the very table that is drawn from.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from scipy import sparse

from goodfence.arrays import Floats, Integers, Words
from goodfence.data.ratings import Ratings
from goodfence.errors import DataError, SettingError, require
from goodfence.papers.published.perturbed import Sent, on_wide_scale, words_of_users
from goodfence.privacy.fixed_point import require_declared
from goodfence.privacy.guarantee import Guarantee
from goodfence.privacy.noise import system_words
from goodfence.registry import register
from goodfence.rng import Streams
from goodfence.settings import Positive, checked

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
        edges = np.cumsum(self.counts, axis=1)
        draws = (words >> np.uint64(64 - BITS)).astype(np.int64)
        sent = np.empty(len(held), dtype=np.int64)
        for value in np.unique(held).tolist():
            at = held == value
            sent[at] = np.searchsorted(edges[value], draws[at], side="right")
        return sent


def randomised_response(n_values: int, epsilon: float) -> Channel:
    """Return the channel that keeps a value with q = e^epsilon / (e^epsilon + V - 1), else sends another one evenly."""
    require(n_values >= 2, "scale", "of at least two values", n_values)
    below = epsilon * (1 - 1e-9)  # rounding to the grid must not lift the ratio above epsilon
    other = 1 / (math.exp(min(below, 700)) + n_values - 1)
    table = np.full((n_values, n_values), other)
    np.fill_diagonal(table, 1 - (n_values - 1) * other)
    return Channel.of(table, epsilon)


def laplace(n_values: int, finer: int, epsilon: float) -> Channel:
    """Return Laplace noise of scale L/epsilon on a grid `finer` times as fine as the values, clipped to their range."""
    require(n_values >= 2, "scale", "of at least two values", n_values)
    length = (n_values - 1) * finer
    steps = np.abs(np.arange(n_values)[:, None] * finer - np.arange(length + 1))
    decay = math.exp(-epsilon * (1 - 1e-9) / length)
    table = (1 - decay) / (1 + decay) * decay**steps
    table[:, [0, -1]] = decay ** steps[:, [0, -1]] / (1 + decay)
    return Channel.of(table, epsilon)


def words_for(streams: Streams, n: int, person: int) -> Words:
    """Return random words: a user's own ones below a seed, the operating system's where there is none."""
    return streams.words(n, person) if streams.seeded else system_words(n)


_FINER = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalChannel(ABC):
    """Every rating's value goes through a channel of `epsilon`; which items were rated stays open."""

    epsilon: Positive

    @abstractmethod
    def _channel(self, n_values: int) -> tuple[Channel, int]:
        """Return the channel of a scale of so many values, and how many steps of it make one of the scale."""

    def perturb(self, ratings: Ratings, streams: Streams) -> Sent:
        """Return the ratings with every value sent through the channel, each user's by their own random words."""
        require_declared(ratings.scale)
        csr, scale = ratings.csr, ratings.scale
        if scale.step is None:
            raise DataError("the scale of the ratings must have steps, so that its values can be listed")
        channel, finer = self._channel(round((scale.highest - scale.lowest) / scale.step) + 1)
        held = np.rint((csr.data - scale.lowest) / scale.step).astype(np.int64)
        sent = channel.send(held, words_of_users(ratings, partial(words_for, streams)))
        data = np.minimum(scale.lowest + sent * (scale.step / finer), scale.highest)
        changed = sparse.csr_array((data, csr.indices, csr.indptr), csr.shape)
        return Sent(ratings.replaced(changed) if finer == 1 else on_wide_scale(ratings, changed))

    def guarantee(self) -> Guarantee:
        """Return the guarantee of the channel: everything afterwards is post-processing."""
        return Guarantee(
            status="proved",
            unit="rating",
            adjacency="replace",
            epsilon=self.epsilon,
            delta=0.0,
            reason=(
                "Local: each rating's value is sent through a channel, any two rows of which differ by a factor of "
                "e^epsilon at most; which items were rated stays open, and several ratings add up."
            ),
        )


@checked
@register
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomisedResponse(LocalChannel):
    """The rating is kept with probability e^epsilon / (e^epsilon + V - 1), else any other of the V values is sent.

    Parameters
    ----------
    epsilon : float, default 1.0
        Local differential privacy of one rating's value, against everybody, the provider included.
    """

    name: ClassVar[str] = "randomised-response"
    label: ClassVar[str] = "Randomised response"

    epsilon: Positive = 1.0

    def _channel(self, n_values: int) -> tuple[Channel, int]:
        return randomised_response(n_values, self.epsilon), 1


@checked
@register
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLaplace(LocalChannel):
    """Laplace noise of scale L/epsilon on each rating, on steps of a sixteenth of the scale's, clipped to the scale.

    Parameters
    ----------
    epsilon : float, default 4.0
        As in `RandomisedResponse`.
    """

    name: ClassVar[str] = "local-laplace"
    label: ClassVar[str] = "Laplace on the ratings"

    epsilon: Positive = 4.0

    def _channel(self, n_values: int) -> tuple[Channel, int]:
        return laplace(n_values, _FINER, self.epsilon), _FINER
