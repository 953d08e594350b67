"""All pairs by tiles: one task for each pair of blocks, with the kernel of the local engine in each.

A sample of all rows gives every row a first threshold, so that a tile sends no more than may be listed. Without it
every tile would send n candidates for each of its rows, and most of what is shuffled would be thrown away. The sample
has the same number of rows whatever the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations_with_replacement, pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from goodfence.arrays import Floats, Integers, Rows
from goodfence.errors import require
from goodfence.kernels.tiles.strips import WIDTH
from goodfence.kernels.tiles.tile import SMALLEST
from goodfence.neighbours import all_pairs as tiles
from goodfence.neighbours.candidate_lists import RowsAgainstAll
from goodfence.neighbours.similarity import Profiles, Similarity
from goodfence.neighbours.threads import ranges
from goodfence.selection.sensitivity import Sensitivity, sensitivities
from goodfence.spark import shuffle
from goodfence.spark.messages import Block, Candidates, NumberedRows
from goodfence.spark.ratings import (
    BlockLayout,
    RatingBlocks,
    chosen_rows,
    compact,
    merged_rows,
    profiles_of,
)
from goodfence.spark.shuffle import Inbox

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FoundIn: TypeAlias = Callable[[int, int], tiles.Found]
"""From the first and the last of some rows of a block, counted in the block, to what they have found."""
_SLICE = 1 << 19
"""About how many candidates are sent together."""
_DEVIATIONS = 5.5
"""How far below what is expected a threshold is: by the distribution of the sample fewer than one row in five thousand
is then uncertain. To recompute them would take three more shuffles, and what is sent in vain takes less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSettings:
    """How rows are compared: the same for every task, and small."""

    n: int
    """The length of the lists."""
    layout: BlockLayout
    similarity: Similarity
    bounds: Sensitivity | None = None
    """Which sensitivity of each row is wanted beside its list, if any."""

    @property
    def by_kernel(self) -> bool:
        """Whether the kernels of the tiles are used: for the cosine of non-negative integer ratings."""
        return self.layout.by_kernel(self.similarity)

    @property
    def sample(self) -> Integers:
        """The numbers of the rows of the sample; none where there are too few for it to be small beside them."""
        n_rows = self.layout.n_rows
        if not self.by_kernel or n_rows <= 4 * tiles.SAMPLE:
            return np.empty(0, dtype=np.int64)
        return np.arange(tiles.SAMPLE) * n_rows // tiles.SAMPLE

    @property
    def rows_of_a_slice(self) -> int:
        """Of how many rows the lists are sent, and later merged, together.

        A part of a block: so that memory for all the candidates of a block is taken once, and not at every step.
        """
        return max(1, _SLICE // self.n)


def check_comparable(similarity: Similarity) -> None:
    """Raise unless rows are compared as they were rated: means and biases are of all ratings, and no task has those."""
    rule = "cosine, cosine_corated, pearson, jaccard or msd on Spark"
    require(similarity.base("user") is None, "similarity", rule, similarity.name)


def with_thresholds(rows: RatingBlocks, settings: ListSettings) -> DataFrame:
    """Return the blocks, with a threshold for each row where that pays."""
    numbers = settings.sample
    if not len(numbers):
        return rows.blocks
    if rows.matrix is None:
        taken = shuffle.run_tasks(rows.blocks, partial(take_sample, settings))
        sample = shuffle.shuffle(taken, 1, partial(spread_sample, settings))
    else:
        own = NumberedRows(0, 0, *compact(rows.matrix[numbers]), numbers)
        spread = spread_sample(settings, 0, Inbox([own]))
        sample = shuffle.frame_of(rows.blocks.sparkSession, spread)
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
    pairs.estimate_from(rows, _positions(sample.numbers - block.first, order), rank)
    thresholds = np.empty(n_rows, dtype=np.float32)
    thresholds[order] = pairs.buffers.thresholds[:n_rows]
    yield replace(block, thresholds=thresholds)


def _positions(rows: Integers, order: Rows) -> Integers:
    """Return the position of each row in `order`, -1 for those that are not there."""
    positions = np.empty(len(order), dtype=np.int64)
    positions[order] = np.arange(len(order))
    inside = (rows >= 0) & (rows < len(order))
    return np.where(inside, positions[np.where(inside, rows, 0)], -1)


def tile_number(a: int, b: int, n_blocks: int) -> int:
    """Return the number of tile (a, b), a <= b.

    Two different blocks are twice the work of one with itself. They come first, so the last tasks are short ones.

    Examples
    --------
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
    bounds = _bounds(settings, blocks, profiles)
    for block, find, rs in zip(blocks, found, bounds, strict=True):
        thresholds = block.thresholds if len(blocks) == 1 else None  # once is enough
        for first, last in ranges(len(block.counts), settings.rows_of_a_slice):
            own = find(first, last)
            yield Candidates(
                block.sender,
                partition,
                *own,
                block.first + first,
                None if rs is None else rs[first:last],
                None if thresholds is None else thresholds[first:last],
            )


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


def _bounds(
    settings: ListSettings, blocks: Sequence[Block], profiles: Profiles
) -> Sequence[Floats | None]:
    """Return RS of every row, among the rows of this tile: the largest of all tiles is RS among all rows."""
    if settings.bounds is None:
        return [None] * len(blocks)
    values = sensitivities(profiles.rows, settings.bounds)
    ends = np.cumsum([len(block.counts) for block in blocks])
    return np.split(values, ends)[: len(blocks)]


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

    A pair costs what the ratings of the row that is first cost, so the parts of all blocks are sorted by norm. The
    spare row fills a part up before the next begins.
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
