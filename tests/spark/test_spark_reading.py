"""Parquet files of this machine: read by the tasks themselves, or left to Spark where they are not plain."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import goodfence as gf
from goodfence.engines import spark as engine
from goodfence.engines.spark import encoding
from goodfence.engines.spark.reading import Piece, files_here, files_of, pieces_of, ratings_of
from goodfence.errors import ColumnProblem
from tests.spark.frames import frame_of_lists, table_of

ANY = (None, None, None)
FILMS = gf.synthetic(users=200, items=50, ratings=3_000, rng=2)


def session(master: str = "local[2]", usual: str = "file:///") -> Any:
    conf = SimpleNamespace(get=lambda _: usual)
    return SimpleNamespace(
        sparkContext=SimpleNamespace(master=master),
        _jsc=SimpleNamespace(hadoopConfiguration=lambda: conf),
    )


def write(path: Path, **columns: Any) -> str:
    """Write two ratings; what is given replaces a column."""
    whole = {"user": [1, 2], "item": [7, 8], "rating": [1.0, 2.0], **columns}
    pq.write_table(pa.table(whole), path)
    return str(path)


def test_only_files_of_this_machine_are_read_here(tmp_path: Path) -> None:
    paths = [write(tmp_path / name) for name in ("b.parquet", "a.parquet", "_c", ".d.parquet")]
    assert files_here(paths[0], session()) == [paths[0]]
    assert files_here(str(tmp_path), session()) == [paths[1], paths[0]]
    for path in ("hdfs://lake/ratings", f"file://{tmp_path}", f"{tmp_path}/*", f"{tmp_path}/x"):
        assert files_here(path, session()) == []
    assert files_here(paths[0], session(master="yarn")) == []
    assert files_here(paths[0], session(usual="hdfs://lake")) == []
    tmp_path.joinpath("country=nl").mkdir()
    assert files_here(str(tmp_path), session()) == []


@pytest.mark.parametrize(
    "columns",
    [
        {"user": pa.array([1, 2], pa.uint64())},
        {"item": [b"7", b"8"]},
        {"item": [1.5, 2.5]},
        {"rating": ["1", "2"]},
        {"rating": [[1.0], [2.0]]},
    ],
)
def test_unusual_kinds_are_left_to_spark(tmp_path: Path, columns: dict[str, Any]) -> None:
    assert files_of([write(tmp_path / "ratings", **columns)], ANY) is None


def test_files_that_are_broken_or_not_alike_are_left_to_spark(tmp_path: Path) -> None:
    numbers, texts = write(tmp_path / "numbers"), write(tmp_path / "texts", user=["a", "b"])
    tmp_path.joinpath("broken").write_bytes(b"PAR1")
    assert files_of([numbers, texts], ANY) is None
    assert files_of([numbers, str(tmp_path / "broken")], ANY) is None
    assert files_of([], ANY) is None
    found = files_of([numbers, numbers], ANY)
    assert found is not None
    assert found.n_rows == 4
    with pytest.raises(ColumnProblem):
        files_of([numbers], ("nobody", None, None))


@pytest.mark.parametrize(("n_rows", "n_places"), [(1, 5), (3, 3), (1000, 1)])
def test_every_group_is_read_at_one_place(tmp_path: Path, n_rows: int, n_places: int) -> None:
    paths = []
    for name, n_own in (("a", 5), ("empty", 0), ("b", 4)):
        paths.append(str(tmp_path / name))
        columns = {name: np.arange(n_own) for name in ("item", "rating", "user")}
        pq.write_table(pa.table(columns), paths[-1], row_group_size=2)
    files = files_of(paths, ANY)
    assert files is not None
    pieces = pieces_of(files, n_rows)
    assert {piece.place for piece in pieces} == set(range(n_places))
    places = [piece.place for piece in pieces]
    assert places == sorted(places)
    batches = [batch for piece in pieces for batch in ratings_of(piece, files)]
    found = pa.Table.from_batches(batches)
    assert found.column_names == ["user", "item", "rating"]
    assert found["user"].to_pylist() == [0, 1, 2, 3, 4, 0, 1, 2, 3]
    assert found.schema.field("rating").type == pa.float64()


def test_kinds_arrive_as_spark_has_them(tmp_path: Path) -> None:
    text = pa.array(["b", "a"]).dictionary_encode()
    large = pa.array(["x", None], pa.large_string())
    wide = pa.array([2**53 + 1, None], pa.int64())
    files = files_of([write(tmp_path / "ratings", user=text, item=large, rating=wide)], ANY)
    assert files is not None
    (batch,) = ratings_of(Piece(0, files.groups[0][0], 0), files)
    assert batch.schema.types == [pa.string(), pa.string(), pa.float64()]
    assert batch.to_pydict() == {
        "user": ["b", "a"],
        "item": ["x", None],
        "rating": [2.0**53, None],
    }


def forbidden(*_: Any) -> Any:
    raise AssertionError("Spark read the files")


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
    running = engine.Running(spark=spark, block_rows=70, work=where, memory=16 << 20)
    local = gf.candidate_lists(FILMS, n=20)
    with monkeypatch.context() as patched:
        patched.setattr(encoding, "encoded", forbidden)
        found = frame_of_lists(engine.candidate_lists(folder, n=20, running=running), FILMS.users)
    assert (found.indices == local.indices).all()
    assert (found.similarities == local.similarities).all()
    if work:  # the same ratings in another order, and by Spark, are the same job; so nothing is left to be done
        monkeypatch.setattr("goodfence.engines.spark.plan.tiles_of", forbidden)
        frame = spark.createDataFrame(table_of(FILMS, seed=1)).repartition(3)
        again = frame_of_lists(engine.candidate_lists(frame, n=20, running=running), FILMS.users)
        assert (again.indices == local.indices).all()
