"""`RandomisedResponse` and `LocalLaplace`: each rating's value is changed on the user's side, by an exact channel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from scipy import sparse

from goodfence.arrays import Floats
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale
from goodfence.errors import DataError
from goodfence.papers.published.channel import Channel, laplace, randomised_response, words_for
from goodfence.papers.published.perturbed import Sent, on_wide_scale, words_of_users
from goodfence.privacy.fixed_point import require_declared
from goodfence.privacy.guarantee import Guarantee
from goodfence.registry import register
from goodfence.rng import Streams
from goodfence.settings import Positive, checked

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
        channel, finer = self._channel(len(values_of(ratings.scale)))
        csr, scale = ratings.csr, ratings.scale
        held = np.rint((csr.data - scale.lowest) / (scale.step or 1.0)).astype(np.int64)
        sent = channel.send(held, words_of_users(ratings, partial(words_for, streams)))
        data = np.minimum(scale.lowest + sent * ((scale.step or 1.0) / finer), scale.highest)
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


def values_of(scale: Scale) -> Floats:
    """Return all values of a scale.

    Examples
    --------
    >>> values_of(Scale(1, 5))
    array([1., 2., 3., 4., 5.])
    """
    if scale.step is None:
        raise DataError(
            "the scale of the ratings must have steps, so that its values can be listed"
        )
    n_steps = round((scale.highest - scale.lowest) / scale.step)
    return np.asarray(scale.lowest + scale.step * np.arange(n_steps + 1))
