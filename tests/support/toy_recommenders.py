"""Recommenders as short as they can be: neighbours per item, client-side noise, and noise on each answer."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

import goodfence as gf

Floats = npt.NDArray[np.float64]


class PerItemKNN:
    """The k most similar of those who rated the item, by cosine over all ratings; as LensKit and Surprise choose.

    With `centred`, each user's mean is taken away first and added to the answer. `corated` takes the cosine over the
    items that both rated.
    """

    def __init__(self, k: int, *, centred: bool = False, corated: bool = False) -> None:
        self.k, self.centred, self.corated = k, centred, corated

    def fit(self, ratings: gf.Ratings) -> Self:
        self.ratings = ratings
        csr = ratings.csr
        self.rated = np.zeros(csr.shape, dtype=np.bool_)
        owners = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
        self.rated[owners, csr.indices] = True
        cells = csr.toarray()
        counts = np.maximum(self.rated.sum(axis=1), 1)
        self.means = cells.sum(axis=1) / counts if self.centred else np.zeros(len(cells))
        self.values = np.where(self.rated, cells - self.means[:, np.newaxis], 0.0)
        return self

    def predict(self, users: Any, items: Any) -> Floats:
        rows, columns = self.ratings.rows(users), self.ratings.columns(items)
        similarities = {row: self._similarities(row) for row in np.unique(rows).tolist()}
        pairs = zip(rows.tolist(), columns.tolist(), strict=True)
        return np.array([self._one(row, column, similarities[row]) for row, column in pairs])

    def _similarities(self, row: int) -> Floats:
        products = self.values @ self.values[row]
        squares = (self.values**2).sum(axis=1)
        lengths = np.sqrt(squares * squares[row])
        if self.corated:
            both = self.rated & self.rated[row]
            own = (both * self.values[row] ** 2).sum(axis=1)
            lengths = np.sqrt((both * self.values**2).sum(axis=1) * own)
        found: Floats = np.where(lengths > 0, products / np.maximum(lengths, 1e-12), 0.0)
        return found

    def _one(self, row: int, column: int, similarities: Floats) -> float:
        able = np.flatnonzero(self.rated[:, column] & (similarities > 0))
        able = able[able != row]
        near = able[np.argsort(-similarities[able], kind="stable")[: self.k]]
        if len(near) == 0:
            return float(np.nan)
        weights = similarities[near]
        told = weights @ self.values[near, column] / weights.sum()
        return float(self.means[row] + told)


class NoisyAnswers(gf.NeighbourCF):
    """A neighbourhood with fresh Laplace noise on each answer, the middle of the scale where there is none."""

    fresh_answers: bool | None = True

    def __init__(self, mechanism: Any, *, epsilon: float, rng: Any = None) -> None:
        super().__init__(mechanism, rng=rng)
        self.epsilon = epsilon
        self.noise = np.random.default_rng(rng)  # copies share it: no answer's noise comes twice

    @property
    def traits(self) -> Any:
        """What is told of it: nothing of its neighbours."""
        return None

    def predict(self, users: Any, items: Any) -> Floats:
        scale = self.ratings_.scale
        answers = super().predict(users, items)
        answers = np.where(np.isnan(answers), (scale.lowest + scale.highest) / 2, answers)
        width = (scale.highest - scale.lowest) / self.epsilon
        noise = self.noise.laplace(scale=width, size=len(answers))
        told: Floats = np.clip(answers + noise, scale.lowest, scale.highest)
        return told


class Flattened:
    """Users send 3 for whatever they rated; what was learnt from is kept for all to see."""

    fits: list[gf.Ratings]

    def __init__(self, fits: list[gf.Ratings]) -> None:
        self.fits = fits

    def perturbed(self, ratings: gf.Ratings, rng: Any) -> gf.Ratings:  # noqa: ARG002 - protocol
        csr = ratings.csr
        parts = (np.full(csr.nnz, 3.0), csr.indices, csr.indptr)
        flat = sparse.csr_array(parts, shape=csr.shape)
        return gf.Ratings(flat, ratings.users, ratings.items, ratings.scale)

    def fit(self, ratings: gf.Ratings) -> Self:
        self.fits.append(ratings)
        return self

    def predict(self, users: Any, items: Any) -> Floats:  # noqa: ARG002 - protocol
        return np.full(len(items), np.nan)
