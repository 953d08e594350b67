"""kNN: the k nearest, always."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from goodfence.privacy.guarantee import Guarantee
from goodfence.selection.mechanism import RS, Floats, require_list
from goodfence.selection.pool import Pool
from goodfence.selection.rules import whole


@dataclass(frozen=True, slots=True, kw_only=True)
class KNN:
    """The k nearest candidates: no chance, no protection.

    Examples
    --------
    >>> KNN(k=2).pools(np.array([0.9, 0.5, 0.1]))
    (Pool(start=0, stop=2, take=2),)
    """

    k: int
    """How many neighbours are chosen."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole(self.k, "k", least=1))

    @property
    def sensitivity(self) -> None:
        """None: nothing is weighed."""
        return

    def reach(self, n_candidates: int) -> int:
        """Return k."""
        return require_list(self.k, n_candidates, k=self.k)

    def pools(self, similarities: Floats, sensitivity: RS = None) -> tuple[Pool, ...]:  # noqa: ARG002 - protocol
        """Return one pool, the k nearest, taken whole."""
        self.reach(similarities.shape[-1])
        return (Pool(0, self.k, take=self.k),)

    def log_weights(self, similarities: Floats, sensitivity: RS = None) -> Floats:  # noqa: ARG002 - protocol
        """Return equal weights; nothing is drawn with them."""
        return np.zeros(similarities.shape)

    def noise_scale(self, sensitivity: RS = None) -> RS:  # noqa: ARG002 - protocol
        """Return None: the similarities are used as they are."""
        return None

    def guarantee(self) -> Guarantee:
        """Return that there is none."""
        return Guarantee(
            status="none",
            reason="The k nearest are always chosen and their ratings are used as they are.",
        )
