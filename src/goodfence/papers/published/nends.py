"""`NeNDS`: nearest-neighbour data substitution (Parameswaran & Blough 2007)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.arrays import Floats, Integers
from goodfence.data.ratings import Ratings
from goodfence.papers.published.perturbed import Sent, words_of_users
from goodfence.papers.published.published_recommender import NoGuarantee, require_few_items
from goodfence.registry import register
from goodfence.rng import Streams
from goodfence.settings import at_least, checked

Within: TypeAlias = Literal["column", "person"]


@checked
@register
@dataclass(frozen=True, slots=True, kw_only=True)
class NeNDS(NoGuarantee):
    """Values are grouped with their nearest, and rotated by one place in each group: nobody keeps their own place.

    Parameters
    ----------
    within : {"column", "person"}, default "column"
        The raters of an item, sorted by rating, exchange values with their neighbours in that order; or a person's
        most similar items exchange their ratings, as the paper describes it.
    size : int, optional
        How many make a group; None for 5 by column and 3 within a person. One that is left over joins the group before.
    """

    name: ClassVar[str] = "nends"
    label: ClassVar[str] = "NeNDS"
    reason: ClassVar[str] = (
        "Values are only exchanged with their nearest, on a scale of few values mostly with equal "
        "ones."
    )

    within: Within = "column"
    size: Annotated[int, at_least(2)] | None = None

    def perturb(self, ratings: Ratings, streams: Streams) -> Sent:
        """Return the ratings with values exchanged; ties are broken by each user's own random words."""
        csr = ratings.csr
        size = self.size or (5 if self.within == "column" else 3)
        ties = words_of_users(ratings, streams.words)
        data = csr.data.copy()
        if self.within == "column":
            order = np.lexsort((ties, csr.data, csr.indices))
            starts = np.searchsorted(csr.indices[order], np.arange(csr.shape[1] + 1))
            for first, last in pairwise(starts):
                _rotate(data, csr.data, order[first:last], size)
        else:
            require_few_items(ratings, "NeNDS within a person")
            alike = item_cosines(csr)
            for first, last in pairwise(csr.indptr):
                cells = first + np.argsort(ties[first:last], kind="stable")
                _rotate(data, csr.data, _chained(cells, csr.indices, alike, size), size)
        return Sent(ratings.replaced(sparse.csr_array((data, csr.indices, csr.indptr), csr.shape)))


def _rotate(data: Floats, held: Floats, order: npt.NDArray[np.integer], size: int) -> None:
    """Let every cell of `order` take the value of the next in its group."""
    edges = list(range(0, max(len(order), 1), size))
    if len(edges) > 1 and len(order) - edges[-1] == 1:
        edges.pop()
    for first, last in zip(edges, [*edges[1:], len(order)], strict=True):
        group = order[first:last]
        data[group] = held[np.roll(group, -1)]


def _chained(
    cells: npt.NDArray[np.integer], columns: npt.NDArray[np.integer], alike: Floats, size: int
) -> Integers:
    """Return the cells so that every `size` in a row are an item and those most similar to it of the items left."""
    left, found = list(cells.tolist()), []
    while left:
        near = alike[columns[left[0]], columns[left]]
        near[0] = np.inf
        chosen = np.argsort(-near, kind="stable")[:size]
        found += [left[place] for place in chosen]
        gone = set(chosen.tolist())
        left = [cell for place, cell in enumerate(left) if place not in gone]
    return np.array(found, dtype=np.int64)


def item_cosines(csr: sparse.csr_array) -> Floats:
    """Return the cosine of every two items, over all users; 0 on the diagonal."""
    norms = np.sqrt(np.bincount(csr.indices, csr.data**2, csr.shape[1]))
    scaled = csr.data / np.where(norms > 0, norms, 1.0)[csr.indices]
    unit = sparse.csr_array((scaled, csr.indices, csr.indptr), csr.shape)
    alike: Floats = (unit.T @ unit).toarray()
    np.fill_diagonal(alike, 0.0)
    return alike
