"""PNCF: private neighbour collaborative filtering (Zhu et al.), in two interpretations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from goodfence.arrays import Floats
from goodfence.errors import require
from goodfence.privacy.guarantee import Guarantee
from goodfence.registry import register
from goodfence.selection.mechanism import (
    RS,
    Pool,
    as_lists,
    as_sensitivity,
    log_omega,
    refuted,
    require_list,
    spread_over,
)
from goodfence.selection.sensitivity import Sensitivity
from goodfence.settings import Fraction, Length, Positive, checked


@checked
@register
@dataclass(frozen=True, slots=True, kw_only=True)
class PNCF:
    """Whoever is clearly near is in; the rest is drawn from the band around the k-th similarity.

    Then the similarities used in prediction carry Laplace noise, one draw for each neighbour.

    Parameters
    ----------
    k : int
        How many neighbours are chosen.
    epsilon : float, default 1.0
        The budget: half of it for the draw [OMEGA], half for the noise.
    rho : float, default 0.5
        The constant in lambda, strictly between 0 and 1.
    reading : {"band", "truncated"}, default "band"
        `band`: draw within lambda of `sim_k`. `truncated` (Zhu): draw from all, far ones lifted.
    within : int, optional
        Take `lambda = sim_k - sim_{within * k}` (beta, in the attack experiments).
    sensitivity : Sensitivity, default Sensitivity()
        Which RS the weights, lambda and the noise use; `scope="pair"` is the pair's own, as in the figures.
    noise : bool, default True
        Whether the similarities carry noise in prediction; False leaves the draw alone.

    Examples
    --------
    >>> PNCF(k=2).pools(np.array([0.9, 0.4, 0.3, 0.0]), sensitivity=0.5)
    (Pool(start=0, stop=1, take=1), Pool(start=1, stop=4, take=1))
    """

    name: ClassVar[str] = "pncf"
    label: ClassVar[str] = "PNCF"

    k: Length
    epsilon: Positive = 1.0
    rho: Fraction = 0.5
    reading: Literal["band", "truncated"] = "band"
    within: Length | None = None
    sensitivity: Annotated[Sensitivity, Sensitivity.of] = field(default_factory=Sensitivity)
    noise: bool = True

    def __post_init__(self) -> None:
        # One lifted score is one weight only if one sensitivity serves all: RS of a far pair is 0.
        lifted = self.reading == "truncated" and self.sensitivity.scope == "pair"
        require(not lifted, "sensitivity.scope", "'target' with reading='truncated'", "pair")

    def reach(self, n_candidates: int) -> int:
        """Return the length of the list: every candidate may be inside the band."""
        beta = self.within or 1
        require_list(beta * self.k, n_candidates, k=self.k, beta=beta)
        return n_candidates

    def edges(self, similarities: Floats, sensitivity: RS = None) -> tuple[Floats, Floats]:
        """Return the band's lower and upper edge, `sim_k - lambda` and `sim_k + lambda`.

        lambda is `min(sim_k, (4 k RS / epsilon) ln(k (n-k) / rho))`, `sim_k` where k = n, and never
        below 0 (which matters with negative similarities only).
        """
        lists = as_lists(similarities)
        n = lists.shape[-1]
        self.reach(n)
        kth = lists[..., self.k - 1]
        if self.within is not None:
            lower = lists[..., self.within * self.k - 1]
            return lower, kth + (kth - lower)
        rs = spread_over(lists, sensitivity, self.sensitivity).max(axis=-1)
        width = kth
        if n > self.k:
            logarithm = np.log(self.k * (n - self.k) / self.rho)
            width = np.minimum(kth, 4.0 * self.k * rs / self.epsilon * logarithm)
        width = np.maximum(width, 0.0)
        return kth - width, kth + width

    def pools(self, similarities: Floats, sensitivity: RS = None) -> tuple[Pool, ...]:
        """Return who is in for sure and the band; or, truncated, the full list."""
        lists = as_lists(similarities)
        if self.reading == "truncated":
            return (Pool(0, self.reach(lists.shape[-1]), take=self.k),)
        lower, upper = self.edges(lists, sensitivity)
        # At most k-1 are above the upper edge, at least k not below the lower: the takes fit.
        sure = _count(lists > upper[..., np.newaxis])
        stop = _count(lists >= lower[..., np.newaxis])
        return (Pool(0, sure, take=sure), Pool(sure, stop, take=self.k - sure))

    def log_weights(self, similarities: Floats, sensitivity: RS = None) -> Floats:
        """Return `epsilon * sim / (4 k RS)` [OMEGA]; truncated: no score below the lower edge."""
        scores = as_lists(similarities)
        rs = spread_over(scores, sensitivity, self.sensitivity)
        if self.reading == "truncated":
            lower, _ = self.edges(scores, sensitivity)
            scores = np.maximum(scores, lower[..., np.newaxis])
        return log_omega(scores, rs, epsilon=self.epsilon, k=self.k)

    def noise_scale(self, sensitivity: RS = None) -> RS:
        """Return `2 RS / epsilon`, of the shape of `sensitivity`; None where the noise is switched off."""
        return 2.0 * as_sensitivity(sensitivity) / self.epsilon if self.noise else None

    def guarantee(self) -> Guarantee:
        """Return the paper's claim, and that it does not hold."""
        return refuted(
            self.epsilon,
            "the prediction re-reads the neighbours' ratings, so an answer can be possible with one rating and "
            "impossible without it.",
        )


def _count(holds: npt.NDArray[np.bool_]) -> int | npt.NDArray[np.int64]:
    """Return how many hold along the last axis: an integer for one target, an array for a batch."""
    counts = holds.sum(axis=-1, dtype=np.int64)
    return int(counts) if holds.ndim == 1 else counts
