"""What a user is expected to give an item without any neighbour: means, and regularised user and item biases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from scipy import sparse

from goodfence.arrays import AnyIntegers, Floats, row_numbers
from goodfence.data.matrix import read_only
from goodfence.data.ratings import Ratings

Base: TypeAlias = Literal["user_mean", "item_mean", "global_mean", "bias"]

USER_DAMPING = 15.0
ITEM_DAMPING = 10.0
"""How many ratings without a bias each user, and each item, is given beside its own (lambda_3 and lambda_2 of Koren,
"Factor in the neighbors", 2010)."""
SWEEPS = 10  # how often the item biases and then the user biases are estimated
_NOTHING = 1e-12  # a smaller deviation is rounding noise: a direction of its own in a cosine


@dataclass(frozen=True, eq=False)
class Baseline:
    """`overall + rows[u] + columns[i]` for each user u and item i [BIAS]."""

    overall: float
    rows: Floats  # (users,): the user means or biases, 0 where they do not count
    columns: Floats  # (items,): the item means or biases, likewise
    mean: float  # of all ratings: that of a row without any
    damping: tuple[float | None, float | None]  # of rows and columns: 0 for a mean, None for no term

    @classmethod
    def of(cls, ratings: Ratings, base: Base) -> Baseline:
        """Return the baseline of this name."""
        mean = float(ratings.csr.data.mean()) if ratings.n_ratings else float(np.nan)
        n_users, n_items = ratings.shape
        nothing = cls(0.0, np.zeros(n_users), np.zeros(n_items), mean, (None, None))
        if base == "user_mean":
            counts = np.diff(ratings.csr.indptr)
            sums = np.bincount(row_numbers(ratings.csr.indptr), ratings.csr.data, n_users)
            rows = np.where(counts > 0, sums / np.maximum(counts, 1), mean)
            return replace(nothing, rows=rows, damping=(0.0, None))
        if base == "item_mean":
            return cls.of(ratings.transposed, "user_mean").transposed
        if base == "global_mean":
            return replace(nothing, overall=mean)
        return _biases(ratings, nothing)

    @property
    def transposed(self) -> Baseline:
        """The same with the items as rows."""
        return Baseline(self.overall, self.columns, self.rows, self.mean, self.damping[::-1])

    def at(self, rows: AnyIntegers, columns: AnyIntegers) -> Floats:
        """Return what is expected in each cell (row, column)."""
        return self.overall + self.rows[rows] + self.columns[columns]

    def own(self, columns: AnyIntegers, values: Floats) -> float:
        """Return the term of a row with these ratings, which need not be in the data (fold-in)."""
        damping = self.damping[0]
        if damping is None:
            return 0.0
        order = np.argsort(columns)
        left = values[order] - self.overall - self.columns[columns[order]]
        total = float(np.bincount(np.zeros(len(left), dtype=np.int64), left, minlength=1)[0])
        weight = damping + len(left)
        return total / weight if weight > 0 else self.mean

    def for_own(self, own: float, columns: AnyIntegers) -> Floats:
        """Return what is expected of a row with the term `own` in each of `columns`."""
        return self.overall + own + self.columns[columns]

    def deviations(self, csr: sparse.csr_array) -> sparse.csr_array:
        """Return by how much each rating of `csr` (rows x columns) differs from what is expected."""
        left = csr.data - self.at(row_numbers(csr.indptr), csr.indices)
        return read_only((without_noise(left), csr.indices, csr.indptr), csr.shape)


def without_noise(deviations: Floats) -> Floats:
    """Return the deviations with 0 for what only rounding has left."""
    return np.where(np.abs(deviations) < _NOTHING, 0.0, deviations)


def _biases(ratings: Ratings, nothing: Baseline) -> Baseline:
    """Return the biases by alternating least squares: the items', then the users', given the others."""
    csr, mean, (n_users, n_items) = ratings.csr, nothing.mean, ratings.shape
    rated = sparse.csr_array((np.ones(csr.nnz), csr.indices, csr.indptr), csr.shape)
    left = csr.data - mean
    user_sums = np.bincount(row_numbers(csr.indptr), left, minlength=n_users)
    item_sums = np.bincount(csr.indices, left, minlength=n_items)
    n_rated, n_raters = np.diff(csr.indptr), np.bincount(csr.indices, minlength=n_items)
    user_biases, item_biases = nothing.rows, nothing.columns
    for _ in range(SWEEPS):
        item_biases = (item_sums - rated.T @ user_biases) / (ITEM_DAMPING + n_raters)
        user_biases = (user_sums - rated @ item_biases) / (USER_DAMPING + n_rated)
    return Baseline(mean, user_biases, item_biases, mean, (USER_DAMPING, ITEM_DAMPING))
