"""Algorithm 1 of the paper as one call: the neighbours of one user, and the prediction of one item."""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from goodfence.arrays import Floats
from goodfence.data.ratings import Id, Ratings
from goodfence.errors import require
from goodfence.neighbours.candidate_lists import Axis, compared_rows, rows_along
from goodfence.neighbours.draw import Draws
from goodfence.neighbours.predict import Neighbourhoods, Over
from goodfence.neighbours.similarity import Similarity
from goodfence.rng import RNG, Streams
from goodfence.selection.mechanism import Mechanism
from goodfence.settings import checked, one_of


class Prediction(NamedTuple):
    """What Algorithm 1 returns. Who the neighbours are is for the operator's eyes only."""

    rating: float
    """The predicted rating; NaN where no neighbour rated the item."""
    neighbours: npt.NDArray[Any]
    """(k,): the ids of the chosen neighbours, nearest first; item-based they are items."""
    similarities: Floats
    """(k,): how similar each of them is."""

    def __repr__(self) -> str:
        return f"Prediction({len(self.neighbours)} neighbours)"


@checked
def algorithm_1(
    ratings: Ratings,
    mechanism: Mechanism,
    user: Id,
    item: Id,
    *,
    axis: Axis = "user",
    similarity: Similarity | str = "cosine",
    over: Over = "raters",
    rng: RNG = None,
) -> Prediction:
    """Choose the neighbours of one user by any mechanism, and predict one rating [PRED].

    The draw is that of `NeighbourCF(mechanism, rng=rng).fit(ratings)` with the same seed. Called again without a seed
    it draws again, which reveals more each time: to serve answers, fit a model once.

    Parameters
    ----------
    ratings : Ratings
        Who rated what how.
    mechanism : Mechanism
        `PPNS(k=, beta=, epsilon=)` for the paper's own; or `KNN`, `NPNS`, `PNCF`.
    user, item
        Whose rating of what is predicted, by their own ids.
    axis, similarity, over, rng
        As in `NeighbourCF`.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> found = gf.papers.algorithm_1(films, gf.PPNS(k=50, beta=7), films.users[0], films.items[0], rng=7)
    >>> found
    Prediction(50 neighbours)
    """
    require(axis in ("user", "item"), "axis", "'user' or 'item'", axis)
    one_of(over, "over", get_args(Over))
    measure, rows = Similarity.of(similarity), rows_along(ratings, axis)
    row, column = ratings.row(user), int(ratings.columns([item])[0])
    draws = Draws(compared_rows(ratings, axis, measure), mechanism, measure, Streams(rng).key())
    asker = row if axis == "user" else column
    chosen = draws.choose(np.array([asker]), threads=1, progress=False)
    near = Neighbourhoods(chosen.neighbours, chosen.weights, over == "raters")
    other = column if axis == "user" else row
    told = near.predict(rows.csr, np.zeros(1, dtype=np.int64), np.array([other]), threads=1)
    return Prediction(float(told[0]), rows.users[chosen.neighbours[0]], chosen.similarities[0])
