"""Predictions and recommendations on Spark are those of the local engine, of arrays and of data frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import goodfence as gf
from goodfence import spark as engine
from goodfence.errors import DataError, SettingError, UnknownId
from goodfence.spark import shuffle
from goodfence.spark.messages import ChunkFacts
from tests.support.frames import table_of

pytestmark = pytest.mark.spark

FILMS = gf.synthetic(users=200, items=50, ratings=3_000, rng=2)


@pytest.mark.parametrize(("axis", "over"), [("user", "neighbours"), ("item", "raters")])
def test_predictions_and_recommendations(spark: Any, axis: Any, over: Any) -> None:
    same_answers(spark, axis, over)


def test_predictions_while_tasks_fail(spark: Any, failing: None) -> None:
    same_answers(spark, "user", "raters")


def same_answers(spark: Any, axis: Any, over: Any) -> None:
    ratings = gf.Ratings.from_frame(table_of(gf.synthetic(users=300, items=120, ratings=5_000, rng=1)))
    n_users, n_items = ratings.shape
    model = gf.NeighbourCF(gf.PNCF(k=10, epsilon=2.0), axis=axis, over=over, rng=7).fit(ratings)
    frame, chance = spark.createDataFrame(table_of(ratings)), np.random.default_rng(0)
    cells = chance.integers(0, n_users, 2000), chance.integers(0, n_items, 2000)
    table = pa.table({"user": ratings.users[cells[0]], "item": ratings.items[cells[1]]})
    config = engine.SparkConfig(spark=spark, block_rows=110)
    chosen = engine.choose_neighbours(frame, model.mechanism, axis=axis, rng=7, config=config)
    asked = spark.createDataFrame(table)
    found = engine.predict(frame, chosen, asked, axis=axis, over=over, config=config).toArrow()
    local = model.predict(found["user"].to_pylist(), found["item"].to_pylist())
    assert found.num_rows == 2000
    assert np.array_equal(found["prediction"].to_numpy(), local, equal_nan=True)
    without = np.isnan(local) if over == "raters" else local == 0  # [PRED] as printed gives 0
    assert 0 < without.mean() < 1
    best = engine.recommend(frame, chosen, n=7, axis=axis, config=config).orderBy("user", "rank").toArrow()
    wanted = model.recommend_many(n=7).table()
    assert best["item"].to_pylist() == wanted["item"].to_pylist()
    ranked = model._rank_rows(np.arange(n_users), 7, np.ones(n_items, dtype=np.bool_))
    assert np.array_equal(best["score"].to_numpy(), ranked.scores[ranked.columns >= 0])


@pytest.mark.parametrize("axis", ["user", "item"])
def test_everything_with_data_frames_alone(spark: Any, monkeypatch: pytest.MonkeyPatch, axis: Any) -> None:
    """Text ids that Unicode, case and length sort differently; the same answers by the caller's own ids."""
    plain = gf.synthetic(users=150, items=60, ratings=2_000, rng=3)
    users = [f"{'aZé𝄞'[i % 4]}{i % 13}-{i}" for i in range(150)]
    table = table_of(gf.Ratings(plain.csr, users, plain.items, plain.scale))
    ratings = gf.Ratings.from_frame(table)
    frame = spark.createDataFrame(table).repartition(5)
    collect = shuffle.collect

    def only_facts(frame: Any, kind: Any) -> Any:
        assert kind is ChunkFacts, "messages came to the driver"
        return collect(frame, kind)

    monkeypatch.setattr(shuffle, "collect", only_facts)
    config = engine.SparkConfig(spark=spark, block_rows=70)
    model = gf.NeighbourCF(gf.PPNS(k=8, beta=3), axis=axis, rng=7).fit(ratings)
    chosen = engine.choose_neighbours(frame, model.mechanism, axis=axis, rng=7, config=config)
    rows = chosen.orderBy("row").toArrow()
    assert np.array_equal(np.array(rows["neighbours"].to_pylist()), model.neighbours_)
    asked = spark.createDataFrame(table.select(["user", "item"]).slice(0, 200))
    predicted = engine.predict(frame, chosen, asked, axis=axis, config=config).toArrow()
    wanted = model.predict(predicted["user"].to_pylist(), predicted["item"].to_pylist())
    assert predicted.num_rows == 200
    assert np.array_equal(predicted["prediction"].to_numpy(), wanted, equal_nan=True)
    best = engine.recommend(frame, chosen, n=4, axis=axis, config=config)
    found = best.orderBy("user", "rank").toArrow().to_pylist()
    for user in ratings.users[:20].tolist():
        own = [one["item"] for one in found if one["user"] == user]
        assert own == model.recommend(user, n=4).items.tolist()


def test_what_is_wrong_with_what_is_asked(spark: Any) -> None:
    frame = spark.createDataFrame(table_of(FILMS))
    chosen = engine.choose_neighbours(frame, gf.KNN(k=5), spark=spark)
    nobody = spark.createDataFrame([(-77, 0)], "user long, item long")
    here: Any = FILMS
    number: Any = 7
    with pytest.raises(UnknownId) as caught:
        engine.predict(frame, chosen, nobody, spark=spark)
    assert "77" not in str(caught.value)
    with pytest.raises(DataError, match="both be of Spark"):
        engine.predict(here, chosen, nobody, spark=spark)
    with pytest.raises(DataError, match="got int"):
        engine.candidate_lists(number, n=5, spark=spark)
    with pytest.raises(SettingError, match="n must be at most 199"):
        engine.candidate_lists(frame, n=200, spark=spark)
