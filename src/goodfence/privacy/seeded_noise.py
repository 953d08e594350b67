"""Noise from a seed, for experiments only: whoever knows the seed can take the noise away.

This is the one file of `privacy` that may use NumPy's generators. A fit that used it has the guarantee `none`.
"""

from __future__ import annotations

import numpy as np

from goodfence.privacy.noise import SIGMA, Integers
from goodfence.rng import Streams


class SeededNoise:
    """Repeatable noise: rounded real Gaussians of the same sigma as `SystemNoise`.

    Examples
    --------
    >>> bool((SeededNoise(Streams(7)).draw(5) == SeededNoise(Streams(7)).draw(5)).all())
    True
    """

    private = False

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._drawn = 0

    def draw(self, n: int) -> Integers:
        """Return n draws of the next stream below the seed."""
        generator = self._streams.at(self._drawn)
        self._drawn += 1
        return np.rint(generator.normal(0.0, SIGMA, n)).astype(np.int64)
