"""LensKit's pipelines run our neighbourhoods, ours attack its pipelines, and both give the same numbers."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import goodfence as gf
from goodfence.adapters.lenskit import (
    NeighbourScorer,
    NeighbourScorerConfig,
    PrivateScorer,
    PrivateScorerConfig,
    from_lenskit,
    ratings_from_lenskit,
)
from goodfence.adapters.libraries import flatten, library
from goodfence.errors import NotFittedError, SettingError

SINGLE = 1e-6
"""LensKit keeps scores in single precision."""

pytestmark = pytest.mark.adapters("lenskit")

Split = tuple[gf.Ratings, gf.Ratings]


def knn(**settings: Any) -> gf.NeighbourCF:
    return gf.NeighbourCF(gf.KNN(k=20), progress=False, **settings)


def frame(ratings: gf.Ratings) -> Any:
    import pandas as pd

    names = ("user_id", "item_id", "rating")
    return pd.DataFrame(dict(zip(names, flatten(ratings), strict=True)))


def dataset(ratings: gf.Ratings) -> Any:
    from_interactions_df = library("lenskit.data").from_interactions_df

    return from_interactions_df(frame(ratings))


def trained(ratings: gf.Ratings, **settings: Any) -> Any:
    topn_pipeline = library("lenskit.pipeline").topn_pipeline

    scorer = NeighbourScorer(mechanism=gf.KNN(k=20), **settings)
    pipeline = topn_pipeline(scorer, predicts_ratings="raw")
    pipeline.train(dataset(ratings))
    return pipeline


@pytest.mark.parametrize("axis", ["user", "item"])
def test_its_evaluation_gives_our_error(peer: Any, split: Split, axis: Any) -> None:
    predict = library("lenskit.batch").predict
    data = library("lenskit.data")
    metrics = library("lenskit.metrics")

    pipeline = trained(split[0], axis=axis, fallback="item_mean")
    test = data.ItemListCollection.from_df(frame(split[1]), ["user_id"])
    predicted = predict(pipeline, test, n_jobs=1)
    analysis = metrics.RunAnalysis()
    analysis.add_metric(metrics.MAE())
    by_user = analysis.measure(predicted, test).list_metrics()["MAE"]
    model = knn(axis=axis, fallback="item_mean").fit(split[0])
    counts = np.diff(split[1].csr.indptr)
    # LensKit takes the mean of each user's error, we pool: the same errors, weighted by their number.
    pooled = float((by_user.to_numpy() * counts[counts > 0]).sum() / counts.sum())
    assert pooled == pytest.approx(gf.evaluate(model, split[1]).mae, rel=SINGLE)
    users, items, values = flatten(split[1])
    errors = np.abs(model.predict(users, items) - values)
    ours = [errors[users == user].mean() for user in by_user.index]
    assert by_user.to_numpy() == pytest.approx(ours, rel=SINGLE, abs=SINGLE)


def test_its_batch_recommends_what_we_predict_best(peer: Any, split: Split) -> None:
    recommend = library("lenskit.batch").recommend

    users = split[0].users[:20].tolist()
    lists = recommend(trained(split[0]), users, n=5, n_jobs=1)
    model = knn().fit(split[0])
    assert len(lists) == 20
    for key, theirs in lists.items():
        row = split[0].row(key.user_id)
        predicted = model.predict([key.user_id] * split[0].shape[1], split[0].items)
        predicted[split[0].csr[[row]].indices] = np.nan
        best = np.sort(predicted[~np.isnan(predicted)])[::-1][:5]
        assert theirs.scores() == pytest.approx(best, rel=SINGLE)  # equal scores in any order
        assert model.predict([key.user_id] * 5, theirs.ids()) == pytest.approx(theirs.scores(), rel=SINGLE)


def test_a_stranger_is_known_by_her_history(peer: Any, split: Split) -> None:
    data = library("lenskit.data")

    scorer = NeighbourScorer(mechanism={"mechanism": "KNN", "k": 20})
    scorer.train(dataset(split[0]))
    wanted = data.ItemList(item_ids=[*split[0].items[:40].tolist(), "no such film"])
    known = data.ItemList(item_ids=[*split[0].items[40:48].tolist(), "nor this"], rating=[8.0] * 9)
    scored = scorer(data.RecQuery(history_items=known), wanted).scores()
    profile = dict.fromkeys(split[0].items[40:48].tolist(), 8.0)
    ours = knn().fit(split[0]).predict(profile, split[0].items[:40])
    assert scored[:40] == pytest.approx(ours, rel=SINGLE, nan_ok=True)
    assert np.isfinite(scored).any()
    assert np.isnan(scored[40])
    assert np.isnan(scorer(data.RecQuery(user_id=-5), wanted).scores()).all()
    assert np.isnan(scorer(data.RecQuery(history_items=data.ItemList([])), wanted).scores()).all()


def test_settings_survive_a_pipeline_file(peer: Any, split: Split) -> None:
    module = library("lenskit.pipeline")

    scorer = NeighbourScorer(mechanism=gf.PPNS(k=5, beta=3, epsilon=2.0), similarity="pearson")
    pipeline = module.topn_pipeline(scorer)
    text = pipeline.config.model_dump_json()
    again = module.Pipeline.from_config(type(pipeline.config).model_validate_json(text))
    config = again.node("scorer").component.config
    assert config == scorer.config
    assert config.recommender(None).mechanism == gf.PPNS(k=5, beta=3, epsilon=2.0)
    with pytest.raises(Exception, match="has no setting 'kk'; did you mean 'k'"):
        NeighbourScorer(mechanism={"mechanism": "KNN", "kk": 3})


def test_the_seed_is_that_of_the_training_options(peer: Any, split: Split) -> None:
    training = library("lenskit.training")

    def neighbours(seed: int) -> Any:
        scorer = NeighbourScorer(mechanism=gf.NPNS(k=5))
        scorer.train(dataset(split[0]), training.TrainingOptions(rng=seed))
        return scorer.recommender_.neighbours_

    assert np.array_equal(neighbours(1), neighbours(1))
    assert not np.array_equal(neighbours(1), neighbours(2))


def test_it_trains_again_only_when_told_to(peer: Any, split: Split) -> None:
    training = library("lenskit.training")

    scorer = NeighbourScorer(mechanism=gf.KNN(k=5))
    with pytest.raises(NotFittedError):
        scorer(1, None)
    scorer.train(dataset(split[0]), training.TrainingOptions())
    first = scorer.recommender_
    scorer.train(dataset(split[0]), training.TrainingOptions(retrain=False))
    assert scorer.recommender_ is first


def test_its_pipelines_are_evaluated_and_attacked_here(peer: Any, films: gf.Ratings) -> None:
    knn = library("lenskit.knn")
    topn_pipeline = library("lenskit.pipeline").topn_pipeline

    kept, held_out = gf.holdout(films, per_user=1, rng=3)
    pipeline = topn_pipeline(knn.ItemKNNScorer(k=10), predicts_ratings="raw")
    box: Any = from_lenskit(pipeline).fit(kept)
    pipeline.train(dataset(kept))
    users, items, values = flatten(held_out)
    pairs = zip(users.tolist(), items.tolist(), strict=True)
    theirs = [peer.predict(pipeline, user, [item]).scores()[0] for user, item in pairs]
    errors = np.abs(np.array(theirs) - values)
    scores = gf.evaluate(box, held_out)
    assert scores.mae == pytest.approx(np.nanmean(errors), rel=SINGLE)
    assert scores.coverage == np.isfinite(errors).mean()
    report = gf.KNNAttack(known=8, fakes=5).run(films, from_lenskit(pipeline), targets=2, rng=1)
    assert report.n_targets == 2
    assert report.coverage > 0.5


def test_its_data_is_read_with_its_own_ids(peer: Any, films: gf.Ratings) -> None:
    read = ratings_from_lenskit(dataset(films), scale=(0, 10))
    assert read.users.tolist() == films.users.tolist()
    assert read.items.tolist() == films.items.tolist()
    assert (read.csr != films.csr).nnz == 0
    assert read.scale.declared


def test_settings_are_checked() -> None:
    with pytest.raises(SettingError, match="mechanism must be a dataclass"):
        NeighbourScorerConfig(mechanism=3)


THEIR_FIXTURE = pytest.mark.filterwarnings("ignore:Class-scoped fixture defined as instance method")
THEIR_QUERY = pytest.mark.filterwarnings("ignore:user_items is deprecated")
_ScorerTests: Any = library("lenskit.testing").ScorerTests if find_spec("lenskit") else object


@pytest.fixture(scope="module")
def ml_ratings(films: gf.Ratings) -> Any:
    """Real ratings of numbered items, where LensKit's own tests look for MovieLens."""
    numbered = gf.Ratings(films.csr, films.users, range(films.shape[1]), films.scale)
    return frame(numbered).assign(timestamp=np.arange(films.n_ratings) % 9973)


@pytest.fixture(scope="module")
def ml_ds(ml_ratings: Any) -> Any:
    return library("lenskit.data").from_interactions_df(ml_ratings)


@pytest.fixture(scope="module")
def ml_100k(ml_ratings: Any) -> Any:
    """Return what is only asked for where an error is expected."""
    return ml_ratings


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LK_NUM_PROCS", "1")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@THEIR_FIXTURE
@THEIR_QUERY
class TestPrivateRatings(_ScorerTests):  # type: ignore[misc]  # of a library that may be missing
    """All of LensKit's tests of a scorer, for predicted ratings."""

    component = PrivateScorer
    config = PrivateScorerConfig(gf.PrivateCF(epsilon=1.0, items="from ratings"), scale=(0, 10))
    can_score = "known"
    expected_rmse = 1.5
    expected_ndcg = 0.01


@THEIR_FIXTURE
@THEIR_QUERY
class TestPrivateLists(_ScorerTests):  # type: ignore[misc]
    """And for lists of events."""

    component = PrivateScorer
    config = PrivateScorerConfig(gf.PrivateTopN(epsilon=1.0, items="from ratings"))
    can_score = "known"
    expected_ndcg = 0.15
    test_batch_prediction_accuracy = None


def test_a_private_scorer_gives_our_predictions(peer: Any, films: gf.Ratings) -> None:
    data, pipelines = dataset(films), library("lenskit.pipeline")
    public = films.items.tolist()
    scorer = PrivateScorer(model=gf.PrivateCF(epsilon=1.0, catalogue=public), scale=(0, 10))
    assert PrivateScorerConfig(**vars(scorer.config)) == scorer.config
    assert scorer.config.model["catalogue"] == public
    pipeline = pipelines.topn_pipeline(scorer, predicts_ratings=True)
    pipeline.train(data)
    fitted = pipeline.component("scorer").recommender_
    assert fitted.guarantee().status == "proved"
    user = films.users[0]
    theirs = peer.predict(pipeline, user, public[:50]).scores()
    assert theirs == pytest.approx(fitted.predict([user] * 50, public[:50]), rel=SINGLE)
    pipeline.train(data, library("lenskit.training").TrainingOptions(rng=7))
    assert pipeline.component("scorer").recommender_.guarantee().status == "none"
