"""Results as ordinary data frames: one row for each row of ratings, with its own id."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from goodfence.engines.local.threads import ranges
from goodfence.engines.spark.ids import as_ids
from goodfence.engines.spark.numbering import Numbered
from goodfence.engines.spark.parcels import DEPOT, opened, without_advice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Task: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_TOGETHER = 1 << 20
"""So many entries of lists, at most, go to Spark at a time: it takes some while the next are made."""


def spread(lists: DataFrame, ids: Numbered, block_rows: int, columns: dict[str, str]) -> DataFrame:
    """Return the columns `id`, `row` and one array for each of `columns` (name: kind of its elements).

    The ids come to the parcels of their blocks: a join of the rows would move all their arrays. The result is made,
    so that what it was made from can be forgotten.
    """
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    fields = ", ".join(f"{name} array<{kind}>" for name, kind in columns.items())
    schema, names = f"id {ids.kind}, row int, {fields}", list(columns)
    together = lists.union(ids.sent_to_blocks(block_rows))
    owned = together.repartitionById(-(-ids.n // block_rows), F.col("place"))

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return tables(batches, names)

    if DEPOT.get() is not None:
        return written(owned, task, schema)
    with without_advice():
        return held(owned.mapInArrow(task, schema))


def held(frame: DataFrame) -> DataFrame:
    """Return a result after it has been made; Spark holds it."""
    kept = frame.persist()
    kept.count()
    return kept


def written(frame: DataFrame, task: Task, schema: str) -> DataFrame:
    """Return what a task makes of each partition, after it has been made; it lies in files of this machine.

    Spark would take its rows from Python one by one, which takes several times as long. The files go with the
    session, or when the result is let go of as one that Spark holds: by `unpersist`.
    """
    from pyspark import SparkFiles

    folder = Path(SparkFiles.getRootDirectory()) / f"goodfence-{secrets.token_hex(8)}"
    folder.mkdir()

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        path = write_new(task(batches), folder)
        yield pa.record_batch([pa.array([path], pa.string())], names=["path"])

    with without_advice():
        found = frame.mapInArrow(write, "path string").where("path is not null").collect()
    # By name: there may be files of attempts that failed, or were slower than others.
    result = frame.sparkSession.read.schema(schema).parquet(*(f"file:{path}" for (path,) in found))
    vars(result)["unpersist"] = partial(_let_go, result, folder)
    return result


def _let_go(frame: DataFrame, folder: Path, blocking: bool = False) -> DataFrame:
    shutil.rmtree(folder, ignore_errors=True)
    return type(frame).unpersist(frame, blocking)


def write_new(batches: Iterator[pa.RecordBatch], folder: Path) -> str | None:
    """Write rows to a new parquet file and return where it is; None where there are no rows."""
    path = folder / f"{secrets.token_hex(12)}.parquet"
    first = next(batches, None)
    if first is None:
        return None
    how: dict[str, Any] = {
        "compression": "none",
        "use_dictionary": False,
        "write_statistics": False,
    }
    with parquet.ParquetWriter(path, first.schema, **how) as file:
        for batch in chain([first], batches):
            file.write_batch(batch)
    return str(path)


def tables(batches: Iterator[pa.RecordBatch], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one block, each with its id."""
    arrived = [parcel for batch in batches for parcel in opened(batch)]
    lists = [parcel.arrays for parcel in arrived if "first" in parcel.arrays]
    parts = sorted((one for one in arrived if "first" not in one.arrays), key=lambda one: one.part)
    for one in lists:
        ids = pa.concat_arrays([as_ids("ids", part.arrays) for part in parts])
        n_rows, n = one[names[0]].shape
        for begin, end in ranges(n_rows, max(1, _TOGETHER // max(1, n))):
            rows = pa.array(one["first"][0] + np.arange(begin, end), pa.int32())
            arrays = [_lists(one[name][begin:end]) for name in names]
            columns = [ids[begin:end], rows, *arrays]
            yield pa.record_batch(columns, names=["id", "row", *names])


def _lists(matrix: np.ndarray) -> pa.Array:
    n_rows, n = matrix.shape
    starts = pa.array(np.arange(n_rows + 1) * n, pa.int32())
    return pa.ListArray.from_arrays(starts, pa.array(matrix.ravel()))


def cells_of(answers: DataFrame) -> DataFrame:
    """Return predicted cells as `row`, `column` and `prediction`, each once."""
    with without_advice():
        cells = answers.mapInArrow(predicted, "row int, column int, prediction double")
    return cells.dropDuplicates(["row", "column"])


def predicted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the cells of the parcels."""
    for batch in batches:
        for parcel in opened(batch):
            columns = [
                pa.array(parcel.arrays["rows"], pa.int32()),
                pa.array(parcel.arrays["columns"], pa.int32()),
                pa.array(parcel.arrays["predictions"]),
            ]
            yield pa.record_batch(columns, names=["row", "column", "prediction"])


def ranked_of(answers: DataFrame) -> DataFrame:
    """Return recommendations as `row`, `rank` (from 1), `column` and `score`."""
    with without_advice():
        return answers.mapInArrow(ranked, "row int, rank int, column int, score double")


def ranked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the recommendations of the parcels."""
    for batch in batches:
        for parcel in opened(batch):
            arrays = parcel.arrays
            lengths = arrays["lengths"]
            starts = np.cumsum(lengths) - lengths
            rows = np.repeat(arrays["rows"], lengths)
            ranks = np.arange(len(rows)) - np.repeat(starts, lengths) + 1
            columns = [
                pa.array(rows, pa.int32()),
                pa.array(ranks, pa.int32()),
                pa.array(arrays["columns"], pa.int32()),
                pa.array(arrays["scores"]),
            ]
            yield pa.record_batch(columns, names=["row", "rank", "column", "score"])
