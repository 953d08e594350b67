"""`ItemSwap`: some rated items are sent as similar ones (after D2P; Guerraoui, Kermarrec, Patra & Taziki 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from goodfence.data.ratings import Ratings
from goodfence.models.recommender import row_of
from goodfence.papers.published.nends import item_cosines
from goodfence.papers.published.perturbed import Sent
from goodfence.papers.published.published_recommender import person, require_few_items
from goodfence.privacy.guarantee import Guarantee
from goodfence.registry import register
from goodfence.rng import Streams
from goodfence.settings import Count, Share, checked


@checked
@register
@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSwap:
    """Each rating is sent, with probability p, for one of the `group` items most similar to the one that was rated.

    Of two ratings that end at the same item one is sent. This is the idea of D2P, not its formula.

    Parameters
    ----------
    p : float, default 0.5
        How often a rating is moved.
    group : int, default 10
        To one of how many similar items.
    """

    name: ClassVar[str] = "item-swap"
    label: ClassVar[str] = "Item swapping, after D2P"

    p: Share = 0.5
    group: Count = 10

    def perturb(self, ratings: Ratings, streams: Streams) -> Sent:
        """Return the ratings with items exchanged, by each user's own random stream."""
        require_few_items(ratings, "item swapping")
        near = np.argsort(-item_cosines(ratings.csr), axis=1, kind="stable")[:, : self.group]
        columns, values = [], []
        for row, user in enumerate(ratings.users.tolist()):
            draws, (rated, given) = streams.at(person(user)), row_of(ratings.csr, row)
            moved = draws.random(len(rated)) < self.p
            to = near[rated, draws.integers(0, near.shape[1], len(rated))]
            sent, kept = np.unique(np.where(moved, to, rated), return_index=True)
            columns.append(sent)
            values.append(given[kept])
        starts = np.cumsum([0, *map(len, columns)])
        parts = (np.concatenate(values), np.concatenate(columns), starts)
        return Sent(ratings.replaced(sparse.csr_array(parts, shape=ratings.shape)))

    def guarantee(self) -> Guarantee:
        """Return that none is stated for this simplified form."""
        return Guarantee(
            status="none",
            reason="The idea of a published system without its formula: who rated what is blurred, and not bounded.",
        )
