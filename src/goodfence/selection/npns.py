"""nPNS: naive probabilistic neighbour selection (Adamopoulos & Tuzhilin)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from goodfence.arrays import Floats
from goodfence.errors import require
from goodfence.privacy.guarantee import Guarantee
from goodfence.registry import register
from goodfence.selection.mechanism import RS, Plain, Pool, as_lists, require_list
from goodfence.settings import Finite, Length, Positive, checked

Weighting: TypeAlias = Literal["similarity", "uniform", "exponential", "weibull", "folded_normal"]

_SHAPES: dict[str, dict[str, float]] = {
    "exponential": {"rate": 1.0},
    "weibull": {"shape": 2.0, "scale": 1.0},
    "folded_normal": {"mean": 0.0, "deviation": 1.0},
}
_SMALLEST = -1e300  # a finite log-weight, however far the rank


@checked
@register
@dataclass(frozen=True, slots=True, kw_only=True)
class NPNS(Plain):
    """k draws from the list, with a weight for each candidate: by default the similarity.

    The rank distributions are densities at `rank / k`, the rank of the nearest being 1: how many
    neighbourhoods away a candidate is. So they do not change when the list grows.

    Parameters
    ----------
    k : int
        How many neighbours are chosen.
    weights : {"similarity", "uniform", "exponential", "weibull", "folded_normal"}, default "similarity"
        What a candidate's weight is: its similarity, 1, or a density at its rank.
    rate : float, optional
        Exponential only: its rate; 1 unless given.
    shape, scale : float, optional
        Weibull only: its shape and scale; 2 and 1 unless given.
    mean, deviation : float, optional
        Folded normal only: mean and standard deviation before folding; 0 and 1 unless given.
    within : int, optional
        Draw from the `within * k` nearest only (beta); None draws from the full list.

    Examples
    --------
    >>> NPNS(k=2, weights="exponential", rate=2.0).log_weights(np.array([0.9, 0.5, 0.1]))
    array([-1., -2., -3.])
    """

    name: ClassVar[str] = "npns"
    label: ClassVar[str] = "nPNS"

    k: Length
    weights: Weighting = "similarity"
    rate: Positive | None = None
    shape: Positive | None = None
    scale: Positive | None = None
    mean: Finite | None = None
    deviation: Positive | None = None
    within: Length | None = None

    def __post_init__(self) -> None:
        own = _SHAPES.get(self.weights, {})
        for name in ("rate", "shape", "scale", "mean", "deviation"):
            given = getattr(self, name)
            require(given is None or name in own, name, f"None with {self.weights!r}", given)

    def reach(self, n_candidates: int) -> int:
        """Return `within * k`, or the length of the list."""
        beta = self.within or 1
        require_list(beta * self.k, n_candidates, k=self.k, beta=beta)
        return n_candidates if self.within is None else beta * self.k

    def pools(self, similarities: Floats, sensitivity: RS = None) -> tuple[Pool, ...]:  # noqa: ARG002 - protocol
        """Return one pool: the full list, or its `within * k` nearest."""
        return (Pool(0, self.reach(as_lists(similarities).shape[-1]), take=self.k),)

    def log_weights(self, similarities: Floats, sensitivity: RS = None) -> Floats:  # noqa: ARG002 - protocol
        """Return the logarithms of the weights; -inf for a similarity of 0 or less: drawn last."""
        lists = as_lists(similarities)
        if self.weights == "similarity":
            nobody = np.full(lists.shape, -np.inf)
            return np.log(lists, out=nobody, where=lists > 0)
        distances = np.arange(1, lists.shape[-1] + 1) / self.k
        return np.broadcast_to(self._log_density(distances), lists.shape)

    def _log_density(self, distances: Floats) -> Floats:
        stated = dict(_SHAPES.get(self.weights, {}))
        stated |= {name: given for name in stated if (given := getattr(self, name)) is not None}
        if self.weights == "exponential":
            return -stated["rate"] * distances
        if self.weights == "weibull":
            scaled, shape = distances / stated["scale"], stated["shape"]
            with np.errstate(over="ignore"):
                return np.maximum((shape - 1.0) * np.log(scaled) - scaled**shape, _SMALLEST)
        if self.weights == "folded_normal":
            mean, deviation = stated["mean"], stated["deviation"]
            near = -0.5 * ((distances - mean) / deviation) ** 2
            far = -0.5 * ((distances + mean) / deviation) ** 2
            return np.maximum(np.logaddexp(near, far), _SMALLEST)
        return np.zeros(distances.shape)

    def guarantee(self) -> Guarantee:
        """Return that there is none."""
        return Guarantee(
            status="none", reason="The draw is random, but nothing bounds how much one rating changes its distribution."
        )
