"""Candidate lists on Spark are those of the local engine, to the last bit; how they are merged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import goodfence as gf
from goodfence import spark as engine
from goodfence.kernels.tiles.lists import fill_up
from goodfence.spark import all_pairs, chunks, id_index, shuffle
from goodfence.spark.all_pairs import merge
from goodfence.spark.messages import Candidates, ChunkFacts, RaggedLists
from goodfence.spark.session import without_pandas_advice
from tests.support import reference
from tests.support.frames import frame_of_lists, table_of

FILMS = gf.synthetic(users=200, items=50, ratings=3_000, rng=2)


def same_lists(found: Any, local: Any) -> None:
    assert (found.indices == local.indices).all()
    assert (found.similarities == local.similarities).all()


def forbidden(*_: Any) -> Any:
    raise AssertionError("that must not be called")


@pytest.mark.spark
@pytest.mark.real("ml-1m")
@pytest.mark.real("douban-movie")
@pytest.mark.parametrize(("data", "block_rows"), [("ml-1m", None), ("douban-movie", 5000)])
def test_real_lists_while_tasks_fail(spark: Any, failing: None, data: str, block_rows: int | None) -> None:
    ratings = gf.load(data)
    config = engine.SparkConfig(spark=spark, block_rows=block_rows)
    same_lists(engine.candidate_lists(ratings, n=100, config=config), gf.candidate_lists(ratings, n=100))


@pytest.mark.spark
@pytest.mark.real("ml-1m")
@pytest.mark.real("douban-movie")
@pytest.mark.parametrize(("data", "axis", "parts"), [("ml-1m", "item", 7), ("douban-movie", "user", 3)])
def test_real_lists_of_a_data_frame(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str, axis: Any, parts: int
) -> None:
    """Everything passes through the shuffle, as on a cluster of many machines."""
    monkeypatch.setattr(shuffle, "spill_directory", lambda _: nullcontext())
    ratings = gf.load(data)
    pq.write_table(table_of(ratings), tmp_path / "ratings.parquet", row_group_size=200_000)
    monkeypatch.setattr(shuffle, "collect", only_facts(shuffle.collect))
    frame = spark.read.parquet(str(tmp_path)).repartition(parts)
    found = engine.candidate_lists(frame, n=60, axis=axis, spark=spark)
    ids = ratings.users if axis == "user" else ratings.items
    same_lists(frame_of_lists(found, ids), gf.candidate_lists(ratings, n=60, axis=axis))
    found.unpersist()


def only_facts(collect: Any) -> Any:
    """Let no message but the facts of all ratings together come to the driver."""

    def checked(frame: Any, kind: Any) -> Any:
        assert kind is ChunkFacts, "messages came to the driver"
        found = collect(frame, kind)
        assert len(found) == 1
        return found

    return checked


@pytest.mark.spark
def test_lists_of_a_data_frame_while_tasks_fail(
    spark: Any, failing: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every other partition is lost once, when its ratings have all been read; ids do not fit in one task."""
    monkeypatch.setattr(id_index, "_COPIES", 500_000)
    marks = tmp_path / "lost"
    marks.mkdir()

    def lost_once(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        yield from batches
        context = TaskContext.get()
        if context is not None and context.partitionId() % 2 and context.attemptNumber() == 0:
            marks.joinpath(f"{context.taskAttemptId()}").touch()
            raise RuntimeError("injected")

    frame = spark.createDataFrame(table_of(FILMS)).repartition(5)
    with without_pandas_advice():
        frame = frame.mapInArrow(lost_once, frame.schema)
    config = engine.SparkConfig(spark=spark, block_rows=40)
    found = engine.candidate_lists(frame, n=20, config=config)
    same_lists(frame_of_lists(found, FILMS.users), gf.candidate_lists(FILMS, n=20))
    assert len(list(marks.iterdir())) >= 2, "no partition was lost"
    files = [Path(one.removeprefix("file://")) for one in found.inputFiles()]
    assert len(files) == 5
    assert all(one.is_file() for one in files)
    assert found.unpersist(blocking=True) is found
    assert not any(one.parent.exists() for one in files)


@pytest.mark.kernel
@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 50), st.sampled_from([0.0, 0.5, 1.0])),
        max_size=60,
        unique_by=lambda one: one[:2],
    ),
    st.integers(1, 5),
    st.integers(1, 3),
)
def test_merged_lists_are_sorted_lists(offers: list[tuple[int, int, float]], n: int, n_parts: int) -> None:
    parts = [sorted(offers[first::n_parts], key=lambda one: one[0]) for first in range(n_parts)]
    found = [
        RaggedLists(
            0,
            0,
            np.bincount([one[0] for one in part], minlength=4).astype(np.int32),
            np.array([one[1] for one in part], dtype=np.int32),
            np.array([one[2] for one in part], dtype=np.float64),
        )
        for part in parts
    ]
    indices, values, lengths = merge(found, 4, n)
    assert reference.merged_lists(offers, 4, n) == [
        list(zip(indices[i, :k].tolist(), values[i, :k].tolist(), strict=True)) for i, k in enumerate(lengths)
    ]


@pytest.mark.kernel
def test_a_short_list_goes_on_with_strangers_in_row_order() -> None:
    indices = np.array([[3, -1, -1], [0, -1, -1]], dtype=np.int32)
    similarities = np.array([[0.5, 9, 9], [0.25, 9, 9]])
    fill_up(indices, similarities, np.array([1, 1], dtype=np.int32), 1)
    assert indices.tolist() == [[3, 0, 2], [0, 1, 3]]
    assert similarities.tolist() == [[0.5, 0, 0], [0.25, 0, 0]]


@pytest.mark.spark
@pytest.mark.parametrize("work", [False, True])
def test_files_give_the_lists_of_one_machine(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: bool
) -> None:
    table, folder = table_of(FILMS), tmp_path / "ratings"
    folder.mkdir()
    pq.write_table(table.slice(0, 1000), folder / "one.parquet", row_group_size=300)
    pq.write_table(table.slice(1000), folder / "two.parquet")
    where = str(tmp_path / "work") if work else None
    config = engine.SparkConfig(spark=spark, block_rows=110, work=where, memory=16 << 20)
    local = gf.candidate_lists(FILMS, n=20)
    with monkeypatch.context() as patched:
        patched.setattr(chunks, "_chosen_columns", forbidden)  # Spark does not read the files
        found = frame_of_lists(engine.candidate_lists(folder, n=20, config=config), FILMS.users)
    same_lists(found, local)
    if work:  # the same ratings in another order, and by Spark, are the same job; so nothing is left to be done
        monkeypatch.setattr("goodfence.spark.all_pairs.compare_tiles", forbidden)
        frame = spark.createDataFrame(table_of(FILMS, seed=1)).repartition(3)
        same_lists(frame_of_lists(engine.candidate_lists(frame, n=20, config=config), FILMS.users), local)


class Part:
    """A data frame of which only its parts matter."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def union(self, other: Part) -> Part:
        return Part(*self.names, *other.names)


def test_what_all_tiles_find_is_every_part_of_the_checkpoint_once() -> None:
    """70 tiles in at most 32 parts: of 3 each, and one in the last."""
    settings = SimpleNamespace(layout=SimpleNamespace(n_tiles=70))
    checkpoint = SimpleNamespace(root="work", keep=lambda name, _: Part(name))
    found: Any = all_pairs.compare_in_parts(*[cast("Any", one) for one in (None, settings, checkpoint)])
    assert found.names == (*(f"tiles-{at}-{at + 2}" for at in range(0, 69, 3)), "tiles-69-69")


def waiting(first: int, similarity: float) -> Candidates:
    """Return a list of four candidates for one row."""
    rows = np.arange(4, dtype=np.int32)
    return Candidates(0, 0, np.array([4], np.int32), rows, np.full(4, similarity), first)


@pytest.mark.kernel
def test_much_that_waits_for_the_same_rows_is_merged_to_the_best() -> None:
    """With lists of 2 at most 6 entries of a row wait; of two times 4 the best two are left."""
    other = waiting(9, 0.5)
    (left, merged) = all_pairs.combine_waiting(2, [waiting(0, 0.25), other, waiting(0, 0.75)])
    assert left is other
    assert isinstance(merged, Candidates)
    assert merged.values.tolist() == [0.75, 0.75]
    alone = [other, waiting(0, 0.75)]
    assert all_pairs.combine_waiting(2, alone) == alone  # nothing to merge with
