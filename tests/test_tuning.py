"""Searches over settings and learning curves: the figures are those of `evaluate`, and the price is the whole price."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import goodfence as gf
from goodfence.errors import GoodfenceWarning, MissingExtra
from goodfence.evaluation import learning_curve
from goodfence.privacy.accounting import Account


@pytest.fixture(scope="module")
def films() -> gf.Ratings:
    whole = gf.load("movietweetings")
    times = np.arange(whole.n_ratings)[::-1].copy()
    return gf.Ratings(whole.csr, whole.users, whole.items, whole.scale, times=times)


def private(**settings: Any) -> gf.PrivateMeans:
    return gf.PrivateMeans(items="from ratings", **settings)


def test_a_grid_gives_what_evaluate_gives_and_names_the_best(films: gf.Ratings) -> None:
    pair = gf.holdout(films, by="time", per_user=1)
    assert pair[1].n_ratings == films.shape[0]
    found = gf.tune("knn fallback=item_mean", {"k": [5, 20], "center": ["user_mean", "bias"]}, pair)
    assert [(row["k"], row["center"]) for row in found.rows] == [
        (5, "user_mean"), (5, "bias"), (20, "user_mean"), (20, "bias")
    ]  # fmt: skip
    for row in found.rows:
        model = gf.NeighbourCF(gf.KNN(k=row["k"]), center=row["center"], fallback="item_mean").fit(pair[0])
        assert row["mae"] == gf.evaluate(model, pair[1]).mae
    assert min(row["mae"] for row in found.rows) == next(
        row["mae"] for row in found.rows if found.best.items() <= row.items()
    )
    assert found.spent == {}
    assert repr(found) == "TrialTable(4 by mae)"
    assert "<td>20</td>" in found._repr_html_()


def test_cross_validation_averages_its_folds_and_a_random_search_tries_some(films: gf.Ratings) -> None:
    def make(k: int) -> gf.NeighbourCF:
        return gf.NeighbourCF(gf.KNN(k=k))

    found = gf.tune(make, {"k": [3, 5, 9, 15, 30]}, films, folds=2, tries=2, figure="rmse", rng=7)
    again = gf.tune(make, {"k": [3, 5, 9, 15, 30]}, films, folds=2, tries=2, figure="rmse", rng=7)
    assert len(found.rows) == 2
    assert found.best == again.best
    settings = found.settings[0]
    by_fold = [gf.evaluate(make(**settings).fit(train), test).rmse for train, test in gf.folds(films, n=2, rng=7)]
    assert found.rows[0]["rmse"] == pytest.approx(np.mean(by_fold))
    assert found.rows[0]["spread"] == pytest.approx(np.std(by_fold, ddof=1))


def test_lists_are_better_if_they_are_higher(films: gf.Ratings) -> None:
    likes = films.likes(8)
    found = gf.tune(gf.EASE, {"regularisation": [1e-3, 300.0]}, likes, figure="recall@5", rng=7)
    assert found.best == {"regularisation": 300.0}
    assert found.rows[0]["top"] == 5
    assert gf.tune(lambda **_: gf.Popularity(), {"of": [gf.KNN(k=3)]}, likes, rng=7).figure == "ndcg"


def test_the_price_of_a_search_is_that_of_all_its_fits_together(films: gf.Ratings) -> None:
    with pytest.warns(
        GoodfenceWarning, match=r"6 private models .* together they cost epsilon .* at delta 1e-05 per rating"
    ):
        found = gf.tune(private, {"epsilon": [0.5, 1.0, 2.0]}, films, folds=2, rng=7)
    epsilon, delta = found.spent["epsilon"], found.spent["delta"]
    assert (found.spent["unit"], delta) == ("rating", 1e-5)
    released = Account(tuple(one for record in found.records for one in record.account.releases))
    assert released.epsilon(delta) <= epsilon < 2 * (0.5 + 1.0 + 2.0)
    with pytest.warns(GoodfenceWarning) as told:
        alone = gf.tune(private, {"epsilon": [1.0]}, films, rng=7)
    assert alone.spent["epsilon"] == pytest.approx(1.0, rel=1e-3)
    assert alone.spent["epsilon"] >= 1.0
    assert "a seed voids" not in str(told[0].message)
    with pytest.warns(GoodfenceWarning, match="a seed voids even that"):
        gf.tune(private, {"epsilon": [1.0], "rng": [7]}, films, rng=7)
    with pytest.warns(GoodfenceWarning, match="per rating"):
        both = gf.tune(private, {"epsilon": [1.0], "unit": ["user", "rating"]}, films, rng=7)
    assert both.spent["epsilon"] > 1.3


def test_a_learning_curve_grows_within_itself_and_ends_with_everything(films: gf.Ratings) -> None:
    train, test = gf.holdout(films, rng=7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curve = learning_curve(gf.NeighbourCF(gf.KNN(k=20)), (train, test), shares=(0.1, 0.5, 1.0), rng=7)
    assert [row["n_train"] for row in curve.rows] == [round(share * train.n_ratings) for share in (0.1, 0.5, 1.0)]
    assert curve.rows[-1]["mae"] == gf.evaluate(gf.NeighbourCF(gf.KNN(k=20)).fit(train), test).mae
    assert curve.rows[0]["mae"] > curve.rows[-1]["mae"]
    with pytest.warns(GoodfenceWarning, match="2 private models"):
        learning_curve(private(epsilon=1.0), films, shares=(0.5, 1.0), rng=7)


@pytest.mark.parametrize(
    ("backend", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("pyarrow", pa.Table)]
)
def test_results_are_data_frames(films: gf.Ratings, backend: Any, kind: type) -> None:
    found = gf.tune("knn", {"k": [5, 9]}, films, rng=7)
    frame = found.to_frame(backend)
    assert isinstance(frame, kind)
    assert gf.Ratings.from_frame(frame, user="k", item="n", rating="mae").n_ratings == 2
    train, test = gf.holdout(films.likes(8), rng=7)
    scores: Any = gf.evaluate(gf.Popularity().fit(train), test).to_frame(backend)
    assert len(scores) == 1
    assert type(scores) is kind


def test_a_library_that_is_missing_is_named(films: gf.Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    found = gf.tune("knn", {"k": [5]}, films, rng=7)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtra, match="polars must be installed for its data frames"):
        found.to_frame("polars")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"grid": {}}, "grid must be settings with a value each"),
        ({"grid": {"k": []}}, "grid must be settings with a value each"),
        ({"figure": "ndcg"}, "figure must be one of ndcg, recall"),
        ({"figure": "mae@3"}, "figure must be one of"),
        ({"data": 3}, "data must be Ratings, or train and test"),
        ({"folds": 0}, "folds must be an integer of at least 1"),
        ({"make": "nonsense"}, "method must be one of"),
        ({"make": lambda k: k}, "make must be what makes a recommender"),
        ({"make": "knn", "grid": {"kk": [1]}}, "has no setting 'kk'"),
    ],
)
def test_what_cannot_be_tried_is_told(films: gf.Ratings, given: dict[str, Any], says: str) -> None:
    asked = {"make": "knn", "grid": {"k": [5]}, "data": films, "rng": 7, **given}
    with pytest.raises(gf.SettingError, match=says):
        gf.tune(**asked)


def test_train_and_test_are_not_split_again(films: gf.Ratings) -> None:
    with pytest.raises(gf.SettingError, match="folds must be left out"):
        learning_curve(gf.Popularity(), gf.holdout(films.likes(8), rng=7), folds=3)
    with pytest.raises(gf.SettingError, match=r"shares must be more than 0|between 0 and 1|from 0 to 1"):
        learning_curve(gf.Popularity(), films.likes(8), shares=(0,), rng=7)
    with pytest.raises(gf.SettingError, match="figure must be one of"):
        learning_curve(gf.Popularity(), films.likes(8), figure="mae", rng=7)
