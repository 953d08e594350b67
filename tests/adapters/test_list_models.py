"""Lists of other libraries under our attack: neighbourhoods give their people away, and popularity does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import goodfence as gf
from goodfence.adapters.lenskit import from_lenskit
from goodfence.adapters.libraries import from_implicit, library
from goodfence.adapters.rectools import from_rectools
from goodfence.attack.refits import listed_columns

ATTACK = gf.ListAttack(known=6, n=10, fakes=5)


@pytest.fixture(scope="module")
def likes(films: gf.Ratings) -> gf.Ratings:
    """What these people rated 7 or better."""
    return films.likes(7)


def require_lists(box: Any, likes: gf.Ratings) -> None:
    """Require that everybody asked is shown ten items that they do not have, different ones."""
    fitted = box.fit(likes)
    for row in range(0, likes.shape[0], 40):
        held = likes.csr.indices[likes.csr.indptr[row] : likes.csr.indptr[row + 1]]
        told = fitted.recommend(likes.users[row], 10)
        listed = listed_columns(told, likes, np.empty(0, dtype=np.int64), 10)
        assert (listed >= 0).all()
        assert not np.isin(listed, held).any()


@pytest.mark.adapters("implicit")
def test_models_of_implicit_list_and_are_attacked(likes: gf.Ratings) -> None:
    nearest = library("implicit.nearest_neighbours")
    box = from_implicit(nearest.CosineRecommender(K=20, num_threads=1))
    require_lists(box, likes)
    report = ATTACK.run(likes, box, targets=4, rng=7)
    assert report.n_targets == 4
    assert report.with_target.listed.sum() > 0


@pytest.mark.adapters("implicit")
def test_factors_of_implicit_get_the_seed_of_the_target(likes: gf.Ratings) -> None:
    als = library("implicit.als")
    model = als.AlternatingLeastSquares(factors=8, iterations=3, num_threads=1)
    box = from_implicit(model)
    box.rng = 3
    once, again = (box.fit(likes).recommend(likes.users[3], 10).tolist() for _ in range(2))
    assert once == again


@pytest.mark.adapters("lenskit")
def test_pipelines_of_lenskit_list_and_are_attacked(likes: gf.Ratings) -> None:
    """User-based kNN with five neighbours: five fakes and the target are each other's."""
    knn, pipeline = library("lenskit.knn"), library("lenskit.pipeline")
    scorer = knn.UserKNNScorer(max_nbrs=5, feedback="implicit")
    box = from_lenskit(pipeline.topn_pipeline(scorer), asks="lists")
    popular = pipeline.topn_pipeline(library("lenskit.basic").PopScorer())
    require_lists(from_lenskit(popular, asks="lists"), likes)
    report = ATTACK.run(likes, box, targets=4, rng=7)
    assert report.precision > report.precision_without


@pytest.mark.adapters("rectools")
def test_models_of_rectools_list_and_are_attacked(likes: gf.Ratings) -> None:
    box = from_rectools(library("rectools.models").PopularModel())
    require_lists(box, likes)
    report = ATTACK.run(likes, box, targets=3, rng=7)
    assert report.advantage < 0.2


@pytest.mark.adapters("rectools")
def test_ease_of_rectools_lists_what_ours_does(likes: gf.Ratings) -> None:
    theirs = from_rectools(library("rectools.models").EASEModel(regularization=100.0)).fit(likes)
    ours = gf.EASE(regularisation=100.0).fit(likes)
    same = [
        len(set(theirs.recommend(user, 10)) & set(ours.recommend(user, 10).items.tolist()))
        for user in likes.users[::25]
    ]
    assert np.mean(same) > 9
