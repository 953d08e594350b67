"""scikit-learn: our recommenders as its regressors, and its regressors as recommenders to attack.

X has one row (user, item) for each rating, y the ratings.
"""

from __future__ import annotations

import copy
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.adapters.black_box import BlackBox
from goodfence.adapters.libraries import base_class, flatten, library, predict_known, ratings_from_columns
from goodfence.arrays import Floats
from goodfence.data.ratings import Ratings
from goodfence.data.scale import ScaleLike
from goodfence.errors import DataError, NotFittedError, require
from goodfence.models.recommender import IdsLike

Missing: TypeAlias = Literal["mean", "nan"]

_BaseEstimator: Any = base_class("sklearn.base", "BaseEstimator")
_RegressorMixin: Any = base_class("sklearn.base", "RegressorMixin")


class RecommenderRegressor(_RegressorMixin, _BaseEstimator):  # type: ignore[misc]  # of a library that may be missing
    """Any of our recommenders as a regressor: it clones, and runs in `cross_val_score` and `GridSearchCV`.

    Parameters
    ----------
    recommender
        `NeighbourCF`, `PrivateMeans`, `PrivateCF`, or anything with `fit(ratings)` and `predict(users, items)`.
        A copy is fitted.
    scale
        What ratings can be given, (lowest, highest) or (lowest, highest, step); None observes it in y. Private
        recommenders need it.
    missing
        What to predict where the recommender predicts nothing, and for users and items that are not in X: the `mean`
        of y, as Surprise does, or `nan`, which scikit-learn's scores refuse.
    """

    def __init__(self, recommender: Any, *, scale: ScaleLike | None = None, missing: Missing = "mean") -> None:
        self.recommender = recommender
        self.scale = scale
        self.missing = missing

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803 - scikit-learn's name
        """Learn from pairs (user, item) and their ratings."""
        require(self.missing in ("mean", "nan"), "missing", "'mean' or 'nan'", self.missing)
        values = np.asarray(y, dtype=np.float64)
        self.ratings_ = ratings_from_columns(*_columns(X), values, scale=self.scale)
        self.recommender_ = copy.copy(self.recommender).fit(self.ratings_)
        self.n_features_in_ = 2
        return self

    def predict(self, X: Any) -> Floats:  # noqa: N803 - scikit-learn's name
        """Return the predicted rating of each pair (user, item)."""
        if not hasattr(self, "recommender_"):
            raise NotFittedError("the regressor must be fitted before it is asked; call fit(X, y)")
        predictions = predict_known(self.recommender_, self.ratings_, *_columns(X))
        if self.missing == "mean":
            predictions[np.isnan(predictions)] = self.ratings_.csr.data.mean()
        return predictions


def from_sklearn(estimator: Any) -> BlackBox:
    """Return a regressor on pairs (user, item) as a recommender that can be attacked.

    A clone is fitted in each world, with the target's seed as its `random_state` and that of its parts. X is an array
    of two columns, of integers where all ids are integers.
    """
    base = library("sklearn.base")

    def train(ratings: Ratings, rng: int | None = None) -> Any:
        model = base.clone(estimator)
        if rng is not None:
            names = (name for name in model.get_params() if name.split("__")[-1] == "random_state")
            model.set_params(**dict.fromkeys(names, rng % 2**32))
        users, items, values = flatten(ratings)
        model.fit(_pairs(users, items), values)
        return lambda users, items: model.predict(_pairs(users, items))

    return BlackBox(train)


def _pairs(users: IdsLike, items: IdsLike) -> npt.NDArray[Any]:
    columns = [np.asarray(users), np.asarray(items)]
    kind = np.int64 if all(one.dtype.kind in "iu" for one in columns) else object
    return np.column_stack([one.astype(kind) for one in columns])


def _columns(pairs: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return users and items of a matrix or data frame of two columns; a frame's columns keep their own kinds."""
    if hasattr(pairs, "iloc"):
        parts = [np.asarray(pairs.iloc[:, column]) for column in range(pairs.shape[1])]
    else:
        array = np.asarray(pairs)
        parts = list(array.T) if array.ndim == 2 else []
    if len(parts) != 2:
        raise DataError("X must have two columns, user and item")
    return parts[0], parts[1]
