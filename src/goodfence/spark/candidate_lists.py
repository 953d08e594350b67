"""Candidate lists on Spark: the same lists as `goodfence.neighbours.candidate_lists`, to the last bit.

    blocks --sample--> thresholds --pairs of blocks--> tiles --by block--> lists [--uncertain rows--> recomputed]

Each arrow is one shuffle. Nothing but counts comes to the driver. A list is uncertain where the threshold of its row
was too high; such rows are compared once more, without a threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from goodfence.arrays import Flags, Float32s, Floats, Rows
from goodfence.kernels.tiles.buffers import MARGIN
from goodfence.kernels.tiles.lists import list_best, place_lists
from goodfence.kernels.tiles.tile import SMALLEST
from goodfence.neighbours.candidate_lists import (
    Axis,
    CandidateLists,
    RowsAgainstAll,
    ShortLists,
    list_length,
)
from goodfence.neighbours.similarity import Similarity
from goodfence.neighbours.threads import ranges
from goodfence.spark import all_pairs, shuffle
from goodfence.spark.all_pairs import ListSettings, check_comparable, with_thresholds
from goodfence.spark.config import Checkpoint, SparkConfig, checkpoints
from goodfence.spark.id_index import with_ids
from goodfence.spark.messages import (
    Block,
    BlockLists,
    Candidates,
    Message,
    NumberedLists,
    NumberedRows,
    RaggedLists,
)
from goodfence.spark.ratings import Rated, RatingBlocks, chosen_rows, opened, profiles_of
from goodfence.spark.session import config_of, job
from goodfence.spark.shuffle import Inbox

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = {"indices": "int", "similarities": "double"}
_TILE_CHECKPOINTS = 32
"""In how many parts, at most, the tiles are written where there is a work folder."""
_WAITING = 3
"""How many times what can be listed may wait to be merged."""
ROWS_TOGETHER = 1024
"""About how many uncertain rows of different blocks are compared in one task."""


def candidate_lists(
    ratings: Rated,
    *,
    n: int,
    axis: Axis = "user",
    similarity: Similarity | str = "cosine",
    short_lists: ShortLists = "error",
    spark: SparkSession | None = None,
    config: SparkConfig | None = None,
) -> Any:
    """Return for every row the n most similar other rows, exactly.

    Parameters
    ----------
    ratings : Ratings, DataFrame or path
        Who rated what how: `Ratings`, a data frame of Spark, or a path: parquet (a file, or a folder of them) or a
        text file. Of the last two no rating comes to the driver.
    n : int
        The length of each list.
    axis, similarity, short_lists
        As in `goodfence.candidate_lists`.
    spark : SparkSession, optional
        The session; None for the one that runs, or a new one on this machine.
    config : SparkConfig, optional
        How the job runs: memory, blocks, a work folder. It changes nothing in the lists.

    Returns
    -------
    CandidateLists or DataFrame
        For `Ratings` the arrays of the local engine. Otherwise a data frame with `id`, `row`, `indices` and
        `similarities`, complete; after its `unpersist` ask again.
    """
    settled = config_of(spark, config)
    measure = Similarity.of(similarity)
    check_comparable(measure)
    with opened(ratings, axis, lambda rows: list_length(n, rows - 1, short_lists), settled) as rows:
        layout = rows.layout
        length = list_length(n, layout.n_rows - 1, short_lists)
        settings = ListSettings(n=length, layout=layout, similarity=measure)
        n_tasks = layout.n_tiles + 2 * layout.n_blocks
        with lists_of(rows, settings, settled, "candidate lists", n_tasks) as lists:
            if rows.ids:
                return with_ids(lists, BlockLists, rows.ids[0], layout.block_rows, _COLUMNS)
            found = shuffle.collect(lists, BlockLists)
    return CandidateLists(
        np.concatenate([one.indices for one in found]),
        np.concatenate([one.similarities for one in found]),
    )


@contextmanager
def lists_of(
    rows: RatingBlocks, settings: ListSettings, config: SparkConfig, what: str, n_tasks: int
) -> Iterator[DataFrame]:
    """Run a job that goes on with `BlockLists` of each block."""
    fingerprint = {"ratings": rows.checksum, **asdict(settings)}
    with checkpoints(config, fingerprint) as checkpoint, job(config, what, n_tasks):
        yield _lists(rows, settings, checkpoint)


def _lists(rows: RatingBlocks, settings: ListSettings, checkpoint: Checkpoint) -> DataFrame:
    blocks = checkpoint.keep("blocks", lambda: with_thresholds(rows, settings))
    n_blocks = settings.layout.n_blocks
    tasks = partial(merge_block, settings.n), partial(combine_waiting, settings.n)
    with shuffle.released_early() as release:
        found = _found(blocks, settings, checkpoint)
    lists = checkpoint.keep("lists", lambda: shuffle.shuffle(found, n_blocks, *tasks))
    uncertain = [0] * n_blocks
    for partition, count in lists.select("partition", "count").collect():
        uncertain[partition] = count
    release()
    if not any(uncertain):
        return lists
    recomputation = Recomputation.of(uncertain, settings)
    return checkpoint.keep("recomputed", lambda: recomputation.recompute(blocks, lists))


def _found(blocks: DataFrame, settings: ListSettings, checkpoint: Checkpoint) -> DataFrame:
    """Return what all tiles find; in parts, each with a checkpoint, where there is a work folder."""
    n_tiles = settings.layout.n_tiles
    if not checkpoint.in_folder:
        return all_pairs.compare_tiles(blocks, settings, 0, n_tiles)

    def part(first: int, last: int) -> DataFrame:
        compared = partial(all_pairs.compare_tiles, blocks, settings, first, last)
        return checkpoint.keep(f"tiles-{first}-{last - 1}", compared)

    parts = ranges(n_tiles, -(-n_tiles // _TILE_CHECKPOINTS))
    return reduce(lambda one, other: one.union(other), (part(*piece) for piece in parts))


def merge_block(n: int, partition: int, inbox: Inbox) -> Iterator[BlockLists]:
    """Send the lists of a block, from everything that the tiles found for it."""
    candidates = inbox.every(Candidates)
    slices = {one.first: len(one.lengths) for one in candidates}
    begin, n_rows = min(slices), sum(slices.values())
    indices, similarities = np.empty((n_rows, n), np.int32), np.empty((n_rows, n))
    uncertain, bounds = np.empty(n_rows, np.bool_), np.empty(n_rows)
    bounded = candidates[0].bounds is not None
    for first, count in slices.items():
        found = [one for one in candidates if one.first == first]
        own = slice(first - begin, first - begin + count)
        indices[own], similarities[own], lengths = merge(found, count, n)
        uncertain[own] = _uncertain(similarities[own], lengths, _thresholds(found))
        filled = np.where(uncertain[own], n, lengths)
        fill_up(indices[own], similarities[own], filled, first)
        if bounded:
            bounds[own] = _largest(found)
    rows = np.flatnonzero(uncertain)
    rs = bounds if bounded else None
    yield BlockLists(partition, partition, begin, indices, similarities, rows, rs, count=len(rows))


def combine_waiting(n: int, waiting: Sequence[Message]) -> list[Message]:
    """Merge what has come so far where it is much: only the n best of each row can be listed in the end."""
    candidates = [one for one in waiting if isinstance(one, Candidates)]
    last = candidates[-1]
    found = [one for one in candidates if one.first == last.first]
    n_rows = len(last.lengths)
    if len(found) == 1 or sum(len(one.indices) for one in found) <= _WAITING * n_rows * n:
        return list(waiting)
    indices, similarities, lengths = merge(found, n_rows, n)
    listed = np.arange(n) < lengths[:, np.newaxis]
    bounds = None if last.bounds is None else _largest(found)
    lists = (lengths, indices[listed], similarities[listed])
    combined = Candidates(last.partition, -1, *lists, last.first, bounds, _thresholds(found))
    return [*(one for one in candidates if one.first != last.first), combined]


def merge(found: Sequence[RaggedLists], n_owners: int, n: int) -> tuple[Rows, Floats, Rows]:
    """Return the n best of everything that was found for each owner, and how many there were."""
    counts = np.sum([one.lengths for one in found], axis=0, dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)])
    rows, values = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1])
    positions = starts[:-1].copy()
    for one in found:
        place_lists(one.lengths, one.indices, one.values, positions, rows, values)
    lengths = np.zeros(n_owners, dtype=np.int32)
    indices = np.full((n_owners, n), -1, dtype=np.int32)
    similarities = np.zeros((n_owners, n))
    list_best(starts, rows, values, indices, similarities, lengths)
    return indices, similarities, lengths


def _largest(found: Sequence[Candidates]) -> Floats:
    """Return RS of each row: the largest of what the tiles say."""
    largest: Floats = np.max([one.bounds for one in found if one.bounds is not None], axis=0)
    return largest


def _thresholds(found: Sequence[Candidates]) -> Float32s | None:
    """Return the thresholds of the rows, which one tile sent, if there are any."""
    return next((one.thresholds for one in found if one.thresholds is not None), None)


def fill_up(indices: Rows, similarities: Floats, lengths: Rows, first: int) -> None:
    """Go on with rows of similarity zero, in row order, where fewer than n were found."""
    n = indices.shape[1]
    for row in np.flatnonzero(lengths < n):
        found = indices[row, : lengths[row]]
        free = np.ones(n + 1, dtype=np.bool_)  # of n + 1 rows, as many are free as are wanted
        free[found[found <= n]] = False
        if first + row <= n:
            free[first + row] = False
        indices[row, lengths[row] :] = np.flatnonzero(free)[: n - lengths[row]]
        similarities[row, lengths[row] :] = 0.0


def _uncertain(similarities: Floats, lengths: Rows, thresholds: Float32s | None) -> Flags:
    """Return which rows may miss a candidate: the last of n is not clearly above what was turned away."""
    if thresholds is None:
        return np.zeros(len(lengths), dtype=np.bool_)
    last = np.where(lengths == similarities.shape[1], similarities[:, -1], 0.0)
    uncertain: Flags = (thresholds > SMALLEST) & (last * MARGIN < thresholds)
    return uncertain


@dataclass(frozen=True, slots=True)
class Recomputation:
    """How single rows are compared with all blocks."""

    n: int
    """The length of the lists."""
    factor: int
    """What makes every rating an integer."""
    groups: tuple[int, ...]
    """(blocks,): which rows are compared together."""

    @classmethod
    def of(cls, uncertain: Sequence[int], settings: ListSettings) -> Recomputation:
        """Plan for this number of uncertain rows in each block."""
        before = np.cumsum([0, *uncertain[:-1]])
        groups = tuple((before // ROWS_TOGETHER).tolist())
        return cls(settings.n, settings.layout.factor, groups)

    def recompute(self, blocks: DataFrame, lists: DataFrame) -> DataFrame:
        """Return the lists after those that were uncertain have been made anew."""
        n_blocks, n_groups = len(self.groups), max(self.groups) + 1
        rows = shuffle.shuffle(blocks.union(lists), n_blocks, self.send_rows)
        every = f"sequence(0, {n_groups - 1})"
        partitions = f"explode(transform({every}, group -> group * {n_blocks} + partition))"
        together = rows.union(shuffle.resend(blocks, partitions))
        found = shuffle.shuffle(together, n_groups * n_blocks, self.compare)
        return shuffle.shuffle(lists.union(found), n_blocks, self.replace_lists)

    def send_rows(self, partition: int, inbox: Inbox) -> Iterator[NumberedRows]:
        """Send the rows of a block whose lists are uncertain, to every block."""
        block, uncertain = inbox.only(Block), inbox.only(BlockLists).uncertain
        if len(uncertain):
            first = self.groups[partition] * len(self.groups)
            rows = chosen_rows(block, uncertain + block.first, first, partition)
            for other in range(len(self.groups)):
                yield replace(rows, partition=first + other)

    def compare(self, partition: int, inbox: Inbox) -> Iterator[NumberedLists]:
        """Compare all rows that came here with the one block that came here."""
        block = inbox.only(Block)
        engine = RowsAgainstAll(profiles_of([block], self.factor), Similarity())
        n = min(self.n + 1, len(block.counts))  # one more: a row may find itself
        for sent in inbox.every(NumberedRows):
            own, every = profiles_of([sent], self.factor), np.arange(len(sent.counts))
            indices, values = engine.nearest(own, every, n, themselves=False, threads=1)
            rows = indices + np.int32(block.first)
            others = rows != sent.numbers[:, np.newaxis]
            lengths = others.sum(axis=1, dtype=np.int32)
            lists = (lengths, rows[others], values[others])
            yield NumberedLists(sent.sender, partition, *lists, sent.numbers)

    def replace_lists(self, _partition: int, inbox: Inbox) -> Iterator[BlockLists]:
        """Send the lists of a block with those that were recomputed in place of the uncertain ones."""
        lists, found = inbox.only(BlockLists), inbox.every(NumberedLists)
        if found:
            own = found[0].numbers - lists.first
            indices, similarities = lists.indices.copy(), lists.similarities.copy()
            indices[own], similarities[own], _ = merge(found, len(own), self.n)
            lists = replace(lists, indices=indices, similarities=similarities)
        yield lists
