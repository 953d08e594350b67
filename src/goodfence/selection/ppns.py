"""PPNS: partitioned probabilistic neighbour selection (Lu & Shen), the paper's own mechanism."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, TypeAlias

from goodfence.arrays import Floats
from goodfence.errors import require
from goodfence.privacy.guarantee import Guarantee
from goodfence.registry import register
from goodfence.selection.mechanism import RS, Plain, Pool, as_lists, log_omega, refuted, require_list, spread_over
from goodfence.selection.sensitivity import Sensitivity
from goodfence.settings import Length, Positive, at_least, checked, each

Shape: TypeAlias = Literal["halving", "linear", "equal"]
"""Named shapes of an allocation over all partitions (Lu & Shen, arXiv 1505.07897), nearest first."""


@checked
@register
@dataclass(frozen=True, slots=True, kw_only=True)
class PPNS(Plain):
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
    allocation : {"halving", "linear", "equal"} or tuple of int, optional
        How many from each of the `beta` partitions; None is (k-1, 0, ..., 0, 1) [FINAL]. By name those of the sister
        paper's shape: some from every partition, fewer from farther ones (`allocated`).
    sensitivity : Sensitivity, default Sensitivity()
        Which RS the weights divide by.

    Examples
    --------
    >>> import numpy as np
    >>> PPNS(k=50, beta=7).pools(np.linspace(1, 0, 942))
    (Pool(start=0, stop=50, take=49), Pool(start=300, stop=350, take=1))
    """

    name: ClassVar[str] = "ppns"
    label: ClassVar[str] = "PPNS"

    k: Length
    beta: Length
    epsilon: Positive = 1.0
    allocation: Annotated[tuple[int, ...], each(at_least(0))] | Shape | None = None
    sensitivity: Annotated[Sensitivity, Sensitivity.of] = field(default_factory=Sensitivity)

    def __post_init__(self) -> None:
        if self.allocation is None:
            return
        counts = self.counts
        holds = len(counts) == self.beta and sum(counts) == self.k
        require(holds, "allocation", f"{self.beta} counts (beta) that sum to k={self.k}", counts)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many are drawn from each partition."""
        if isinstance(self.allocation, str):
            return allocated(self.allocation, self.k, self.beta)
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
        self.reach(as_lists(similarities).shape[-1])
        return tuple(
            Pool(part * self.k, (part + 1) * self.k, take=count) for part, count in enumerate(self.counts) if count > 0
        )

    def log_weights(self, similarities: Floats, sensitivity: RS = None) -> Floats:
        """Return `epsilon * sim / (4 k RS)` [OMEGA]."""
        lists = as_lists(similarities)
        rs = spread_over(lists, sensitivity, self.sensitivity)
        return log_omega(lists, rs, epsilon=self.epsilon, k=self.k)

    def guarantee(self) -> Guarantee:
        """Return the paper's claim, and that it does not hold."""
        return refuted(
            self.epsilon,
            "the partitions' edges move with one rating, so a choice can be possible with it and impossible without "
            "it, or the reverse.",
        )


def allocated(name: Shape, k: int, beta: int) -> tuple[int, ...]:
    """Return how many are drawn from each of `beta` partitions: at least one, and never more than from a nearer one.

    `halving` takes k/2, k/4, ...; `linear` in proportion to beta, beta - 1, ..., 1; `equal` as many from each. What
    rounding leaves goes to the first, but with `halving` to the last as long as that stays smallest.
    """
    if name == "halving":
        counts = [max(1, round(k / 2**part)) for part in range(1, beta)]
        counts.append(min(k - sum(counts), counts[-1]) if counts else k)
    elif name == "linear":
        total = beta * (beta + 1) // 2
        counts = [max(1, k * (beta - part) // total) for part in range(beta)]
    else:
        counts = [max(1, k // beta)] * beta
    counts[0] += k - sum(counts)
    falling = all(near >= far >= 1 for near, far in pairwise([*counts, 1]))
    require(falling, "beta", f"smaller for the allocation {name!r} of k={k}", beta)
    return tuple(counts)
