"""Candidate lists and chosen neighbours on Spark: those of `goodfence.neighbours`, to the last bit."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import goodfence
from goodfence.data.ratings import Ratings
from goodfence.errors import DataError, require
from goodfence.neighbours.candidate_lists import Axis, CandidateLists, ShortLists, list_length
from goodfence.neighbours.draw import Chosen, check_similarity, choose_from_lists
from goodfence.neighbours.predict import Over
from goodfence.neighbours.similarity import Similarity
from goodfence.parallel import ranges
from goodfence.rng import RNG, Streams
from goodfence.selection.mechanism import Mechanism
from goodfence.selection.sensitivity import Sensitivity, pair_sensitivities
from goodfence.spark import shuffle
from goodfence.spark.all_pairs import ListSettings, lists_of, sent_to_tiles, tile_number
from goodfence.spark.id_index import made, with_ids
from goodfence.spark.messages import Block, BlockLists, BlockNeighbours, ListEntries, Message
from goodfence.spark.ratings import BlockLayout, Rated, RatingBlocks, open_ratings, profiles_of
from goodfence.spark.session import SparkConfig, config_of, failures_in_one_sentence
from goodfence.spark.shuffle import Checkpoint, Inbox, root_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LISTED = {"indices": "int", "similarities": "double"}
_CHOSEN = {"neighbours": "int", "similarities": "double", "weights": "double"}
_MANIFEST = "_manifest"  # of neighbours in a folder; readers of parquet pass it over
_ENTRIES = 2_000_000  # the most list entries that are drawn from at a time


def spark_candidate_lists(
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

    `n`, `axis`, `similarity` and `short_lists` are as in `goodfence.candidate_lists`. `Ratings` give `CandidateLists`;
    a data frame or a path (parquet: a file or a folder of them; or a text file) gives a complete data frame with `id`,
    `row`, `indices` and `similarities`, and no rating comes to the driver. `spark` is a session, None for the active
    one or a new one on this machine. `config` says how the job runs, and does not change the lists.
    """
    settled, measure = config_of(spark, config), Similarity.of(similarity)
    check_comparable(measure)

    def length(n_rows: int) -> int:
        return list_length(n, n_rows - 1, short_lists)

    with open_ratings(ratings, axis, length, settled) as rows:
        layout = rows.layout
        settings = ListSettings(n=length(layout.n_rows), layout=layout, similarity=measure)
        n_tasks = layout.n_tiles + 2 * layout.n_blocks
        with lists_of(rows, settings, settled, "candidate lists", n_tasks) as lists:
            if rows.ids:
                return with_ids(lists, BlockLists, rows.ids[0], layout.block_rows, _LISTED)
            return CandidateLists(*_collected(lists, BlockLists, _LISTED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Whose neighbours are chosen how: by (key, row number), wherever the lists are."""

    mechanism: Mechanism
    similarity: Similarity
    key: int
    axis: Axis = "user"

    def __post_init__(self) -> None:
        check_comparable(self.similarity)
        check_similarity(self.mechanism, self.similarity)

    @classmethod
    def of(cls, model: Any) -> Choice:
        """Return what a `NeighbourCF` is asked to choose, or say that Spark cannot."""
        rule = "'all' on Spark: among the raters of an item nobody is chosen before it is asked for"
        require(model.among == "all", "among", rule, model.among)
        key, similarity = Streams(model.rng).key(), model.similarity
        return cls(mechanism=model.mechanism, similarity=similarity, key=key, axis=model.axis)


def check_comparable(similarity: Similarity) -> None:
    """Raise where a similarity needs means or biases: these are of all ratings, and no task has those."""
    rule = "cosine, cosine_corated, pearson, jaccard or msd on Spark"
    require(similarity.base("user") is None, "similarity", rule, similarity.name)


def choose_neighbours(
    ratings: Rated,
    mechanism: Mechanism,
    *,
    axis: Axis = "user",
    similarity: Similarity | str = "cosine",
    rng: RNG = None,
    spark: SparkSession | None = None,
    config: SparkConfig | None = None,
) -> Any:
    """Return the chosen neighbours of every row: the same for the same seed as on one machine.

    `mechanism`, `axis`, `similarity` and `rng` as in `NeighbourCF`; workers must be able to import your own mechanism.
    The rest is as in `candidate_lists`. The result is arrays for `Ratings`, otherwise a complete data frame with `id`,
    `row`, `neighbours`, `similarities` and `weights`.
    """
    settled = config_of(spark, config)
    measure, key = Similarity.of(similarity), Streams(rng).key()
    choice = Choice(mechanism=mechanism, similarity=measure, key=key, axis=axis)
    with _chosen(ratings, choice, settled) as (rows, chosen):
        if rows.ids:
            return with_ids(chosen, BlockNeighbours, rows.ids[0], rows.layout.block_rows, _CHOSEN)
        return Chosen(*_collected(chosen, BlockNeighbours, _CHOSEN))


def fit_on_spark(
    model: Any, ratings: Rated, config: SparkConfig, completed: Callable[[Ratings], Ratings] = lambda found: found
) -> Any:
    """Fit a `NeighbourCF`: tasks choose the neighbours of every row; `completed` adds what is known of the ratings."""
    choice = Choice.of(model)
    with _chosen(ratings, choice, config) as (rows, chosen):
        found = Chosen(*_collected(chosen, BlockNeighbours, _CHOSEN))
        fitted = ratings if isinstance(ratings, Ratings) else rows.collect(choice.axis, config)
    return model.restore(completed(fitted), choice.key, found)


def leave_neighbours(model: Any, ratings: Rated, folder: str | os.PathLike[str], config: SparkConfig) -> str:
    """Fit a `NeighbourCF` and leave its neighbours in a folder, which is whole when the manifest is there."""
    choice, left = Choice.of(model), Checkpoint(config.spark, root_of(folder), made)
    for name, usual in (("center", None), ("fallback", None), ("min_neighbours", 1)):
        own = getattr(model, name)
        require(own == usual, name, f"{usual!r} where neighbours stay on the cluster, which averages ratings", own)
    if isinstance(ratings, Ratings):
        raise DataError("ratings must be of Spark (a data frame or a path) for neighbours that stay on the cluster")
    require(not left.holds("") or left.holds(_MANIFEST), "out", "a new folder, or one of neighbours to replace", None)
    with _chosen(ratings, choice, config) as (rows, chosen), failures_in_one_sentence():
        found = with_ids(chosen, BlockNeighbours, rows.ids[0], rows.layout.block_rows, _CHOSEN)
        found.write.mode("overwrite").parquet(str(left.root))
        found.unpersist()
        stated = {"goodfence": goodfence.__version__, "ratings": rows.checksum(choice.axis), **model.settings()}
        left.write(_MANIFEST, json.dumps(stated, sort_keys=True))
    return str(left.root)


@dataclass(frozen=True, kw_only=True)
class NeighboursThere:
    """Chosen neighbours in a data frame, or in a folder where a fit left them."""

    chosen: DataFrame
    axis: Axis
    over: Over
    checksum: str | None = None  # of the ratings among which those in a folder were chosen

    @classmethod
    def of(
        cls, ratings: Any, chosen: Any, axis: Axis | None, over: Over | None, config: SparkConfig
    ) -> NeighboursThere:
        """Return neighbours with the settings asked for; a folder has its own, and refuses others."""
        if isinstance(ratings, Ratings) or isinstance(chosen, Chosen):
            raise DataError("ratings and chosen must both be of Spark; of this machine, a fitted NeighbourCF answers")
        if not isinstance(chosen, str | os.PathLike):
            return cls(chosen=chosen, axis=axis or "user", over=over or "raters")
        left = Checkpoint(config.spark, root_of(chosen), made)
        with failures_in_one_sentence():
            if not left.holds(""):
                raise DataError("the folder of neighbours is not there; fit with out= (-o name.parquet)")
            stated = json.loads(left.text(_MANIFEST) or "{}")
            if not stated:
                raise DataError("the folder holds no neighbours that a fit left to the end; fit again, to a new folder")
            frame = config.spark.read.parquet(str(left.root))
        for name, asked in (("axis", axis), ("over", over)):
            require(asked in (None, stated[name]), name, f"left out or {stated[name]!r}, as in the fit", asked)
        return cls(chosen=frame, axis=stated["axis"], over=stated["over"], checksum=stated["ratings"])

    def check(self, rows: RatingBlocks, axis: Axis) -> None:
        """Raise where these are known to be neighbours among other ratings."""
        if self.checksum is not None and rows.checksum(axis) != self.checksum:
            raise DataError("ratings must be those that the neighbours in the folder were chosen from, and are others")


def _collected(frame: DataFrame, kind: type[Message], names: Iterable[str]) -> Iterator[Any]:
    found = shuffle.collect(frame, kind)
    return (np.concatenate([getattr(one, name) for one in found]) for name in names)


@contextmanager
def _chosen(ratings: Rated, choice: Choice, config: SparkConfig) -> Iterator[tuple[RatingBlocks, DataFrame]]:
    """Open ratings, and hand out their blocks and `BlockNeighbours` of each block."""
    mechanism, options = choice.mechanism, choice.mechanism.sensitivity
    with open_ratings(ratings, choice.axis, lambda n: mechanism.reach(n - 1), config) as rows:
        layout = rows.layout
        if options is not None and layout.lowest < 0:
            raise DataError("ratings must not be negative: RS bounds no other cosine")
        settings = ListSettings(
            n=mechanism.reach(layout.n_rows - 1),
            layout=layout,
            similarity=choice.similarity,
            bounds=options if options is not None and options.scope == "target" else None,
        )
        n_tasks = layout.n_tiles + 3 * layout.n_blocks
        with lists_of(rows, settings, config, "choosing neighbours", n_tasks) as lists:
            if options is not None and options.scope == "pair":
                lists = PairBounds(options, layout).added_to(lists, rows.blocks)
            yield rows, shuffle.run_tasks(lists, partial(draw_block, choice))


def draw_block(choice: Choice, partition: int, inbox: Inbox) -> Iterator[BlockNeighbours]:
    """Send the chosen neighbours of a block."""
    lists = inbox.only(BlockLists)
    n_rows, n = lists.indices.shape
    numbers = lists.first + np.arange(n_rows)
    choose, found = partial(choose_from_lists, choice.mechanism, choice.key), []
    for own in (slice(*piece) for piece in ranges(n_rows, max(1, _ENTRIES // max(n, 1)))):
        bounds = None if lists.bounds is None else lists.bounds[own]
        found.append(choose(numbers[own], lists.indices[own], lists.similarities[own], bounds))
    arrays = map(np.concatenate, zip(*found, strict=True))
    yield BlockNeighbours(partition, partition, lists.first, *arrays)


@dataclass(frozen=True, slots=True)
class PairBounds:
    """RS of every pair of a row and a candidate: each is computed in the tile that has the ratings of both."""

    options: Sensitivity
    layout: BlockLayout

    def added_to(self, lists: DataFrame, blocks: DataFrame) -> DataFrame:
        """Return the lists with RS of every entry."""
        n_blocks, n_tiles = self.layout.n_blocks, self.layout.n_tiles
        entries = shuffle.run_tasks(lists, self.send_entries)
        together = sent_to_tiles(blocks, n_blocks, 0, n_tiles).union(entries)
        bounds = shuffle.shuffle(together, n_tiles, self.compute)
        return shuffle.shuffle(lists.union(bounds), n_blocks, self.add)

    def send_entries(self, partition: int, inbox: Inbox) -> Iterator[ListEntries]:
        """Send the entries of a block's lists to the tiles of the candidates."""
        lists = inbox.only(BlockLists)
        others = lists.indices // self.layout.block_rows
        for other in np.unique(others).tolist():
            owners, slots = (one.astype(np.int32) for one in np.nonzero(others == other))
            a, b = sorted((partition, other))
            tile = tile_number(a, b, self.layout.n_blocks)
            candidates = lists.indices[owners, slots]
            yield ListEntries(tile, partition, lists.first, owners, slots, candidates)

    def compute(self, partition: int, inbox: Inbox) -> Iterator[ListEntries]:
        """Send RS of the entries that came to this tile, back to their lists."""
        blocks = inbox.every(Block)
        csr = profiles_of(blocks, self.layout.factor).rows
        numbers = np.concatenate([block.numbers for block in blocks])
        for entries in inbox.every(ListEntries):
            targets = np.searchsorted(numbers, entries.first + entries.owners)
            candidates = np.searchsorted(numbers, entries.candidates)
            # One row for each target, as long as the longest; shorter ones are filled up with the target itself.
            every, owners, counts = np.unique(targets, return_inverse=True, return_counts=True)
            slots = np.arange(len(targets)) - (np.cumsum(counts) - counts)[owners]
            padded = np.repeat(every[:, np.newaxis], counts.max(), axis=1)
            padded[owners, slots] = candidates
            bounds = pair_sensitivities(csr, every, padded, self.options)[owners, slots]
            yield replace(entries, partition=entries.sender, sender=partition, bounds=bounds)

    def add(self, _partition: int, inbox: Inbox) -> Iterator[BlockLists]:
        """Send a block's lists with RS of every entry."""
        lists = inbox.only(BlockLists)
        bounds = np.zeros(lists.indices.shape)
        for one in inbox.every(ListEntries):
            bounds[one.owners, one.slots] = one.bounds
        yield replace(lists, bounds=bounds)
