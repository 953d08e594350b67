"""Counterexamples: two data sets that differ in one rating, and an event that tells them apart.

An event that is possible under one and impossible under the other has an infinite ratio of probabilities, so no
epsilon bounds it. The probabilities are exact. The first row of each data set asks. A 0 is no rating.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from goodfence.arrays import Floats, Integers
from goodfence.data.columns import Feedback
from goodfence.selection.inclusion import choice_probability, inclusion_probabilities
from goodfence.selection.mechanism import RS, Mechanism, shortest_list
from goodfence.selection.pncf import PNCF
from goodfence.selection.ppns import PPNS
from goodfence.selection.sensitivity import Sensitivity, pair_sensitivities, sensitivities

_PARTITIONS = (
    (5, 4, 0, 0, 0),  # asks
    (5, 4, 1, 0, 0),
    (4, 5, 0, 2, 0),  # leaves the first partition without its second rating
    (5, 0, 2, 0, 0),
    (0, 4, 0, 3, 5),
)
_BAND = (
    (5, 3, 0, 0, 0),  # asks
    (0, 3, 0, 0, 1),  # no longer above the band without its second rating
    (1, 0, 0, 5, 0),
    (0, 1, 5, 0, 0),
    (1, 0, 5, 3, 0),
)
_EVENTS: dict[Feedback, str] = {
    "explicit": "a prediction is made for an item that nobody but one candidate rated",
    "implicit": "a list may hold an item that nobody but one candidate has",
}
_ASKER = (5.0, 4.0, 0.0, 0.0, 0.0)
_TARGET = (5.0, 4.0, 5.0, 0.0, 0.0)  # their third rating is in one data set only
_NEARER = (5.0, 4.0, 0.0, 0.0, 0.0)
_FARTHER = (0.0, 1.0, 0.0, 5.0, 2.0)
_COLUMN = 2
_LONGEST = 1 << 14


@dataclass(frozen=True, eq=False, repr=False)
class Counterexample:
    """Two data sets that differ in one rating, and an event of one asker."""

    mechanism: Mechanism
    ratings: Floats  # users x items, with the rating; row 0 asks
    rating: tuple[int, int]  # the row and the column of the rating that the other data set does not have
    event: str  # what is seen, in words
    chosen: frozenset[int] | None
    """The rows that are chosen; `None` if the event is an answer for the rating's item."""

    @property
    def ratings_without(self) -> Floats:
        """The same ratings without that one."""
        other = self.ratings.copy()
        other[self.rating] = 0.0
        return other

    def probabilities(self) -> tuple[float, float]:
        """Return the exact probability of the event with the rating, and without it."""
        return self._probability(self.ratings), self._probability(self.ratings_without)

    def _probability(self, ratings: Floats) -> float:
        rows, similarities, rs = candidate_list(ratings, self.mechanism.sensitivity)
        if self.chosen is not None:
            places = [place for place, row in enumerate(rows) if int(row) in self.chosen]
            return choice_probability(self.mechanism, similarities, places, rs)
        # Nobody else rated the item: there is an answer if and only if its one rater is chosen.
        row, column = self.rating
        if ratings[row, column] == 0:
            return 0.0
        included = inclusion_probabilities(self.mechanism, similarities, rs)
        return float(included[rows == row][0])


def ppns_counterexample(epsilon: float = 1.0) -> Counterexample:
    """Return a counterexample against PPNS, for any epsilon: the partitions' edges move with a rating.

    With the rating a candidate is in the first partition with the nearest, and one of both must be left out; without
    it the candidate is in the second, and both can be chosen.
    """
    return Counterexample(
        PPNS(k=2, beta=2, epsilon=epsilon),
        np.array(_PARTITIONS, dtype=np.float64),
        rating=(2, 1),
        event="the neighbours are rows 1 and 2",
        chosen=frozenset({1, 2}),
    )


def pncf_counterexample(epsilon: float = 1.0) -> Counterexample:
    """Return a counterexample against PNCF (band): with the rating a candidate is above the band and always chosen."""
    return Counterexample(
        PNCF(k=2, epsilon=epsilon),
        np.array(_BAND, dtype=np.float64),
        rating=(1, 1),
        event="the neighbours are rows 2 and 4",
        chosen=frozenset({2, 4}),
    )


def answer_counterexample(mechanism: Mechanism) -> Counterexample:
    """Return a counterexample against every mechanism that can choose row 2 of 4: the answer itself.

    One candidate alone rated the fourth item, so there is an answer for it only if that candidate is chosen, and never
    without the rating. A private choice does not protect what the prediction reads afterwards.
    """
    ratings = np.array(_PARTITIONS, dtype=np.float64)
    ratings[4, 3] = 0.0
    return Counterexample(
        mechanism, ratings, rating=(2, 3), event="there is a prediction for the item of column 3", chosen=None
    )


def settings_counterexample(mechanism: Mechanism, feedback: Feedback = "explicit") -> Counterexample | None:
    """Return the likeliest counterexample against the mechanism, as it is set; None if none was found.

    One candidate alone rated an item, or has it. If they are chosen the asker gets an answer for it, or sees it listed;
    without that rating or event never. The candidate is tried as the nearest of all, and as the last that the mechanism
    looks at.
    """
    shortest = shortest_list(mechanism, at_most=_LONGEST - 1)
    if shortest is None:
        return None
    needed = max(shortest, 2)
    found = [_example(mechanism, n_nearer, needed, feedback) for n_nearer in (0, needed - 1)]
    best = max(found, key=lambda example: example.probabilities()[0])
    with_it, without = best.probabilities()
    return best if with_it > 0 and without == 0 else None


def _example(mechanism: Mechanism, n_nearer: int, needed: int, feedback: Feedback) -> Counterexample:
    """Return a counterexample in whose list the candidate comes after `n_nearer`, and which is k longer than needed."""
    farther = [_FARTHER] * (needed + mechanism.k - n_nearer - 1)
    ratings: Floats = np.array([_ASKER, *[_NEARER] * n_nearer, _TARGET, *farther])
    if feedback == "implicit":
        ratings = np.sign(ratings)
    rating = (n_nearer + 1, _COLUMN)
    return Counterexample(mechanism, ratings, rating=rating, event=_EVENTS[feedback], chosen=None)


def candidate_list(ratings: Floats, options: Sensitivity | None) -> tuple[Integers, Floats, RS]:
    """Return the candidates of row 0 of dense ratings, nearest first (ties by row), their cosines [COS], and RS."""
    norms = np.sqrt((ratings**2).sum(axis=1))
    products = norms[0] * norms[1:]
    cosines = ratings[1:] @ ratings[0] / np.where(products > 0, products, 1.0)
    order = np.argsort(-cosines, kind="stable")
    rows = (order + 1).astype(np.int64)
    if options is None:
        return rows, cosines[order], None
    csr = sparse.csr_array(ratings)
    if options.scope == "pair":
        pairs = pair_sensitivities(csr, np.array([0]), rows[np.newaxis, :], options)
        return rows, cosines[order], pairs[0]
    return rows, cosines[order], float(sensitivities(csr, options)[0])
