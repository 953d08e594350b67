"""Tests on Spark: they run where PySpark and Java are, and are skipped by name elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from goodfence.spark import shuffle
from goodfence.spark.session import find_java, start
from tests import conftest

SPARK = "spark"
REASON = "run ./scripts/setup --spark, which says what is missing"
_SPECULATING = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "500ms",
}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "spark: needs PySpark and Java")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if find_spec("pyspark") is not None and find_java() is not None:
        return
    for item in items:
        if item.get_closest_marker(SPARK) is not None:
            item.user_properties.append((conftest._GROUP, SPARK))
            item.add_marker(pytest.mark.skip(reason=REASON))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A small session: two cores, four attempts for each task, speculation on."""
    folder = tmp_path_factory.mktemp("spark")
    conf = {
        "spark.driver.memory": "1g",
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": os.fspath(folder),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": os.fspath(folder / "warehouse"),
    }
    session = start("local[2,4]", log=folder / "spark.log", conf={**conf, **_SPECULATING})
    yield session
    session.stop()


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Let the first attempt of a part of all tasks fail, when their work is done and only sending is left."""
    run_tasks = shuffle.run_tasks
    marks = tmp_path / "failed"
    marks.mkdir()

    def failing_once(frame: Any, task: shuffle.Task, combine: Any = None) -> Any:
        def broken(partition: int, inbox: shuffle.Inbox) -> Any:
            from pyspark import TaskContext

            context = TaskContext.get()
            for number, sent in enumerate(task(partition, inbox)):
                unlucky = partition % 5 == 1 and number == 0
                if unlucky and context is not None and context.attemptNumber() == 0:
                    marks.joinpath(f"{context.taskAttemptId()}").touch()
                    raise RuntimeError("injected")
                yield sent

        return run_tasks(frame, broken, combine)

    monkeypatch.setattr(shuffle, "run_tasks", failing_once)
    yield
    assert len(list(marks.iterdir())) >= 2, "no task failed"


@pytest.fixture
def finished() -> Callable[[Path], dict[str, int]]:
    """When each checkpoint of a work folder was finished."""
    return lambda folder: {one.parent.name: one.stat().st_mtime_ns for one in folder.glob("*/_SUCCESS")}
