"""`SlopeOne`: weighted Slope One (Lemire & Maclachlan 2005), and the noise of Basu, Vaidya & Kikuchi (2012)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from goodfence.arrays import Floats
from goodfence.data.ratings import Ratings
from goodfence.errors import ModelFileError
from goodfence.models.persistence import Arrays
from goodfence.models.recommender import row_of
from goodfence.papers.published.published_recommender import (
    Items,
    PublishedRecommender,
    indicators,
    person,
    require_few_items,
)
from goodfence.registry import register
from goodfence.rng import RNG, Streams
from goodfence.settings import between, checked


@checked
@register
@dataclass(eq=False, kw_only=True, repr=False)
class SlopeOne(PublishedRecommender):
    """By how much each two items differ for those who rated both, added to what the asker rated.

    Parameters
    ----------
    noise : float, default 0.0
        A: each user sends, for every pair of their items, the difference of the ratings plus a number drawn once from
        -A to A. Half the length of the scale is usual, 2 for ratings from 1 to 5; 0 is none.
    rng : RNG, optional
        As in `NeighbourCF`, for the noise.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> gf.papers.SlopeOne(noise=2.0, rng=7).fit(films).guarantee().status
    'none'
    """

    name: ClassVar[str] = "slope-one"
    label: ClassVar[str] = "Slope One"
    noise: Annotated[float, between(0, 1e6)] = 0.0
    rng: RNG = None
    _senders: npt.NDArray[Any] | None = field(default=None, init=False)

    _own_traits: ClassVar[dict[str, Any]] = {"n_neighbours": 0, "attackers": ("PairAttack",)}

    def _words(self) -> str:
        return f"A={self.noise:g}" if self.noise else ""

    @checked
    def perturbed(self, ratings: Ratings, rng: RNG = None) -> Ratings:  # noqa: ARG002 - protocol
        """Return the ratings as they are, and remember whose they are: these users add noise to their differences."""
        self._senders = ratings.users
        return ratings

    @checked
    def fit(self, ratings: Ratings) -> Self:
        """Add up everybody's differences, each user's with their own noise."""
        self._sends = np.ones(ratings.shape[0], dtype=np.uint8)
        return super().fit(ratings)

    @checked
    def fit_sent(self, received: Ratings) -> Self:
        """Do the same where accounts that `perturbed` did not see send their differences without noise."""
        known = received.users if self._senders is None else self._senders
        self._sends = np.isin(received.users.astype(str), known.astype(str)).astype(np.uint8)
        return super().fit(received)

    def _learn(self, streams: Streams) -> None:
        require_few_items(self.ratings_, "Slope One")
        csr = self.ratings_.csr
        rated = indicators(csr)
        self.counts_: Floats = (rated.T @ rated).toarray()
        sums = (csr.T @ rated).toarray()
        self.differences_: Floats = sums - sums.T
        np.fill_diagonal(self.counts_, 0.0)
        if not self.noise:
            return
        users = self.ratings_.users.tolist()
        for row in np.flatnonzero(self._sends).tolist():
            columns, _ = row_of(csr, row)
            generator, shape = streams.at(person(users[row])), (len(columns),) * 2
            above = np.triu(generator.uniform(-self.noise, self.noise, shape), 1)
            self.differences_[np.ix_(columns, columns)] += above - above.T

    def _answer(self, columns: Items, values: Floats, wanted: Items, row: int) -> Floats:  # noqa: ARG002 - for others
        cells = np.ix_(wanted, columns)
        counts, differences = self.counts_[cells], self.differences_[cells]
        totals = counts.sum(axis=1)
        sums = counts @ values + (differences * (counts > 0)).sum(axis=1)
        return np.where(totals > 0, sums / np.maximum(totals, 1), np.nan)

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        return {"sends": self._sends}

    def _restore_state(self, arrays: Arrays) -> None:
        self._sends = np.array(arrays["sends"])
        if self._sends.dtype != np.uint8 or self._sends.shape != (self.ratings_.shape[0],):
            raise ModelFileError("the model must say of every user whether they sent noise")

    @property
    def reason(self) -> str:  # type: ignore[override]
        """Why there is no guarantee."""
        told = "Where two items have one rater in common, an account that rated one is told the rating of the other"
        return told + ("; bounded noise leaves far values impossible." if self.noise else ".")
