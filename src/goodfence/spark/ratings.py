"""Ratings on a cluster: from a path, a data frame or `Ratings` to blocks of rows, and what the driver knows of them.

A chunk learns the numbers of its ids and sends to each block what is of its rows; a block puts its parts together.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from scipy import sparse

from goodfence.arrays import Integers, Rows
from goodfence.data.columns import ROLES
from goodfence.data.frame import Duplicates, ReadOptions, find_repeats
from goodfence.data.ids import code_ids
from goodfence.data.matrix import liked_cells
from goodfence.data.ratings import Ratings
from goodfence.data.scale import check_spread, warn_of_sentinels
from goodfence.errors import DuplicateProblem, GoodfenceWarning, require
from goodfence.neighbours.candidate_lists import Axis, rows_along
from goodfence.neighbours.similarity import Profiles, grid_of
from goodfence.parallel import ranges
from goodfence.spark import chunks, shuffle
from goodfence.spark.chunks import Encoder, narrow, smallest
from goodfence.spark.id_index import IdIndex, index_ids
from goodfence.spark.messages import (
    AnyNumbers,
    Block,
    BlockPart,
    ChunkFacts,
    ChunkIds,
    ChunkRatings,
    IdPositions,
    NumberedRows,
    SparseRows,
    Totals,
)
from goodfence.spark.session import SparkConfig, failures_in_one_sentence, planned_once
from goodfence.spark.shuffle import Inbox, Persist

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Rated: TypeAlias = "Ratings | DataFrame | str | os.PathLike[str]"
ListLength: TypeAlias = Callable[[int], int]  # of the number of rows


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockLayout:
    """How rows are cut in blocks: small, and known to every task."""

    n_rows: int
    n_columns: int
    n_ratings: int
    block_rows: int  # of each block but the last, which may have fewer
    factor: int = 0  # what makes every rating an integer, 0 where nothing does
    lowest: float = 0.0  # rating

    @property
    def n_blocks(self) -> int:
        """The number of blocks."""
        return -(-self.n_rows // self.block_rows)

    @property
    def n_tiles(self) -> int:
        """The number of pairs of blocks, each block with itself included."""
        return self.n_blocks * (self.n_blocks + 1) // 2


@dataclass(frozen=True, eq=False, kw_only=True)
class RatingBlocks:
    """Rows to be compared, in blocks."""

    blocks: DataFrame  # `Block` of each, at the partition of its number
    layout: BlockLayout
    ids: tuple[IdIndex, ...] = ()  # of rows and columns; none where the ratings are of this machine

    def collect(self, axis: Axis, config: SparkConfig) -> Ratings:
        """Return all ratings on the driver, with their ids: what a saved model holds."""
        rows = merged_rows(shuffle.collect(self.blocks, Block))
        csr = rows if axis == "user" else sparse.csr_array(rows.T.tocsr())
        indices = self.ids if axis == "user" else self.ids[::-1]
        users, items = (
            code_ids(pa.chunked_array([index.collect()]), role, f"{role}s").ids
            for index, role in zip(indices, ROLES, strict=False)
        )
        read = config.read
        how: dict[str, Any] = {"items_declared": False}
        if read.likes is not None or not read.rated:
            return Ratings(csr, users, items, feedback="implicit", liked_from=read.likes, **how)
        if read.scale is None:
            warn_of_sentinels(csr.data, "rating")
        return Ratings(csr, users, items, read.scale, **how)

    def checksum(self, axis: Axis) -> str:
        """Return what tells these ratings from others, whoever the users and items are, in whatever blocks."""
        found = shuffle.collect(shuffle.run_tasks(self.blocks, partial(hash_cells, axis)), Totals)
        return f"{sum(int(one.totals[0]) for one in found) % 2**64:016x}"


def hash_cells(axis: Axis, partition: int, inbox: Inbox) -> Iterator[Totals]:
    """Send the sum of the hashes of all cells of a block."""
    block = inbox.only(Block)
    cells = np.repeat(block.numbers, block.counts), block.columns
    users, items = (one.astype(np.uint64) for one in (cells if axis == "user" else cells[::-1]))
    hashed: Any = (users << np.uint64(32)) + items
    for value in (np.zeros(len(hashed), dtype=np.uint64), block.ratings.astype(np.float64).view(np.uint64)):
        hashed = (hashed ^ value ^ (hashed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    yield Totals(partition, partition, (hashed ^ (hashed >> np.uint64(32))).sum(keepdims=True))


@contextmanager
def open_ratings(ratings: Rated, axis: Axis, length: ListLength, config: SparkConfig) -> Iterator[RatingBlocks]:
    """Bring ratings of any kind into blocks for lists of `length(rows)`, for as long as they are needed."""
    require(axis in ("user", "item"), "axis", "'user' or 'item'", axis)
    with shuffle.spill_directory(config), shuffle.persisting() as persist:
        with failures_in_one_sentence(), planned_once(config.spark):
            if isinstance(ratings, Ratings):
                rows = _of_this_machine(rows_along(ratings, axis).csr, length, config)
            else:
                encoded = persist(chunks.encode(ratings, config))
                rows = _of_chunks(encoded, axis, length, config, persist)
        yield rows


def _of_this_machine(csr: sparse.csr_array, length: ListLength, config: SparkConfig) -> RatingBlocks:
    layout = BlockLayout(
        n_rows=csr.shape[0],
        n_columns=csr.shape[1],
        n_ratings=csr.nnz,
        block_rows=config.rows_of_a_block(csr.shape[0], csr.nnz, length(csr.shape[0])),
        factor=grid_of(csr.data),
        lowest=float(csr.data.min(initial=0.0)),
    )
    blocks = shuffle.frame_of(config.spark, cut_in_blocks(csr, layout.block_rows))
    return RatingBlocks(blocks=blocks, layout=layout)


def _of_chunks(
    encoded: DataFrame, axis: Axis, length: ListLength, config: SparkConfig, persist: Persist
) -> RatingBlocks:
    read = config.read
    facts = chunks.facts_of(encoded, "rating" if read.rated else "weight")
    ids, ratings = (chunks.numbered(shuffle.of_kind(encoded, kind), facts) for kind in (ChunkIds, ChunkRatings))
    users, items, positions = index_ids(ids, facts, config.memory, persist)
    rows, columns = (users, items) if axis == "user" else (items, users)
    layout = BlockLayout(
        n_rows=rows.n,
        n_columns=columns.n,
        n_ratings=facts.n_ratings,
        block_rows=config.rows_of_a_block(rows.n, facts.n_ratings, length(rows.n)),
    )
    assembly = BlockAssembly(layout, axis, users.starts, users.n_ranges, read.repeated, read.likes)
    sent = shuffle.shuffle(ratings.union(positions), len(facts.chunks), assembly.split)
    blocks = persist(shuffle.shuffle(sent, layout.n_blocks, assembly.assemble))
    if _n_repeated(blocks, read) or read.likes is not None:
        encoder = Encoder.of(config)
        encoder = encoder if read.likes is None else replace(encoder, scale=None)
        facts = chunks.facts_of(shuffle.run_tasks(blocks, partial(examine, encoder)))
    factor, lowest = chunks.grid_factor(facts), -facts.extremes[0]
    events = read.likes is not None or not read.rated
    if lowest == facts.extremes[1] and read.scale is None and not events:
        check_spread(np.broadcast_to(lowest, facts.n_ratings), "rating")
    exact = replace(layout, n_ratings=facts.n_ratings, factor=factor, lowest=lowest)
    return RatingBlocks(blocks=blocks, layout=exact, ids=(rows, columns))


def _n_repeated(blocks: DataFrame, read: ReadOptions) -> int:
    """Return how many ratings repeat a pair of user and item, after an error or a warning where there are any."""
    n_repeated = sum(int(row[0]) for row in blocks.select("count").where("count > 0").collect())
    if n_repeated and read.repeated == "error":
        rule, rest = "a user must rate an item once", "last, first or mean, or settle them first"
        if not read.rated:
            rule, rest = "an event must happen once", "once, count, or sum of a named weight"
        raise DuplicateProblem(
            f"{rule}, and {n_repeated:,} rows repeat a pair; choose with read='duplicates=...' (--read): {rest}"
        )
    if n_repeated and read.rated:
        text = f"{n_repeated:,} ratings repeat a pair of user and item; kept the {read.repeated}"
        warnings.warn(text, GoodfenceWarning, stacklevel=2)
    return n_repeated


def examine(encoder: Encoder, partition: int, inbox: Inbox) -> Iterator[ChunkFacts]:
    """Send the facts of a block, after repeated pairs were settled."""
    values = pa.array(inbox.only(Block).ratings.astype(np.float64))
    if not len(values):  # nothing in it was liked
        yield ChunkFacts(0, partition)
    else:
        yield encoder.examine(pa.table([values] * 3, names=list(ROLES)), partition, 0)[0]


@dataclass(frozen=True, slots=True)
class BlockAssembly:
    """How the ratings of chunks come into blocks."""

    layout: BlockLayout
    axis: Axis
    starts: tuple[int, ...]  # as in `IdIndex`
    n_user_ranges: int
    duplicates: Duplicates = "error"  # which rating of a repeated pair counts
    likes: float | None = None  # the least rating that counts as an event

    def split(self, partition: int, inbox: Inbox) -> Iterator[BlockPart]:
        """Send the ratings of one chunk to the blocks of their rows, by the numbers of rows and columns."""
        chunk, every = inbox.only(ChunkRatings), inbox.every(IdPositions)
        users = self._numbers([one for one in every if one.sender < self.n_user_ranges])
        items = self._numbers([one for one in every if one.sender >= self.n_user_ranges])
        same = all(one.stamp == chunk.stamp for one in every)
        if not same or [len(users), len(items)] != chunk.n_ids:
            raise RuntimeError("the data frame must give the same ratings each time")
        rows, columns = users[chunk.users], items[chunk.items]
        if self.axis == "item":
            rows, columns = columns, rows
        size = self.layout.block_rows
        for block, own in self._by_block(rows):
            local = (rows[own] - block * size).astype(narrow(size))
            seen = columns[own].astype(narrow(self.layout.n_columns))
            yield BlockPart(block, partition, local, seen, chunk.ratings[own])

    def assemble(self, partition: int, inbox: Inbox) -> Iterator[Block]:
        """Send the one block whose parts came here; the count is that of repeated pairs."""
        parts = [(part.rows, part.columns, part.ratings) for part in inbox.every(BlockPart)]
        first, n_columns = partition * self.layout.block_rows, self.layout.n_columns
        shape = (min(self.layout.block_rows, self.layout.n_rows - first), n_columns)
        rows, columns, ratings = map(np.concatenate, zip(*parts, strict=True))
        csr = sparse.csr_array((ratings, (rows, columns)), shape=shape)
        csr.sum_duplicates()
        n_repeated = len(ratings) - csr.nnz
        if n_repeated and self.duplicates != "error":
            repeats = find_repeats(rows, columns, n_columns)
            kept = repeats.settled(ratings.astype(np.float64), self.duplicates)
            csr = sparse.csr_array((kept, csr.indices, csr.indptr), shape=shape)
        if self.likes is not None:
            csr = liked_cells(csr, self.likes)
        yield Block(partition, partition, *compact(csr), first, count=n_repeated)

    def _by_block(self, rows: Rows) -> Iterator[tuple[int, Any]]:
        """Yield the blocks that have some of the rows, and where these are."""
        blocks: AnyNumbers = (rows // self.layout.block_rows).astype(narrow(self.layout.n_blocks))
        ascending = bool((blocks[1:] >= blocks[:-1]).all())
        order = None if ascending else np.argsort(blocks, kind="stable")
        counts = np.bincount(blocks)
        ends = np.cumsum(counts)
        for block in np.flatnonzero(counts).tolist():
            own = slice(ends[block] - counts[block], ends[block])
            yield block, own if order is None else order[own]

    def _numbers(self, positions: list[IdPositions]) -> Rows:
        """Return the numbers of the ids of a chunk, in order, from their positions in their ranges."""
        parts = [one.positions + np.int32(self.starts[one.sender]) for one in positions]
        return np.concatenate(parts) if parts else np.empty(0, np.int32)


def cut_in_blocks(csr: sparse.csr_array, n_rows: int) -> list[Block]:
    """Return a matrix in blocks of at most `n_rows` rows."""
    pieces = enumerate(ranges(csr.shape[0], n_rows))
    return [Block(number, number, *compact(csr[slice(*p)]), p[0]) for number, p in pieces]


def compact(csr: sparse.csr_array) -> tuple[int, Rows, AnyNumbers, AnyNumbers]:
    """Return a matrix as the fields of `SparseRows`, in the smallest types that hold them exactly."""
    n_columns = csr.shape[1]
    counts = np.diff(csr.indptr).astype(np.int32)
    return n_columns, counts, csr.indices.astype(narrow(n_columns), copy=False), smallest(csr.data)


def chosen_rows(block: Block, numbers: Integers, partition: int, sender: int) -> NumberedRows:
    """Return some rows of a block, for another partition."""
    rows = merged_rows([block])[numbers - block.first]
    return NumberedRows(partition, sender, *compact(rows), numbers)


def merged_rows(parts: Sequence[SparseRows]) -> sparse.csr_array:
    """Return the rows of several messages as one matrix, as they were given."""
    return profiles_of(parts, 0).rows


def profiles_of(parts: Sequence[SparseRows], factor: int, *, spare: bool = False) -> Profiles:
    """Lay out the rows of messages together, in the units in which all are compared; `spare` adds an empty row."""
    ratings = np.concatenate([part.ratings for part in parts])
    values = np.asarray(ratings, dtype=np.float64)
    if factor and (factor > 1 or ratings.dtype != np.uint8):
        values = np.rint(values * factor)
    indices = np.concatenate([part.columns for part in parts]).astype(np.int32, copy=False)
    counts = [part.counts for part in parts] + [np.zeros(int(spare), dtype=np.int32)]
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int32)
    for array in (values, indices, indptr):
        array.flags.writeable = False  # the kernels are compiled for such, as everywhere
    shape = (len(indptr) - 1, parts[0].n_columns)
    return Profiles(sparse.csr_array((values, indices, indptr), shape=shape, copy=False), factor)
