"""`MatrixFactorisation`: what Nikolaenko et al. (2013) compute in garbled circuits, in the clear: ALS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy import sparse

from goodfence.arrays import Floats
from goodfence.papers.published.published_recommender import Items, PublishedRecommender, indicators
from goodfence.registry import register
from goodfence.rng import Streams
from goodfence.settings import Count, Positive, at_least, checked


@checked
@register
@dataclass(eq=False, kw_only=True, repr=False)
class MatrixFactorisation(PublishedRecommender):
    """Regularised matrix factorisation by alternating least squares; a user's factors follow from their own ratings.

    Parameters
    ----------
    rank : int, default 10
        How many factors.
    penalty : float, default 0.1
        lambda: a user's, and an item's, squared factors count this times their number of ratings.
    sweeps : int, default 10
        How often users and then items are solved. The start is fixed, so nothing is left to chance.

    Examples
    --------
    >>> import goodfence as gf
    >>> train, test = gf.holdout(gf.load("movietweetings"), fraction=0.2, rng=7)
    >>> model = gf.papers.MatrixFactorisation().fit(train)
    >>> gf.evaluate(model, test).mae < gf.evaluate(gf.NeighbourCF(gf.KNN(k=20)).fit(train), test).mae
    True
    """

    name: ClassVar[str] = "matrix-factorisation"
    label: ClassVar[str] = "Matrix factorisation"
    reason: ClassVar[str] = (
        "The factors are fitted to everybody's ratings as they are; nothing bounds what one rating "
        "moves."
    )

    rank: Annotated[int, at_least(1, most=256)] = 10
    penalty: Positive = 0.1
    sweeps: Count = 10

    _own_traits: ClassVar[dict[str, Any]] = {"n_neighbours": 0}

    def _words(self) -> str:
        return f"rank {self.rank}"

    def _learn(self, streams: Streams) -> None:  # noqa: ARG002 - nothing is left to chance
        csr, turned = self.ratings_.csr, self.ratings_.transposed.csr
        self.item_factors_ = first_factors(self.ratings_.csr, self.rank)
        for _ in range(self.sweeps):
            users = solve_rows(csr, self.item_factors_, self.penalty)
            self.item_factors_ = solve_rows(turned, users, self.penalty)

    def _answer(self, columns: Items, values: Floats, wanted: Items, row: int) -> Floats:  # noqa: ARG002 - for others
        factors = self.item_factors_
        own = sparse.csr_array((values, columns, np.array([0, len(columns)])), (1, len(factors)))
        return np.asarray(factors[wanted] @ solve_rows(own, factors, self.penalty)[0])


def first_factors(csr: sparse.csr_array, rank: int) -> Floats:
    """Return the start: each item's mean first, then small numbers that depend on its position alone."""
    counts = np.bincount(csr.indices, minlength=csr.shape[1])
    sums = np.bincount(csr.indices, csr.data, csr.shape[1])
    overall = csr.data.mean() if csr.nnz else 0.0
    places = np.arange(1, csr.shape[1] + 1)[:, None] * np.arange(1, rank)[None]
    rest = 0.1 * np.sin(places * 2.399963)  # the golden angle: no two items alike
    return np.hstack([((sums + overall) / (counts + 1))[:, None], rest])


def solve_rows(csr: sparse.csr_array, factors: Floats, penalty: float) -> Floats:
    """Return the factors of each row of `csr`, given those of its columns: one ridge regression each."""
    rank = factors.shape[1]
    products = (factors[:, :, None] * factors[:, None, :]).reshape(len(factors), -1)
    gram = (indicators(csr) @ products).reshape(-1, rank, rank)
    counts = np.maximum(np.diff(csr.indptr), 1)
    gram += penalty * counts[:, None, None] * np.eye(rank)
    return np.asarray(np.linalg.solve(gram, (csr @ factors)[..., None])[..., 0])
