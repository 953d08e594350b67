"""RecTools's own tools run our private models, with the lists and figures that ours give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import goodfence as gf
from goodfence.adapters.libraries import flatten, library
from goodfence.adapters.rectools import RecommenderModel

pytestmark = pytest.mark.adapters("rectools")
TOP = gf.PrivateTopN(epsilon=2.0, items="from ratings", rng=7)
CF = gf.PrivateCF(epsilon=2.0, items="from ratings", rng=7)


def dataset(ratings: gf.Ratings) -> Any:
    import pandas as pd

    users, items, values = flatten(ratings)
    times = np.arange(len(users)).astype("datetime64[s]").astype("datetime64[ns]")
    columns = {"user_id": users, "item_id": items, "weight": values, "datetime": times}
    return library("rectools.dataset").Dataset.construct(pd.DataFrame(columns))


def lists(model: Any, data: Any, users: Any, **how: Any) -> dict[Any, list[Any]]:
    told = model.recommend(users=users, dataset=data, **{"k": 10, "filter_viewed": True, **how})
    ordered = told.sort_values(["user_id", "rank"])
    return {user: rows["item_id"].tolist() for user, rows in ordered.groupby("user_id")}


@pytest.mark.parametrize("ours", [TOP, CF], ids=repr)
def test_its_lists_are_ours(peer: Any, films: gf.Ratings, ours: Any) -> None:
    ratings = films.likes(7) if ours is TOP else films
    data, users = dataset(ratings), films.users[:30]
    theirs = RecommenderModel(ours, scale=None if ours is TOP else (0, 10)).fit(data)
    model = theirs.recommender_
    assert lists(theirs, data, users) == {user: model.recommend(user).items.tolist() for user in users.tolist()}
    few = np.sort(films.items[:40])
    narrowed = lists(theirs, data, users, items_to_recommend=few)
    assert narrowed == {user: model.recommend(user, allowed=few).items.tolist() for user in users.tolist()}
    whole = lists(theirs, data, users, filter_viewed=False, k=ratings.shape[1])
    assert all(len(one) > len(model.recommend(user, ratings.shape[1]).items) for user, one in whole.items())
    assert lists(theirs, data, users, filter_viewed=False, items_to_recommend=few).keys() == narrowed.keys()


def test_its_cross_validation_gives_our_recall(peer: Any, films: gf.Ratings) -> None:
    validation, metrics = library("rectools.model_selection"), library("rectools.metrics")
    likes = films.likes(7)
    splitter = validation.LastNSplitter(n=1, n_splits=1)
    data = dataset(likes)
    told = validation.cross_validate(
        data, splitter, {"recall": metrics.Recall(k=10)}, {"ours": RecommenderModel(TOP)}, k=10, filter_viewed=True
    )
    times = np.arange(likes.n_ratings)
    train, test = gf.holdout(likes.replaced(likes.csr, times), by="time", per_user=1)
    kept = np.flatnonzero(np.bincount(train.csr.indices, minlength=train.shape[1]))
    parts = [gf.Ratings(part.csr[:, kept], part.users, part.items[kept], feedback="implicit") for part in (train, test)]
    ours = gf.evaluate(gf.PrivateTopN(epsilon=2.0, items="from ratings", rng=7).fit(parts[0]), parts[1])
    assert told["metrics"][0]["recall"] == pytest.approx(ours.recall, abs=1e-12)


@pytest.mark.parametrize("ours", [TOP, CF, gf.PrivateTopN(epsilon=1.0, catalogue=["a", "b"])], ids=repr)
def test_settings_and_models_survive(peer: Any, films: gf.Ratings, ours: Any, tmp_path: Any) -> None:
    model = RecommenderModel(ours, scale=(0, 10))
    for simple in (False, True):
        config = model.get_config(simple_types=simple)
        assert RecommenderModel.from_config(config).get_config(simple_types=simple) == config
    if ours.catalogue is None:
        data = dataset(films.likes(7) if ours is TOP else films)
        model.fit(data).save(tmp_path / "model")
        again = RecommenderModel.load(tmp_path / "model")
        assert lists(again, data, films.users[:5]) == lists(model, data, films.users[:5])
