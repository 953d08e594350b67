"""Ids as row and column numbers, on the cluster: in the order in which `Ratings` numbers them.

Integers stand by value and text by code point, which is how Spark and arrow both sort. Numbers, not ids, then
decide ties, so the lists are those of one machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from goodfence.data.columns import Columns, find_columns
from goodfence.engines.spark.blocks import Block
from goodfence.engines.spark.parcels import SCHEMA, Parcel, closed, without_advice
from goodfence.engines.spark.running import Names
from goodfence.errors import ColumnProblem, DataError, SizeProblem, ValueProblem
from goodfence.similarity.profiles import EXACT, FACTORS, ON_GRID

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MARK_BITS = 33
_MOST = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False, kw_only=True)
class Facts:
    """What the driver knows of the ratings of a data frame."""

    n_ratings: int
    lowest: float
    factor: int
    checksum: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Numbered:
    """Ids and their numbers."""

    frame: DataFrame
    """Columns `id` and `number`. Spark holds them as long as the session: results refer to them."""
    n: int

    def __repr__(self) -> str:
        return f"Numbered({self.n:,} ids)"


def chosen_columns(frame: DataFrame, names: Names) -> DataFrame:
    """Return the columns user, item and rating of a data frame, by these names."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    user, item, rating = names
    columns = find_columns(frame.columns, user=user, item=item, rating=rating)
    _check_kinds(frame, columns)
    return frame.select(
        F.col(f"`{columns.user}`").alias("user"),
        F.col(f"`{columns.item}`").alias("item"),
        F.col(f"`{columns.rating}`").cast("double").alias("rating"),
    )


def facts_of(frame: DataFrame) -> Facts:
    """Look at all ratings once; what is missing or not finite is an error that names no row's content."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    rating = F.col("rating")
    finite = ~(F.isnan(rating) | (F.abs(rating) == float("inf")))
    found: Any = frame.agg(
        F.count(F.lit(1)).alias("n"),
        *(F.count_if(F.col(name).isNull()).alias(f"no_{name}") for name in frame.columns),
        F.count_if(~finite).alias("odd"),
        F.min(rating).alias("lowest"),
        F.max(F.abs(rating)).alias("largest"),
        *(F.max(_off_grid(rating, factor)).alias(f"off_{factor}") for factor in FACTORS),
        F.expr("bit_xor(xxhash64(user, item, rating))").alias("checksum"),
    ).first()
    if found.n == 0:
        raise DataError("there must be at least one rating, and there is none")
    for name in frame.columns:
        if found[f"no_{name}"]:
            raise ValueProblem(f"{name} must not be missing, {found[f'no_{name}']:,} rows are")
    if found.odd:
        raise ValueProblem(f"rating must be a finite number, {found.odd:,} rows are not")
    grids = [factor for factor in FACTORS if found[f"off_{factor}"] < ON_GRID]
    exact = bool(grids) and (found.largest * grids[0]) ** 2 * found.n < EXACT
    return Facts(
        n_ratings=found.n,
        lowest=found.lowest,
        factor=grids[0] if exact else 0,
        checksum=f"{found.n}-{found.checksum}",
    )


def number_ids(frame: DataFrame, name: str) -> Numbered:
    """Return the ids of a column with the numbers 0, 1, ... in their order.

    The ids are sorted over the cluster; only how many each partition holds comes to the driver.
    """
    from pyspark import StorageLevel
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    ids = frame.select(F.col(name).alias("id")).distinct().orderBy("id")
    # The mark is the number of the partition, then the place in it; what Spark holds does not change.
    marked = ids.withColumn("mark", F.monotonically_increasing_id())
    held = marked.persist(StorageLevel.DISK_ONLY)
    partition = F.shiftright("mark", _MARK_BITS).cast("int")
    counted = held.groupBy(partition.alias("partition")).count().collect()
    counts = np.zeros(max((row[0] for row in counted), default=-1) + 1, dtype=np.int64)
    for row in counted:
        counts[row[0]] = row[1]
    total = int(counts.sum())
    if total > _MOST:
        raise SizeProblem(f"there must be at most {_MOST:,} ids of each kind, and there are more")
    before = F.array(*(F.lit(int(start)) for start in np.cumsum(counts) - counts))
    known = F.array(*(F.lit(int(count)) for count in counts))
    place = F.col("mark").bitwiseAND(F.lit((1 << _MARK_BITS) - 1))
    # Were the ids sorted anew, in other partitions, then some partition would hold more than were counted.
    same = place < F.element_at(known, partition + 1)
    number = F.element_at(before, partition + 1) + place
    number = F.when(same, number).otherwise(F.raise_error(F.lit("the ids were forgotten")))
    return Numbered(frame=held.select("id", number.cast("int").alias("number")), n=total)


def triplets(frame: DataFrame, rows: Numbered, columns: Numbered, axis: str) -> DataFrame:
    """Return the ratings as row number, column number and rating.

    Spark chooses how to join; it sends a table to every machine only where that is small (its own limit).
    """
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    row_name, column_name = ("user", "item") if axis == "user" else ("item", "user")
    own = rows.frame.select(F.col("id").alias(row_name), F.col("number").alias("row"))
    other = columns.frame.select(F.col("id").alias(column_name), F.col("number").alias("column"))
    return frame.join(own, row_name).join(other, column_name).select("row", "column", "rating")


def assembled(numbered: DataFrame, n_rows: int, n_columns: int, block_rows: int) -> DataFrame:
    """Return triplets as blocks of rows; a block with a pair rated twice says so by a negative part."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    place = F.expr(f"cast(row div {block_rows} as int)").alias("place")
    placed = numbered.select(place, "row", "column", "rating")
    n_blocks = -(-n_rows // block_rows)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return assemble(batches, n_rows, n_columns, block_rows)

    with without_advice():
        return placed.repartitionById(n_blocks, F.col("place")).mapInArrow(task, SCHEMA)


def assemble(
    batches: Iterator[pa.RecordBatch], n_rows: int, n_columns: int, block_rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield the one block whose triplets are given."""
    arrived = [batch for batch in batches if batch.num_rows]
    if not arrived:
        return
    table = pa.Table.from_batches(arrived)
    place, rows, columns, ratings = (
        table.column(name).to_numpy() for name in ("place", "row", "column", "rating")
    )
    first = int(place[0]) * block_rows
    shape = (min(block_rows, n_rows - first), n_columns)
    csr = sparse.csr_array((ratings, (rows - first, columns)), shape=shape)
    csr.sum_duplicates()
    n_repeated = len(ratings) - csr.nnz
    part = -n_repeated if n_repeated else int(place[0])
    yield closed([Parcel(int(place[0]), part, Block(first, csr).arrays())])


def _check_kinds(frame: DataFrame, columns: Columns) -> None:
    from pyspark.sql.types import IntegralType, NumericType, StringType

    kinds = {field.name: field.dataType for field in frame.schema.fields}
    for role, name in zip(("user", "item"), columns.chosen, strict=False):
        if not isinstance(kinds[name], IntegralType | StringType):
            raise ColumnProblem(f"{columns.label(role)} must hold integers or text")
    if not isinstance(kinds[columns.rating], NumericType):
        raise ColumnProblem(f"{columns.label('rating')} must hold numbers")


def _off_grid(rating: Column, factor: int) -> Column:
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    scaled = rating * float(factor)
    return F.abs(scaled - F.rint(scaled))
