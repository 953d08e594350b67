"""PPNS: partitioned probabilistic neighbour selection (Lu & Shen), the paper's own mechanism."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from goodfence.arrays import Floats
from goodfence.errors import require
from goodfence.privacy.guarantee import Guarantee
from goodfence.registry import register
from goodfence.selection.mechanism import (
    RS,
    Pool,
    integer,
    log_omega,
    positive,
    require_list,
    spread_over,
)
from goodfence.selection.sensitivity import Sensitivity
from goodfence.settings import checked


@checked
@register
@dataclass(frozen=True, slots=True, kw_only=True)
class PPNS:
    """k-1 neighbours from the first partition, one from partition `beta` [MaxSelection].

    The list is cut into partitions of k. With `beta=1` this is kNN exactly.

    Parameters
    ----------
    k : int
        How many neighbours are chosen, and how large a partition is.
    beta : int
        How many partitions the neighbours are drawn across.
    epsilon : float, default 1.0
        The budget in [OMEGA]; the weights are equal as it goes to 0.
    allocation : tuple of int, optional
        How many from each of the `beta` partitions, for ablation; None is (k-1, 0, ..., 0, 1) [FINAL].
    sensitivity : Sensitivity, default Sensitivity()
        Which RS the weights divide by.

    Examples
    --------
    >>> PPNS(k=50, beta=7).pools(np.linspace(1, 0, 942))
    (Pool(start=0, stop=50, take=49), Pool(start=300, stop=350, take=1))
    """

    name: ClassVar[str] = "ppns"
    label: ClassVar[str] = "PPNS"

    k: int
    beta: int
    epsilon: float = 1.0
    allocation: tuple[int, ...] | None = None
    sensitivity: Sensitivity = field(default_factory=Sensitivity)

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", integer(self.k, "k", least=1))
        object.__setattr__(self, "beta", integer(self.beta, "beta", least=1))
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        object.__setattr__(self, "sensitivity", Sensitivity.of(self.sensitivity))
        if self.allocation is not None:
            counts = tuple(integer(count, "allocation", least=0) for count in self.allocation)
            object.__setattr__(self, "allocation", counts)
            rule = f"{self.beta} counts (beta) that sum to k={self.k}"
            holds = len(counts) == self.beta and sum(counts) == self.k
            require(holds, "allocation", rule, counts)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many are drawn from each partition."""
        if self.allocation is not None:
            return self.allocation
        if self.beta == 1:
            return (self.k,)
        return (self.k - 1, *[0] * (self.beta - 2), 1)

    def reach(self, n_candidates: int) -> int:
        """Return `beta * k`."""
        return require_list(self.beta * self.k, n_candidates, k=self.k, beta=self.beta)

    def pools(self, similarities: Floats, sensitivity: RS = None) -> tuple[Pool, ...]:  # noqa: ARG002 - protocol
        """Return one pool for each partition that is drawn from."""
        self.reach(similarities.shape[-1])
        return tuple(
            Pool(part * self.k, (part + 1) * self.k, take=count)
            for part, count in enumerate(self.counts)
            if count > 0
        )

    def log_weights(self, similarities: Floats, sensitivity: RS = None) -> Floats:
        """Return `epsilon * sim / (4 k RS)` [OMEGA]."""
        rs = spread_over(similarities, sensitivity, self.sensitivity)
        return log_omega(np.asarray(similarities), rs, epsilon=self.epsilon, k=self.k)

    def noise_scale(self, sensitivity: RS = None) -> RS:  # noqa: ARG002 - protocol
        """Return None: the similarities are used as they are."""
        return None

    def guarantee(self) -> Guarantee:
        """Return the paper's claim, and that it does not hold."""
        return Guarantee(
            status="refuted",
            unit="rating",
            adjacency="add/remove",
            epsilon=self.epsilon,
            delta=0.0,
            reason=(
                "The paper claims this epsilon, but the partitions' edges move with one rating, "
                "so a choice can be possible with it and impossible without it, or the reverse."
            ),
        )
