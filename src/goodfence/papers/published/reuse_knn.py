"""`ReuseKNN`: neighbours that are used often answer by coins (Müllner, Lex, Schedl & Kowald 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.stats import rankdata

from goodfence.arrays import AnyIntegers, Floats
from goodfence.errors import ModelFileError
from goodfence.models.persistence import Arrays
from goodfence.papers.published.published_recommender import Items, PublishedRecommender, dense_profile, indicators
from goodfence.privacy.guarantee import Guarantee
from goodfence.registry import register
from goodfence.rng import RNG, Streams
from goodfence.settings import Count, between, checked


@checked
@register
@dataclass(eq=False, kw_only=True, repr=False)
class ReuseKNN(PublishedRecommender):
    """The k nearest among the raters of an item; who has been a neighbour more than `tau` times answers by two coins.

    Parameters
    ----------
    k : int, default 10
        How many neighbours answer.
    variant : {"userknn", "expect", "gain", "reuse"}, default "userknn"
        What ranks the candidates beside similarity: nothing, how popular the items are that they rated, how many of the
        asker's items they rated, or whether they have been the asker's neighbours before.
    tau : float or None, default 0.0
        How often a user may be used with their true rating; 0 protects everybody, None nobody.
    rng : RNG, optional
        As in `NeighbourCF`, for ties and coins.

    Examples
    --------
    >>> import goodfence as gf
    >>> gf.papers.ReuseKNN().guarantee().status
    'refuted'
    """

    name: ClassVar[str] = "reuse-knn"
    label: ClassVar[str] = "ReuseKNN"

    k: Count = 10
    variant: Literal["userknn", "expect", "gain", "reuse"] = "userknn"
    tau: Annotated[float, between(0, 1e12)] | None = 0.0
    rng: RNG = None

    @property
    def _own_traits(self) -> dict[str, Any]:  # type: ignore[override]
        return {"n_neighbours": self.k, "among": "raters", "fresh_answers": True}

    def _words(self) -> str:
        return f"{self.variant}, k={self.k}, τ={self.tau}"

    def _learn(self, streams: Streams) -> None:
        csr, self._draws = self.ratings_.csr, streams.at(0)
        self._rated = indicators(csr)
        self._squares = sparse.csr_array((csr.data**2, csr.indices, csr.indptr), csr.shape)
        popularity = np.bincount(csr.indices, minlength=csr.shape[1]) / csr.shape[0]
        self.expected_: Floats = self._rated @ popularity
        self._mean = float(csr.data.mean()) if csr.nnz else math.nan
        if not hasattr(self, "_loaded"):
            self.uses_ = np.zeros(csr.shape[0], dtype=np.int64)
        self._before: dict[int, set[int]] = {}

    def similarities(self, columns: AnyIntegers, values: Floats) -> Floats:
        """Return the cosine of an asker and every user over the items that both rated."""
        n_items = self.ratings_.shape[1]
        own = dense_profile(columns, values, n_items)
        has = dense_profile(columns, np.ones(len(columns)), n_items)
        lengths = (self._squares @ has) * (self._rated @ own**2)
        dots = self.ratings_.csr @ own
        return np.where(lengths > 0, dots / np.sqrt(np.where(lengths > 0, lengths, 1.0)), 0.0)

    def scores(self, near: Floats, gains: Floats, candidates: AnyIntegers, row: int) -> Floats:
        """Return the mean of two ranks of each candidate, higher is better."""
        if self.variant == "reuse":
            other = np.isin(candidates, list(self._before.get(row, ()))).astype(np.float64)
        else:
            listed = {"userknn": near, "expect": self.expected_, "gain": gains}
            other = listed[self.variant][candidates]
        return np.asarray(rankdata(near[candidates]) + rankdata(other)) / 2

    def _answer(self, columns: Items, values: Floats, wanted: Items, row: int) -> Floats:
        near = self.similarities(columns, values)
        own = dense_profile(columns, np.ones(len(columns)), self.ratings_.shape[1])
        gains = (self._rated @ own) / max(len(columns), 1)
        turned = self.ratings_.transposed.csr
        return np.array([self._one(near, gains, turned, int(item), row) for item in wanted])

    def _one(self, near: Floats, gains: Floats, turned: sparse.csr_array, item: int, row: int) -> float:
        part = slice(turned.indptr[item], turned.indptr[item + 1])
        order = self._draws.permutation(part.stop - part.start)
        raters, given = turned.indices[part][order], turned.data[part][order]
        others = raters != row
        raters, given = raters[others], given[others]
        best = np.argsort(-self.scores(near, gains, raters, row), kind="stable")[: self.k]
        best = best[near[raters[best]] > 0]
        if not len(best):
            return self._mean
        chosen, weights = raters[best], near[raters[best]]
        self.uses_[chosen] += 1
        if row >= 0:
            self._before.setdefault(row, set()).update(chosen.tolist())
        scale = self.ratings_.scale
        if self.tau is None:
            return float(weights @ given[best] / weights.sum())
        drawn = respond(given[best], scale.lowest, scale.highest, self._draws)
        used = np.where(self.uses_[chosen] > self.tau, drawn, given[best])
        return float(weights @ used / weights.sum())

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        return {"uses": self.uses_}

    def _restore_state(self, arrays: Arrays) -> None:
        self.uses_, self._loaded = np.array(arrays["uses"]), True
        if self.uses_.dtype != np.int64 or self.uses_.shape != (self.ratings_.shape[0],):
            raise ModelFileError("the model must say how often every user was used")

    def guarantee(self) -> Guarantee:
        """Return what is claimed, and why it does not hold."""
        return Guarantee(
            status="refuted",
            unit="rating",
            adjacency="replace",
            epsilon=math.log(3),
            delta=0.0,
            reason=(
                "The response is the true rating with probability 3/4 and else any real number, so a response of 5 has "
                "probability 3/4 with a rating of 5 and 0 with one of 4; and each use draws anew."
            ),
        )


def respond(ratings: Floats, lowest: float, highest: float, draws: np.random.Generator) -> Floats:
    """Return what protected users respond: the truth if one of two coins is heads, else any number of the scale."""
    coins = draws.random((2, len(ratings))) < 0.5
    anything = draws.uniform(lowest, highest, len(ratings))
    return np.where(coins.any(axis=0), ratings, anything)


def response_probabilities(integers: bool = False, n_values: int = 5) -> tuple[float, float]:
    """Return how likely a response of 5 is with a rating of 5 and with one of 4: the counterexample."""
    anything = 0.25 / n_values if integers else 0.0
    return 0.75 + anything, anything
