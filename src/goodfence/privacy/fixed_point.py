"""From ratings to integers, and from integers with noise back to numbers.

Privacy is decided in integers only: what one person contributes is a vector of integers, sums of integers have no
rounding, and the noise is of integers. Floating point enters before (a rating is put on the grid by itself) and after
(what was released is divided by the grid).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from goodfence.data.scale import Scale
from goodfence.errors import DataError, SettingError, require
from goodfence.privacy.accounting import Account, Release
from goodfence.privacy.noise import SIGMA, Integers, Noise

CENTRE = 3.5
"""The point of the scale 1..5 from which ratings are measured."""
SPAN = 4.0
"""The length of the scale 1..5 to which every declared scale is mapped."""
LARGEST = 1 << 61
"""Integers on a grid stay below this, so that sums and differences of a few do not overflow."""
UP = 1 + 1e-9
"""A factor that covers the rounding of the few floating-point operations in a bound."""

Floats = npt.NDArray[np.float64]


@dataclass
class Publisher:
    """The one door through which anything leaves the data: integers go in, the same with noise come out.

    Examples
    --------
    >>> from goodfence.privacy.noise import SystemNoise
    >>> publisher = Publisher(SystemNoise())
    >>> noisy = publisher.publish("counts", np.array([3, 5]), sensitivity=2**22)
    >>> round(publisher.account.mu, 3)
    0.25
    """

    noise: Noise
    account: Account = field(default_factory=Account)

    def publish(self, name: str, totals: Integers, sensitivity: int) -> Integers:
        """Return the totals plus noise, and write down what that cost."""
        require(totals.dtype == np.int64, "totals", "64-bit integers", totals.dtype)
        release = Release(name=name, sensitivity=sensitivity, sigma=SIGMA, dimension=totals.size)
        self.account = Account((*self.account.releases, release))
        return totals + self.noise.draw(totals.size).reshape(totals.shape)


def require_declared(scale: Scale) -> None:
    """Refuse a scale that was only observed: its ends are ratings that somebody gave."""
    if not scale.declared:
        raise DataError(
            "the scale of the ratings must be declared for a private model, because an observed one is itself "
            "taken from the data; give scale=(lowest, highest, step) with the ratings"
        )
    if scale.highest <= scale.lowest:
        raise DataError(
            "the scale of the ratings must have more than one value for a private model"
        )
    if not math.isfinite(scale.highest - scale.lowest):
        raise DataError(
            "the scale of the ratings must be shorter for a private model: its length overflows"
        )


def centred(values: Floats, scale: Scale) -> Floats:
    """Return ratings mapped to the scale 1..5 and measured from its `CENTRE`: each by itself.

    Examples
    --------
    >>> centred(np.array([0.0, 5.0, 10.0]), Scale(0, 10))
    array([-2.5, -0.5,  1.5])
    """
    share = (values - scale.lowest) / (scale.highest - scale.lowest)
    return (1.0 - CENTRE) + SPAN * np.clip(share, 0.0, 1.0)


def uncentred(values: Floats, scale: Scale) -> Floats:
    """Return what `centred` maps to `values`, clipped to the scale."""
    share = np.clip((values - (1.0 - CENTRE)) / SPAN, 0.0, 1.0)
    return np.clip(
        scale.lowest + share * (scale.highest - scale.lowest), scale.lowest, scale.highest
    )


def to_grid(values: Floats, grid: int) -> Integers:
    """Return the nearest integers to values·grid, which must be finite and below 2^61 in size.

    Of ratings they always are, because `centred` puts them between -2.5 and 1.5.

    Examples
    --------
    >>> to_grid(np.array([0.5, -1.26]), 100)
    array([  50, -126])
    """
    scaled = np.rint(values * grid)
    if not (np.abs(scaled) < LARGEST).all():  # not `>=`: NaN fails this test too
        raise SettingError("epsilon must be smaller: numbers on the grid exceed 61 bits")
    return scaled.astype(np.int64)


def offset_move(near: int, prior: int, n_items: int) -> float:
    """Bound how far, in l2 over a person's other residuals, one more rating moves them through her offset.

    With c other ratings her offset moves by at most near(1 + c/(c + prior))/(c + 1 + prior), and by less than 1
    more because it is rounded down; clamping moves no residual farther. Largest over c = 0, ..., n_items.
    """
    others = np.arange(0, n_items + 1, dtype=np.float64)
    move = near * (1 + others / (others + prior)) / (others + 1 + prior) + 1
    return float((np.sqrt(others) * move).max()) * UP


def whole_sensitivity(mu: float) -> int:
    """Return the integer sensitivity that spends mu: sensitivity/sigma is at most mu.

    Examples
    --------
    >>> whole_sensitivity(0.25) == SIGMA // 4
    True
    """
    return math.floor(mu * SIGMA)
