"""`BlurMe`: extra ratings that hide an attribute (Weinsberg, Bhagat, Ioannidis & Taft 2012)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

from goodfence.arrays import Flags, Floats
from goodfence.data.ratings import Ratings
from goodfence.errors import DataError
from goodfence.papers.published.perturbed import Sent, each_user, of_rows
from goodfence.papers.published.published_recommender import NoGuarantee, indicators
from goodfence.registry import register
from goodfence.rng import Streams
from goodfence.settings import Share, checked

Strategy: TypeAlias = Literal["random", "sampled", "greedy"]


@checked
@register
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlurMe(NoGuarantee):
    """Each user adds ratings of items that users of the other kind rate, at the item's mean.

    Parameters
    ----------
    attribute : mapping of user to bool
        Who is of the one kind (True) and who of the other, as in gender. It must be given to fit.
    extra : float, default 0.01
        How many ratings are added, as a share of those a user has, rounded up.
    strategy : {"random", "sampled", "greedy"}, default "sampled"
        Which: any items of the other kind's list, by chance in proportion to how strongly they indicate it, or the
        strongest first.
    """

    name: ClassVar[str] = "blurme"
    label: ClassVar[str] = "BlurMe"
    reason: ClassVar[str] = (
        "An attribute is blurred by ratings that are added; the true ratings are sent as they are."
    )

    attribute: Mapping[Any, bool] | None = None
    extra: Share = 0.01
    strategy: Strategy = "sampled"

    def __repr__(self) -> str:
        return f"BlurMe(extra={self.extra}, strategy={self.strategy!r})"

    def perturb(self, ratings: Ratings, streams: Streams) -> Sent:
        """Return the ratings with those that were added, by lists that are learnt from them."""
        kinds = self._kinds(ratings)
        return Sent(self.added(ratings, kinds, indication(ratings.csr, kinds), streams))

    def added(self, ratings: Ratings, kinds: Flags, strength: Floats, streams: Streams) -> Ratings:
        """Return the ratings with those that users of these kinds add, by how strongly items indicate the one kind."""
        counts = np.bincount(ratings.csr.indices, minlength=ratings.shape[1])
        sums = np.bincount(ratings.csr.indices, ratings.csr.data, ratings.shape[1])
        means = ratings.scale.round(sums / np.maximum(counts, 1))
        rows = []
        for row, rated, given, draws in each_user(ratings, streams):
            other = -strength if kinds[row] else strength.copy()
            other[counts == 0] = 0.0
            other[rated] = 0.0
            added = self._chosen(np.maximum(other, 0.0), len(rated), draws)
            rows.append((np.concatenate([rated, added]), np.concatenate([given, means[added]])))
        return ratings.replaced(of_rows(ratings, rows))

    def _chosen(self, strength: Floats, n_rated: int, draws: np.random.Generator) -> Any:
        able = np.flatnonzero(strength > 0)
        n = min(math.ceil(self.extra * n_rated), len(able))
        if self.strategy == "greedy":
            return able[np.argsort(-strength[able], kind="stable")[:n]]
        weights = strength[able] if self.strategy == "sampled" else np.ones(len(able))
        return able[np.argsort(draws.exponential(size=len(able)) / weights, kind="stable")[:n]]

    def _kinds(self, ratings: Ratings) -> Flags:
        """Return of which kind each user is."""
        if self.attribute is None:
            raise DataError(
                "attribute must be given to fit: which users are of the one kind, {user: True or False}"
            )
        known, users = self.attribute, ratings.users.tolist()
        if not all(user in known for user in users):
            raise DataError("attribute must be given for every user; at least one has none")
        return np.array([bool(known[user]) for user in users], dtype=np.bool_)


def indication(csr: sparse.csr_array, kinds: Flags, ridge: float = 1.0) -> Floats:
    """Return how strongly having rated each item indicates the kind: the coefficients of a logistic regression (L2)."""
    rated, signs = indicators(csr), np.where(kinds, 1.0, -1.0)

    def loss(coefficients: Floats) -> tuple[float, Floats]:
        margin = signs * (rated @ coefficients[:-1] + coefficients[-1])
        pull = -signs * expit(-margin)
        slope = np.append(rated.T @ pull + ridge * coefficients[:-1], pull.sum())
        squares = float(coefficients[:-1] @ coefficients[:-1])
        return float(np.logaddexp(0, -margin).sum() + ridge / 2 * squares), slope

    start, options = np.zeros(csr.shape[1] + 1), {"maxiter": 500}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x[:-1])
