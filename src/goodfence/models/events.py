"""Recommenders of events without protection: `Popularity`, which every recommender must beat, and `EASE`.

EASE [H. Steck, *Embarrassingly Shallow Autoencoders for Sparse Data*, 2019]: with X the events and P = (XᵀX + λI)⁻¹ the
weights are B = I - P diag(1 / diag P), whose diagonal is 0, and a profile x is scored by x B.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from goodfence.arrays import AnyFloats, AnyIntegers, Flags, Floats
from goodfence.data.columns import Feedback
from goodfence.data.matrix import move_columns
from goodfence.data.ratings import Ratings
from goodfence.errors import SettingError, require
from goodfence.models.recommender import FittedRecommender, Traits, rated_rows, require_feedback
from goodfence.neighbours.lists import Ranked, rank_alike, rank_in_blocks
from goodfence.privacy.guarantee import Guarantee
from goodfence.registry import register
from goodfence.settings import checked, integer, positive

MOST_ITEMS = 20_000  # with this many items the weights take 1.6 GB
MOST_IN_DOUBLE = 12_000
"""Of more items the weights are in single precision: they take half the memory and time."""
_TOGETHER = 256  # how many items' products with all others are added up at a time


class EventModel(FittedRecommender):
    """A recommender of events without any chance. Subclasses say what is learnt, and how a profile is scored."""

    label: ClassVar[str]
    learns_from: ClassVar[Feedback] = "implicit"
    _reason: ClassVar[str]  # why there is no guarantee

    def guarantee(self) -> Guarantee:
        """Return that there is none."""
        return Guarantee(status="none", reason=self._reason)

    @property
    def traits(self) -> Traits:
        """What attack and audit must know: lists rest on sums over everybody."""
        stated = (f"{key}={value:g}" for key, value in self.settings().items() if value is not None)
        return Traits(
            family=self.label, settings=", ".join(stated), title=repr(self), n_neighbours=0, fresh_answers=False
        )

    @checked
    def fit(self, ratings: Ratings) -> Self:
        """Learn from events: `gf.load(..., feedback="implicit")`, or the likes among ratings, `ratings.likes(4)`."""
        require_feedback(ratings, self.learns_from, type(self).__name__)
        self.ratings_ = ratings
        self._learn()
        return self

    @abstractmethod
    def _learn(self) -> None:
        """Make what lists need of `ratings_`."""


@checked
@register
class EASE(EventModel):
    """Score items by a linear model of all other items, fitted in closed form [Steck 2019].

    Parameters
    ----------
    regularisation : float, default 500
        The λ that is added to the diagonal of XᵀX.
    items : int, optional
        Only as many items as this, the most frequent, are learnt from and listed; None for all, of which there may be
        20,000 at most: the weights take 8 bytes for each pair of items, and 4 if there are more than 12,000.

    Examples
    --------
    >>> import goodfence as gf
    >>> model = gf.EASE().fit(gf.load("movietweetings").likes(8))
    >>> len(model.recommend(model.ratings_.users[0], n=5).items)
    5
    """

    name: ClassVar[str] = "ease"
    label: ClassVar[str] = "EASE"
    _reason = "The weights between items are exact functions of everybody's events."
    _saved = ("regularisation", "items")

    def __init__(self, *, regularisation: float = 500.0, items: int | None = None) -> None:
        self.regularisation = positive(regularisation, "regularisation")
        self.items = None if items is None else integer(items, "items", least=1, most=MOST_ITEMS)

    def _learn(self) -> None:
        csr = self.ratings_.csr
        few = csr.shape[1] <= MOST_ITEMS or self.items is not None
        rule = f"of at most {MOST_ITEMS:,} items (items={MOST_ITEMS} takes the most frequent)"
        require(few, "ratings", rule, csr.shape[1])
        counts = np.bincount(csr.indices, minlength=csr.shape[1])
        self._chosen = np.sort(np.argsort(-counts, kind="stable")[: self.items])
        self._places = np.full(csr.shape[1], -1, dtype=np.int64)
        self._places[self._chosen] = np.arange(len(self._chosen))
        try:
            self.weights_ = weights_between_items(self._learnt(csr), self.regularisation)
        except MemoryError:
            rule = "fewer (items=5000 takes the most frequent): the weights between so many do not fit into memory"
            raise SettingError(f"items must be {rule}") from None

    def _learnt(self, csr: sparse.csr_array) -> sparse.csr_array:
        """Return the events of the items that are learnt from."""
        if len(self._chosen) == csr.shape[1]:
            return csr
        return move_columns(csr, self._places, len(self._chosen))

    def _list_scores(self, columns: AnyIntegers, values: Floats) -> Floats:
        profile = (values, columns, np.array([0, len(columns)]))
        own = self._scores(sparse.csr_array(profile, shape=(1, self.ratings_.shape[1])))
        return np.asarray(own[0])

    def _scores(self, profiles: sparse.csr_array) -> Floats:
        """Return the scores of all items for some profiles; NaN of an item that is not learnt."""
        found: Floats = self._learnt(profiles) @ self.weights_
        if len(self._chosen) == profiles.shape[1]:
            return found
        scores = np.full(profiles.shape, np.nan)
        scores[:, self._chosen] = found
        return scores

    def _similarities(self, column: int) -> Floats:
        """Return what one event of the item adds to the scores of the others."""
        found = np.full(self.ratings_.shape[1], np.nan)
        if self._places[column] >= 0:
            found[self._chosen] = self.weights_[self._places[column]]
        return found

    def _rank_rows(self, rows: AnyIntegers, n: int, allowed: Flags) -> Ranked:
        own = rated_rows(self.ratings_.csr, rows)
        return rank_in_blocks(lambda start, end: self._scores(own[start:end]), own, allowed, n)


@register
class Popularity(EventModel):
    """List the items that most users have, without those that the user has.

    The score of an item is the number of users who have it.

    Examples
    --------
    >>> import goodfence as gf
    >>> likes = gf.load("movietweetings").likes(8)
    >>> model = gf.Popularity().fit(likes)
    >>> first = model.recommend([], n=1)
    >>> first.scores == np.bincount(likes.csr.indices).max()
    array([ True])
    """

    name: ClassVar[str] = "popularity"
    label: ClassVar[str] = "Popularity"
    _reason = "Counts are exact: who knows all events but one reads the last one from a list that it changes."

    def _learn(self) -> None:
        csr = self.ratings_.csr
        self.counts_: Floats = np.bincount(csr.indices, minlength=csr.shape[1]).astype(np.float64)

    def _list_scores(self, columns: AnyIntegers, values: Floats) -> Floats:  # noqa: ARG002 - for others
        return self.counts_

    def _rank_rows(self, rows: AnyIntegers, n: int, allowed: Flags) -> Ranked:
        return rank_alike(self.counts_, rated_rows(self.ratings_.csr, rows), allowed, n)


def weights_between_items(csr: sparse.csr_array, regularisation: float) -> AnyFloats:
    """Return B = I - P diag(1 / diag P) with P = (XᵀX + λI)⁻¹, in one matrix of memory."""
    n_items, turned = csr.shape[1], sparse.csr_array(csr.T.tocsr())
    gram: AnyFloats = np.empty((n_items, n_items), dtype=np.float64 if n_items <= MOST_IN_DOUBLE else np.float32)
    factorise, invert = lapack.get_lapack_funcs(("potrf", "potri"), (gram,))
    for first in range(0, n_items, _TOGETHER):
        gram[first : first + _TOGETHER] = (turned[first : first + _TOGETHER] @ csr).toarray()
    gram[np.diag_indices(n_items)] += regularisation
    # All in place, in the triangle that LAPACK calls the upper one, and Python the lower.
    factor, failed = factorise(gram.T, lower=0, overwrite_a=1)
    require(failed == 0, "regularisation", "larger: XᵀX + λI is singular", regularisation)
    weights: AnyFloats = invert(factor, lower=0, overwrite_c=1)[0].T
    for first in range(0, n_items, _TOGETHER):
        last = min(first + _TOGETHER, n_items)
        corner = np.tril(weights[first:last, first:last])
        weights[first:last, first:last] = corner + np.tril(corner, -1).T
        weights[first:last, last:] = weights[last:, first:last].T
    weights /= -np.diag(weights).copy()
    weights[np.diag_indices(n_items)] = 0.0
    return weights
