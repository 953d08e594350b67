"""Surprise: our recommenders as its algorithms, its algorithms as recommenders to attack, and its data."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from goodfence.adapters.black_box import BlackBox
from goodfence.adapters.libraries import base_class, flatten, gather, library, predict_known, within
from goodfence.data.ratings import Ratings
from goodfence.data.scale import ScaleLike
from goodfence.models.recommender import IdsLike

_AlgoBase: Any = base_class("surprise", "AlgoBase")


class RecommenderAlgo(_AlgoBase):  # type: ignore[misc]  # of a library that may be missing
    """Any of our recommenders as a Surprise algorithm: it runs in `cross_validate`, `train_test_split` and the rest.

    Where it predicts nothing, and for users and items that are not in the training set, the prediction is
    impossible in Surprise's sense: Surprise puts the mean of all ratings there.

    Parameters
    ----------
    recommender
        As in `goodfence.adapters.sklearn.RecommenderRegressor`.
    scale
        What ratings can be given; None takes the ends of Surprise's `rating_scale` and observes the step. The
        private recommenders want it declared.
    """

    def __init__(self, recommender: Any, *, scale: ScaleLike | None = None) -> None:
        super().__init__()
        self.recommender = recommender
        self.scale = scale

    def fit(self, trainset: Any) -> Self:
        """Learn from a Surprise training set."""
        super().fit(trainset)
        ratings = read_trainset(trainset, scale=self.scale)
        self.recommender_ = copy.copy(self.recommender).fit(ratings)
        self.ratings_ = ratings
        self._at_once: dict[tuple[Any, Any], float] = {}
        return self

    def test(self, testset: Any, verbose: bool = False) -> Any:
        """Return Surprise's predictions for a test set; ours are made all at once, which is much faster."""
        pairs = [(user, item) for user, item, _ in testset]
        users, items = (_ids([pair[side] for pair in pairs]) for side in (0, 1))
        values = predict_known(self.recommender_, self.ratings_, users, items)
        self._at_once = dict(zip(pairs, values.tolist(), strict=True))
        try:
            return super().test(testset, verbose=verbose)
        finally:
            self._at_once = {}

    def estimate(self, u: Any, i: Any) -> float:
        """Return the prediction for one user and item, by Surprise's inner ids."""
        if not (self.trainset.knows_user(u) and self.trainset.knows_item(i)):
            raise _impossible("the user or the item is not in the training set")
        user, item = self.trainset.to_raw_uid(u), self.trainset.to_raw_iid(i)
        value = self._at_once.get((user, item))
        if value is None:
            value = float(self.recommender_.predict([user], [item])[0])
        if np.isnan(value):
            raise _impossible("the recommender predicts nothing here")
        return value


def as_recommender(algo: Any) -> BlackBox:
    """Return a Surprise algorithm as a recommender that can be attacked.

    A deep copy is fitted in each world, its `random_state`, if it has one, set to the target's seed. Where
    Surprise calls a prediction impossible, nothing is predicted.
    """
    surprise = library("surprise")

    def train(ratings: Ratings, rng: int | None = None) -> Any:
        model = copy.deepcopy(algo)
        if rng is not None and hasattr(model, "random_state"):
            model.random_state = rng % 2**32
        model.fit(_trainset(surprise, ratings))
        return lambda users, items: _estimates(model, users, items)

    return BlackBox(train)


def read_dataset(dataset: Any, *, scale: ScaleLike | None = None) -> Ratings:
    """Return the ratings of a Surprise `Dataset` (`load_from_df`, `load_from_file`, `load_builtin`).

    `scale` is as in `RecommenderAlgo`.
    """
    users, items, values, *_ = zip(*dataset.raw_ratings, strict=True)
    return _read(users, items, values, dataset.reader.rating_scale, scale)


def read_trainset(trainset: Any, *, scale: ScaleLike | None = None) -> Ratings:
    """Return the ratings of a Surprise `Trainset`, with the ids as they were given to Surprise."""
    cells = list(trainset.all_ratings())
    users = [trainset.to_raw_uid(user) for user, _, _ in cells]
    items = [trainset.to_raw_iid(item) for _, item, _ in cells]
    return _read(users, items, [value for _, _, value in cells], trainset.rating_scale, scale)


def _read(users: Any, items: Any, values: Any, ends: Any, scale: ScaleLike | None) -> Ratings:
    numbers = np.array(values, dtype=np.float64)
    return gather(users, items, numbers, scale=within(numbers, ends) if scale is None else scale)


def _trainset(surprise: Any, ratings: Ratings) -> Any:
    reader = surprise.Reader(rating_scale=(ratings.scale.lowest, ratings.scale.highest))
    columns = (column.tolist() for column in flatten(ratings))
    raw = [(user, item, value, None) for user, item, value in zip(*columns, strict=True)]
    return surprise.Dataset(reader).construct_trainset(raw)


def _estimates(model: Any, users: IdsLike, items: IdsLike) -> list[float]:
    pairs = zip(np.asarray(users).tolist(), np.asarray(items).tolist(), strict=True)
    made = (model.predict(user, item) for user, item in pairs)
    return [np.nan if one.details["was_impossible"] else float(one.est) for one in made]


def _ids(values: list[Any]) -> npt.NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _impossible(why: str) -> Exception:
    problem: Exception = library("surprise").PredictionImpossible(why)
    return problem
