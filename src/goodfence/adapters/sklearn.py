"""scikit-learn: our recommenders as its regressors and transformers, and its regressors as recommenders to attack.

Of regressors X has one row (user, item) for each rating, y the ratings.
"""

from __future__ import annotations

import copy
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.adapters.black_box import BlackBox
from goodfence.adapters.libraries import (
    base_class,
    flatten,
    library,
    predict_known,
    ratings_from_columns,
    ratings_from_matrix,
)
from goodfence.arrays import Floats
from goodfence.data.ratings import Ratings
from goodfence.data.scale import ScaleLike
from goodfence.errors import DataError, NotFittedError, require
from goodfence.models.recommender import IdsLike, row_of

Missing: TypeAlias = Literal["mean", "nan"]

_BaseEstimator: Any = base_class("sklearn.base", "BaseEstimator")
_TransformerMixin: Any = base_class("sklearn.base", "TransformerMixin")
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


class RecommenderTransformer(_TransformerMixin, _BaseEstimator):  # type: ignore[misc]
    """Any of our recommenders as a transformer of a matrix, users x items, of which 0 and NaN are not rated.

    `transform` returns the predicted ratings, of events the scores, of all items for each row: an out-of-sample user,
    whose row alone is used (fold-in).

    Parameters
    ----------
    recommender
        `PrivateCF`, `PrivateTopN`, `NeighbourCF` and the like. A copy is fitted. The items are the columns from 0; a
        private recommender takes them for public with `items="from ratings"` or `catalogue=range(n)`.
    scale
        What ratings can be given; None observes it. Private recommenders of ratings need it. Events have none: what
        is more than 0 is one.
    """

    def __init__(self, recommender: Any, *, scale: ScaleLike | None = None) -> None:
        self.recommender = recommender
        self.scale = scale

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.allow_nan = True, True
        tags.input_tags.positive_only = self._of_events
        seeded = getattr(self.recommender, "rng", None) is not None
        tags.non_deterministic = not seeded
        return tags

    @property
    def _of_events(self) -> bool:
        return bool(getattr(self.recommender, "learns_from", "") == "implicit")

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002, N803 - scikit-learn's names
        """Learn from a matrix, users x items."""
        matrix = self._checked(X, reset=True)
        how: dict[str, Any] = {"feedback": "implicit"} if self._of_events else {"scale": self.scale}
        self.recommender_ = copy.copy(self.recommender).fit(ratings_from_matrix(matrix, **how))
        return self

    def transform(self, X: Any) -> Floats:  # noqa: N803 - scikit-learn's name
        """Return what is predicted for each row and all items."""
        library("sklearn.utils.validation").check_is_fitted(self, "recommender_")
        matrix = self._checked(X, reset=False)
        items = self.recommender_.ratings_.items
        rows = (row_of(matrix, row) for row in range(matrix.shape[0]))
        profiles = (dict(zip(columns.tolist(), values.tolist(), strict=True)) for columns, values in rows)
        return np.array([self.recommender_.predict(profile, items) for profile in profiles])

    def _checked(self, given: Any, *, reset: bool) -> sparse.csr_array:
        validation = library("sklearn.utils.validation")
        matrix = validation.validate_data(
            self, given, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_all_finite="allow-nan"
        )
        if self._of_events:
            validation.check_non_negative(matrix, type(self).__name__)
        found = sparse.csr_array(matrix, copy=True)
        found.data[np.isnan(found.data)] = 0
        found.eliminate_zeros()
        return found


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
