"""From chunks of ratings, in any order, to blocks of rows: two exchanges of arrays.

A chunk learns the numbers of its ids and sends to each block what is of its rows; a block puts its parts together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.engines.spark import parcels
from goodfence.engines.spark.blocks import Block
from goodfence.engines.spark.encoding import narrow
from goodfence.engines.spark.parcels import Arrays, Parcel

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Numbers = npt.NDArray[np.int32]

_OTHERS = "the data frame must give the same ratings each time, and gave others"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """How the ratings of a data frame come into blocks."""

    axis: str
    """Whose rows these are: "user" or "item"."""
    n_rows: int
    n_columns: int
    block_rows: int
    firsts: tuple[int, ...]
    """The number of the first id of each range: of the ranges of the users, then of those of the items."""
    n_user_ranges: int

    @property
    def n_blocks(self) -> int:
        """The number of blocks."""
        return -(-self.n_rows // self.block_rows)

    def gathered(self, chunks: DataFrame, standing: DataFrame, n_chunks: int) -> DataFrame:
        """Return the blocks of the coded ratings of chunks, given where their ids stand."""
        sent = parcels.exchange(chunks.union(standing), n_chunks, self.split)
        return parcels.exchange(sent, self.n_blocks, self.assemble)

    def split(self, place: int, arrived: list[Parcel]) -> Iterator[Parcel]:
        """Send the ratings of one chunk to the blocks of their rows, by the numbers of rows and columns."""
        (_, _, chunk), *standing = arrived
        if any(parcel.arrays["stamp"] != chunk["stamp"] for parcel in standing):
            raise RuntimeError(_OTHERS)
        users, items = (
            self._numbers([one for one in standing if (one.part < self.n_user_ranges) == of_users])
            for of_users in (True, False)
        )
        if [len(users), len(items)] != chunk["n_ids"].tolist():
            raise RuntimeError(_OTHERS)
        rows, columns = users[chunk["users"]], items[chunk["items"]]
        if self.axis == "item":
            rows, columns = columns, rows
        for block, chosen in self._by_block(rows):
            sent: Arrays = {
                "rows": (rows[chosen] - block * self.block_rows).astype(narrow(self.block_rows)),
                "columns": columns[chosen].astype(narrow(self.n_columns)),
                "ratings": chunk["ratings"][chosen],
            }
            yield Parcel(block, place, sent)

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
        yield Parcel(place, part, Block.of_rows(first, csr).arrays())

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

    def _numbers(self, standing: list[Parcel]) -> Numbers:
        """Return the numbers of the ids of a chunk, in order, from where they stand in their ranges."""
        parts = [one.arrays["standing"] + np.int32(self.firsts[one.part]) for one in standing]
        return np.concatenate(parts) if parts else np.empty(0, np.int32)
