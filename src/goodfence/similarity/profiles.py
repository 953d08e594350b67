"""Rows of ratings laid out for comparing them: by row, by column, and their squared norms.

Ratings on a grid (whole or half stars) become integers here, so that dot products and squared norms are exact
and equal profiles compare equal, whatever the order of summation. A cosine does not change when all ratings
are multiplied by one number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

FACTORS = (1, 2, 4, 10)
ON_GRID = 1e-9
EXACT = 2.0**53
_TOGETHER = 1 << 15

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Profiles:
    """Rows to be compared with each other, and the way to lay out another row beside them."""

    rows: sparse.csr_array
    """rows x columns, whole numbers in float64 where the ratings lie on a grid."""
    factor: int
    """What the ratings were multiplied with to become whole numbers; 0 where they are real-valued."""

    @classmethod
    def of(cls, csr: sparse.csr_array) -> Profiles:
        """Lay out the rows of `csr`."""
        factor = grid_of(csr.data)
        values = csr.data
        if factor:
            values = values * factor
            np.rint(values, out=values)
        return cls(_read_only((values, csr.indices, csr.indptr), csr.shape), factor)

    def __repr__(self) -> str:
        return f"Profiles({self.n_rows:,} rows x {self.n_columns:,} columns)"

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.rows.shape[0])

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return int(self.rows.shape[1])

    @property
    def are_whole(self) -> bool:
        """Whether every value is a whole number, so that dot products are exact."""
        return self.factor > 0

    @cached_property
    def columns(self) -> sparse.csr_array:
        """The same, columns x rows: for each column who rated it."""
        turned = self.rows.T.tocsr()
        return _read_only((turned.data, turned.indices, turned.indptr), turned.shape)

    @cached_property
    def squared_norms(self) -> Floats:
        """The squared norm of each row, over all its columns."""
        return self.sums(self.rows.data * self.rows.data)

    @cached_property
    def totals(self) -> Floats:
        """The sum of each row."""
        return self.sums(self.rows.data)

    @cached_property
    def counts(self) -> Floats:
        """The number of ratings of each row."""
        counts: Floats = np.diff(self.rows.indptr).astype(np.float64)
        return counts

    def sums(self, values: Floats) -> Floats:
        """Return the sum over each row of `values`, one per stored rating, left to right."""
        weights = sparse.csr_array((values, self.rows.indices, self.rows.indptr), self.rows.shape)
        sums: Floats = weights @ np.ones(self.n_columns)
        return sums

    def lay_out(
        self, columns: Sequence[npt.NDArray[np.integer]], values: Sequence[Floats]
    ) -> Profiles:
        """Return other rows (their columns and ratings), laid out in the same units as these."""
        counts = [len(row) for row in columns]
        indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        indices = np.concatenate([*columns, np.empty(0, dtype=np.int32)]).astype(np.int32)
        data = np.concatenate([*values, np.empty(0)]).astype(np.float64)
        csr = sparse.csr_array((data, indices, indptr), shape=(len(counts), self.n_columns))
        csr.sort_indices()
        scaled = csr.data * max(self.factor, 1)
        whole = np.rint(scaled)
        exact = self.are_whole & (np.abs(scaled - whole) < ON_GRID)
        units = np.where(exact, whole, scaled)
        return Profiles(_read_only((units, csr.indices, csr.indptr), csr.shape), self.factor)


def grid_of(values: Floats) -> int:
    """Return the least factor that makes every value a whole number small enough to be exact, or 0."""
    factor = next((factor for factor in FACTORS if _are_on_grid(values, factor)), 0)
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    units = largest * factor
    return factor if units * units * max(len(values), 1) < EXACT else 0


def _are_on_grid(values: Floats, factor: int) -> bool:
    """Look at some values at a time: in the cache, and not beyond the first that is off the grid."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large is on no grid
        for first in range(0, len(values), _TOGETHER):
            scaled = values[first : first + _TOGETHER] * factor
            if not (np.abs(scaled - np.rint(scaled)) < ON_GRID).all():
                return False
    return True


def _read_only(
    parts: tuple[Floats, npt.NDArray[np.int32], npt.NDArray[np.int32]], shape: tuple[int, int]
) -> sparse.csr_array:
    """Return a matrix that cannot be written to: one kind of array for the kernels, so they compile once."""
    views = [part.view() for part in parts]
    for view in views:
        view.flags.writeable = False
    return sparse.csr_array(tuple(views), shape=shape, copy=False)
