"""Tests on Spark: they run where PySpark and Java are, and are skipped by name elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from goodfence.engines.spark.session import find_java, start
from tests import conftest

SPARK = "spark"
REASON = "run ./scripts/setup --spark, which says what is missing"
_SPECULATING = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
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
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": os.fspath(folder / "warehouse"),
    }
    session = start("local[2,4]", log=folder / "spark.log", conf={**conf, **_SPECULATING})
    yield session
    session.stop()
