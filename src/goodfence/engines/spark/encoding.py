"""Ratings of a data frame as chunks: one pass from the rows of Spark to arrays.

A chunk is some consecutive ratings of one partition. An id is there once, and a rating says it by its code: the
position of the id among the sorted ids of the chunk. So what is done id by id later is done once for each id of a
chunk, and not once for each rating.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from goodfence.data.columns import ROLES, Columns, find_columns
from goodfence.engines.spark.blocks import small
from goodfence.engines.spark.ids import as_arrays
from goodfence.engines.spark.parcels import DEPOT, Arrays, deposit, pack, without_advice
from goodfence.engines.spark.running import Names
from goodfence.errors import ColumnProblem, DataError, ValueProblem
from goodfence.similarity.profiles import EXACT, FACTORS, ON_GRID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Floats = npt.NDArray[np.float64]

SCHEMA = "partition int, number int, facts array<double>, ids binary, payload binary"
"""Of a data frame of chunks: where it was cut, counts and extremes, its ids, its coded ratings."""
_N_COUNTS = len(ROLES) + 2
"""The first of the facts are counts of ratings, the next two the bytes of the ids of each kind."""
_CHUNKS_IN_MEMORY = 8
"""A chunk, as it came, is this part of the memory of a task: it is there several times while it is coded."""
_LARGEST = 32 << 20
"""No chunk has more bytes: the next one takes the memory that this one leaves."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Facts:
    """What the driver knows of the ratings of a data frame."""

    n_ratings: int
    lowest: float
    factor: int
    id_bytes: tuple[int, int]
    """What the ids of all chunks take, of users and of items."""
    n_chunks: npt.NDArray[np.int64]
    """(partitions,): into how many chunks each partition was cut."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Chunks:
    """The ratings of a data frame, coded."""

    frame: DataFrame
    """As `SCHEMA` says."""
    kinds: tuple[str, str]
    """What Spark calls the kinds of the ids of users and of items."""

    def ids(self, n_chunks: npt.NDArray[np.int64]) -> DataFrame:
        """Return the ids of each chunk as a parcel, at the place of the chunk."""
        return self._parcels("ids", n_chunks)

    def ratings(self, n_chunks: npt.NDArray[np.int64]) -> DataFrame:
        """Return the coded ratings of each chunk as a parcel, at the place of the chunk, before all others."""
        return self._parcels("payload", n_chunks)

    def _parcels(self, name: str, n_chunks: npt.NDArray[np.int64]) -> DataFrame:
        """Return a column as parcels: chunks are numbered by their partition, then by their number in it."""
        before = ",".join(map(str, (np.cumsum(n_chunks) - n_chunks).tolist()))
        place = f"int(split('{before}', ',')[partition]) + number"
        return self.frame.selectExpr(f"{place} as place", "-1 as part", f"{name} as payload")


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


def encoded(frame: DataFrame, memory: int) -> Chunks:
    """Return the chosen columns as chunks."""
    depot = DEPOT.get()
    most = bytes_of_a_chunk(memory)
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None  # noqa: S101 - tasks alone run this
        return encode(batches, context.partitionId(), most, depot)

    with without_advice():
        chunks = frame.mapInArrow(task, SCHEMA)
    return Chunks(frame=chunks, kinds=(kinds["user"], kinds["item"]))


def bytes_of_a_chunk(memory: int) -> int:
    """Return about how many bytes of ratings, as they come, make a chunk."""
    return min(memory // _CHUNKS_IN_MEMORY, _LARGEST)


def encode(
    batches: Iterator[pa.RecordBatch], partition: int, most: int, depot: str | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the chunks of one partition, each of about `most` bytes as it came.

    A chunk in which something is missing or not finite has facts and nothing else.
    """
    for number, table in enumerate(gathered(batches, most)):
        ratings, facts = looked_at(table)
        id_bytes, ids, payload = [0, 0], None, None
        if ratings is not None:
            users, items = (coded(table.column(name)) for name in ROLES[:2])
            id_bytes = [users.ids.nbytes, items.ids.nbytes]
            owners = {**as_arrays("users", users.ids), **as_arrays("items", items.ids)}
            stamp = np.array([stamp_of(*owners.values())])
            ids = _packed({"stamp": stamp, **owners}, depot)
            codes = {"users": users.codes, "items": items.codes, "ratings": ratings}
            n_ids = np.array([len(users.ids), len(items.ids)])
            payload = _packed({"stamp": stamp, "n_ids": n_ids, **codes}, depot)
        columns = {
            "partition": pa.array([partition], pa.int32()),
            "number": pa.array([number], pa.int32()),
            "facts": pa.array([np.insert(facts, _N_COUNTS, id_bytes)]),
            "ids": pa.array([ids], pa.binary()),
            "payload": pa.array([payload], pa.binary()),
        }
        yield pa.record_batch(list(columns.values()), names=list(columns))


def gathered(batches: Iterator[pa.RecordBatch], most: int) -> Iterator[pa.Table]:
    """Yield batches together, as soon as they have `most` bytes."""
    waiting: list[pa.RecordBatch] = []
    n_bytes = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            n_bytes += batch.nbytes
        if n_bytes >= most:
            yield pa.Table.from_batches(waiting)
            waiting, n_bytes = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def looked_at(table: pa.Table) -> tuple[npt.NDArray[Any] | None, Floats]:
    """Return the ratings in their smallest form, and the facts of a chunk; None for ratings where some are wrong.

    The facts: how many, how many without user, item and rating, how many not finite, the lowest, the largest
    absolute value, and for each of `FACTORS` how far off its grid the ratings are at most.
    """
    missing = [table.column(name).null_count for name in ROLES]
    values = table.column("rating").drop_null().to_numpy()
    n_odd = len(values) - int(np.count_nonzero(np.isfinite(values)))
    if n_odd or any(missing):
        nothing = np.zeros(2 + len(FACTORS))
        return None, np.concatenate([[table.num_rows, *missing, n_odd], nothing])
    ratings = small(values)
    whole = ratings.dtype == np.uint8
    off = [0.0 if whole else _off_grid(values, factor) for factor in FACTORS]
    extremes = [float(ratings.min()), float(max(ratings.max(), -values.min()))]
    return ratings, np.array([table.num_rows, *missing, n_odd, *extremes, *off])


@dataclass(frozen=True, eq=False, slots=True)
class Coded:
    """The ids of a chunk, sorted, and for each rating the position of its id among them."""

    ids: pa.Array
    codes: npt.NDArray[np.integer]


def coded(column: pa.ChunkedArray) -> Coded:
    """Return the ids of a column and its codes.

    Examples
    --------
    >>> found = coded(pa.chunked_array([["bob", "ann"], ["bob"]]))
    >>> found.ids.to_pylist(), found.codes
    (['ann', 'bob'], array([1, 0, 1], dtype=uint16))
    """
    found = column.combine_chunks().dictionary_encode()
    order = pc.sort_indices(found.dictionary)
    n_ids = len(order)
    ranks = np.empty(n_ids, dtype=narrow(n_ids))
    ranks[order.to_numpy()] = np.arange(n_ids)
    return Coded(found.dictionary.take(order), ranks[found.indices.to_numpy()])


def narrow(n: int) -> type[np.uint16 | np.int32]:
    """Return the smallest kind of number that holds 0, ..., n - 1."""
    return np.uint16 if n <= 1 << 16 else np.int32


def stamp_of(*ids: npt.NDArray[Any]) -> int:
    """Return what tells the ids of a chunk from those that the chunk would have, were it cut otherwise."""
    stamp = 0
    for part in ids:
        stamp = zlib.crc32(part.data, stamp)
    return stamp


def facts_of(chunks: Chunks) -> Facts:
    """Return the facts of all chunks; what is missing or not finite is an error that names no row's content.

    Spark puts them together: the lowest rating of a chunk, which may be of one rating, does not come to the driver.
    """
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    hows = ["sum"] * (_N_COUNTS + 2) + ["min"] + ["max"] * (1 + len(FACTORS))
    facts = [F.expr(f"{how}(facts[{place}])") for place, how in enumerate(hows)]
    (found,) = chunks.frame.agg(F.collect_list("partition"), *facts).collect()
    if not found[0]:
        raise DataError("there must be at least one rating, and there is none")
    return facts_from(found[1:], np.bincount(found[0]))


def facts_from(together: Sequence[float], n_chunks: npt.NDArray[np.int64]) -> Facts:
    """Return the facts from the counts and extremes of all chunks, in the order of `looked_at`."""
    n_ratings, *missing, n_odd = (int(count) for count in together[:_N_COUNTS])
    for name, n_missing in zip(ROLES, missing, strict=True):
        if n_missing:
            raise ValueProblem(f"{name} must not be missing, {n_missing:,} rows are")
    if n_odd:
        raise ValueProblem(f"rating must be a finite number, {n_odd:,} rows are not")
    user_bytes, item_bytes, lowest, largest, *off = together[_N_COUNTS:]
    grids = [factor for factor, far in zip(FACTORS, off, strict=True) if far < ON_GRID]
    units = largest * grids[0] if grids else np.inf
    exact = units * units * n_ratings < EXACT
    return Facts(
        n_ratings=n_ratings,
        lowest=lowest,
        factor=grids[0] if exact else 0,
        id_bytes=(int(user_bytes), int(item_bytes)),
        n_chunks=n_chunks,
    )


def _check_kinds(frame: DataFrame, columns: Columns) -> None:
    from pyspark.sql.types import IntegralType, NumericType, StringType

    kinds = {field.name: field.dataType for field in frame.schema.fields}
    for role, name in zip(ROLES[:2], columns.chosen, strict=False):
        if not isinstance(kinds[name], IntegralType | StringType):
            raise ColumnProblem(f"{columns.label(role)} must hold integers or text")
    if not isinstance(kinds[columns.rating], NumericType):
        raise ColumnProblem(f"{columns.label('rating')} must hold numbers")


def _off_grid(ratings: Floats, factor: int) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = ratings * factor
        return float(np.abs(scaled - np.rint(scaled)).max())


def _packed(arrays: Arrays, depot: str | None) -> bytes:
    return pack(arrays) if depot is None else deposit(arrays, depot)
