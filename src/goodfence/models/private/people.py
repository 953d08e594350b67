"""The ratings as the private models see them: integers on a grid, one row a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.data.ratings import Ratings
from goodfence.errors import require
from goodfence.kernels.item_sums import residuals
from goodfence.privacy.fixed_point import Floats, centred, require_declared, to_grid
from goodfence.privacy.noise import Integers

Unit: TypeAlias = Literal["rating", "user"]


@dataclass(frozen=True, slots=True)
class People:
    """Everybody's ratings, mapped to 1..5 and measured from its centre. Nothing here may be shown to anybody."""

    indptr: npt.NDArray[np.integer]
    indices: npt.NDArray[np.integer]
    values: Floats
    n_items: int

    @classmethod
    def of(cls, ratings: Ratings) -> People:
        """Return the people of these ratings, whose scale must be declared."""
        require_declared(ratings.scale)
        csr = ratings.csr
        return cls(csr.indptr, csr.indices, centred(csr.data, ratings.scale), csr.shape[1])

    def __repr__(self) -> str:
        return "People(not shown)"

    @property
    def counts(self) -> Integers:
        """How many ratings each person gave."""
        return np.diff(self.indptr).astype(np.int64)

    def residuals(self, clamps: Clamps, effects: Floats, grid: int) -> Integers:
        """Return every rating's residual on the grid."""
        found = residuals(
            self.indptr,
            self.indices,
            to_grid(self.values, grid),
            to_grid(effects, grid),
            clamps.near_on(grid),
            clamps.prior,
            clamps.wide_on(grid),
        )
        return found.astype(np.int64, copy=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clamps:
    """How a residual is cut, so that one rating can move little. Public constants, on the scale 1..5."""

    near: float
    """Each rating counts in its person's offset only up to this distance from its item's centre."""
    prior: int
    """How many ratings at the centre are added to a person's own when her offset is computed."""
    wide: float
    """A residual is cut at plus and minus this."""

    def __post_init__(self) -> None:
        require(self.near > 0, "near", "positive", self.near)
        require(self.prior >= 1, "prior", "at least 1", self.prior)
        require(self.wide > 0, "wide", "positive", self.wide)

    def near_on(self, grid: int) -> int:
        """Return `near` on the grid."""
        return int(self.near * grid)

    def wide_on(self, grid: int) -> int:
        """Return `wide` on the grid."""
        return int(self.wide * grid)
