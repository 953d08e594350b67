"""Ratings on a cluster: blocks of rows, and the few numbers about all of them that the driver knows."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import sparse

from goodfence.data.ratings import Ratings
from goodfence.engines.local.candidates import Axis, rows_of
from goodfence.engines.spark import encoding, numbering, reading
from goodfence.engines.spark.blocks import cut
from goodfence.engines.spark.gathering import Gathering
from goodfence.engines.spark.parcels import frame_of, staying_here
from goodfence.engines.spark.problem import failing_plainly
from goodfence.engines.spark.running import Running
from goodfence.errors import DataError, DuplicateProblem, require
from goodfence.similarity.measure import Similarity
from goodfence.similarity.profiles import grid_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Rated: TypeAlias = "Ratings | DataFrame | str | os.PathLike[str]"
"""Ratings of this machine, a data frame of Spark, or the path of a parquet file or folder."""
Length: TypeAlias = Callable[[int], int]
"""From the number of rows to the length of their lists."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Source:
    """Rows to be compared, in blocks."""

    blocks: DataFrame
    """One parcel for each block, at the place of its number."""
    n_rows: int
    n_columns: int
    n_ratings: int
    block_rows: int
    """How many rows a block has; the last one may have fewer."""
    factor: int
    """What makes every rating a whole number, 0 where nothing does."""
    lowest: float
    """The lowest rating."""
    checksum: str
    """What tells these ratings from others, where parts of a job are written."""

    def __repr__(self) -> str:
        return f"Source({self.n_rows:,} x {self.n_columns:,} in {self.n_blocks:,} blocks)"

    @property
    def n_blocks(self) -> int:
        """The number of blocks."""
        return -(-self.n_rows // self.block_rows)

    @property
    def n_tiles(self) -> int:
        """The number of pairs of blocks, each block with itself included."""
        return self.n_blocks * (self.n_blocks + 1) // 2

    def by_kernel(self, similarity: Similarity) -> bool:
        """Return whether the kernels of the tiles compare these rows."""
        return similarity.name == "cosine" and self.factor > 0 and self.lowest >= 0

    matrix: sparse.csr_array | None = None
    """The rows themselves, where the ratings are of this machine."""
    ids: numbering.Numbered | None = None
    """Whose row each one is; None where the ratings are of this machine."""
    columns: numbering.Numbered | None = None
    """The same for the columns."""
    held: list[DataFrame] = field(default_factory=list)
    """What Spark holds until it is released."""

    @classmethod
    def of(cls, ratings: Rated, axis: Axis, length: Length, running: Running) -> Source:
        """Return the rows of any kind of ratings, in blocks for lists of `length(rows)`."""
        require(axis in ("user", "item"), "axis", "'user' or 'item'", axis)
        if isinstance(ratings, Ratings):
            return cls._of_ratings(rows_of(ratings, axis), length, running)
        return cls._of_frame(ratings, axis, length, running)

    def release(self) -> None:
        """Let Spark forget what it held."""
        forget(self.held)

    @classmethod
    def _of_ratings(cls, rows: Ratings, length: Length, running: Running) -> Source:
        n_rows, n_columns = rows.shape
        block_rows = running.rows_of_a_block(n_rows, rows.n_ratings, length(n_rows))
        return cls(
            blocks=frame_of(running.spark, cut(rows.csr, block_rows)),
            n_rows=n_rows,
            n_columns=n_columns,
            n_ratings=rows.n_ratings,
            block_rows=block_rows,
            factor=grid_of(rows.csr.data),
            lowest=float(rows.csr.data.min(initial=0.0)),
            checksum=checksum_of(rows) if running.work else "",
            matrix=rows.csr,
        )

    @classmethod
    def _of_frame(
        cls, given: DataFrame | str | os.PathLike[str], axis: Axis, length: Length, running: Running
    ) -> Source:
        from pyspark import StorageLevel

        chunks = None
        if isinstance(given, str | os.PathLike):
            chunks = reading.encoded_files(os.fspath(given), running)
        if chunks is None:
            chosen = encoding.chosen_columns(read(given, running), running.names)
            chunks = encoding.encoded(chosen, running.memory)
        held = [chunks.frame.persist(StorageLevel.DISK_ONLY)]
        try:
            return cls._of_chunks(chunks, held, axis, length, running)
        except BaseException:
            forget(held)
            raise

    @classmethod
    def _of_chunks(
        cls,
        chunks: encoding.Chunks,
        held: list[DataFrame],
        axis: Axis,
        length: Length,
        running: Running,
    ) -> Source:
        from pyspark import StorageLevel

        facts = encoding.facts_of(chunks)
        numbers = numbering.number_ids(chunks, facts, running.memory, held)
        rows, columns = numbers.users, numbers.items
        if axis == "item":
            rows, columns = columns, rows
        block_rows = running.rows_of_a_block(rows.n, facts.n_ratings, length(rows.n))
        gathering = Gathering(
            axis=axis,
            n_rows=rows.n,
            n_columns=columns.n,
            block_rows=block_rows,
            firsts=numbers.firsts,
            n_user_ranges=numbers.n_user_ranges,
        )
        n_chunks = int(facts.n_chunks.sum())
        blocks = gathering.gathered(chunks.ratings(facts.n_chunks), numbers.standing, n_chunks)
        held.append(blocks.persist(StorageLevel.DISK_ONLY))
        check_repeats(blocks)
        return cls(
            blocks=blocks,
            n_rows=rows.n,
            n_columns=columns.n,
            n_ratings=facts.n_ratings,
            block_rows=block_rows,
            factor=facts.factor,
            lowest=facts.lowest,
            checksum=checksum_of_blocks(blocks) if running.work else "",
            ids=rows,
            columns=columns,
            held=held,
        )


@contextmanager
def opened(ratings: Rated, axis: Axis, length: Length, running: Running) -> Iterator[Source]:
    """Bring ratings of any kind into blocks, for as long as they are needed."""
    with staying_here(running.spark) if running.work is None else nullcontext():
        with failing_plainly():
            source = Source.of(ratings, axis, length, running)
        try:
            yield source
        finally:
            source.release()


def read(given: DataFrame | str | os.PathLike[str], running: Running) -> DataFrame:
    """Return a data frame: itself, or that of a parquet path."""
    from pyspark.sql import DataFrame

    if isinstance(given, str | os.PathLike):
        return running.spark.read.parquet(os.fspath(given))
    if not isinstance(given, DataFrame):
        raise DataError(
            "ratings must be Ratings, a data frame of Spark, or the path of a parquet file, got "
            f"{type(given).__name__}"
        )
    return given


def forget(held: list[DataFrame]) -> None:
    """Let Spark forget data frames."""
    for frame in held:
        frame.unpersist()
    held.clear()


def check_repeats(blocks: DataFrame) -> None:
    """Raise where somebody rated an item twice."""
    n_repeated = sum(-row[0] for row in blocks.select("part").where("part < 0").collect())
    if n_repeated:
        raise DuplicateProblem(
            f"a person must rate an item once, and {n_repeated:,} rows repeat a pair; "
            "settle them in the data frame first"
        )


def checksum_of(rows: Ratings) -> str:
    """Return what tells these ratings from others, whoever the people and items are."""
    digest = hashlib.sha256(repr(rows.shape).encode())
    for part in (rows.csr.indptr, rows.csr.indices, rows.csr.data):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def checksum_of_blocks(blocks: DataFrame) -> str:
    """Return the same for ratings that are in blocks on the cluster already, and in no files."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    found = blocks.select("place", F.sha2("payload", 256)).collect()
    return hashlib.sha256(repr(sorted(map(tuple, found))).encode()).hexdigest()
