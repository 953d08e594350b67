"""Small ratings full of ties, and recommenders to attack."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

import goodfence as gf

Floats = npt.NDArray[np.float64]


def tied_ratings(seed: int, n_users: int = 24, n_items: int = 14, values: tuple[float, ...] = (1, 2, 5)) -> gf.Ratings:
    """Return ratings of few values, with users that are copies of each other: ties everywhere."""
    generator = np.random.default_rng(seed)
    rated = generator.random((n_users, n_items)) < 0.5
    rated[:, 0] = True
    cells = np.where(rated, generator.choice(values, size=rated.shape), np.nan)
    cells[n_users // 2 : n_users // 2 + 6] = cells[:6]
    stored = ~np.isnan(cells)
    rows, columns = np.nonzero(stored)
    starts = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
    csr = sparse.csr_array((cells[rows, columns], columns, starts), shape=cells.shape)
    step = 0.5 if any(value % 1 for value in values) else 1
    scale = (min(values), max(values), step)
    return gf.Ratings(csr, users=[f"user {row}" for row in range(n_users)], items=range(n_items), scale=scale)


class ItemMeans:
    """Ignores who asks: the mean of each item."""

    def __repr__(self) -> str:  # a test is named after it
        return "ItemMeans()"

    def fit(self, ratings: gf.Ratings) -> Self:
        csr = ratings.transposed.csr
        counts = np.diff(csr.indptr)
        with np.errstate(invalid="ignore"):
            self.means_ = np.asarray(csr.sum(axis=1)) / counts
        self.ratings_ = ratings
        return self

    def predict(self, users: Any, items: Any) -> Floats:
        assert len(self.ratings_.rows(users)) == len(items)
        means: Floats = self.means_[self.ratings_.columns(items)]
        return means


class OwnMean:
    """Ignores other users: the mean of what the asker rated."""

    def __repr__(self) -> str:  # a test is named after it
        return "OwnMean()"

    def fit(self, ratings: gf.Ratings) -> Self:
        self.ratings_ = ratings
        self.means_ = np.asarray(ratings.csr.sum(axis=1)) / np.diff(ratings.csr.indptr)
        return self

    def predict(self, users: Any, items: Any) -> Floats:
        assert len(users) == len(items)
        means: Floats = self.means_[self.ratings_.rows(users)]
        return means


class AnswersOnly:
    """A neighbourhood recommender that can only be asked with a profile."""

    profiles_only = True

    def __init__(self, mechanism: Any) -> None:
        self.model = gf.NeighbourCF(mechanism, rng=7)

    def fit(self, ratings: gf.Ratings) -> Self:
        self.model = gf.NeighbourCF(self.model.mechanism, rng=7).fit(ratings)
        return self

    def predict(self, profile: Any, items: Any) -> Floats:
        return self.model.predict(profile, items)


class WithSupport(gf.NeighbourCF):
    """Predicts only what at least `least` of the neighbours rated."""

    least = 5

    def predict(self, users: Any, items: Any) -> Floats:
        predictions = super().predict(users, items)
        rows, columns = self.ratings_.rows(users), self.ratings_.columns(items)
        csr = self.ratings_.csr
        for place, (row, column) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
            parts = [csr.indices[csr.indptr[j] : csr.indptr[j + 1]] for j in self.neighbours_[row]]
            if sum(column in part for part in parts) < self.least:
                predictions[place] = np.nan
        return predictions
