"""From files and batches to chunks: which files tasks read, what they hold, what the driver is told of them."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from goodfence.data.frame import ReadOptions
from goodfence.data.scale import Scale
from goodfence.errors import ColumnProblem, FileProblem, GoodfenceWarning, ValueProblem
from goodfence.neighbours.similarity import Profiles
from goodfence.spark.chunks import (
    Encoder,
    WholeFile,
    _n_missing,
    checked_facts,
    coded,
    files_here,
    grid_factor,
    narrow,
    plain_files,
    reader_of,
    stamp_of,
)
from goodfence.spark.messages import ChunkFacts, ChunkIds
from goodfence.spark.session import SparkConfig
from tests.support.spark_chunks import encoded, merged, of_kind, rated

ANY = ReadOptions()


def config(master: str = "local[2]", default: str = "file:///", **read: Any) -> SparkConfig:
    conf = SimpleNamespace(get=lambda _: default)
    session: Any = SimpleNamespace(
        sparkContext=SimpleNamespace(master=master, defaultParallelism=2, addFile=lambda path: sent.append(path)),
        _jsc=SimpleNamespace(hadoopConfiguration=lambda: conf),
    )
    sent: list[str] = session.sparkContext.__dict__.setdefault("sent", [])
    return SparkConfig(spark=session, read=ReadOptions(**read))


def write(path: Path, **columns: Any) -> str:
    """Write two ratings; what is given replaces a column."""
    whole = {"user": [1, 2], "item": [7, 8], "rating": [1.0, 2.0], **columns}
    pq.write_table(pa.table(whole), path)
    return str(path)


def test_only_files_of_this_machine_are_read_here(tmp_path: Path) -> None:
    paths = [write(tmp_path / name) for name in ("b.parquet", "a.parquet", "_c", ".d.parquet")]
    assert files_here(paths[0], config()) == [paths[0]]
    assert files_here(str(tmp_path), config()) == [paths[1], paths[0]]
    for path in ("hdfs://lake/ratings", f"file://{tmp_path}", f"{tmp_path}/*"):
        assert files_here(path, config()) == []
    assert files_here(paths[0], config(master="yarn")) == []
    assert files_here(paths[0], config(default="hdfs://lake")) == []
    tmp_path.joinpath("country=nl").mkdir()
    assert files_here(str(tmp_path), config()) == []


def test_who_reads_a_path(tmp_path: Path) -> None:
    """Plain parquet many tasks, another file one task, and Spark what only it reaches."""
    plain, odd = write(tmp_path / "plain.parquet"), write(tmp_path / "odd.parquet", user=[1.0, 2.0])
    text = tmp_path / "ratings.csv"
    text.write_text("user,item,rating\n1,7,4\n")
    found = reader_of(plain, config())
    assert found is not None
    assert not isinstance(found, WholeFile)
    for path in (odd, str(text), str(tmp_path / "nothing.csv")):
        assert reader_of(path, config()) == WholeFile(path=path, options=ANY)
    options = ReadOptions(unrated=-1)
    assert reader_of(plain, config(unrated=-1)) == WholeFile(path=plain, options=options)
    for path in (str(tmp_path), "hdfs://lake/ratings.csv"):  # a folder of files that are not alike
        assert reader_of(path, config()) is None
    cluster = config(master="yarn")
    assert reader_of(plain, cluster) is None
    copied = WholeFile(path="ratings.csv", options=ANY, copied=True)
    assert reader_of(str(text), cluster) == copied
    context: Any = cluster.spark.sparkContext
    assert context.sent == [str(text)]


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
def test_unusual_kinds_are_not_plain(tmp_path: Path, columns: dict[str, Any]) -> None:
    assert plain_files([write(tmp_path / "ratings", **columns)], ANY) is None


def test_files_that_are_broken_or_not_alike_are_not_plain(tmp_path: Path) -> None:
    numbers, texts = write(tmp_path / "numbers"), write(tmp_path / "texts", user=["a", "b"])
    tmp_path.joinpath("broken").write_bytes(b"PAR1")
    assert plain_files([numbers, texts], ANY) is None
    assert plain_files([numbers, str(tmp_path / "broken")], ANY) is None
    assert plain_files([], ANY) is None
    found = plain_files([numbers, numbers], ANY)
    assert found is not None
    assert found.n_rows == 4
    with pytest.raises(ColumnProblem):
        plain_files([numbers], ReadOptions(user="nobody"))


@pytest.mark.parametrize(("n_rows", "n_splits"), [(1, 5), (3, 3), (1000, 1)])
def test_every_row_group_is_read_in_one_split(tmp_path: Path, n_rows: int, n_splits: int) -> None:
    paths = []
    for name, n_own in (("a", 5), ("empty", 0), ("b", 4)):
        paths.append(str(tmp_path / name))
        columns = {name: np.arange(n_own) for name in ("item", "rating", "user")}
        pq.write_table(pa.table(columns), paths[-1], row_group_size=2)
    plain = plain_files(paths, ANY)
    assert plain is not None
    files = plain.joined(n_rows)
    assert len(files.splits) == n_splits
    batches = [batch for split in range(n_splits) for batch in files.read(split)]
    found = pa.Table.from_batches(batches)
    assert found.column_names == ["user", "item", "rating"]
    assert found["user"].to_pylist() == [0, 1, 2, 3, 4, 0, 1, 2, 3]
    assert found.schema.field("rating").type == pa.float64()


def test_kinds_arrive_as_spark_has_them(tmp_path: Path) -> None:
    text = pa.array(["b", "a"]).dictionary_encode()
    large = pa.array(["x", None], pa.large_string())
    wide = pa.array([2**53 + 1, None], pa.int64())
    files = plain_files([write(tmp_path / "ratings", user=text, item=large, rating=wide)], ANY)
    assert files is not None
    (batch,) = files.joined(10).read(0)
    assert batch.schema.types == [pa.string(), pa.string(), pa.float64()]
    assert batch.to_pydict() == {"user": ["b", "a"], "item": ["x", None], "rating": [2.0**53, None]}


def read(path: Path, **options: Any) -> ChunkFacts:
    """Return what the driver learns of a file that one task reads, after its errors and warnings."""
    pytest.importorskip("pyspark")
    reader = WholeFile(path=str(path), options=ReadOptions(**options))
    batch = pa.record_batch([pa.array([0])], names=["id"])
    sent = list(Encoder(most=1000).read(reader, iter([batch])))
    return checked_facts(merged(sent))


def test_a_text_file_is_read_whole_and_its_warnings_and_errors_reach_the_driver(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv.gz"
    path.write_bytes(gzip.compress(b"user,item,rating\n 7,a,4\n8,b,2\n"))
    with pytest.warns(GoodfenceWarning, match="ids with spaces around them"):
        facts = read(path)
    assert (facts.n_ratings, facts.id_types) == (2, ["bigint", "string"])
    path.write_bytes(gzip.compress(b"user,item,rating\n7,a,4\n8,b,2\n8,c,-1\n"))
    with pytest.warns(GoodfenceWarning, match="left out"):
        assert read(path, unrated=-1).n_ratings == 2
    for text, options, kind, sentence in (
        (b"user,item,rating\n7,a,four\n", {}, ValueProblem, "must be a number, row 1 is not"),
        (b"user,item,rating\n7,a,4\n8,a\n", {}, FileProblem, "must have 3 fields in each row"),
        (b"user,item\n7,a\n", {}, ColumnProblem, "needs columns for user, item and rating"),
        (b"user,item,rating\n7,a,4\n", {"max_bytes": 10}, ValueError, "must be at most 10 bytes"),
    ):
        path.write_bytes(gzip.compress(text))
        with pytest.raises(kind, match=sentence):
            read(path, **options)
    with pytest.raises(FileProblem, match="does not exist"):
        read(tmp_path / "nothing.csv")


def facts_of_each(ratings: list[float]) -> ChunkFacts:
    """Return the facts of ratings, each of which is a chunk."""
    table = rated([1] * len(ratings), list(range(len(ratings))), ratings)
    return checked_facts(merged(encoded(table, len(ratings), 1)))


@pytest.mark.parametrize(
    ("ratings", "factor"),
    [([1.0, 5.0], 1), ([0.5, 5.0], 2), ([-3.0, 0.25], 4), ([0.1, 0.3], 10), ([0.1, 1 / 3], 0), ([3.0 + 1e-10, 1.0], 1)],
)
def test_the_facts_are_those_of_one_machine(ratings: list[float], factor: int) -> None:
    found = facts_of_each(ratings)
    local = Profiles.of(sparse.csr_array(np.array([ratings]))).factor
    assert grid_factor(found) == factor == local
    assert -found.extremes[0] == min(ratings)
    assert found.chunks == [0, 1]


@pytest.mark.parametrize("huge", [1e200, -1.5e308])
def test_huge_ratings_are_on_no_grid(huge: float) -> None:
    found = facts_of_each([huge, 0.5])
    assert grid_factor(found) == 0
    assert -found.extremes[0] == min(huge, 0.5)


def test_what_is_wrong_is_counted_over_all_chunks_and_goes_no_further() -> None:
    table = rated(["ann", None, "bob", ""], [1, 2, None, 4], [4.25, None, np.nan, np.inf])
    for n_splits in (1, 2):
        sent = encoded(table, n_splits, 1000, Scale(1, 5))
        assert of_kind(sent, ChunkFacts) == sent
        (facts,) = merged(sent)
        assert (facts.n_ratings, facts.n_wrong) == (4, [2, 1, 1, 2, 1, 0])
        with pytest.raises(ValueProblem, match="user must not be missing, 2 rows are"):
            checked_facts([facts])


def test_the_order_of_ratings_leaves_no_trace_in_the_codes() -> None:
    one, other = coded(pa.chunked_array([[5, 3], [5]])), coded(pa.chunked_array([[3, 5, 5]]))
    assert one[0] == other[0]
    stamps = [stamp_of(ids) for ids in (one[0], other[0], pa.array([3, 6]))]
    assert stamps[0] == stamps[1] != stamps[2]
    assert one[1].tolist() == [1, 0, 1]


def test_many_ids_have_wide_codes() -> None:
    _, codes = coded(pa.chunked_array([np.arange(70_000)[::-1]]))
    assert codes.dtype == np.int32
    assert (codes == np.arange(70_000)[::-1]).all()
    assert narrow(1 << 16) == np.uint16


def test_a_split_without_ratings_has_no_chunk() -> None:
    empty = rated([], [], []).to_batches(3)
    assert list(Encoder(most=1000).encode(iter(empty), 0)) == []
    (ids,) = of_kind(encoded(rated([2, 1], [7, 7], [1.0, 2.0]), 1, 1000), ChunkIds)
    assert repr(ids) == "ChunkIds(0 from 0: stamp, users, items)"


def test_what_is_missing_is_null_or_empty_text() -> None:
    column = pa.chunked_array([pa.array(["a", None, ""]), pa.array(["", "", "b", None])])
    assert _n_missing(column) == 5
    assert _n_missing(pa.chunked_array([pa.array([1, None, 3])])) == 1
    assert _n_missing(pa.chunked_array([pa.array(["a", "b"])])) == 0


def test_plain_files_are_read_in_as_many_splits_as_there_are_cores(tmp_path: Path) -> None:
    """Eleven row groups of one rating for two cores: six and five."""
    path = tmp_path / "many.parquet"
    rows = pa.table({"user": range(11), "item": range(11), "rating": [1.0, *[2.0] * 10]})
    pq.write_table(rows, path, row_group_size=1)
    found = reader_of(str(path), config())
    assert not isinstance(found, WholeFile)
    assert found is not None
    assert [len(split) for split in found.splits] == [6, 5]
