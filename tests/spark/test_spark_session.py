"""A session says what is missing; jobs tell how far they are, and fail in one sentence with nothing private in it.

The size of blocks, and settings outside their rule.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import goodfence as gf
from goodfence import spark as engine
from goodfence.errors import MissingExtra, SettingError, SparkProblem
from goodfence.spark import session
from goodfence.spark.neighbours import NeighboursThere
from goodfence.spark.predict import Groups
from goodfence.spark.session import SparkConfig, balanced_blocks, failures_in_one_sentence, without_pandas_advice

FILMS = gf.synthetic(users=200, items=50, ratings=3_000, rng=2)
PRIVATE = "somebody rated 4.25"


@pytest.mark.spark
def test_progress_is_told_task_by_task(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []

    @contextmanager
    def bar(what: str, steps: int, *, show: bool | None) -> Iterator[Any]:
        told.extend((steps, -1))
        yield told.append

    monkeypatch.setattr(session, "bar", bar)
    monkeypatch.setattr(session, "_LOOK_UP", 0.05)
    config = engine.SparkConfig(spark=spark, block_rows=50, progress=True)
    engine.candidate_lists(FILMS, n=5, config=config)
    steps, _, *advances = told
    assert steps == 10 + 2 * 4
    assert 0 < sum(advances) <= steps


@pytest.mark.spark
def test_a_cancelled_job_is_an_interrupt_and_any_other_a_sentence() -> None:
    from py4j.protocol import Py4JError

    with pytest.raises(KeyboardInterrupt), failures_in_one_sentence():
        raise Py4JError("[SPARK_JOB_CANCELLED] Job 1 cancelled as part of cancellation of all jobs")
    with pytest.raises(SparkProblem) as caught, failures_in_one_sentence():
        raise Py4JError(PRIVATE)
    assert "4.25" not in str(caught.value)


@pytest.mark.spark
def test_a_missing_part_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    with pytest.raises(MissingExtra, match="Java 17"):
        session.require_spark()
    monkeypatch.setattr(session, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=re.escape("pip install 'goodfence[spark]'")):
        engine.candidate_lists(FILMS, n=5)


@pytest.mark.spark
def test_workers_run_this_python(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def who(batches: Any) -> Any:
        import sys

        for _ in batches:
            yield pa.record_batch([pa.array([sys.executable])], names=["python"])

    monkeypatch.setenv("PATH", "/nonexistent")
    with without_pandas_advice():
        found = spark.range(1).mapInArrow(who, "python string").first()
    assert found.python == sys.executable


@pytest.mark.parametrize("n_cores", [1, 2, 3, 8, 100])
def test_blocks_keep_all_cores_busy(n_cores: int) -> None:
    n_blocks = balanced_blocks(n_cores)
    work = [2] * (n_blocks * (n_blocks - 1) // 2) + [1] * n_blocks
    ends = [0] * n_cores
    for tile in work:
        ends[ends.index(min(ends))] += tile
    assert max(ends) <= 1.15 * sum(work) / n_cores
    assert n_blocks == 1 or 2 * n_cores >= n_blocks  # and no more of them than that takes


@pytest.mark.parametrize(("name", "value"), [("memory", 1000), ("block_rows", 0)])
def test_settings_outside_their_rule(name: str, value: int) -> None:
    with pytest.raises(SettingError, match=f"{name} must be at least"):
        SparkConfig(spark=None, **{name: value})  # type: ignore[arg-type]  # refused before it is used


def config_of(n_cores: int, memory: int) -> SparkConfig:
    context = SimpleNamespace(defaultParallelism=n_cores)
    session: Any = SimpleNamespace(sparkContext=context)
    return SparkConfig(spark=session, memory=memory)


def test_two_blocks_and_their_lists_fit_in_the_memory() -> None:
    """By hand: a row of 1,000 ratings and 100 candidates takes 41,000 bytes, 818 pairs of such rows fit in 64 MiB."""
    rows = config_of(2, 2**26).rows_of_a_block(100_000, 100_000_000, 100)
    assert rows == 814  # 123 blocks of 818 rows at most, all of about one size


def test_a_group_has_rows_for_every_core_or_what_the_memory_holds() -> None:
    config = config_of(2, 2**30)
    assert config.rows_of_a_group(1_000, 10_000, 5) == 167  # three groups for each of two cores
    # 1,000 ratings of 32 bytes for each of 50 neighbours are 1.6 MB a row: 671 such rows fit in 1 GiB.
    assert config.rows_of_a_group(10_000_000, 10_000_000_000, 50) == 671


def test_items_are_predicted_in_groups_whose_neighbours_fit() -> None:
    """An item has k neighbours, not ratings: 5,000,000 of them with 400 of 32 bytes each, for each of 400 others."""
    layout: Any = SimpleNamespace(n_rows=1_000, n_ratings=10_000, n_columns=5_000_000)
    k = 400
    frame: Any = SimpleNamespace(first=lambda: {"neighbours": [0] * k})
    of_users, of_items = (NeighboursThere(chosen=frame, axis=axis, over="raters") for axis in ("user", "item"))
    groups = Groups.of(layout, of_items, config_of(2, 2**30), n=10)
    assert groups.group_rows == 2**30 // (k * k * 32)
    assert groups.n_groups == -(-5_000_000 // groups.group_rows)
    few = Groups.of(layout, of_users, config_of(2, 2**30), n=10)
    assert (few.group_rows, few.n_groups) == (167, 6)  # of users: three for each core


@pytest.mark.parametrize(
    ("python", "stated", "expected"),
    [
        ("python3", None, sys.executable),  # Spark's default, which may be any Python
        ("/opt/conda/bin/python", None, "/opt/conda/bin/python"),
        ("python3", "python3", "python3"),
    ],
)
def test_workers_of_a_session_run_this_python_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, python: str, stated: str | None, expected: str
) -> None:
    monkeypatch.setattr(session, "require_spark", lambda: None)
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "pyspark.sql", SimpleNamespace(SparkSession=None))
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    if stated is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", stated)
    running: Any = SimpleNamespace(sparkContext=SimpleNamespace(pythonExec=python))
    config = session.config_of(running, None)
    assert config.spark is running
    assert running.sparkContext.pythonExec == expected
