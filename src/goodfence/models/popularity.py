"""`Popularity`: the same bestsellers for everybody, the list that every recommender must beat."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from goodfence.arrays import AnyIntegers, Flags, Floats
from goodfence.models.recommender import EventModel, rated_rows
from goodfence.neighbours.lists import Ranked, rank_alike
from goodfence.privacy.guarantee import Guarantee
from goodfence.registry import register


@register
class Popularity(EventModel):
    """List the items that most users have, without those that the user has.

    The score of an item is the number of users who have it.

    Examples
    --------
    >>> import goodfence as gf
    >>> likes = gf.load("movietweetings").likes(8)
    >>> model = gf.Popularity().fit(likes)
    >>> first = model.answer_list([], n=1)
    >>> first.scores == np.bincount(likes.csr.indices).max()
    array([ True])
    """

    name: ClassVar[str] = "popularity"
    label: ClassVar[str] = "Popularity"

    def _learn(self) -> None:
        csr = self.ratings_.csr
        self.counts_: Floats = np.bincount(csr.indices, minlength=csr.shape[1]).astype(np.float64)

    def _list_scores(self, columns: AnyIntegers, values: Floats) -> Floats:  # noqa: ARG002 - for others
        return self.counts_

    def _rank_rows(self, rows: AnyIntegers, n: int, allowed: Flags) -> Ranked:
        return rank_alike(self.counts_, rated_rows(self.ratings_.csr, rows), allowed, n)

    def guarantee(self) -> Guarantee:
        """Return that there is none: counts are exact."""
        return Guarantee(
            status="none",
            reason="Counts are exact: who knows all events but one reads the last one from a list that it changes.",
        )
