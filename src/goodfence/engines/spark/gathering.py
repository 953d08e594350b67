"""From chunks of ratings, in any order, to blocks of rows: two exchanges of arrays.

A chunk learns the numbers of its ids and sends to each block what is of its rows; a block puts its parts together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse

from goodfence.engines.spark import parcels
from goodfence.engines.spark.blocks import Block
from goodfence.engines.spark.encoding import narrow
from goodfence.engines.spark.parcels import DEPOT, SCHEMA, Arrays, Parcel, closed, unpack

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """How the ratings of a data frame come into blocks."""

    axis: str
    """Whose rows these are: "user" or "item"."""
    n_rows: int
    n_columns: int
    block_rows: int

    @property
    def n_blocks(self) -> int:
        """The number of blocks."""
        return -(-self.n_rows // self.block_rows)

    def gathered(self, chunks: DataFrame, numbers: DataFrame, n_chunks: int) -> DataFrame:
        """Return the blocks of placed chunks, given the numbers of their ids."""
        return parcels.exchange(
            self.sent_to_blocks(chunks, numbers, n_chunks), self.n_blocks, self.assemble
        )

    def sent_to_blocks(self, chunks: DataFrame, numbers: DataFrame, n_chunks: int) -> DataFrame:
        """Return what each chunk sends to each block."""
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

        nothing = F.lit(None).cast("int")
        coded = chunks.select(
            "place", "stamp", nothing.alias("code"), nothing.alias("number"), "payload"
        )
        known = numbers.withColumn("payload", F.lit(None).cast("binary"))
        together = coded.union(known).repartitionById(n_chunks, F.col("place"))
        depot = DEPOT.get()

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return (closed([parcel], depot) for parcel in self.split(batches))

        with parcels.without_advice():
            return together.mapInArrow(task, SCHEMA)

    def split(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Parcel]:
        """Yield the ratings of one chunk block by block, by the numbers of rows and columns."""
        arrived = [batch for batch in batches if batch.num_rows]
        if not arrived:
            return
        table = pa.Table.from_batches(arrived)
        arrays = unpack(table.column("payload").drop_null()[0].as_buffer())
        n_users, n_items = arrays["n_ids"].tolist()
        numbers = numbers_by_code(table, n_users + n_items)
        users = numbers[:n_users][arrays["users"]]
        items = numbers[n_users:][arrays["items"]]
        rows, columns = (users, items) if self.axis == "user" else (items, users)
        part = table.column("place")[0].as_py()
        for place, chosen in self._by_block(rows):
            sent: Arrays = {
                "rows": (rows[chosen] - place * self.block_rows).astype(narrow(self.block_rows)),
                "columns": columns[chosen].astype(narrow(self.n_columns)),
                "ratings": arrays["ratings"][chosen],
            }
            yield Parcel(place, part, sent)

    def assemble(self, place: int, arrived: list[Parcel]) -> Iterator[Parcel]:
        """Yield the one block whose parts are given; if a pair was rated twice, it says so by a negative part."""
        first = place * self.block_rows
        shape = (min(self.block_rows, self.n_rows - first), self.n_columns)
        rows, columns, ratings = (
            np.concatenate([parcel.arrays[name] for parcel in arrived])
            for name in ("rows", "columns", "ratings")
        )
        csr = sparse.csr_array((ratings, (rows, columns)), shape=shape)
        csr.sum_duplicates()
        n_repeated = len(ratings) - csr.nnz
        part = -n_repeated if n_repeated else place
        yield Parcel(place, part, Block(first, csr).arrays())

    def _by_block(self, rows: Numbers) -> Iterator[tuple[int, Any]]:
        """Yield the blocks that have some of the rows, and where these are."""
        blocks: npt.NDArray[Any] = (rows // self.block_rows).astype(narrow(self.n_blocks))
        ascending = bool((blocks[1:] >= blocks[:-1]).all())
        order = None if ascending else np.argsort(blocks, kind="stable")
        counts = np.bincount(blocks)
        ends = np.cumsum(counts)
        for place in np.flatnonzero(counts).tolist():
            where = slice(ends[place] - counts[place], ends[place])
            yield place, where if order is None else order[where]


def numbers_by_code(table: pa.Table, n_ids: int) -> Numbers:
    """Return the number of each code of a chunk, after a look whether they are of this very chunk."""
    codes, given = (table.column(name).drop_null().to_numpy() for name in ("code", "number"))
    numbers = np.full(n_ids, -1, dtype=np.int32)
    stamps = table.column("stamp").to_numpy()
    same = bool((stamps == stamps[0]).all()) and len(codes) == n_ids
    if same:
        numbers[codes] = given
    if not same or bool((numbers < 0).any()):
        raise RuntimeError("the data frame must give the same ratings each time, and gave others")
    return numbers
