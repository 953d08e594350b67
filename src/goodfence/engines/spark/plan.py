"""From blocks to lists: which parcels go where.

    blocks --sample--> thresholds --pairs of blocks--> tiles --by block--> lists [--unsure rows--> again]

Each arrow is one exchange between tasks. Nothing but counts comes to the driver.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from goodfence.engines.local.threads import ranges
from goodfence.engines.spark import parcels
from goodfence.engines.spark.again import Again
from goodfence.engines.spark.comparing import Comparison
from goodfence.engines.spark.guessing import Guessing
from goodfence.engines.spark.kept import Kept
from goodfence.engines.spark.lists import Merging
from goodfence.engines.spark.source import Source
from goodfence.engines.spark.tiling import tiles_of_block

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARTS = 32
"""In so many parts, at most, the tiles are written where there is a work folder."""


def lists_of(source: Source, comparison: Comparison, kept: Kept) -> DataFrame:
    """Return one parcel for each block: its lists of `comparison.n`."""
    blocks = kept.keep("blocks", lambda: _with_guesses(source, comparison))
    with parcels.set_aside() as forget_found:
        found = _found(blocks, source, comparison, kept)
    merging = Merging(n=comparison.n)
    lists = kept.keep(
        "lists",
        lambda: parcels.exchange(found, source.n_blocks, merging.merge, merging.shorten),
    )
    unsure = [0] * source.n_blocks
    for place, count in lists.select("place", "part").collect():
        unsure[place] = count
    forget_found()
    if not any(unsure):
        return lists
    again = Again.of(unsure, n=comparison.n, factor=comparison.factor)
    return kept.keep("settled", lambda: _settled(blocks, lists, again))


def tiles_of(
    blocks: DataFrame, source: Source, comparison: Comparison, first: int, last: int
) -> DataFrame:
    """Return what the tiles first..last find, at the places of the blocks that they found it for."""
    sent = sent_to_tiles(blocks, source.n_blocks, first, last)
    return parcels.exchange(sent, last - first, comparison.tile)


def sent_to_tiles(blocks: DataFrame, n_blocks: int, first: int, last: int) -> DataFrame:
    """Return each block once for each of the tiles first..last that it is part of; `first` is at place 0."""
    numbers = f"filter({tiles_of_block(n_blocks)}, tile -> tile >= {first} and tile < {last})"
    places = f"explode(transform({numbers}, tile -> int(tile - {first})))"
    return blocks.selectExpr(f"{places} as place", "part", "payload")


def _found(blocks: DataFrame, source: Source, comparison: Comparison, kept: Kept) -> DataFrame:
    """Return what all tiles find; in parts, each of which is kept, where parts can be kept."""
    if not kept.in_folder:
        return tiles_of(blocks, source, comparison, 0, source.n_tiles)

    def part(first: int, last: int) -> DataFrame:
        return kept.keep(
            f"tiles-{first}-{last - 1}",
            lambda: tiles_of(blocks, source, comparison, first, last),
        )

    parts = ranges(source.n_tiles, -(-source.n_tiles // _PARTS))
    return reduce(lambda one, other: one.union(other), (part(*piece) for piece in parts))


def _with_guesses(source: Source, comparison: Comparison) -> DataFrame:
    """Return the blocks, with a threshold for each row where that pays."""
    n_blocks = source.n_blocks
    guessing = Guessing(
        n=comparison.n, n_rows=source.n_rows, n_blocks=n_blocks, factor=comparison.factor
    )
    if not (comparison.by_kernel and guessing.pays):
        return source.blocks
    if source.matrix is None:
        rows = parcels.each(source.blocks, guessing.take)
        sample = parcels.exchange(rows, 1, guessing.spread)
    else:
        session = source.blocks.sparkSession
        sample = parcels.frame_of(session, guessing.taken_from(source.matrix))
    return parcels.exchange(source.blocks.union(sample), n_blocks, guessing.guess)


def _settled(blocks: DataFrame, lists: DataFrame, again: Again) -> DataFrame:
    """Return the lists after those that were not sure have been made again."""
    n_blocks, n_groups = again.n_blocks, again.n_groups
    asked = parcels.exchange(blocks.union(lists), n_blocks, again.ask)
    places = f"transform(sequence(0, {n_groups - 1}), group -> group * {n_blocks} + place)"
    sent = blocks.selectExpr(f"explode({places}) as place", "part", "payload")
    answers = parcels.exchange(asked.union(sent), n_groups * n_blocks, again.answer)
    return parcels.exchange(lists.union(answers), n_blocks, again.settle)
