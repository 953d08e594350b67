"""What two systems compute under encryption, in the clear: encryption hides the inputs, and not what answers tell.

`ThresholdNeighbours`: Erkin, Beye, Veugen & Lagendijk 2010. `MatrixFactorisation`: Nikolaenko et al. 2013, ALS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy import sparse

from goodfence.arrays import AnyIntegers, Floats, row_numbers
from goodfence.papers.published.published_recommender import Items, PublishedRecommender, dense_profile, indicators
from goodfence.registry import register
from goodfence.rng import Streams
from goodfence.settings import Count, Finite, Positive, at_least, checked


@checked
@register
@dataclass(eq=False, kw_only=True, repr=False)
class ThresholdNeighbours(PublishedRecommender):
    """The mean rating of all users whose cosine with the asker is at least a threshold.

    Parameters
    ----------
    threshold : float, default 0.3
        delta: who is at least this similar is a neighbour.
    dense : int, optional
        Compare by the so many most rated items only, as the protocol does; None for all items.
    bits : int, optional
        Compare integers: profiles of length 1, times 2^bits and rounded, as the protocol does; None for no rounding.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> everybody, nobody = (gf.papers.ThresholdNeighbours(threshold=t).fit(films) for t in (0.0, 1.1))
    >>> bool(np.isnan(nobody.predict({films.items[0]: 8.0}, films.items[1:3])).all())
    True
    """

    name: ClassVar[str] = "threshold-neighbours"
    label: ClassVar[str] = "Threshold neighbours"
    reason: ClassVar[str] = (
        "The asker is told a mean over few users' ratings, encrypted or not: the asker holds the key."
    )

    threshold: Finite = 0.3
    dense: Count | None = None
    bits: Annotated[int, at_least(1, most=24)] | None = None

    def _learn(self, streams: Streams) -> None:  # noqa: ARG002 - nothing is left to chance
        csr = self.ratings_.csr
        self.compared_ = np.arange(csr.shape[1])
        if self.dense is not None:
            counts = np.bincount(csr.indices, minlength=csr.shape[1])
            self.compared_ = np.sort(np.argsort(-counts, kind="stable")[: self.dense])
        self._rated = indicators(csr)
        part = sparse.csr_array(csr[:, self.compared_])
        norms = np.sqrt(part.multiply(part).sum(axis=1))
        owners = row_numbers(part.indptr)
        data = self._scaled(part.data / np.where(norms > 0, norms, 1.0)[owners])
        self.profiles_ = sparse.csr_array((data, part.indices, part.indptr), part.shape)

    def _scaled(self, values: Floats) -> Floats:
        return values if self.bits is None else np.rint(values * 2.0**self.bits)

    @property
    def least(self) -> float:
        """What a dot product of two profiles must reach."""
        return self.threshold * (1.0 if self.bits is None else 4.0**self.bits)

    def profile(self, columns: AnyIntegers, values: Floats) -> Floats:
        """Return an asker's profile as it is compared, over `compared_`."""
        own = dense_profile(columns, values, self.ratings_.shape[1])[self.compared_]
        length = float(np.sqrt(own @ own))
        return self._scaled(own / length if length > 0 else own)

    def sums(self, columns: AnyIntegers, values: Floats, row: int = -1) -> tuple[Floats, Floats]:
        """Return for every item the sum of the neighbours' ratings, and how many of them rated it."""
        near = self.profiles_ @ self.profile(columns, values)
        # As in [COS], who has nothing in common with the asker is not compared.
        chosen = ((near >= self.least) & (near > 0)).astype(np.float64)
        if row >= 0:
            chosen[row] = 0.0
        return chosen @ self.ratings_.csr, chosen @ self._rated

    def _answer(self, columns: Items, values: Floats, wanted: Items, row: int) -> Floats:
        sums, counts = (found[wanted] for found in self.sums(columns, values, row))
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


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
        "The factors are fitted to everybody's ratings as they are; nothing bounds what one rating moves."
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
