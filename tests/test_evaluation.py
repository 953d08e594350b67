from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import pytest

import goodfence as gf
from goodfence.models.recommender import Recommendations
from goodfence.neighbours.candidate_lists import Axis
from tests.support.strategies import from_rows


class Fixed:
    """A recommender that always predicts 3 for even items and nothing for odd ones, and lists items 0, 1."""

    def predict(self, _users: np.ndarray, items: np.ndarray) -> np.ndarray:
        return np.where(np.asarray(items) % 2 == 0, 3.0, np.nan)

    def recommend(self, _user: int, n: int = 10) -> Recommendations:
        return Recommendations(np.array([0, 1])[:n], np.array([3.0, 3.0])[:n])


def test_scores_derived_by_hand() -> None:
    """Items 0, 2 are predicted as 3 against 5 and 2: errors 2 and 1; item 1 gets no prediction.

    Lists are (0, 1). User 0 held out {0, 1}: both found, NDCG 1, recall 1. User 1 held out {2}: nothing found.
    """
    test = from_rows([{0: 5, 1: 4}, {2: 2}], 3)
    scores = gf.evaluate(cast(Any, Fixed()), test, n=2)
    assert scores.mae == 1.5
    assert scores.rmse == pytest.approx(math.sqrt(2.5))
    assert scores.coverage == pytest.approx(2 / 3)
    assert (scores.n, scores.top) == (3, 2)
    assert scores.ndcg == 0.5
    assert scores.recall == 0.5


def test_gains_fall_with_the_logarithm_of_the_place() -> None:
    """The list is (0, 1). User 0 held out {1}: found in the second place, 1 / log2(3) of the best, 1.

    User 1 held out {1, 2}: again in the second place, and the best is 1 + 1 / log2(3); one of two is found. User 2 held
    out nothing and does not count.
    """
    test = from_rows([{1: 5}, {1: 4, 2: 2}, {}], 3)
    scores = gf.evaluate(cast(Any, Fixed()), test, n=2)
    second = 1 / math.log2(3)
    assert scores.ndcg == pytest.approx((second + second / (1 + second)) / 2)
    assert scores.recall == 0.75
    one = gf.evaluate(cast(Any, Fixed()), from_rows([{0: 5, 1: 1}], 3), n=1)
    assert (one.ndcg, one.recall) == (1.0, 0.5)


def test_figures_of_lists_derived_by_hand() -> None:
    """The list is (0, 1), with n=4 two places are empty. User 0 held out {1}, user 1 {1, 2, 3}, user 2 {3}."""
    test = from_rows([{1: 5}, {1: 4, 2: 2, 3: 1}, {3: 5}], 4)
    scores = gf.evaluate(cast(Any, Fixed()), test, n=4)
    assert scores.precision == pytest.approx((1 / 4 + 1 / 4 + 0) / 3)
    assert scores.recall == pytest.approx((1 + 1 / 3 + 0) / 3)
    assert scores.hit_rate == pytest.approx(2 / 3)
    assert scores.mrr == pytest.approx((1 / 2 + 1 / 2 + 0) / 3)
    assert scores.map == pytest.approx((1 / 2 + 1 / 2 / 3 + 0) / 3)
    assert scores.catalogue_coverage == 2 / 4
    assert scores.mean_popularity is None  # what it was fitted to is not known
    assert scores.intervals is not None
    low, high = scores.intervals["hit_rate"]
    # mean 2/3, deviation sqrt(1/3), t of 2 degrees of freedom 4.3027
    assert (low, high) == (0.0, 1.0)
    low, high = scores.intervals["precision"]
    assert high == pytest.approx(1 / 6 + 4.30265 * math.sqrt(1 / 48) / math.sqrt(3), abs=1e-5)
    assert "intervals" in scores.to_dict()
    assert "precision" in scores._repr_html_()


def test_lists_are_no_longer_than_the_catalogue() -> None:
    test = from_rows([{1: 5}, {1: 4, 2: 2}], 3)
    with pytest.raises(gf.SettingError, match="n must be an integer of at most 3"):
        gf.evaluate(cast(Any, Fixed()), test, n=4)


def films_and_lists() -> tuple[gf.Ratings, gf.Ratings]:
    train, test = gf.holdout(gf.load("movietweetings").likes(8), fraction=0.3, rng=7)
    return train, test


def test_events_have_lists_and_no_error() -> None:
    train, test = films_and_lists()
    scores = gf.evaluate(gf.NeighbourCF(gf.KNN(k=30)).fit(train), test)
    assert math.isnan(scores.mae)
    assert math.isnan(scores.coverage)
    assert scores.top == 10
    popular = gf.evaluate(gf.Popularity().fit(train), test)
    for one in (scores, popular):
        assert one.intervals is not None
        for name, (low, high) in one.intervals.items():
            assert low < getattr(one, name) < high
    assert cast(float, popular.mean_popularity) > cast(float, scores.mean_popularity)
    assert cast(float, popular.catalogue_coverage) < cast(float, scores.catalogue_coverage)
    counts = np.bincount(train.csr.indices, minlength=train.shape[1]) / train.shape[0]
    assert cast(float, popular.mean_popularity) <= np.sort(counts)[-10:].mean()
    assert repr(popular).startswith("Scores(n=")


def test_what_a_model_of_ratings_lists_is_compared_with_likes() -> None:
    train, test = gf.holdout(gf.load("movietweetings"), fraction=0.3, rng=7)
    model = gf.NeighbourCF(gf.KNN(k=30)).fit(train)
    likes, everything = (gf.evaluate(model, part, n=10) for part in (test.likes(8), test))
    assert math.isnan(likes.mae)
    assert everything.mae > 0
    assert likes.n < everything.n


def test_figures_are_those_of_ir_measures() -> None:
    """Lists of a model with gaps in them, against a library that information retrieval uses."""
    import ir_measures
    from ir_measures import AP, RR, P, R, Success, nDCG

    train, test = films_and_lists()
    model = gf.NeighbourCF(gf.KNN(k=3), axis="item").fit(train)
    lists = model.recommend_many(n=10)
    assert (lists.columns < 0).any()
    csr = test.csr
    relevant = [
        ir_measures.Qrel(str(row), str(column), 1)
        for row in range(csr.shape[0])
        for column in csr.indices[csr.indptr[row] : csr.indptr[row + 1]]
    ]
    run = [
        ir_measures.ScoredDoc(str(row), str(column), 10.0 - rank)
        for row, own in enumerate(lists.columns.tolist())
        for rank, column in enumerate(own)
        if column >= 0
    ]
    theirs = ir_measures.calc_aggregate([nDCG @ 10, R @ 10, P @ 10, Success @ 10, RR @ 10, AP @ 10], relevant, run)
    scores = gf.evaluate(model, test, n=10)
    ours = {
        nDCG @ 10: scores.ndcg,
        R @ 10: scores.recall,
        P @ 10: scores.precision,
        Success @ 10: scores.hit_rate,
        RR @ 10: scores.mrr,
        AP @ 10: scores.map,
    }
    for measure, value in ours.items():
        assert value == pytest.approx(theirs[measure], abs=1e-9), str(measure)


def test_lists_of_nobody_have_no_score() -> None:
    scores = gf.evaluate(cast(Any, Fixed()), from_rows([{}, {}], 3), n=2)
    assert np.isnan(np.array([scores.ndcg, scores.recall], dtype=float)).all()


def test_no_lists_unless_asked() -> None:
    scores = gf.evaluate(cast(Any, Fixed()), from_rows([{0: 5}], 3))
    assert scores.ndcg is None
    assert scores.recall is None


def test_the_paper_protocol_is_the_model_on_its_own_ratings() -> None:
    ratings = gf.synthetic(users=80, items=50, ratings=1_500, rng=4)
    axes: tuple[Axis, ...] = ("user", "item")
    for axis in axes:
        model = gf.NeighbourCF(gf.KNN(k=5), axis=axis).fit(ratings)
        everybody = gf.papers.paper_protocol(ratings, gf.KNN(k=5), axis=axis, targets=1000)
        scores = gf.evaluate(model, ratings)
        assert scores.n == everybody.n
        assert scores.mae == pytest.approx(everybody.mae, rel=1e-12)
        assert scores.coverage == everybody.coverage


def test_targets_by_number_or_by_id() -> None:
    ratings = gf.synthetic(users=80, items=50, ratings=1_500, rng=4)
    by_id = gf.papers.paper_protocol(ratings, gf.KNN(k=5), targets=ratings.users[:7])
    assert by_id.n == int(ratings.csr.indptr[7])
    drawn = [gf.papers.paper_protocol(ratings, gf.PPNS(k=5, beta=2), targets=9, rng=1) for _ in range(2)]
    assert drawn[0] == drawn[1]


@pytest.mark.real
@pytest.mark.parametrize(
    ("axis", "k", "mae", "coverage"),
    [
        ("user", 100, 0.793473, 0.99390),
        ("item", 100, 0.760466, 0.99966),
        ("user", 50, 0.795778, 0.98782),
        ("item", 50, 0.747178, 0.99800),
    ],
)
def test_knn_over_all_of_movielens(axis: Axis, k: int, mae: float, coverage: float) -> None:
    scores = gf.papers.paper_protocol(gf.load("ml-100k"), gf.KNN(k=k), axis=axis, targets=10_000)
    assert scores.n == 100_000
    assert scores.mae == pytest.approx(mae, abs=1e-5)
    assert scores.coverage == pytest.approx(coverage, abs=1e-5)
