"""`IndKNN`: neighbours with a privacy budget each, who leave when it is spent (Zhu, Zhao, Guo & Wang 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.arrays import Floats, row_numbers
from goodfence.errors import ModelFileError, require
from goodfence.models.persistence import Arrays
from goodfence.papers.published.published_recommender import Items, PublishedRecommender, dense_profile, middle
from goodfence.privacy.accounting import total_mu
from goodfence.privacy.fixed_point import require_declared
from goodfence.privacy.guarantee import Guarantee
from goodfence.registry import register
from goodfence.rng import RNG, Streams
from goodfence.settings import Count, Fraction, Positive, Share, checked

SHRINK = 8.0
"""A weight of so many standard deviations of the noise is added at the middle of the scale."""


@checked
@register
@dataclass(eq=False, kw_only=True, repr=False)
class IndKNN(PublishedRecommender):
    """Noisy sums over the similar raters of an item; each use costs a rater's own budget, and who has none is left out.

    Parameters
    ----------
    epsilon : float, default 4.0
        Of (epsilon, delta)-differential privacy for all ratings of a user, over all answers together.
    delta : float, default 1e-5
        The slack in the probability of every event.
    questions : int, default 1000
        T: how many answers are planned; it sets the noise of the counts. After them there is no prediction.
    sigma : float, default 0.7
        The noise of the sums, for each neighbour counted.
    threshold : float, default 0.1
        How similar a rater must be.
    rng : RNG, optional
        As in `PrivateCF`: a seed makes the guarantee `none`.

    Examples
    --------
    >>> import goodfence as gf
    >>> gf.papers.IndKNN(epsilon=4.0).guarantee().status
    'claimed'
    """

    name: ClassVar[str] = "ind-knn"
    label: ClassVar[str] = "Ind-KNN"
    unit: ClassVar[str] = "user"

    epsilon: Positive = 4.0
    delta: Fraction = 1e-5
    questions: Count = 1000
    sigma: Positive = 0.7
    threshold: Share = 0.1
    rng: RNG = None

    @property
    def budget(self) -> float:
        """B: what each user may spend, as rho of zero-concentrated differential privacy."""
        return total_mu(self.epsilon, self.delta, 0.0) ** 2 / 2

    _own_traits: ClassVar[dict[str, Any]] = {"n_neighbours": 0, "fresh_answers": True}

    def _words(self) -> str:
        return f"ε={self.epsilon:g}, {self.questions:,} questions"

    def _learn(self, streams: Streams) -> None:
        require_declared(self.ratings_.scale)
        csr, self._draws = self.ratings_.csr, streams.at(0)
        owners = row_numbers(csr.indptr)
        norms = np.sqrt(np.bincount(owners, csr.data**2, csr.shape[0]))
        data = csr.data / np.where(norms > 0, norms, 1.0)[owners]
        self._unit_rows = sparse.csr_array((data, csr.indices, csr.indptr), csr.shape)
        if not hasattr(self, "_loaded"):
            self.left_ = np.full(csr.shape[0], self.budget)
            self.asked_ = 0

    def _answer(self, columns: Items, values: Floats, wanted: Items, row: int) -> Floats:
        length = float(np.sqrt(values @ values)) or 1.0
        near = self._unit_rows @ dense_profile(columns, values / length, self.ratings_.shape[1])
        return np.array([self._one(near, int(item), row) for item in wanted])

    def _one(self, near: Floats, item: int, row: int) -> float:
        """Answer one question: a noisy count of the neighbours, then their noisy sums, all charged to each of them."""
        if self.asked_ >= self.questions:
            return math.nan
        self.asked_ += 1
        turned, centre = self.ratings_.transposed.csr, middle(self.ratings_)
        part = slice(turned.indptr[item], turned.indptr[item + 1])
        raters, given = turned.indices[part], turned.data[part]
        # What being counted with noise sigma_1 = sqrt(T / (6 B)) costs.
        counting = 3 * self.budget / self.questions
        able = (near[raters] > self.threshold) & (raters != row) & (self.left_[raters] > counting)
        raters, given = raters[able], given[able]
        self.left_[raters] -= counting
        n = max(len(raters) + self._draws.normal(0, math.sqrt(1 / (2 * counting))), 1.0)
        variance = self.sigma * self.sigma * n
        each = np.stack([given - centre, np.ones(len(given))])
        lengths = np.sqrt((each**2).sum(axis=0))
        affordable = np.sqrt(2 * self.left_[raters] * variance) / lengths
        weights = np.minimum(near[raters], affordable)
        spent = (weights * lengths) ** 2 / (2 * variance)
        self.left_[raters] = np.maximum(self.left_[raters] - spent, 0.0)
        total, weight = each @ weights + self._draws.normal(0, math.sqrt(variance), 2)
        # Post-processing: what is lost in the noise is drawn to the middle.
        moved = total / (max(weight, 0.0) + SHRINK * math.sqrt(variance))
        scale = self.ratings_.scale
        return float(np.clip(centre + moved, scale.lowest, scale.highest))

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        return {"left": self.left_, "asked": np.array([self.asked_], dtype=np.int64)}

    def _restore_state(self, arrays: Arrays) -> None:
        self.left_, self.asked_ = np.array(arrays["left"]), int(arrays["asked"][0])
        self._loaded = True
        sound = self.left_.shape == (self.ratings_.shape[0],) and self.left_.dtype == np.float64
        if not sound or not ((self.left_ >= 0) & (self.left_ <= self.budget)).all():
            raise ModelFileError("the model must hold what is left of every user's budget")
        require(self.asked_ >= 0, "asked", "at least 0", self.asked_)

    def guarantee(self) -> Guarantee:
        """Return what is claimed: individual accounting, with noise in floating point."""
        reason = (
            "Every use is charged to the user who is used, and stops when their budget is spent (an individual "
            "filter, as published); the noise is drawn in floating point, so this is not proved here."
        )
        return self._claimed("user", self.epsilon, self.delta, reason)
