"""All pairs by tiles: one task for each pair of blocks, with the kernel of the local engine in each.

    blocks --sample--> thresholds --pairs of blocks--> tiles --by block--> lists [--uncertain rows--> recomputed]

Each arrow is one shuffle, and only counts come to the driver. A sample of all rows gives every row a first threshold:
without it every tile would send n candidates for each of its rows. A list is uncertain where the threshold of its row
may have turned away somebody who belongs to it; such rows are compared once more, without a threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial, reduce
from itertools import combinations_with_replacement, pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from goodfence.arrays import Float32s, Floats, Integers, Rows
from goodfence.kernels.tiles.buffers import MARGIN
from goodfence.kernels.tiles.lists import fill_up, list_best, place_lists
from goodfence.kernels.tiles.strips import WIDTH
from goodfence.kernels.tiles.tile import SMALLEST
from goodfence.neighbours import all_pairs as tiles
from goodfence.neighbours.candidate_lists import RowsAgainstAll
from goodfence.neighbours.similarity import Profiles, Similarity
from goodfence.parallel import ranges
from goodfence.selection.sensitivity import Sensitivity, sensitivities
from goodfence.spark import shuffle
from goodfence.spark.messages import Block, BlockLists, Candidates, Message, NumberedLists, NumberedRows, RaggedLists
from goodfence.spark.ratings import BlockLayout, RatingBlocks, chosen_rows, compact, merged_rows, profiles_of
from goodfence.spark.session import SparkConfig, failures_in_one_sentence, job
from goodfence.spark.shuffle import Checkpoint, Inbox, checkpoints

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FoundIn: TypeAlias = Callable[[int, int], tiles.Found]  # of the rows first..last of a block
_SLICE = 1 << 19  # about how many candidates are sent, and later merged, together
_DEVIATIONS = 5.5  # fewer than one row in 5,000 is uncertain: recomputing takes three more shuffles
_TILE_CHECKPOINTS = 32  # in at most this many parts the tiles are written to a work folder
_WAITING = 3  # how many times what can be listed may wait to be merged
ROWS_TOGETHER = 1024  # about how many uncertain rows of different blocks are compared in one task


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSettings:
    """How rows are compared: the same for every task, and small."""

    n: int
    layout: BlockLayout
    similarity: Similarity
    bounds: Sensitivity | None = None  # the sensitivity of each row that is wanted beside its list

    @property
    def by_kernel(self) -> bool:
        """Whether the kernels of the tiles are used: for the cosine of non-negative integer ratings."""
        layout = self.layout
        return self.similarity.is_plain_cosine and layout.factor > 0 and layout.lowest >= 0

    @property
    def sample(self) -> Integers:
        """The numbers of the rows of the sample; none where there are too few for it to be small beside them."""
        n_rows = self.layout.n_rows
        if not self.by_kernel or n_rows <= 4 * tiles.SAMPLE:
            return np.empty(0, dtype=np.int64)
        return np.arange(tiles.SAMPLE) * n_rows // tiles.SAMPLE


@contextmanager
def lists_of(
    rows: RatingBlocks, settings: ListSettings, config: SparkConfig, what: str, n_tasks: int
) -> Iterator[DataFrame]:
    """Run a job that goes on with `BlockLists` of each block."""
    with failures_in_one_sentence():
        checksum = rows.checksum("user") if config.work else ""
    fingerprint = {"ratings": checksum, **asdict(settings)}
    n_blocks = settings.layout.n_blocks
    tasks = partial(merge_block, settings.n), partial(combine_waiting, settings.n)
    with checkpoints(config, fingerprint) as checkpoint, job(config, what, n_tasks):
        blocks = checkpoint.keep("blocks", lambda: with_thresholds(rows, settings))
        with shuffle.released_early() as release:
            found = compare_in_parts(blocks, settings, checkpoint)
        lists = checkpoint.keep("lists", lambda: shuffle.shuffle(found, n_blocks, *tasks))
        uncertain = shuffle.counts(lists, n_blocks)
        release()
        if any(uncertain):
            recomputation, first = Recomputation.of(uncertain, settings), lists
            lists = checkpoint.keep("recomputed", lambda: recomputation.recompute(blocks, first))
        yield lists


def compare_in_parts(blocks: DataFrame, settings: ListSettings, kept: Checkpoint) -> DataFrame:
    """Return what all tiles find; in parts, each with a checkpoint, where there is a work folder."""
    n_tiles, compare = settings.layout.n_tiles, partial(compare_tiles, blocks, settings)
    if kept.root is None:
        return compare(0, n_tiles)
    parts = [
        kept.keep(f"tiles-{first}-{last - 1}", partial(compare, first, last))
        for first, last in ranges(n_tiles, -(-n_tiles // _TILE_CHECKPOINTS))
    ]
    return reduce(lambda one, other: one.union(other), parts)


def with_thresholds(rows: RatingBlocks, settings: ListSettings) -> DataFrame:
    """Return the blocks, with a threshold for each row where that pays."""
    if not len(settings.sample):
        return rows.blocks
    taken = shuffle.run_tasks(rows.blocks, partial(take_sample, settings))
    sample = shuffle.shuffle(taken, 1, partial(spread_sample, settings))
    together, n_blocks = rows.blocks.union(sample), settings.layout.n_blocks
    return shuffle.shuffle(together, n_blocks, partial(set_thresholds, settings))


def take_sample(settings: ListSettings, partition: int, inbox: Inbox) -> Iterator[NumberedRows]:
    """Send the rows of the sample that are in this block to one partition."""
    block, chosen = inbox.only(Block), settings.sample
    chosen = chosen[np.isin(chosen, block.numbers)]
    if len(chosen):
        yield chosen_rows(block, chosen, 0, partition)


def spread_sample(settings: ListSettings, partition: int, inbox: Inbox) -> Iterator[NumberedRows]:
    """Send the whole sample to every block."""
    together = compact(merged_rows(inbox.every(NumberedRows)))
    for block in range(settings.layout.n_blocks):
        yield NumberedRows(block, partition, *together, settings.sample)


def set_thresholds(settings: ListSettings, _partition: int, inbox: Inbox) -> Iterator[Block]:
    """Send on the block with a threshold for each of its rows."""
    block, sample = inbox.only(Block), inbox.only(NumberedRows)
    profiles = profiles_of([block, sample], settings.layout.factor)
    if not tiles.fits(profiles, Similarity()):
        yield block
        return
    n_rows, n_all = len(block.counts), settings.layout.n_rows
    order = np.argsort(profiles.squared_norms[:n_rows], kind="stable").astype(np.int32)
    pairs = tiles.AllPairs.over(profiles, order, 1, _kernel_block(n_rows), threads=1)
    rows = np.arange(n_rows, profiles.n_rows, dtype=np.int32)
    rank = tiles.sample_rank(tiles.SAMPLE, settings.n, n_all, deviations=_DEVIATIONS)
    local = sample.numbers - block.first
    inside, positions = (local >= 0) & (local < n_rows), np.full(len(local), -1)
    positions[inside] = np.argsort(order)[local[inside]]
    pairs.estimate_from(rows, positions, rank)
    thresholds = np.empty(n_rows, dtype=np.float32)
    thresholds[order] = pairs.buffers.thresholds[:n_rows]
    yield replace(block, thresholds=thresholds)


def tile_number(a: int, b: int, n_blocks: int) -> int:
    """Return the number of tile (a, b), a <= b: first the pairs of two blocks, which are twice the work.

    >>> [tile_number(a, b, 3) for a, b in [(0, 1), (0, 2), (1, 2), (0, 0), (1, 1), (2, 2)]]
    [0, 1, 2, 3, 4, 5]
    """
    if a == b:
        return n_blocks * (n_blocks - 1) // 2 + a
    return a * n_blocks - a * (a + 1) // 2 + b - a - 1


def sent_to_tiles(blocks: DataFrame, n_blocks: int, first: int, last: int) -> DataFrame:
    """Return each block once for each of the tiles first..last that it is part of; `first` is partition 0."""
    own = "bigint(partition)"
    a, b = f"least({own}, other)", f"greatest({own}, other)"
    pair = f"{a} * {n_blocks} - {a} * ({a} + 1) div 2 + {b} - {a} - 1"  # as `tile_number` has it
    others = f"filter(sequence(0L, {n_blocks - 1}L), other -> other != {own})"
    alone = f"array({own} + {n_blocks * (n_blocks - 1) // 2})"
    every = f"concat(transform({others}, other -> {pair}), {alone})"
    numbers = f"filter({every}, tile -> tile >= {first} and tile < {last})"
    return shuffle.resend(blocks, f"explode(transform({numbers}, tile -> int(tile - {first})))")


def compare_tiles(blocks: DataFrame, settings: ListSettings, first: int, last: int) -> DataFrame:
    """Return the `Candidates` that the tiles first..last find, at the partitions of their blocks."""
    sent = sent_to_tiles(blocks, settings.layout.n_blocks, first, last)
    return shuffle.shuffle(sent, last - first, partial(compare_tile, settings))


def compare_tile(settings: ListSettings, partition: int, inbox: Inbox) -> Iterator[Candidates]:
    """Compare the one or two blocks that came here; send each one what it found."""
    blocks = inbox.every(Block)
    profiles = profiles_of(blocks, settings.layout.factor, spare=True)
    if settings.by_kernel and tiles.fits(profiles, settings.similarity):
        found = _found_by_kernel(blocks, profiles, settings.n)
    else:
        pairs = zip(blocks, blocks[::-1], strict=True)
        found = [_found_by_rows(settings, *pair) for pair in pairs]
    bounds: Sequence[Floats | None] = [None] * len(blocks)
    if settings.bounds is not None:
        # Among the rows of this tile: the largest of all tiles is RS among all rows.
        ends = np.cumsum([len(block.counts) for block in blocks])
        bounds = np.split(sensitivities(profiles.rows, settings.bounds), ends)[: len(blocks)]
    for block, find, rs in zip(blocks, found, bounds, strict=True):
        thresholds = block.thresholds if len(blocks) == 1 else None  # once is enough
        for first, last in ranges(len(block.counts), max(1, _SLICE // settings.n)):
            own = None if rs is None else rs[first:last]
            least = None if thresholds is None else thresholds[first:last]
            lists = find(first, last)
            yield Candidates(block.sender, partition, *lists, block.first + first, own, least)


def _found_by_rows(settings: ListSettings, block: Block, other: Block) -> FoundIn:
    """Return the nearest rows in `other` for every row of `block`, one row at a time."""
    own, candidates = (profiles_of([one], settings.layout.factor) for one in (block, other))
    same = block.first == other.first
    n = min(settings.n, len(other.counts) - same)
    engine = RowsAgainstAll(candidates, settings.similarity)
    rows = np.arange(len(block.counts))
    indices, similarities = engine.nearest(own, rows, n, themselves=same, threads=1)
    indices += np.int32(other.first)

    def find(first: int, last: int) -> tiles.Found:
        lengths = np.full(last - first, n, dtype=np.int32)
        return tiles.Found(lengths, indices[first:last].ravel(), similarities[first:last].ravel())

    return find


def _found_by_kernel(blocks: Sequence[Block], profiles: Profiles, n: int) -> list[FoundIn]:
    """Return what each block found in the other, or the one block in itself; similarities above 0 only."""
    sizes = [len(block.counts) for block in blocks]
    starts = np.cumsum([0, *sizes])
    size = _kernel_block(max(sizes))
    order, owners = _lined_up(profiles, starts, size)
    length = min(n, profiles.n_rows - 2) or 1
    pairs = tiles.AllPairs.over(profiles, order, length, size, threads=1)
    thresholds = np.full(profiles.n_rows, SMALLEST)
    for block, start in zip(blocks, starts, strict=False):
        if block.thresholds is not None:
            thresholds[start : start + len(block.counts)] = block.thresholds
    pairs.buffers.thresholds[: len(order)] = thresholds[order]
    for a, b in combinations_with_replacement(range(len(owners)), 2):
        if len(blocks) == 1 or owners[a] != owners[b]:
            pairs.compare(a, b)
    pairs.shorten()
    numbers = np.concatenate([block.numbers for block in blocks]).astype(np.int32)

    def from_row(start: int) -> FoundIn:
        return lambda first, last: pairs.found(start + first, start + last, numbers)

    return [from_row(start) for start in starts[:-1].tolist()]


def _kernel_block(n_rows: int) -> int:
    """Return how many rows the kernels take at a time, of a block of `n_rows`: about equal parts of it."""
    n_parts = -(-n_rows // tiles.BLOCK)
    return -(-n_rows // (n_parts * WIDTH)) * WIDTH


def _lined_up(profiles: Profiles, starts: Integers, size: int) -> tuple[Rows, list[int]]:
    """Return the rows in parts of one block each, by ascending norm, and the block of each part.

    The norm of the first row decides what a pair costs. The spare row fills a part up.
    """
    norms, spare = profiles.squared_norms, profiles.n_rows - 1
    parts: list[tuple[int, Integers]] = []
    for owner, (start, end) in enumerate(pairwise(starts.tolist())):
        rows = start + np.argsort(norms[start:end], kind="stable")
        parts += [(owner, rows[slice(*piece)]) for piece in ranges(end - start, size)]
    parts.sort(key=lambda part: norms[part[1][-1]])
    order = np.full(len(parts) * size, spare, dtype=np.int32)
    for number, (_, rows) in enumerate(parts):
        order[number * size : number * size + len(rows)] = rows
    return order[: (len(parts) - 1) * size + len(parts[-1][1])], [owner for owner, _ in parts]


def merge_block(n: int, partition: int, inbox: Inbox) -> Iterator[BlockLists]:
    """Send the lists of a block, from everything that the tiles found for it."""
    candidates = inbox.every(Candidates)
    slices = {one.first: len(one.lengths) for one in candidates}
    begin, n_rows = min(slices), sum(slices.values())
    indices, similarities = np.empty((n_rows, n), np.int32), np.empty((n_rows, n))
    uncertain = np.zeros(n_rows, np.bool_)
    bounds = None if candidates[0].bounds is None else np.empty(n_rows)
    for first, count in slices.items():
        found = [one for one in candidates if one.first == first]
        own = slice(first - begin, first - begin + count)
        indices[own], similarities[own], lengths = merge(found, count, n)
        rs, thresholds = _beside(found)
        if thresholds is not None:  # the last of n may not be clearly above what was turned away
            last = np.where(lengths == n, similarities[own, -1], 0.0)
            uncertain[own] = (thresholds > SMALLEST) & (last * MARGIN < thresholds)
        fill_up(indices[own], similarities[own], np.where(uncertain[own], n, lengths), first)
        if bounds is not None:
            bounds[own] = rs
    lists = indices, similarities, np.flatnonzero(uncertain), bounds
    yield BlockLists(partition, partition, begin, *lists, count=int(uncertain.sum()))


def combine_waiting(n: int, waiting: Sequence[Message]) -> list[Message]:
    """Merge what has come so far where it is much: only the n best of each row can be listed in the end."""
    candidates = [one for one in waiting if isinstance(one, Candidates)]
    last = candidates[-1]
    found = [one for one in candidates if one.first == last.first]
    n_rows = len(last.lengths)
    if len(found) == 1 or sum(len(one.indices) for one in found) <= _WAITING * n_rows * n:
        return list(waiting)
    lists = ragged(*merge(found, n_rows, n))
    combined = Candidates(last.partition, -1, *lists, last.first, *_beside(found))
    return [*(one for one in candidates if one.first != last.first), combined]


def ragged(indices: Rows, values: Floats, lengths: Rows) -> tuple[Rows, Rows, Floats]:
    """Return lists of these lengths one after the other, as `RaggedLists` has them."""
    listed = np.arange(indices.shape[1]) < lengths[:, np.newaxis]
    return lengths, indices[listed], values[listed]


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


def _beside(found: Sequence[Candidates]) -> tuple[Floats | None, Float32s | None]:
    """Return RS of each row, the largest of what the tiles say, and its threshold, which one tile sent."""
    bounds = [one.bounds for one in found if one.bounds is not None]
    thresholds = (one.thresholds for one in found if one.thresholds is not None)
    return np.max(bounds, axis=0) if bounds else None, next(thresholds, None)


@dataclass(frozen=True, slots=True)
class Recomputation:
    """How single rows are compared with all blocks."""

    settings: ListSettings
    groups: tuple[int, ...]  # (blocks,): which rows are compared together

    @classmethod
    def of(cls, uncertain: Sequence[int], settings: ListSettings) -> Recomputation:
        """Plan for this number of uncertain rows in each block."""
        before = np.cumsum([0, *uncertain[:-1]])
        return cls(settings, tuple((before // ROWS_TOGETHER).tolist()))

    def recompute(self, blocks: DataFrame, lists: DataFrame) -> DataFrame:
        """Return the lists after those that were uncertain have been made anew."""
        n_blocks, n_groups = len(self.groups), max(self.groups) + 1
        rows = shuffle.shuffle(blocks.union(lists), n_blocks, self.send_rows)
        copies = shuffle.resend(blocks, f"one * {n_blocks} + partition", n_groups)
        found = shuffle.shuffle(rows.union(copies), n_groups * n_blocks, self.compare)
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
        block, factor = inbox.only(Block), self.settings.layout.factor
        engine = RowsAgainstAll(profiles_of([block], factor), Similarity())
        n = min(self.settings.n + 1, len(block.counts))  # one more: a row may find itself
        for sent in inbox.every(NumberedRows):
            own, every = profiles_of([sent], factor), np.arange(len(sent.counts))
            indices, values = engine.nearest(own, every, n, themselves=False, threads=1)
            rows = indices + np.int32(block.first)
            others = rows != sent.numbers[:, np.newaxis]
            lists = others.sum(axis=1, dtype=np.int32), rows[others], values[others]
            yield NumberedLists(sent.sender, partition, *lists, sent.numbers)

    def replace_lists(self, _partition: int, inbox: Inbox) -> Iterator[BlockLists]:
        """Send the lists of a block with those that were recomputed in place of the uncertain ones."""
        lists, found = inbox.only(BlockLists), inbox.every(NumberedLists)
        if found:
            own = found[0].numbers - lists.first
            indices, similarities = lists.indices.copy(), lists.similarities.copy()
            indices[own], similarities[own], _ = merge(found, len(own), self.settings.n)
            lists = replace(lists, indices=indices, similarities=similarities)
        yield lists
