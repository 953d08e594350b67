"""From ratings to integers: the scale 1..5, the grid, clamped residuals, and how far one rating moves them.

Privacy is decided in integers only: what one user contributes is a vector of integers, sums of integers have no
rounding, and the noise is of integers. Floating point enters before (a rating is put on the grid by itself) and after
(what was released is divided by the grid).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from goodfence.arrays import AnyIntegers, Csr, Flags, Floats, Integers
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale
from goodfence.errors import DataError, SettingError, require
from goodfence.kernels.private import residuals
from goodfence.privacy.noise import SIGMA
from goodfence.settings import Count, Positive, checked

CENTRE = 3.5
"""The point of the scale 1..5 from which ratings are measured."""
SPAN = 4.0
"""The length of the scale 1..5 to which every declared scale is mapped."""
LARGEST = 1 << 61
"""Integers on a grid stay below this, so that sums and differences of a few do not overflow."""
UP = 1 + 1e-9
"""A factor that covers the rounding of the few floating-point operations in a bound."""


def require_declared(scale: Scale) -> None:
    """Refuse a scale that was only observed: its ends are ratings that somebody gave."""
    if not scale.declared:
        raise DataError(
            "the scale of the ratings must be declared for a private model, because an observed one "
            "reveals ratings; give scale=(lowest, highest, step) (--scale LOW HIGH STEP)"
        )
    length = scale.highest - scale.lowest
    if not 0 < length < math.inf:
        rule = "be shorter: its length overflows" if length > 0 else "have more than one value"
        raise DataError(f"the scale of the ratings of a private model must {rule}")


def centred(values: Floats, scale: Scale) -> Floats:
    """Return ratings mapped to the scale 1..5 and measured from its `CENTRE`: each by itself."""
    share = (values - scale.lowest) / (scale.highest - scale.lowest)
    return (1.0 - CENTRE) + SPAN * np.minimum(np.maximum(share, 0.0), 1.0)  # np.clip takes three times as long


def uncentred(values: Floats, scale: Scale) -> Floats:
    """Return what `centred` maps to `values`, clipped to the scale."""
    share = np.minimum(np.maximum((values - (1.0 - CENTRE)) / SPAN, 0.0), 1.0)
    told = scale.lowest + share * (scale.highest - scale.lowest)
    return np.minimum(np.maximum(told, scale.lowest), scale.highest)


def to_grid(values: Floats, grid: int) -> Integers:
    """Return the nearest integers to values·grid, which must be finite and below 2^61 in size."""
    scaled = np.rint(values * grid)
    if not (np.abs(scaled) < LARGEST).all():  # not `>=`: NaN fails this test too
        raise SettingError("epsilon must be smaller: numbers on the grid exceed 61 bits")
    return scaled.astype(np.int64)


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class Clamps:
    """How a residual is clamped, so that one rating can move little. Public constants, on the scale 1..5."""

    near: Positive
    """Each rating counts in its user bias only up to this distance from its item bias."""
    prior: Count
    """How many ratings at the centre are added to a user's own when the user bias is computed."""
    wide: Positive
    """A residual is clamped to plus and minus this."""
    history: bool = False
    """Whether the user bias is that of all ratings by then, and residuals of many updates move."""

    def on(self, grid: int) -> tuple[int, int]:
        """Return `near` and `wide` on the grid."""
        return int(self.near * grid), int(self.wide * grid)

    def others_move(self, grid: int, n_items: int) -> float:
        """Bound how far, in l2 over a user's other residuals, one rating more moves them through the user bias.

        With c other ratings the user bias moves by at most near(1 + c/(c + prior))/(c + 1 + prior), and by less than
        1 more because it is rounded down; clamping moves no residual farther. Largest over c = 0, ..., n_items.
        """
        near, _ = self.on(grid)
        if self.history:  # `docs/mechanisms/updates.md`, theorem 3
            return (near * math.sqrt(7 / (3 * self.prior)) + math.sqrt(n_items)) * UP
        others = np.arange(0, n_items + 1, dtype=np.float64)
        move = near * (1 + others / (others + self.prior)) / (others + 1 + self.prior) + 1
        return float((np.sqrt(others) * move).max()) * UP


class Arrival(NamedTuple):
    """What is to be known of each rating of users whose earlier ratings count too."""

    new: Flags
    """Whether it is of this batch."""
    idle: Flags
    """Whether it was withdrawn before."""
    frozen: Integers
    """What it brings into pairs, if it is not new."""


class Contributions:
    """What each user contributes to releases, wherever it is."""

    __slots__ = ()

    def total(self, of: Callable[..., Any], *public: Any) -> Any:
        """Return `of(profiles, *public)`: integers, which are sums over users, and what follows from `public` alone."""
        return of(self, *public)


@dataclass(frozen=True, slots=True)
class UserProfiles(Contributions):
    """All users' ratings, mapped to 1..5 and measured from its centre. Nothing here may be shown to anybody."""

    indptr: AnyIntegers
    indices: AnyIntegers
    values: Floats
    n_items: int
    room: int = 0
    """For how many items bounds must hold, if the catalogue may grow."""
    arrival: Arrival | None = None
    """Which ratings are of this batch, if the others only say who somebody is; None if all are."""

    @classmethod
    def of(cls, ratings: Ratings) -> UserProfiles:
        """Return the profiles of these ratings, whose scale must be declared."""
        require_declared(ratings.scale)
        csr = ratings.csr
        return cls(csr.indptr, csr.indices, centred(csr.data, ratings.scale), csr.shape[1])

    def __repr__(self) -> str:
        return "UserProfiles(not shown)"

    @property
    def most_items(self) -> int:
        """How many items one user can rate."""
        return max(self.n_items, self.room)

    @property
    def counts(self) -> Integers:
        """How many ratings each user gave."""
        return np.diff(self.indptr).astype(np.int64)

    def rows(self, first: int = 0, last: int | None = None) -> Csr:
        """Return the profiles of the users in rows first..last-1."""
        end = len(self.indptr) if last is None else last + 1
        return Csr(self.indptr[first:end], self.indices, self.values)

    def residuals(self, clamps: Clamps, item_bias: Floats, grid: int) -> AnyIntegers:
        """Return every rating's residual on the grid."""
        near, wide = clamps.on(grid)
        ratings, biases = to_grid(self.values, grid), to_grid(item_bias, grid)
        if self.arrival is not None:  # what was withdrawn is counted, but as if it said nothing
            ratings = np.where(self.arrival.idle, biases[self.indices], ratings)
        return residuals(self.indptr, self.indices, ratings, biases, near, clamps.prior, wide)

    def arriving(self, values: AnyIntegers) -> tuple[AnyIntegers, AnyIntegers]:
        """Return the columns and values of the ratings of this batch."""
        if self.arrival is None:
            return self.indices, values
        return self.indices[self.arrival.new], values[self.arrival.new]


def integer_sensitivity(mu: float) -> int:
    """Return the integer sensitivity that spends mu: sensitivity/sigma is at most mu."""
    return math.floor(mu * SIGMA)


def finest_grid(bound: Callable[[int], int], mu: float) -> int:
    """Return a grid whose sensitivity, by `bound`, spends at most mu, and nearly that."""
    target, large = integer_sensitivity(mu), 1 << 30
    grid = math.ceil(target / bound(large) * large) + 1
    while grid > 1 and bound(grid) > target:
        grid -= max(1, grid >> 20)
    require(bound(grid) <= target, "epsilon", "larger for this catalogue", mu)
    return grid
