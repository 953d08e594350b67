"""The recommenders that people install, as their libraries make them when nothing is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import goodfence as gf
from goodfence.adapters import lenskit, surprise
from goodfence.adapters.libraries import library
from goodfence.arrays import Floats


class Library(NamedTuple):
    """A recommender as its library makes it when nothing is said."""

    settings: str
    """What its defaults are."""
    made: Callable[[], Any]
    fakes: int | None
    """How many fakes attack: its default k, which everybody can read; None to leave it to the audit."""
    neighbours: bool = True
    """Whether it is a neighbourhood; the others take 5 to 12 seconds to fit ml-1m."""


class AskedRows:
    """Surprise's similarities by default (MSD), of which only the rows that are asked for are computed.

    Surprise computes those of all pairs in each fit, and an attack reads those of the one who asks. They are equal to
    the last bit (`tests/adapters/test_surprise.py`): sums of squared differences of integers are exact in any order.
    """

    def __init__(self, trainset: Any) -> None:
        self.trainset = trainset
        self.rows: dict[int, list[float]] = {}

    def __getitem__(self, pair: tuple[int, int]) -> float:
        """Return the similarity of two users, by Surprise's inner ids."""
        user, other = pair
        if user not in self.rows:
            self.rows[user] = self._row(user).tolist()
        return self.rows[user][other]

    def _row(self, user: int) -> Floats:
        squares, counts = np.zeros((2, self.trainset.n_users))
        for item, rating in self.trainset.ur[user]:
            others, values = np.array(self.trainset.ir[item]).T
            rows = others.astype(np.int64)  # everybody rates an item once
            squares[rows] += (values - rating) ** 2
            counts[rows] += 1
        row: Floats = np.where(counts > 0, 1 / (squares / np.maximum(counts, 1) + 1), 0.0)
        row[user] = 1.0
        return row


def _lenskit(module: str, name: str) -> Any:
    scorer = getattr(library(f"lenskit.{module}"), name)()
    return lenskit.from_lenskit(library("lenskit.pipeline").predict_pipeline(scorer))


def _surprise(name: str) -> Any:
    return surprise.from_surprise(getattr(library("surprise"), name)())


def surprise_knn(name: str) -> Any:
    """Return one of Surprise's neighbourhoods with its defaults, whose similarities are computed when asked for."""
    kind: Any = getattr(library("surprise"), name)

    class Asked(kind):  # type: ignore[misc]  # of a library that may be missing
        def compute_similarities(self) -> AskedRows:
            return AskedRows(self.trainset)

    return surprise.from_surprise(Asked(verbose=False))


def _neighbours(name: str) -> Library:
    return Library("40 of the item's raters, MSD", lambda: surprise_knn(name), 40)


LIBRARIES: dict[str, Library] = {
    "LensKit UserKNNScorer": Library(
        "20 of the item's raters, centred cosine", lambda: _lenskit("knn", "UserKNNScorer"), 20
    ),
    "LensKit ItemKNNScorer": Library(
        "20 of the user's items, centred cosine", lambda: _lenskit("knn", "ItemKNNScorer"), 20
    ),
    **{f"Surprise {name}": _neighbours(name) for name in ("KNNBasic", "KNNWithMeans", "KNNBaseline")},
    "Surprise SlopeOne": Library("has none", lambda: _surprise("SlopeOne"), 50, neighbours=False),
    "Surprise SVD": Library("100 factors, 20 epochs", lambda: _surprise("SVD"), 50, neighbours=False),
    "LensKit BiasedMFScorer": Library(
        "50 factors, 10 epochs of ALS", lambda: _lenskit("als", "BiasedMFScorer"), 50, neighbours=False
    ),
    "goodfence KNN, among raters": Library(
        "k=20 of the item's raters, centred cosine",
        lambda: gf.NeighbourCF(gf.KNN(k=20), similarity="centred_cosine", center="user_mean", among="raters"),
        None,
    ),
    "goodfence KNN, as in the paper": Library("k=50 of all users, cosine", lambda: gf.KNN(k=50), None),
}
