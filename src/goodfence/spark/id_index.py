"""The index of ids: their row and column numbers, on the cluster, in the order in which `Ratings` numbers them.

Ids are shared out in ranges, of users and of items; a task for each range sorts the ids of all chunks (integers by
value, text by code point), and tells each chunk where its own ones are. Numbers, not ids, then decide ties.
"""

from __future__ import annotations

import secrets
import shutil
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from goodfence.errors import SizeProblem
from goodfence.parallel import ranges
from goodfence.spark import shuffle
from goodfence.spark.chunks import coded
from goodfence.spark.messages import (
    BlockLists,
    BlockNeighbours,
    ChunkFacts,
    ChunkIds,
    IdPositions,
    IdsInRange,
    Message,
    SortedIds,
    from_arrow,
)
from goodfence.spark.session import Batches, BatchTask, map_batches
from goodfence.spark.shuffle import Inbox, Persist

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Borders: TypeAlias = tuple[int | str, ...]  # the lowest id of each range but the first
_MOST = np.iinfo(np.int32).max
_COPIES = 8  # about how many times a task holds the ids of a range while it sorts them
_SAMPLED = 32  # ids for each range that say where its borders are
_ENTRIES_AT_A_TIME = 1 << 20  # list entries that Spark takes while the next are made


@dataclass(frozen=True, slots=True, repr=False)
class IdRanges:
    """How ids are shared out: the ranges of the users, then those of the items."""

    user_borders: Borders = ()
    item_borders: Borders = ()

    @property
    def n_users(self) -> int:
        """The number of ranges of users."""
        return len(self.user_borders) + 1

    @property
    def n(self) -> int:
        """The number of ranges."""
        return self.n_users + len(self.item_borders) + 1

    def share(self, partition: int, inbox: Inbox) -> Iterator[IdsInRange]:
        """Send the ids of one chunk to their ranges."""
        chunk = inbox.only(ChunkIds)
        parts = cut_at(chunk.users, self.user_borders) + cut_at(chunk.items, self.item_borders)
        for number, ids in enumerate(parts):
            if len(ids):
                yield IdsInRange(number, partition, chunk.stamp, ids)

    def sort(self, partition: int, inbox: Inbox) -> Iterator[Message]:
        """Send the ids of one range in order; and to each chunk where its own are among them."""
        shared = inbox.every(IdsInRange)
        ids, codes = coded(pa.chunked_array([one.ids for one in shared]))
        yield SortedIds(partition, partition, ids, count=len(ids))
        ends = np.cumsum([len(one.ids) for one in shared])
        for one, own in zip(shared, np.split(codes, ends[:-1]), strict=True):
            yield IdPositions(one.sender, partition, one.stamp, own)


def cut_at(ids: pa.Array, borders: Borders) -> list[pa.Array]:
    """Return sorted ids in parts: one begins at the first id that is not below a border."""
    found = (bisect_left(ids, border, key=lambda one: one.as_py()) for border in borders)
    return [ids[first:last] for first, last in pairwise([0, *found, len(ids)])]


def sample_ids(n_ranges: Sequence[int], id_bytes: Sequence[int], partition: int, inbox: Inbox) -> Iterator[ChunkIds]:
    """Send ids of one chunk, the same number apart from each other, and more of a larger chunk."""
    chunk, sampled = inbox.only(ChunkIds), []
    for ids, n, n_bytes in zip((chunk.users, chunk.items), n_ranges, id_bytes, strict=True):
        n_own = min(len(ids), -(-_SAMPLED * n * ids.nbytes // n_bytes))
        sampled.append(ids.take((2 * np.arange(n_own) + 1) * len(ids) // (2 * n_own)))
    yield ChunkIds(0, partition, chunk.stamp, *sampled)


def ranges_from(samples: Sequence[ChunkIds], n_ranges: Sequence[int]) -> IdRanges:
    """Return the ranges that share out what the chunks sent in equal parts."""

    def borders(sampled: list[pa.Array], n: int) -> Borders:
        every = sorted(one for part in sampled for one in part.to_pylist())
        return tuple(sorted({every[len(every) * number // n] for number in range(1, n)}))

    kinds = [one.users for one in samples], [one.items for one in samples]
    return IdRanges(*map(borders, kinds, n_ranges))


@dataclass(frozen=True, eq=False)
class IdIndex:
    """The ids of the rows or of the columns, and their numbers."""

    sorted_ids: DataFrame  # `SortedIds` of each range
    starts: tuple[int, ...]  # the number of the first id of each range of users, then of items
    n_ranges: int  # how many ranges are of this kind
    n: int  # how many ids there are
    id_type: str  # as Spark calls it

    @property
    def frame(self) -> DataFrame:
        """Columns `id` and `number`."""
        starts = self.starts

        def arrays_of(one: SortedIds) -> list[Any]:
            return [one.ids, pa.array(starts[one.partition] + np.arange(one.count), pa.int32())]

        schema = f"id {self.id_type}, number int"
        return shuffle.rows_of_messages(self.sorted_ids, SortedIds, arrays_of, schema)

    def of_blocks(self, block_rows: int) -> DataFrame:
        """Return the ids of the rows of each block, on their way to it."""
        return shuffle.run_tasks(self.sorted_ids, partial(send_to_blocks, self.starts, block_rows))

    def collect(self) -> pa.Array:
        """Return all ids, in the order of their numbers, on the driver."""
        return pa.concat_arrays([one.ids for one in shuffle.collect(self.sorted_ids, SortedIds)])


def send_to_blocks(starts: tuple[int, ...], block_rows: int, partition: int, inbox: Inbox) -> Iterator[SortedIds]:
    """Send the ids of one range to the blocks of their rows."""
    ids = inbox.only(SortedIds).ids
    first = starts[partition]
    last = first + len(ids)
    for block in range(first // block_rows, -(-last // block_rows)):
        begin, end = max(first, block * block_rows), min(last, (block + 1) * block_rows)
        yield SortedIds(block, partition, ids[begin - first : end - first])


def index_ids(
    chunk_ids: DataFrame, facts: ChunkFacts, memory: int, persist: Persist
) -> tuple[IdIndex, IdIndex, DataFrame]:
    """Return the index of the users and that of the items, and `IdPositions` for each chunk."""
    most = min(memory, _MOST)  # of text arrow joins no more in one array
    wanted, id_ranges = [-(-_COPIES * n_bytes // most) for n_bytes in facts.id_bytes], IdRanges()
    if wanted != [1, 1]:
        task = partial(sample_ids, wanted, facts.id_bytes)
        samples = shuffle.collect(shuffle.run_tasks(chunk_ids, task), ChunkIds)
        id_ranges = ranges_from(samples, wanted)
    shared = shuffle.run_tasks(chunk_ids, id_ranges.share)
    index = persist(shuffle.shuffle(shared, id_ranges.n, id_ranges.sort))
    sorted_ids = shuffle.of_kind(index, SortedIds)
    counts = np.array(shuffle.counts(sorted_ids, id_ranges.n))
    by_kind = np.split(counts, [id_ranges.n_users])
    if max(int(one.sum()) for one in by_kind) > _MOST:
        raise SizeProblem(f"there must be at most {_MOST:,} ids of each kind, and there are more")
    starts = tuple(np.concatenate([np.cumsum(one) - one for one in by_kind]).tolist())
    indices = []
    for compared, own, id_type in zip(("<", ">="), by_kind, facts.id_types, strict=True):
        ids = sorted_ids.where(f"partition {compared} {id_ranges.n_users}")
        indices.append(IdIndex(ids, starts, len(own), int(own.sum()), id_type))
    return indices[0], indices[1], shuffle.of_kind(index, IdPositions)


def with_ids(
    lists: DataFrame, kind: type[BlockLists | BlockNeighbours], ids: IdIndex, block_rows: int, columns: dict[str, str]
) -> DataFrame:
    """Return, complete, the columns `id`, `row` and one array for each of `columns` (name: type of its elements)."""
    fields = ", ".join(f"{name} array<{element}>" for name, element in columns.items())
    schema = f"id {ids.id_type}, row int, {fields}"
    # The ids come to the messages of their blocks: a join of the rows would move all their arrays.
    blocks = lists.union(ids.of_blocks(block_rows)).repartitionById(-(-ids.n // block_rows), "partition")
    task = partial(_rows_with_ids, kind, list(columns))
    if shuffle.SPILL.get() is not None:
        return _written(blocks, task, schema)
    return made(map_batches(blocks, task, schema))


def made(frame: DataFrame) -> DataFrame:
    """Return a result after it has been made; Spark holds it."""
    held = frame.persist()
    held.count()
    return held


def _rows_with_ids(kind: type[BlockLists | BlockNeighbours], names: list[str], batches: Batches) -> Batches:
    inbox = Inbox(from_arrow(batches))
    for lists in inbox.every(kind):
        ids = pa.concat_arrays([one.ids for one in inbox.every(SortedIds)])
        matrices = [getattr(lists, name) for name in names]
        n_rows, n = matrices[0].shape
        for begin, end in ranges(n_rows, max(1, _ENTRIES_AT_A_TIME // max(1, n))):
            rows = pa.array(lists.first + np.arange(begin, end), pa.int32())
            starts = pa.array(np.arange(end - begin + 1) * n, pa.int32())
            entries = (pa.array(matrix[begin:end].ravel()) for matrix in matrices)
            arrays = [pa.ListArray.from_arrays(starts, own) for own in entries]
            yield pa.record_batch([ids[begin:end], rows, *arrays], names=["id", "row", *names])


def _written(frame: DataFrame, task: BatchTask, schema: str) -> DataFrame:
    """Return what a task makes of each partition in files, until `unpersist`: Spark would take rows one by one."""
    from pyspark import SparkFiles

    folder = Path(SparkFiles.getRootDirectory()) / f"goodfence-{secrets.token_hex(8)}"
    folder.mkdir()
    plain: Any = {"compression": "none", "use_dictionary": False, "write_statistics": False}

    def write(batches: Batches) -> Batches:
        rows = task(batches)
        for first in rows:
            path = folder / f"{secrets.token_hex(12)}.parquet"
            with parquet.ParquetWriter(path, first.schema, **plain) as file:
                for batch in chain([first], rows):
                    file.write_batch(batch)
            yield pa.record_batch([pa.array([str(path)])], names=["path"])

    def unpersist(blocking: bool = False) -> DataFrame:
        shutil.rmtree(folder, ignore_errors=True)
        return type(result).unpersist(result, blocking)

    # By name: there may be files of attempts that failed, or were slower than others.
    paths = (f"file:{path}" for (path,) in map_batches(frame, write, "path string").collect())
    result = frame.sparkSession.read.schema(schema).parquet(*paths)
    vars(result)["unpersist"] = unpersist
    return result
