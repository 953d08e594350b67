"""Recommendations in bulk: for everybody the best items they have not rated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from goodfence.data.ratings import Ratings
from goodfence.engines.local.candidates import Axis
from goodfence.engines.local.draws import Chosen
from goodfence.engines.local.predictions import Over, predict
from goodfence.engines.local.ranking import best_columns


@dataclass(frozen=True, eq=False, slots=True)
class Recommended:
    """For each user the best items she has not rated, best first."""

    columns: npt.NDArray[np.int32]
    """(users, n): item columns, -1 where there are fewer."""
    scores: npt.NDArray[np.float64]
    """(users, n): the predicted ratings, NaN where there are fewer."""

    def __repr__(self) -> str:
        shape = " x ".join(f"{size:,}" for size in self.columns.shape)
        return f"Recommended({shape})"


def recommend(
    ratings: Ratings,
    chosen: Chosen,
    *,
    n: int = 10,
    axis: Axis = "user",
    over: Over = "raters",
    threads: int | None = None,
) -> Recommended:
    """Return for every user at most n items she has not rated, best first, as `NeighbourCF.recommend` does.

    Examples
    --------
    >>> import goodfence as gf
    >>> from goodfence.engines.local.draws import choose_neighbours
    >>> films = gf.synthetic(users=60, items=40, ratings=600, rng=1)
    >>> recommend(films, choose_neighbours(films, gf.KNN(k=10)), n=3)
    Recommended(60 x 3)
    """
    n_users, n_items = ratings.shape
    every = np.arange(n_items)
    columns = np.full((n_users, n), -1, dtype=np.int32)
    scores = np.full((n_users, n), np.nan)
    for user in range(n_users):
        cells = (np.full(n_items, user), every)
        predicted = predict(ratings, chosen, cells, axis=axis, over=over, threads=threads)
        unseen = np.ones(n_items, dtype=np.bool_)
        unseen[ratings.csr.indices[ratings.csr.indptr[user] : ratings.csr.indptr[user + 1]]] = False
        best = best_columns(predicted, unseen, n)
        columns[user, : len(best)], scores[user, : len(best)] = best, predicted[best]
    return Recommended(columns, scores)
