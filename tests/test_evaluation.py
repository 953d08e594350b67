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
    scores = gf.evaluate(cast(Any, Fixed()), test, top=2)
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
    scores = gf.evaluate(cast(Any, Fixed()), test, top=2)
    second = 1 / math.log2(3)
    assert scores.ndcg == pytest.approx((second + second / (1 + second)) / 2)
    assert scores.recall == 0.75
    one = gf.evaluate(cast(Any, Fixed()), from_rows([{0: 5, 1: 1}], 3), top=1)
    assert (one.ndcg, one.recall) == (1.0, 0.5)


def test_lists_of_nobody_have_no_score() -> None:
    scores = gf.evaluate(cast(Any, Fixed()), from_rows([{}, {}], 3), top=2)
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
        everybody = gf.paper_protocol(ratings, gf.KNN(k=5), axis=axis, targets=1000)
        scores = gf.evaluate(model, ratings)
        assert scores.n == everybody.n
        assert scores.mae == pytest.approx(everybody.mae, rel=1e-12)
        assert scores.coverage == everybody.coverage


def test_targets_by_number_or_by_id() -> None:
    ratings = gf.synthetic(users=80, items=50, ratings=1_500, rng=4)
    by_id = gf.paper_protocol(ratings, gf.KNN(k=5), targets=ratings.users[:7])
    assert by_id.n == int(ratings.csr.indptr[7])
    drawn = [gf.paper_protocol(ratings, gf.PPNS(k=5, beta=2), targets=9, rng=1) for _ in range(2)]
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
    scores = gf.paper_protocol(gf.load("ml-100k"), gf.KNN(k=k), axis=axis, targets=10_000)
    assert scores.n == 100_000
    assert scores.mae == pytest.approx(mae, abs=1e-5)
    assert scores.coverage == pytest.approx(coverage, abs=1e-5)
