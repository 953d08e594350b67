"""Results as ordinary data frames: one row for each row of ratings, with its own id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from goodfence.engines.spark.parcels import opened, without_advice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def spread(
    parcels: DataFrame, ids: DataFrame, block_rows: int, columns: dict[str, str]
) -> DataFrame:
    """Return the columns `id`, `row` and one array for each of `columns` (name: kind of its elements).

    The ids of a block come to its parcel as one list: a join of the rows would move all their arrays.
    """
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    fields = ", ".join(f"{name} array<{kind}>" for name, kind in columns.items())
    names = list(columns)
    place = F.expr(f"cast(number div {block_rows} as int)").alias("place")
    listed = F.array_sort(F.collect_list(F.struct("number", "id"))).alias("owners")
    owners = ids.groupBy(place).agg(listed)
    owned = parcels.join(owners, "place").select("place", "part", "payload", "owners.id")

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return tables(batches, names)

    with without_advice():
        kind = ids.schema["id"].dataType.simpleString()
        return owned.mapInArrow(task, f"id {kind}, row int, {fields}")


def held(frame: DataFrame) -> DataFrame:
    """Return a result after it has been made, so that what it was made from can be forgotten."""
    kept = frame.persist()
    kept.count()
    return kept


def tables(batches: Iterator[pa.RecordBatch], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the parcels, each with its id."""
    for batch in batches:
        for parcel, ids in zip(opened(batch), batch.column("id"), strict=True):
            n_rows = len(parcel.arrays[names[0]])
            rows = pa.array(parcel.arrays["first"][0] + np.arange(n_rows), pa.int32())
            lists = [_lists(parcel.arrays[name]) for name in names]
            yield pa.record_batch([ids.values, rows, *lists], names=["id", "row", *names])


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
