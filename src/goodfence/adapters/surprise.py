"""Surprise: our recommenders as its algorithms, its algorithms as recommenders to attack, and its data."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from goodfence.adapters.black_box import BlackBox
from goodfence.adapters.libraries import base_class, flatten, library, predict_known, ratings_from_columns, seeded_copy
from goodfence.arrays import Floats
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale, ScaleLike
from goodfence.models.recommender import IdsLike

_AlgoBase: Any = base_class("surprise", "AlgoBase")


class RecommenderAlgo(_AlgoBase):  # type: ignore[misc]  # of a library that may be missing
    """Any of our recommenders as a Surprise algorithm: it runs in `cross_validate`, `train_test_split` and the rest.

    Where it predicts nothing, and for unknown users and items, the prediction is impossible in Surprise's sense:
    Surprise then predicts the mean of all ratings.

    Parameters
    ----------
    recommender
        As in `goodfence.adapters.sklearn.RecommenderRegressor`.
    scale
        What ratings can be given; None takes the ends of Surprise's `rating_scale` and observes the step. Private
        recommenders need it.
    """

    def __init__(self, recommender: Any, *, scale: ScaleLike | None = None) -> None:
        super().__init__()
        self.recommender = recommender
        self.scale = scale

    def fit(self, trainset: Any) -> Self:
        """Learn from a Surprise training set."""
        super().fit(trainset)
        self.ratings_ = ratings_from_surprise(trainset, scale=self.scale)
        self.recommender_ = copy.copy(self.recommender).fit(self.ratings_)
        self._at_once: dict[tuple[Any, Any], float] = {}
        return self

    def test(self, testset: Any, verbose: bool = False) -> Any:
        """Return Surprise's predictions for a test set; ours are made all at once, which is much faster."""
        pairs = [(user, item) for user, item, _ in testset]
        users, items = (np.fromiter((pair[side] for pair in pairs), object, len(pairs)) for side in (0, 1))
        values = predict_known(self.recommender_, self.ratings_, users, items)
        self._at_once = dict(zip(pairs, values.tolist(), strict=True))
        try:
            return super().test(testset, verbose=verbose)
        finally:
            self._at_once = {}

    def estimate(self, u: Any, i: Any) -> float:
        """Return the prediction for one user and item, by Surprise's inner ids."""
        if not (self.trainset.knows_user(u) and self.trainset.knows_item(i)):
            raise library("surprise").PredictionImpossible("not in the training set")
        user, item = self.trainset.to_raw_uid(u), self.trainset.to_raw_iid(i)
        value = self._at_once.get((user, item))
        if value is None:
            value = float(self.recommender_.predict([user], [item])[0])
        if np.isnan(value):
            raise library("surprise").PredictionImpossible("the recommender predicts nothing here")
        return value


def from_surprise(algo: Any) -> BlackBox:
    """Return a Surprise algorithm as a recommender that can be attacked.

    A deep copy is fitted in each world, with the target's seed as its `random_state`, if it has one. A prediction that
    Surprise calls impossible is NaN.
    """
    surprise = library("surprise")

    def train(ratings: Ratings, rng: int | None = None) -> Any:
        reader = surprise.Reader(rating_scale=(ratings.scale.lowest, ratings.scale.highest))
        columns = (column.tolist() for column in flatten(ratings))
        raw = [(user, item, value, None) for user, item, value in zip(*columns, strict=True)]
        model = seeded_copy(algo, rng).fit(surprise.Dataset(reader).construct_trainset(raw))

        def predict(users: IdsLike, items: IdsLike) -> list[float]:
            pairs = zip(np.asarray(users).tolist(), np.asarray(items).tolist(), strict=True)
            made = (model.predict(user, item) for user, item in pairs)
            return [np.nan if one.details["was_impossible"] else float(one.est) for one in made]

        return predict

    return BlackBox(train)


def ratings_from_surprise(data: Any, *, scale: ScaleLike | None = None) -> Ratings:
    """Return the ratings of a Surprise `Dataset` or `Trainset`, with the ids that Surprise was given.

    `scale` is as in `RecommenderAlgo`.
    """
    if hasattr(data, "raw_ratings"):
        cells, ends = [one[:3] for one in data.raw_ratings], data.reader.rating_scale
    else:
        raw, ends = (data.to_raw_uid, data.to_raw_iid), data.rating_scale
        cells = [(raw[0](user), raw[1](item), value) for user, item, value in data.all_ratings()]
    users, items, values = zip(*cells, strict=True)
    numbers = np.array(values, dtype=np.float64)
    return ratings_from_columns(users, items, numbers, scale=scale or observed_within(numbers, ends))


def observed_within(values: Floats, ends: tuple[float, float]) -> Scale:
    """Return the scale between `ends` with the step that the values show."""
    lowest, highest = float(ends[0]), float(ends[1])
    seen = Scale.observed(np.append(values, (lowest, highest)))
    return Scale(lowest, highest, seen.step, declared=False)
