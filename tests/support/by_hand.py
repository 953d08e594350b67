"""The shuffles of the Spark engine done by hand, in this process: the tasks are the same, the cluster is a loop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np

import goodfence as gf
from goodfence.arrays import Floats, Rows
from goodfence.neighbours.similarity import Profiles, Similarity
from goodfence.spark import all_pairs
from goodfence.spark.all_pairs import ListSettings, Recomputation, combine_waiting, merge_block, tile_number
from goodfence.spark.messages import Block, BlockLists, Message, from_arrow, to_arrow
from goodfence.spark.ratings import BlockLayout, cut_in_blocks
from goodfence.spark.shuffle import Combiner, Task, run_partitions


def shuffled(messages: Iterable[Message], task: Task, combine: Combiner | None = None) -> list[Message]:
    """Bring messages to their partitions, in any order but the right one, and return what is sent from there."""
    partitions: dict[int, list[Message]] = {}
    for one in messages:
        partitions.setdefault(one.partition, []).insert(0, one)
    return [
        sent
        for arrived in partitions.values()
        for sent in from_arrow(to_arrow([one]) for one in run_partitions(iter([to_arrow(arrived)]), task, combine))
    ]


def in_order(messages: Iterable[Message]) -> list[Message]:
    return sorted(messages, key=lambda one: (one.partition, one.sender))


def settings_of(ratings: gf.Ratings, n: int, block_rows: int, similarity: str = "cosine") -> ListSettings:
    layout = BlockLayout(
        n_rows=ratings.shape[0],
        n_columns=ratings.shape[1],
        n_ratings=ratings.n_ratings,
        block_rows=block_rows,
        factor=Profiles.of(ratings.csr).factor,
        lowest=float(ratings.csr.data.min(initial=0.0)),
    )
    return ListSettings(n=n, layout=layout, similarity=Similarity.of(similarity))


def at_tiles(blocks: list[Block]) -> list[Message]:
    """Return each block once for each tile that it is part of."""
    n = len(blocks)
    return [
        replace(block, partition=tile_number(a, b, n))
        for a in range(n)
        for b in range(a, n)
        for block in ([blocks[a], blocks[b]] if a < b else [blocks[a]])
    ]


def with_thresholds(blocks: list[Block], settings: ListSettings) -> list[Block]:
    """Return the blocks with thresholds, where that pays."""
    if not len(settings.sample):
        return blocks
    taken = shuffled(blocks, partial(all_pairs.take_sample, settings))
    sample = shuffled(taken, partial(all_pairs.spread_sample, settings))
    found = shuffled([*blocks, *sample], partial(all_pairs.set_thresholds, settings))
    return [one for one in in_order(found) if isinstance(one, Block)]


def lists_by_hand(ratings: gf.Ratings, settings: ListSettings) -> tuple[Rows, Floats, int]:
    """Return the lists of all rows, and how many of them were uncertain and recomputed."""
    blocks = with_thresholds(cut_in_blocks(ratings.csr, settings.layout.block_rows), settings)
    merging = (partial(merge_block, settings.n), partial(combine_waiting, settings.n))
    candidates = shuffled(at_tiles(blocks), partial(all_pairs.compare_tile, settings))
    lists = in_order(shuffled(candidates, *merging))
    uncertain = [one.count for one in lists]
    if any(uncertain):
        how = Recomputation.of(uncertain, settings)
        rows = shuffled([*blocks, *lists], how.send_rows)
        sent = [
            replace(block, partition=group * len(blocks) + block.partition)
            for group in range(max(how.groups) + 1)
            for block in blocks
        ]
        found = shuffled([*rows, *sent], how.compare)
        lists = in_order(shuffled([*lists, *found], how.replace_lists))
    made = [one for one in lists if isinstance(one, BlockLists)]
    return (
        np.concatenate([one.indices for one in made]),
        np.concatenate([one.similarities for one in made]),
        sum(uncertain),
    )
