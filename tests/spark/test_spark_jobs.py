"""Jobs on Spark that stop, go on, are refused or fail: in one sentence, and nothing private in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import goodfence as gf
from goodfence.engines import spark as engine
from goodfence.engines.spark import parcels, session, watching
from goodfence.engines.spark.comparing import Comparison
from goodfence.engines.spark.problem import SparkProblem, failing_plainly
from goodfence.errors import (
    ColumnProblem,
    DataError,
    DuplicateProblem,
    MissingExtra,
    SettingError,
    UnknownId,
    ValueProblem,
)
from tests.cli.running import run
from tests.spark.frames import table_of

FILMS = gf.synthetic(users=200, items=50, ratings=3_000, rng=2)
PRIVATE = "somebody rated 4.25"


def times(folder: Path) -> dict[str, int]:
    """Return when each part of a job was finished."""
    return {one.parent.name: one.stat().st_mtime_ns for one in folder.glob("*/_SUCCESS")}


@pytest.mark.spark
def test_a_job_that_stopped_goes_on_and_another_is_refused(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    running = engine.Running(spark=spark, block_rows=70, work=str(work))
    tile = Comparison.tile

    def until_then(self: Comparison, place: int, arrived: list[Any]) -> Any:
        if {parcel.part for parcel in arrived} == {1}:
            raise RuntimeError(PRIVATE)
        return tile(self, place, arrived)

    exchange = parcels.exchange

    def stopping(frame: Any, n_places: int, task: Any, shorten: Any = None) -> Any:
        comparison = getattr(task, "__self__", None)
        if not isinstance(comparison, Comparison):
            return exchange(frame, n_places, task, shorten)
        return exchange(
            frame, n_places, lambda place, arrived: until_then(comparison, place, arrived)
        )

    monkeypatch.setattr(parcels, "exchange", stopping)
    with pytest.raises(SparkProblem) as caught:
        engine.candidate_lists(FILMS, n=20, running=running)
    assert "4.25" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    before = times(work)
    assert {"terms", "blocks", "tiles-0-0", "tiles-3-3"} <= set(before)
    assert "tiles-4-4" not in before
    monkeypatch.undo()
    found = engine.candidate_lists(FILMS, n=20, running=running)
    assert (found.indices == gf.candidate_lists(FILMS, n=20).indices).all()
    after = times(work)
    assert {"tiles-4-4", "tiles-5-5", "lists"} <= set(after)
    assert {name: after[name] for name in before} == before
    monkeypatch.setattr(parcels, "each", None)  # nothing is left to be done
    again = engine.candidate_lists(FILMS, n=20, running=running)
    assert (again.indices == found.indices).all()
    other = gf.synthetic(users=200, items=50, ratings=3_000, rng=3)
    for ratings, n in ((other, 20), (FILMS, 21)):
        with pytest.raises(SettingError, match="work must be the folder of this very job"):
            engine.candidate_lists(ratings, n=n, running=running)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("columns", "kind", "sentence"),
    [
        ({"rating": [4.25, None, 1.0]}, ValueProblem, "rating must not be missing, 1 rows are"),
        ({"rating": [4.25, np.nan, np.inf]}, ValueProblem, "rating must be a finite number, 2"),
        ({"user": [None, "ann", "bob"]}, ValueProblem, "user must not be missing, 1 rows are"),
        ({"user": ["ann", "ann", "bob"]}, DuplicateProblem, "once, and 1 rows repeat a pair"),
        ({"user": [1.5, 2.5, 3.5]}, ColumnProblem, r"user \(column 'user'\) must hold integers"),
        ({"rating": ["4.25", "2", "1"]}, ColumnProblem, "'rating'. must hold numbers"),
        ({"user": []}, DataError, "at least one rating"),
    ],
)
def test_what_is_wrong_with_a_data_frame(
    spark: Any, columns: dict[str, list[Any]], kind: type[DataError], sentence: str
) -> None:
    good: dict[str, list[Any]] = {
        "user": ["ann", "bob", "eve"],
        "item": [7, 7, 7],
        "rating": [1.0, 2.0, 3.0],
    }
    broken = {**good, **columns}
    if not broken["user"]:
        schema = "user string, item int, rating double"
        frame = spark.createDataFrame([], schema)
    else:
        frame = spark.createDataFrame(pa.table(broken))
    with pytest.raises(kind, match=sentence) as caught:
        engine.candidate_lists(frame, n=1, spark=spark)
    assert not re.search("ann|bob|4.25", str(caught.value))


@pytest.mark.spark
def test_what_is_wrong_with_what_is_asked(spark: Any) -> None:
    frame = spark.createDataFrame(table_of(FILMS))
    chosen = engine.choose_neighbours(frame, gf.KNN(k=5), spark=spark)
    nobody = spark.createDataFrame([(-77, 0)], "user long, item long")
    here: Any = FILMS
    number: Any = 7
    with pytest.raises(UnknownId) as caught:
        engine.predict(frame, chosen, nobody, spark=spark)
    assert "77" not in str(caught.value)
    with pytest.raises(DataError, match="must all be of this machine"):
        engine.predict(here, chosen, nobody, spark=spark)
    with pytest.raises(DataError, match="got int"):
        engine.candidate_lists(number, n=5, spark=spark)
    with pytest.raises(SettingError, match="n must be at most 199"):
        engine.candidate_lists(frame, n=200, spark=spark)


@pytest.mark.spark
def test_progress_is_told_task_by_task(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []

    @contextmanager
    def bar(what: str, steps: int, *, show: bool | None) -> Iterator[Any]:
        told.extend((steps, -1))
        yield told.append

    monkeypatch.setattr(watching, "bar", bar)
    monkeypatch.setattr(watching, "_LOOK_UP", 0.05)
    running = engine.Running(spark=spark, block_rows=50, progress=True)
    engine.candidate_lists(FILMS, n=5, running=running)
    steps, _, *advances = told
    assert steps == 10 + 2 * 4
    assert 0 < sum(advances) <= steps


@pytest.mark.spark
def test_a_cancelled_job_is_an_interrupt_and_any_other_a_sentence() -> None:
    from py4j.protocol import Py4JError

    with pytest.raises(KeyboardInterrupt), failing_plainly():
        raise Py4JError("[SPARK_JOB_CANCELLED] Job 1 cancelled as part of cancellation of all jobs")
    with pytest.raises(SparkProblem) as caught, failing_plainly():
        raise Py4JError(PRIVATE)
    assert "4.25" not in str(caught.value)


def test_a_missing_part_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    with pytest.raises(MissingExtra, match="Java 17 or later must be installed"):
        session.require_spark()
    monkeypatch.setattr(session, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=re.escape("pip install 'goodfence[spark]'")):
        engine.candidate_lists(FILMS, n=5)


def test_the_command_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "find_spec", lambda _: None)
    out = str(tmp_path / "model.gf")
    code, _, stderr = run("fit", "movietweetings", "-o", out, "--engine", "spark")
    assert code == 4
    assert "pip install 'goodfence[spark]'" in stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--engine", "ray"], "engine must be local or spark, got 'ray'"),
        (["--master", "local[2]"], "master must be left out unless --engine spark is given"),
        (["--engine", "spark", "--memory", "lots"], "memory must be a size as in 512m or 2g"),
        (
            ["--engine", "spark", "--mechanism", "private-means", "--epsilon", "1"],
            "engine must be local for a private model",
        ),
    ],
)
def test_engine_options_outside_their_rule(
    tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    out = str(tmp_path / "model.gf")
    code, _, stderr = run("fit", "movietweetings", "-o", out, *arguments)
    assert code == 2
    assert sentence in stderr


@pytest.mark.spark
def test_the_command_fits_the_model_of_one_machine(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(spark), "stop", lambda _: None)  # other tests need the session
    settings = ["--mechanism", "ppns", "--k", "10", "--beta", "3", "--seed", "7", "--json"]
    folders = [tmp_path / name for name in ("here.gf", "there.gf")]
    here = ["fit", "movietweetings", *settings, "-o", str(folders[0])]
    there = ["fit", "movietweetings", *settings, "-o", str(folders[1]), "--engine", "spark"]
    there += ["--master", "local[2]", "--work", str(tmp_path / "work"), "--memory", "256m"]
    for arguments in (here, there):
        code, stdout, stderr = run(*arguments)
        assert code == 0, stderr
        assert json.loads(stdout)["data"]["users"] == 1238
    models = [gf.load_model(folder) for folder in folders]
    assert (models[0].neighbours_ == models[1].neighbours_).all()  # type: ignore[attr-defined]  # a NeighbourCF
    assert "lists" in times(tmp_path / "work")
