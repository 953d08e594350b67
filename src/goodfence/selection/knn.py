"""kNN: the k nearest, always."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from goodfence.arrays import Floats
from goodfence.privacy.guarantee import Guarantee
from goodfence.registry import register
from goodfence.selection.mechanism import RS, Plain, Pool, as_lists, require_list
from goodfence.settings import Length, checked


@checked
@register
@dataclass(frozen=True, slots=True, kw_only=True)
class KNN(Plain):
    """The k nearest candidates: no chance, no protection.

    Examples
    --------
    >>> KNN(k=2).pools(np.array([0.9, 0.5, 0.1]))
    (Pool(start=0, stop=2, take=2),)
    """

    name: ClassVar[str] = "knn"
    label: ClassVar[str] = "kNN"

    k: Length

    def reach(self, n_candidates: int) -> int:
        """Return k."""
        return require_list(self.k, n_candidates, k=self.k)

    def pools(self, similarities: Floats, sensitivity: RS = None) -> tuple[Pool, ...]:  # noqa: ARG002 - protocol
        """Return one pool, the k nearest, of which all are taken."""
        self.reach(as_lists(similarities).shape[-1])
        return (Pool(0, self.k, take=self.k),)

    def log_weights(self, similarities: Floats, sensitivity: RS = None) -> Floats:  # noqa: ARG002 - protocol
        """Return equal weights; nothing is drawn with them."""
        return np.zeros(as_lists(similarities).shape)

    def guarantee(self) -> Guarantee:
        """Return that there is none."""
        return Guarantee(
            status="none", reason="The k nearest are always chosen and their ratings are used as they are."
        )
