"""The Spark engine gives what the local engine gives, to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import goodfence as gf
from goodfence.engines import spark as engine
from goodfence.engines.local import draws, predictions, recommendations
from goodfence.engines.spark import numbering, parcels, source
from goodfence.engines.spark.parcels import Shorten, Work
from goodfence.selection.mechanism import Mechanism
from tests.spark.frames import frame_of_lists, table_of

pytestmark = pytest.mark.spark

MECHANISMS: dict[str, Mechanism] = {
    "KNN": gf.KNN(k=10),
    "PPNS": gf.PPNS(k=10, beta=5),
    "NPNS": gf.NPNS(k=10),
    "PNCF": gf.PNCF(k=10, epsilon=2.0),
    "pair": gf.PPNS(k=10, beta=3, sensitivity=gf.Sensitivity(scope="pair")),
    "derived": gf.PPNS(k=10, beta=3, sensitivity=gf.Sensitivity(reading="derived")),
}


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Let the first attempt of a part of all tasks fail, when their work is done and only sending is left."""
    each = parcels.each
    marks = tmp_path / "failed"
    marks.mkdir()

    def failing_once(frame: Any, work: Work, shorten: Shorten | None = None) -> Any:
        def broken(place: int, arrived: list[Any]) -> Any:
            from pyspark import TaskContext

            context = TaskContext.get()
            for number, sent in enumerate(work(place, arrived)):
                unlucky = place % 5 == 1 and number == 0
                if unlucky and context is not None and context.attemptNumber() == 0:
                    marks.joinpath(f"{context.taskAttemptId()}").touch()
                    raise RuntimeError("injected")
                yield sent

        return each(frame, broken, shorten)

    monkeypatch.setattr(parcels, "each", failing_once)
    yield
    assert len(list(marks.iterdir())) >= 2, "no task failed"


def same_lists(found: Any, local: Any) -> None:
    assert (found.indices == local.indices).all()
    assert (found.similarities == local.similarities).all()


@pytest.mark.real("ml-1m")
@pytest.mark.real("douban-movie")
@pytest.mark.parametrize(("data", "block_rows"), [("ml-1m", None), ("douban-movie", 5000)])
def test_real_lists_while_tasks_fail(
    spark: Any, failing: None, data: str, block_rows: int | None
) -> None:
    ratings = gf.load(data)
    running = engine.Running(spark=spark, block_rows=block_rows)
    same_lists(
        engine.candidate_lists(ratings, n=100, running=running), gf.candidate_lists(ratings, n=100)
    )


@pytest.mark.real("ml-1m")
@pytest.mark.real("douban-movie")
@pytest.mark.parametrize(
    ("data", "axis", "parts"), [("ml-1m", "item", 7), ("douban-movie", "user", 3)]
)
def test_real_lists_of_a_data_frame(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str, axis: Any, parts: int
) -> None:
    """Everything passes through the shuffle, as on a cluster of many machines."""
    monkeypatch.setattr(source, "staying_here", lambda _: nullcontext())
    ratings = gf.load(data)
    pq.write_table(table_of(ratings), tmp_path / "ratings.parquet", row_group_size=200_000)
    monkeypatch.setattr(parcels, "collected", forbidden)
    frame = spark.read.parquet(str(tmp_path)).repartition(parts)
    found = engine.candidate_lists(frame, n=60, axis=axis, spark=spark)
    ids = ratings.users if axis == "user" else ratings.items
    same_lists(frame_of_lists(found, ids), gf.candidate_lists(ratings, n=60, axis=axis))
    found.unpersist()


def test_lists_of_a_data_frame_while_tasks_fail(
    spark: Any, failing: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every other partition is lost once, when its ratings have all been read; ids do not fit in one task."""
    monkeypatch.setattr(numbering, "_TIMES", 100_000)
    ratings = gf.load("movietweetings")
    marks = tmp_path / "lost"
    marks.mkdir()

    def lost_once(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        yield from batches
        context = TaskContext.get()
        if context is not None and context.partitionId() % 2 and context.attemptNumber() == 0:
            marks.joinpath(f"{context.taskAttemptId()}").touch()
            raise RuntimeError("injected")

    frame = spark.createDataFrame(table_of(ratings)).repartition(5)
    with parcels.without_advice():
        frame = frame.mapInArrow(lost_once, frame.schema)
    running = engine.Running(spark=spark, block_rows=300)
    found = engine.candidate_lists(frame, n=40, running=running)
    same_lists(frame_of_lists(found, ratings.users), gf.candidate_lists(ratings, n=40))
    assert len(list(marks.iterdir())) >= 2, "no partition was lost"
    files = [Path(one.removeprefix("file://")) for one in found.inputFiles()]
    assert len(files) == 5
    assert all(one.is_file() for one in files)
    assert found.unpersist(blocking=True) is found
    assert not any(one.parent.exists() for one in files)


def forbidden(_: Any) -> Any:
    raise AssertionError("parcels came to the driver")


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_same_seed_chooses_the_same_neighbours(spark: Any, name: str) -> None:
    same_neighbours(spark, name)


def test_the_same_seed_while_tasks_fail(spark: Any, failing: None) -> None:
    same_neighbours(spark, "pair")


def same_neighbours(spark: Any, name: str) -> None:
    ratings = gf.load("movietweetings")
    running = engine.Running(spark=spark, block_rows=500)
    found = engine.choose_neighbours(ratings, MECHANISMS[name], rng=7, running=running)
    local = draws.choose_neighbours(ratings, MECHANISMS[name], rng=7)
    assert (found.neighbours == local.neighbours).all()
    assert (found.similarities == local.similarities).all()
    assert (found.weights == local.weights).all()


@pytest.mark.parametrize(("axis", "over"), [("user", "neighbours"), ("item", "raters")])
def test_predictions_and_recommendations(spark: Any, axis: Any, over: Any) -> None:
    same_answers(spark, axis, over)


def test_predictions_while_tasks_fail(spark: Any, failing: None) -> None:
    same_answers(spark, "user", "raters")


def same_answers(spark: Any, axis: Any, over: Any) -> None:
    ratings = gf.synthetic(users=300, items=120, ratings=5_000, rng=1)
    chosen = draws.choose_neighbours(ratings, MECHANISMS["PNCF"], axis=axis, rng=7)
    chance = np.random.default_rng(0)
    cells = chance.integers(0, 300, 2000), chance.integers(0, 120, 2000)
    running = engine.Running(spark=spark, block_rows=110)
    found = engine.predict(ratings, chosen, cells, axis=axis, over=over, running=running)
    local = predictions.predict(ratings, chosen, cells, axis=axis, over=over)
    assert np.array_equal(found, local, equal_nan=True)
    assert 0 < np.isnan(local).mean() < 1
    many = engine.recommend(ratings, chosen, n=7, axis=axis, over=over, running=running)
    one = recommendations.recommend(ratings, chosen, n=7, axis=axis, over=over)
    assert (many.columns == one.columns).all()
    assert np.array_equal(many.scores, one.scores, equal_nan=True)


@pytest.mark.parametrize("axis", ["user", "item"])
def test_everything_with_data_frames_alone(
    spark: Any, monkeypatch: pytest.MonkeyPatch, axis: Any
) -> None:
    """Text ids that Unicode, case and length sort differently; the same answers by the caller's own ids."""
    plain = gf.synthetic(users=150, items=60, ratings=2_000, rng=3)
    users = [f"{'aZé𝄞'[i % 4]}{i % 13}-{i}" for i in range(150)]
    table = table_of(gf.Ratings(plain.csr, users, plain.items, plain.scale))
    ratings = gf.Ratings.from_frame(table)
    frame = spark.createDataFrame(table).repartition(5)
    monkeypatch.setattr(parcels, "collected", forbidden)
    running = engine.Running(spark=spark, block_rows=70)
    model = gf.NeighbourCF(gf.PPNS(k=8, beta=3), axis=axis, rng=7).fit(ratings)
    chosen = engine.choose_neighbours(frame, model.mechanism, axis=axis, rng=7, running=running)
    rows = chosen.orderBy("row").toArrow()
    assert np.array_equal(np.array(rows["neighbours"].to_pylist()), model.neighbours_)
    asked = spark.createDataFrame(table.select(["user", "item"]).slice(0, 200))
    predicted = engine.predict(frame, chosen, asked, axis=axis, running=running).toArrow()
    wanted = model.predict(predicted["user"].to_pylist(), predicted["item"].to_pylist())
    assert predicted.num_rows == 200
    assert np.array_equal(predicted["prediction"].to_numpy(), wanted, equal_nan=True)
    best = engine.recommend(frame, chosen, n=4, axis=axis, running=running)
    found = best.orderBy("user", "rank").toArrow().to_pylist()
    for user in ratings.users[:20].tolist():
        own = [(one["item"], one["score"]) for one in found if one["user"] == user]
        expected = model.recommend(user, n=4)
        wanted_best = zip(expected.items.tolist(), expected.scores.tolist(), strict=True)
        assert own == list(wanted_best)


def test_workers_run_this_python(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    def who(batches: Any) -> Any:
        import sys

        for _ in batches:
            yield pa.record_batch([pa.array([sys.executable])], names=["python"])

    monkeypatch.setenv("PATH", "/nonexistent")
    with parcels.without_advice():
        found = spark.range(1).mapInArrow(who, "python string").first()
    assert found.python == sys.executable
