"""scikit-learn's own tools run our recommenders, with the numbers that ours give."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import goodfence as gf
from goodfence.adapters.libraries import flatten, library
from goodfence.adapters.sklearn import RecommenderRegressor, RecommenderTransformer, from_sklearn
from goodfence.data.scale import Scale
from goodfence.errors import DataError, NotFittedError, SettingError

pytestmark = pytest.mark.adapters("sklearn")

Split = tuple[gf.Ratings, gf.Ratings]


def knn(k: int = 20, **settings: Any) -> gf.NeighbourCF:
    return gf.NeighbourCF(gf.KNN(k=k), progress=False, **settings)


def pairs_of(ratings: gf.Ratings) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
    users, items, values = flatten(ratings)
    return np.column_stack([users.astype(object), items]), values


def stacked(split: Split) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64], npt.NDArray[Any]]:
    """Return X and y of both parts, and which fold holds each rating out (-1: none)."""
    (pairs, values), (held_pairs, held_values) = map(pairs_of, split)
    fold = np.repeat([-1, 0], [len(values), len(held_values)])
    return np.vstack([pairs, held_pairs]), np.concatenate([values, held_values]), fold


def test_its_cross_validation_gives_our_error(peer: Any, split: Split) -> None:
    model_selection = library("sklearn.model_selection")
    cross_val_score = model_selection.cross_val_score

    pairs, values, fold = stacked(split)
    estimator = RecommenderRegressor(knn(fallback="item_mean"), scale=(0, 10))
    scores = cross_val_score(
        estimator, pairs, values, cv=model_selection.PredefinedSplit(fold), scoring="neg_mean_absolute_error"
    )
    ours = gf.evaluate(knn(fallback="item_mean").fit(split[0]), split[1])
    assert ours.coverage == 1
    assert -scores[0] == pytest.approx(ours.mae, abs=1e-12)


def test_what_is_missing_is_the_mean_or_nan(peer: Any, split: Split) -> None:
    (pairs, values), (asked, _) = map(pairs_of, split)
    ours = knn(2).fit(split[0]).predict(*flatten(split[1])[:2])
    assert 0.1 < np.isnan(ours).mean() < 0.9
    bare = RecommenderRegressor(knn(2), missing="nan").fit(pairs, values)
    assert np.array_equal(bare.predict(asked), ours, equal_nan=True)
    filled = RecommenderRegressor(knn(2)).fit(pairs, values).predict(asked)
    assert np.array_equal(filled, np.where(np.isnan(ours), values.mean(), ours))
    stranger = np.array([[-1, pairs[0, 1]], [pairs[0, 0], "no such film"]], dtype=object)
    assert np.isnan(bare.predict(stranger)).all()


def test_a_grid_search_finds_what_we_find(peer: Any, split: Split) -> None:
    model_selection = library("sklearn.model_selection")

    pairs, values, fold = stacked(split)
    unfitted = [knn(k, fallback="item_mean") for k in (1, 5, 40)]
    search = model_selection.GridSearchCV(
        RecommenderRegressor(knn(), scale=(0, 10)),
        {"recommender": unfitted},
        cv=model_selection.PredefinedSplit(fold),
        scoring="neg_mean_absolute_error",
    ).fit(pairs, values)
    ours = [gf.evaluate(one.fit(split[0]), split[1]).mae for one in unfitted]
    assert -search.cv_results_["mean_test_score"] == pytest.approx(ours, abs=1e-12)
    assert search.best_params_["recommender"].mechanism == unfitted[int(np.argmin(ours))].mechanism
    assert len(search.predict(pairs[:3])) == 3


def test_it_clones_and_keeps_its_settings(peer: Any, split: Split) -> None:
    clone = library("sklearn.base").clone

    estimator = RecommenderRegressor(knn(), scale=(0, 10), missing="nan")
    fitted = estimator.fit(*pairs_of(split[0]))
    copied = clone(fitted)
    assert not hasattr(copied, "recommender_")
    assert copied.get_params()["scale"] == (0, 10)
    assert copied.get_params()["recommender"].mechanism == gf.KNN(k=20)
    assert copied.set_params(missing="mean").missing == "mean"
    assert not hasattr(estimator.recommender, "neighbours_")  # a copy was fitted
    asked = pairs_of(split[1])[0]
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301 - our own bytes
    assert np.array_equal(again.predict(asked), fitted.predict(asked), equal_nan=True)


def test_a_data_frame_keeps_its_kinds(peer: Any, split: Split) -> None:
    import pandas as pd

    pairs, values = pairs_of(split[0])
    frame = pd.DataFrame({"who": pairs[:, 0].astype(int), "what": pairs[:, 1].astype(str)})
    by_frame = RecommenderRegressor(knn()).fit(frame, values)
    by_array = RecommenderRegressor(knn()).fit(pairs, values)
    assert np.array_equal(by_frame.predict(frame), by_array.predict(pairs))
    assert by_frame.ratings_.users.dtype == np.int64


def test_its_regressors_are_attacked_and_seeded(peer: Any, films: gf.Ratings) -> None:
    base = library("sklearn.base")

    seen: list[tuple[int, np.dtype[Any]]] = []

    class Chance(base.RegressorMixin, base.BaseEstimator):  # type: ignore[name-defined, misc]  # imported late
        def __init__(self, random_state: int | None = None) -> None:
            self.random_state = random_state

        def fit(self, X: Any, y: Any) -> Any:  # noqa: N803 - scikit-learn's name
            assert self.random_state is not None
            seen.append((self.random_state, X.dtype))
            self.mean_ = float(np.mean(y))
            return self

        def predict(self, X: Any) -> Any:  # noqa: N803 - scikit-learn's name
            return np.full(len(X), self.mean_)

    numbered = gf.Ratings(films.csr, films.users, range(films.shape[1]), films.scale)
    report = gf.KNNAttack(known=8, fakes=3).run(numbered, from_sklearn(Chance()), targets=2, rng=1)
    assert report.coverage == 1
    seeds = [seed for seed, _ in seen]
    assert seeds[0] == seeds[1] != seeds[2] == seeds[3]
    assert {kind for _, kind in seen} == {np.dtype(np.int64)}


def test_its_nearest_neighbours_give_the_target_away(peer: Any, films: gf.Ratings) -> None:
    """A regressor that knows nobody but the last rater of an item: told by hand what it must leak."""
    base = library("sklearn.base")

    class LastRater(base.RegressorMixin, base.BaseEstimator):  # type: ignore[name-defined, misc]  # imported late
        def fit(self, X: Any, y: Any) -> Any:  # noqa: N803 - scikit-learn's name
            self.last_ = dict(zip(X[:, 1].tolist(), y.tolist(), strict=True))
            return self

        def predict(self, X: Any) -> Any:  # noqa: N803 - scikit-learn's name
            return [self.last_.get(item, np.nan) for item in X[:, 1].tolist()]

    last = films.users[-1]
    report = gf.KNNAttack(known=8, fakes=3).run(films, from_sklearn(LastRater()), targets=[last], rng=1)
    assert report.recovery == 1  # the target is the last real row, and the fakes rated nothing that is hidden
    assert report.estimates["recovery_without"].value < 1


def test_mistakes_are_told(peer: Any, split: Split) -> None:
    pairs, values = pairs_of(split[0])
    with pytest.raises(NotFittedError):
        RecommenderRegressor(knn()).predict(pairs)
    with pytest.raises(DataError, match="X must have two columns"):
        RecommenderRegressor(knn()).fit(np.ones((4, 3)), np.ones(4))
    with pytest.raises(DataError, match="X must have two columns"):
        RecommenderRegressor(knn()).fit([1, 2], [1, 2])
    with pytest.raises(SettingError, match="missing must be"):
        RecommenderRegressor(knn(), missing="zero").fit(pairs, values)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="scale"):
        RecommenderRegressor(knn(), scale=(1, 3)).fit(pairs, values)


STEPLESS = Scale(-1e6, 1e6, None)
"""Their checks make up any numbers."""
FRESH = {"check_fit_idempotent": "each fit of a private model draws its own noise"}
ALONE = {"check_fit2d_1sample": "a user alone has no neighbours"}


@pytest.mark.parametrize(
    ("recommender", "failing"),
    [
        (gf.PrivateCF(epsilon=1.0, items="from ratings"), FRESH),
        (gf.PrivateCF(epsilon=1.0, items="from ratings", rng=7), {}),
        (gf.PrivateMeans(epsilon=1.0, items="from ratings", rng=7), {}),
        (gf.PrivateTopN(epsilon=1.0, items="from ratings", rng=7), {}),
        (gf.NeighbourCF(gf.KNN(k=3)), ALONE),
    ],
)
def test_our_recommenders_pass_its_checks_of_estimators(peer: Any, recommender: Any, failing: dict[str, str]) -> None:
    checks = library("sklearn.utils.estimator_checks")
    scale = None if recommender.learns_from == "implicit" else STEPLESS
    estimator = RecommenderTransformer(recommender, scale=scale)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of checks that are skipped
        told = checks.check_estimator(estimator, on_fail=None)
    assert {one["check_name"] for one in told if one["status"] == "failed"} <= failing.keys()
    assert len(told) > 40


def test_a_row_is_somebody_who_is_not_in_the_data(peer: Any, films: gf.Ratings) -> None:
    ours = gf.PrivateCF(epsilon=1.0, items="from ratings", rng=7)
    theirs = RecommenderTransformer(ours, scale=(0, 10)).fit(films.csr)
    rows = films.csr[[3]].toarray()
    numbered = gf.Ratings(films.csr, range(films.shape[0]), range(films.shape[1]), scale=(0, 10))
    profile = dict(zip(films.csr[[3]].indices.tolist(), films.csr[[3]].data.tolist(), strict=True))
    asked = range(films.shape[1])
    assert np.array_equal(theirs.transform(rows)[0], ours.fit(numbered).predict(profile, asked))
    rows[rows == 0] = np.nan
    assert np.array_equal(theirs.transform(rows), theirs.transform(films.csr[[3]]))
