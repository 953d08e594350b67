"""What the driver hands on, with frames that only remember what was asked of them: no cluster is needed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from goodfence.spark import SparkConfig, id_index
from goodfence.spark.id_index import IdIndex
from goodfence.spark.neighbours import NeighboursThere

PREDICT = import_module("goodfence.spark.predict")  # the name in the package is the function
RATINGS = import_module("goodfence.spark.ratings")
NO_SESSION = cast("Any", None)


@pytest.mark.parametrize(("axis", "shape"), [("user", (70, 30)), ("item", (30, 70))])
def test_rows_are_what_is_compared(monkeypatch: pytest.MonkeyPatch, axis: Any, shape: tuple[int, int]) -> None:
    frame: Any = SimpleNamespace(union=lambda _: frame)
    facts = SimpleNamespace(n_ratings=500, chunks=(0,), extremes=(-1.0, 5.0))
    users, items = (IdIndex(sorted_ids=frame, starts=(0, 0), n_ranges=1, n=n, id_type="bigint") for n in (70, 30))
    monkeypatch.setattr(RATINGS.chunks, "facts_of", lambda *_: facts)
    monkeypatch.setattr(RATINGS.chunks, "numbered", lambda *_: frame)
    monkeypatch.setattr(RATINGS.chunks, "grid_factor", lambda *_: 1)
    monkeypatch.setattr(RATINGS.shuffle, "shuffle", lambda *_: frame)
    monkeypatch.setattr(RATINGS.shuffle, "of_kind", lambda *_: frame)
    monkeypatch.setattr(RATINGS, "index_ids", lambda *_: (users, items, frame))
    monkeypatch.setattr(RATINGS, "_n_repeated", lambda *_: 0)
    config = SparkConfig(spark=NO_SESSION, block_rows=20)
    blocks = RATINGS._of_chunks(frame, axis, lambda n: n, config, lambda one: one)
    assert (blocks.layout.n_rows, blocks.layout.n_columns) == shape
    assert tuple(one.n for one in blocks.ids) == shape


def test_predictions_of_data_frames_are_a_data_frame_that_spark_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = SimpleNamespace(layout=SimpleNamespace(n_blocks=1), ids=(1, 2))
    monkeypatch.setattr(PREDICT, "open_ratings", lambda *_: nullcontext(rows))
    monkeypatch.setattr(PREDICT, "job", lambda *_: nullcontext())
    monkeypatch.setattr(PREDICT.Groups, "of", lambda *_: "groups")
    monkeypatch.setattr(PREDICT, "_predict_frame", lambda *given: given)
    monkeypatch.setattr(PREDICT, "made", lambda frame: ("made", frame))
    config, chosen = SparkConfig(spark=NO_SESSION), cast("Any", object())
    found: Any = PREDICT.predict("ratings", chosen, "cells", axis="item", config=config)
    assert found == ("made", (rows, "groups", NeighboursThere(chosen=chosen, axis="item", over="raters"), "cells"))


class Held:
    """A data frame of batches, or of files."""

    def __init__(self, batches: list[pa.RecordBatch]) -> None:
        self.batches = batches
        self.sparkSession = SimpleNamespace(read=self)

    def mapInArrow(  # noqa: N802 - as Spark calls it
        self, task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], _: str
    ) -> Held:
        return Held(list(task(iter(self.batches))))

    def collect(self) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for batch in self.batches for row in batch.to_pylist()]

    def schema(self, _: str) -> Held:
        return self

    def parquet(self, *paths: str) -> Held:
        files = [pq.read_table(path.removeprefix("file:")) for path in paths]
        return Held([batch for one in files for batch in one.to_batches()])

    def unpersist(self, blocking: bool) -> Held:  # noqa: ARG002 - as Spark has it
        return self


def test_what_tasks_make_lies_in_files_of_the_session_until_it_is_released(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = SimpleNamespace(getRootDirectory=lambda: str(tmp_path))
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(SparkFiles=files))
    batches = [pa.record_batch([pa.array([n, n + 1])], names=["number"]) for n in (1, 3)]
    frame: Any = Held(batches)
    found: Any = id_index._written(frame, lambda given: given, "number bigint")
    assert found.collect() == [(1,), (2,), (3,), (4,)]
    (folder,) = tmp_path.iterdir()
    assert len(list(folder.iterdir())) == 1
    found.unpersist()
    assert list(tmp_path.iterdir()) == []
