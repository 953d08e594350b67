"""Surprise's own evaluation runs our recommenders, ours runs its algorithms, and both give the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import goodfence as gf
from benchmarks.library_defaults import surprise_knn
from goodfence.adapters.libraries import flatten, library
from goodfence.adapters.surprise import RecommenderAlgo, from_surprise, ratings_from_surprise
from goodfence.errors import DataError

pytestmark = pytest.mark.adapters("surprise")

Split = tuple[gf.Ratings, gf.Ratings]


def knn(**settings: Any) -> gf.NeighbourCF:
    return gf.NeighbourCF(gf.KNN(k=20), progress=False, **settings)


def raw(ratings: gf.Ratings) -> list[tuple[Any, Any, float, None]]:
    columns = (column.tolist() for column in flatten(ratings))
    return [(user, item, value, None) for user, item, value in zip(*columns, strict=True)]


def dataset(surprise: Any, ratings: gf.Ratings) -> Any:
    import pandas as pd

    columns = dict(zip(("user", "item", "rating"), flatten(ratings), strict=True))
    reader = surprise.Reader(rating_scale=(0, 10))
    return surprise.Dataset.load_from_df(pd.DataFrame(columns), reader)


class OneFold:
    """A split of ours as Surprise's cross-validation wants it."""

    def __init__(self, split: Split) -> None:
        self.split_ = split

    def split(self, data: Any) -> Iterator[tuple[Any, Any]]:
        kept, held_out = self.split_
        yield data.construct_trainset(raw(kept)), data.construct_testset(raw(held_out))


@pytest.mark.parametrize("axis", ["user", "item"])
def test_its_cross_validation_gives_our_error(peer: Any, films: gf.Ratings, split: Split, axis: Any) -> None:
    cross_validate = library("surprise.model_selection").cross_validate

    algo = RecommenderAlgo(knn(axis=axis))
    data = dataset(peer, films)
    theirs = cross_validate(algo, data, measures=["mae", "rmse"], cv=OneFold(split))
    ours = gf.evaluate(knn(axis=axis, fallback="global_mean").fit(split[0]), split[1])
    assert theirs["test_mae"][0] == pytest.approx(ours.mae, abs=1e-9)
    assert theirs["test_rmse"][0] == pytest.approx(ours.rmse, abs=1e-9)


def test_what_we_cannot_predict_is_impossible_there(peer: Any, films: gf.Ratings, split: Split) -> None:
    trainset, testset = next(OneFold(split).split(dataset(peer, films)))
    algo = RecommenderAlgo(knn()).fit(trainset)
    made = algo.test(testset)
    possible = np.array([not one.details["was_impossible"] for one in made])
    errors = np.array([abs(one.est - one.r_ui) for one in made])
    ours = gf.evaluate(knn().fit(split[0]), split[1])
    assert 0 < ours.coverage < 1
    assert possible.mean() == ours.coverage
    assert errors[possible].mean() == pytest.approx(ours.mae, abs=1e-12)
    # One by one, as somebody asks who has no test set.
    for one in made[:50]:
        assert algo.predict(one.uid, one.iid).est == pytest.approx(one.est, abs=1e-12)
    assert algo.predict("nobody", made[0].iid).details["was_impossible"]
    assert not hasattr(algo.recommender, "neighbours_")  # a copy was fitted


def test_its_grid_of_folds_runs(peer: Any, films: gf.Ratings) -> None:
    model_selection = library("surprise.model_selection")
    cross_validate = model_selection.cross_validate

    folds = model_selection.KFold(n_splits=3, random_state=1)
    theirs = cross_validate(RecommenderAlgo(knn()), dataset(peer, films), measures=["mae"], cv=folds)
    ours = []
    for trainset, testset in folds.split(dataset(peer, films)):
        model = knn(fallback="global_mean").fit(ratings_from_surprise(trainset))
        known = [
            one for one in testset if one[0] in trainset._raw2inner_id_users and one[1] in trainset._raw2inner_id_items
        ]
        users, items, values = zip(*known, strict=True)
        errors = np.abs(model.predict(users, items) - np.array(values)).tolist()
        errors += [abs(trainset.global_mean - one[2]) for one in testset if one not in known]
        ours.append(np.mean(errors))
    assert theirs["test_mae"] == pytest.approx(ours, abs=1e-9)


def test_its_algorithm_evaluated_here_has_its_own_error(peer: Any, films: gf.Ratings, split: Split) -> None:
    algo = peer.KNNBasic(k=20, verbose=False)
    trainset, testset = next(OneFold(split).split(dataset(peer, films)))
    predictions = algo.fit(trainset).test(testset)
    possible = [one for one in predictions if not one.details["was_impossible"]]
    box: Any = from_surprise(peer.KNNBasic(k=20, verbose=False)).fit(split[0])
    ours = gf.evaluate(box, split[1])
    assert ours.mae == pytest.approx(peer.accuracy.mae(possible, verbose=False), abs=1e-12)
    assert ours.coverage == len(possible) / len(predictions)


def test_its_nearest_neighbours_give_people_away(peer: Any, films: gf.Ratings) -> None:
    options = {"name": "cosine", "user_based": True}
    box = from_surprise(peer.KNNBasic(k=10, sim_options=options, verbose=False))
    report = gf.KNNAttack(known=8, fakes=10).run(films, box, targets=6, rng=2)
    biases = from_surprise(peer.BaselineOnly(verbose=False))
    blunt = gf.KNNAttack(known=8, fakes=10).run(films, biases, targets=6, rng=2)
    assert report.n_targets == 6
    assert report.exact > 2 * report.estimates["exact_without"].value > 0
    assert report.advantage > blunt.advantage
    assert blunt.exact == 0


def test_a_seed_is_handed_on(peer: Any, films: gf.Ratings, split: Split) -> None:
    svd = from_surprise(peer.SVD(n_factors=2, n_epochs=2))
    users, items, _ = flatten(split[1])
    svd.rng = 3
    first = svd.fit(split[0]).predict(users, items)
    assert np.array_equal(first, svd.fit(split[0]).predict(users, items))
    svd.rng = 4
    assert not np.array_equal(first, svd.fit(split[0]).predict(users, items))


def test_its_data_is_read_with_its_own_ids(peer: Any, films: gf.Ratings) -> None:
    data = dataset(peer, films)
    for read in (ratings_from_surprise(data), ratings_from_surprise(data.build_full_trainset())):
        assert read.users.tolist() == films.users.tolist()
        assert read.items.tolist() == films.items.tolist()
        assert (read.csr != films.csr).nnz == 0
        assert str(read.scale) == "integers 0-10 (observed)"
    assert ratings_from_surprise(data, scale=(0, 10)).scale.declared
    with pytest.raises(DataError):
        ratings_from_surprise(data, scale=(1, 5))


@pytest.mark.parametrize("name", ["KNNBasic", "KNNWithMeans", "KNNBaseline"])
def test_similarities_when_asked_for_are_those_of_all_pairs(peer: Any, films: gf.Ratings, name: str) -> None:
    """The table of what practice leaks computes only the rows of those who ask: every answer is the same."""
    rng = np.random.default_rng(7)
    users, items = (rng.choice(ids, 400) for ids in (films.users[:40], films.items))
    whole = from_surprise(getattr(peer, name)(verbose=False)).fit(films).predict(users, items)
    asked = surprise_knn(name).fit(films).predict(users, items)
    assert np.isfinite(asked).sum() > 200
    np.testing.assert_array_equal(asked, whole)
