"""`McSherryMironovKNN`: item averages and a covariance with Laplace noise, then neighbours (McSherry & Mironov 2009).

Beside `McSherryMironov`, which has Gaussian noise, accounting of today, and a regression on factors, no neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from goodfence.arrays import AnyFloats, AnyIntegers, Floats, row_numbers
from goodfence.errors import require
from goodfence.kernels import kernel
from goodfence.models.private.item_model import bounded
from goodfence.models.private.releases import (
    COVARIANCE_GRID,
    MOST_COVARIANCE_ITEMS,
    chosen_residuals,
    most_rated,
    sum_pairs,
)
from goodfence.papers.mcsherry_mironov import SHARES, cleaned, low_rank, shrunk
from goodfence.papers.published.published_recommender import Items, PublishedRecommender
from goodfence.privacy.fixed_point import SPAN, UP, Clamps, UserProfiles, centred, uncentred
from goodfence.privacy.guarantee import Guarantee
from goodfence.registry import register
from goodfence.rng import RNG, Streams
from goodfence.settings import Count, Positive, at_least, checked

OWN = 2.5 + 1
"""How far one rating moves its sum, measured from the centre, and its count, together in l1."""
PAIRS_GRID = 1 << 32
"""Each user's part of a pair of items is rounded to a multiple of 1 over this."""
LEAST_VARIANCE = 0.05
"""No item's residuals vary less."""
EXPLAINED = 0.5
"""Of an item's variance its factors explain at most this share, however large the noise made them."""


@checked
@register
@dataclass(eq=False, kw_only=True, repr=False)
class McSherryMironovKNN(PublishedRecommender):
    """Item averages, and a covariance of clamped residuals, with Laplace noise; then nearest items.

    Parameters
    ----------
    epsilon : float
        Of epsilon-differential privacy for one rating; 2, 19 and 79 % go to the global average, the items' averages and
        the covariance.
    clamp : float, default 1.0
        B: residuals are clamped to plus and minus this, on the scale 1..5.
    item_prior, user_prior : float and int, default 15 and 20
        How many ratings at the global average are added to an item's, and at zero to a user's.
    covariance_items : int, default 3200
        How many of the most rated items (by noisy counts) enter the covariance; the paper takes all.
    rank : int, default 20
        The rank of the approximation of the cleaned covariance.
    k : int, default 20
        How many of a user's own items a prediction rests on, the most correlated ones.
    rng : RNG, optional
        As in `PrivateCF`: a seed makes the guarantee `none`.

    Examples
    --------
    >>> import goodfence as gf
    >>> gf.papers.McSherryMironovKNN(epsilon=1.0).guarantee().status
    'claimed'
    """

    name: ClassVar[str] = "mcsherry-mironov-knn"
    label: ClassVar[str] = "McSherry–Mironov kNN"
    unit: ClassVar[str] = "rating"

    epsilon: Positive
    clamp: Positive = 1.0
    item_prior: Positive = 15.0
    user_prior: Count = 20
    covariance_items: Annotated[int, at_least(2, most=MOST_COVARIANCE_ITEMS)] = 3200
    rank: Count = 20
    k: Count = 20
    rng: RNG = None

    def __post_init__(self) -> None:
        require(self.clamp <= SPAN, "clamp", f"at most {SPAN:g}", self.clamp)

    _own_traits: ClassVar[dict[str, Any]] = {"n_neighbours": 0, "released": True}

    def _words(self) -> str:
        return f"ε={self.epsilon:g}"

    def _learn(self, streams: Streams) -> None:
        profiles = UserProfiles.of(self.ratings_)
        budgets = [self.epsilon * share for share in SHARES]
        totals = np.array([[profiles.values.sum()], [float(len(profiles.values))]])
        total, count = _noisy(totals, OWN / budgets[0], streams.at(0))[:, 0]
        centre = np.clip(total / max(count, 1.0), -2.5, 1.5)
        totals = np.zeros((2, profiles.n_items))
        np.add.at(totals[0], profiles.indices, profiles.values)
        np.add.at(totals[1], profiles.indices, 1.0)
        sums, counts = _noisy(totals, OWN / budgets[1], streams.at(1))
        prior = self.item_prior
        averages = (sums + prior * centre) / (np.maximum(counts, 0.0) + prior)
        self._averages = np.clip(averages, -2.5, 1.5)
        self._factors, self._unexplained = self._release_covariance(
            profiles, np.maximum(counts, 1.0), budgets[2], streams.at(2)
        )

    def _release_covariance(
        self, profiles: UserProfiles, counts: Floats, budget: float, generator: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Release weighted covariance and weights, and return factors, and variances that they do not explain."""
        chosen = most_rated(counts, min(self.covariance_items, profiles.n_items))
        clamps = Clamps(near=SPAN, prior=self.user_prior, wide=self.clamp)
        n = len(chosen)
        products, weights = pair_sums(profiles, self._averages, chosen, clamps)
        # Half of the budget each; every pair once, the diagonal too.
        most = 2 / budget
        products = _noisy(products, most * covariance_l1_bound(clamps, profiles.n_items), generator)
        weights = _noisy(weights, most * weights_bound(profiles.n_items), generator)
        above = np.triu_indices(n, 1)
        n_factors = min(self.rank, n - 1)
        factors = np.zeros((profiles.n_items, max(n_factors, 1)))
        if n > 1:
            covariance = cleaned(products[above], weights[above], above, n)
            factors[chosen] = bounded(low_rank(covariance, counts[chosen], n_factors))
        variances = np.full(profiles.n_items, self.clamp**2)
        variances[chosen] = shrunk(np.diag(products), np.diag(weights))
        variances = np.clip(variances, LEAST_VARIANCE, self.clamp**2)
        explained = (factors**2).sum(axis=1)
        most = EXPLAINED * variances
        factors *= np.sqrt(most / np.maximum(explained, most))[:, None]
        return factors, variances - np.minimum(explained, most)

    def _answer(self, columns: Items, values: Floats, wanted: Items, row: int) -> Floats:
        del row  # everybody is answered from the release and their own ratings
        given = centred(values, self.ratings_.scale) - self._averages[columns]
        user_bias = given.sum() / (len(given) + self.user_prior)
        residuals = np.clip(given - user_bias, -self.clamp, self.clamp)
        out = np.empty(len(wanted))
        interpolate(columns, residuals, wanted, self._factors, self._unexplained, self.k, out)
        return uncentred(self._averages[wanted] + user_bias + out, self.ratings_.scale)

    def guarantee(self) -> Guarantee:
        """Return what is claimed: the sensitivities are proved, the noise is drawn in floating point."""
        reason = (
            "Sums, counts, covariance and weights were released once with Laplace noise for sensitivities that are "
            "proved; the noise is drawn in floating point, so the whole is not. The scale and the list of items "
            "in the ratings are public. Each fit spends this again."
        )
        return self._claimed("rating", self.epsilon, 0.0, reason)


def pair_sums(profiles: UserProfiles, averages: Floats, chosen: AnyIntegers, clamps: Clamps) -> tuple[Floats, Floats]:
    """Return the sums over users of x xᵀ/c and of e eᵀ/c, upper triangles: residuals, ones, and the user's count."""
    rows = chosen_residuals(profiles, averages, chosen, clamps)
    scales = PAIRS_GRID / np.maximum(profiles.counts, 1)
    owners = row_numbers(rows.indptr)
    found = []
    for unit in (float(COVARIANCE_GRID), 1.0):
        if unit == 1.0:
            rows.data = np.ones_like(rows.data)
        each = scales / unit**2
        totals = sum_pairs(rows, each, toward_zero=False)
        squares = np.rint(rows.data.astype(np.float64) ** 2 * each[owners])
        totals[np.diag_indices(len(chosen))] = np.bincount(rows.indices, squares, len(chosen))
        found.append(totals / PAIRS_GRID)
    return found[0], found[1]


def covariance_l1_bound(clamps: Clamps, n_items: int) -> float:
    """Bound how far, in l1 over the upper triangle, one rating more moves the covariance.

    With c other ratings: the new row has c + 1 entries of at most B²/(c + 1). The c(c + 1)/2 old ones are at most B²/c
    and become entries over c + 1; and their residuals move by at most D, all through the user bias, so each product
    by at most 2B min(D, B).
    """
    others = np.arange(0, n_items + 1, dtype=np.float64)
    prior, near, clamp = clamps.prior, clamps.near, clamps.wide
    moved = near * (1 + others / (others + prior)) / (others + 1 + prior) + 1 / COVARIANCE_GRID
    old = others * clamp * np.minimum(moved, clamp)
    return float((1.5 * clamp**2 + old).max() + _rounding(n_items)) * UP


def weights_bound(n_items: int) -> float:
    """Bound the same for the weights: one for the new row, and a half for the old entries over c + 1 in place of c."""
    return (1.5 + _rounding(n_items)) * UP


def _rounding(n_items: int) -> float:
    """Bound what rounding each user's part adds, over all pairs that a user may have."""
    return (n_items + 1) * (n_items + 2) / 2 / PAIRS_GRID


def _noisy(totals: Floats, scale: float, generator: np.random.Generator) -> Floats:
    """Return the totals with Laplace noise of this scale; below the diagonal of a matrix nothing is looked at."""
    return totals + generator.laplace(0.0, scale, totals.shape)


@kernel
def interpolate(
    columns: AnyIntegers,
    residuals: AnyFloats,
    wanted: AnyIntegers,
    factors: AnyFloats,
    unexplained: AnyFloats,
    k: int,
    out: AnyFloats,
) -> None:
    """Fill out[j] with what the user's residuals say about the residual of item wanted[j] (Bell and Koren).

    The covariance of items i and j is factors[i]·factors[j], and unexplained[i] more where they are the same. Of the
    user's other items the k with the highest correlation are taken (ties: the first); their residuals count with the
    weights of the best linear prediction, (covariance among them)^-1 (covariance with the wanted item).
    """
    n_factors = factors.shape[1]
    closeness = np.empty(len(columns))
    for turn in range(len(wanted)):
        item = wanted[turn]
        own = unexplained[item]
        for factor in range(n_factors):
            own += factors[item, factor] ** 2
        n_others = 0
        for at in range(len(columns)):
            other = columns[at]
            product, variance = 0.0, unexplained[other]
            for factor in range(n_factors):
                product += factors[item, factor] * factors[other, factor]
                variance += factors[other, factor] ** 2
            closeness[at] = -product / np.sqrt(own * variance)
            if other == item:
                closeness[at] = np.inf
            else:
                n_others += 1
        nearest = np.argsort(closeness, kind="mergesort")[: min(k, n_others)]
        n = len(nearest)
        out[turn] = 0.0
        if n == 0:
            continue
        matrix, vector = np.zeros((n, n)), np.zeros(n)
        for one in range(n):
            first = columns[nearest[one]]
            for factor in range(n_factors):
                vector[one] += factors[first, factor] * factors[item, factor]
            for two in range(one + 1):
                second = columns[nearest[two]]
                product = 0.0
                for factor in range(n_factors):
                    product += factors[first, factor] * factors[second, factor]
                matrix[one, two] = product
                matrix[two, one] = product
            matrix[one, one] += unexplained[first]
        weights = np.linalg.solve(matrix, vector)
        for one in range(n):
            out[turn] += weights[one] * residuals[nearest[one]]
