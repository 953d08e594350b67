"""`ItemSwap`: some rated items are sent as similar ones (after D2P; Guerraoui, Kermarrec, Patra & Taziki 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from goodfence.data.ratings import Ratings
from goodfence.papers.published.nends import item_cosines
from goodfence.papers.published.perturbed import Sent, each_user, of_rows
from goodfence.papers.published.published_recommender import NoGuarantee, require_few_items
from goodfence.registry import register
from goodfence.rng import Streams
from goodfence.settings import Count, Share, checked


@checked
@register
@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSwap(NoGuarantee):
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
    reason: ClassVar[str] = (
        "The idea of a published system without its formula: who rated what is blurred, and not "
        "bounded."
    )

    p: Share = 0.5
    group: Count = 10

    def perturb(self, ratings: Ratings, streams: Streams) -> Sent:
        """Return the ratings with items exchanged, by each user's own random stream."""
        require_few_items(ratings, "item swapping")
        near = np.argsort(-item_cosines(ratings.csr), axis=1, kind="stable")[:, : self.group]
        rows = []
        for _, rated, given, draws in each_user(ratings, streams):
            moved = draws.random(len(rated)) < self.p
            to = near[rated, draws.integers(0, near.shape[1], len(rated))]
            sent, kept = np.unique(np.where(moved, to, rated), return_index=True)
            rows.append((sent, given[kept]))
        return Sent(ratings.replaced(of_rows(ratings, rows)))
