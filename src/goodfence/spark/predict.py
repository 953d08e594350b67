"""Predictions and recommendations in bulk on Spark: those of `goodfence.neighbours.predict`, to the last bit.

A task predicts for a group of consecutive rows, and asks every block for the rows of the neighbours of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from goodfence.arrays import Integers
from goodfence.data.ratings import Ratings
from goodfence.errors import DataError, UnknownId, require
from goodfence.kernels.lists import NO_ITEM
from goodfence.neighbours.candidate_lists import Axis
from goodfence.neighbours.lists import ItemVotes, Ranked, UserVotes
from goodfence.neighbours.predict import Neighbourhoods, Over
from goodfence.spark import shuffle
from goodfence.spark.all_pairs import merge, ragged
from goodfence.spark.chunks import Given
from goodfence.spark.id_index import made
from goodfence.spark.messages import Block, Cells, GroupNeighbours, Message, NumberedLists, NumberedRows, RowRequest
from goodfence.spark.neighbours import NeighboursThere
from goodfence.spark.private import recommend_private
from goodfence.spark.ratings import BlockLayout, RatingBlocks, chosen_rows, merged_rows, open_ratings
from goodfence.spark.session import Batches, SparkConfig, config_of, failures_in_one_sentence, job
from goodfence.spark.shuffle import Inbox

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NEIGHBOURS = "row", "neighbours", "weights"


def predict(
    ratings: Given,
    chosen: Any,
    cells: DataFrame,
    *,
    axis: Axis | None = None,
    over: Over | None = None,
    spark: SparkSession | None = None,
    config: SparkConfig | None = None,
) -> DataFrame:
    """Return predictions [PRED] for many cells, NaN where no neighbour rated the item: `user`, `item`, `prediction`.

    `chosen` is what `choose_neighbours` returned for these ratings, or the folder in which `fit` left it; `cells` has
    `user` and `item`. `axis` and `over` as in `NeighbourCF`; None for those of the folder, else "user" and "raters".
    """
    require(over in (None, "raters", "neighbours"), "over", "'raters' or 'neighbours'", over)
    settled = config_of(spark, config)
    known = NeighboursThere.of(ratings, chosen, axis, over, settled)
    with (
        open_ratings(ratings, known.axis, lambda _: 1, settled) as rows,
        job(settled, "predicting", 3 * rows.layout.n_blocks),
    ):
        known.check(rows, known.axis)
        return made(_predict_frame(rows, Groups.of(rows.layout, known, settled), known, cells))


def recommend(
    ratings: Given,
    chosen: Any,
    *,
    n: int = 10,
    axis: Axis | None = None,
    spark: SparkSession | None = None,
    config: SparkConfig | None = None,
) -> DataFrame:
    """Return for every user at most n items that they have not rated, best first, ranked as `NeighbourCF` ranks.

    `chosen` may also be a fitted private model: the lists are those of `recommend_many`. Other parameters as in
    `predict`. The result has `user`, `rank` (from 1), `item` and `score`, which ranks the list (`docs/ranking.md`) and
    is not the predicted rating.
    """
    require(n >= 1, "n", "at least 1", n)
    require(axis in (None, "user", "item"), "axis", "'user' or 'item'", axis)
    settled = config_of(spark, config)
    if hasattr(chosen, "recommend_many"):
        if isinstance(ratings, Ratings):
            raise DataError("ratings must be of Spark for a private model; of this machine, call model.recommend_many")
        return recommend_private(ratings, chosen, n, settled)
    known = NeighboursThere.of(ratings, chosen, axis, None, settled)
    with (
        open_ratings(ratings, "user", lambda _: n, settled) as rows,
        job(settled, "recommending", 3 * rows.layout.n_blocks),
    ):
        known.check(rows, "user")
        groups = Groups.of(rows.layout, known, settled, n)
        neighbours = _gathered(known.chosen, groups.group_rows, _NEIGHBOURS, _group_neighbours)
        if known.axis == "item":
            best = groups.best_of_items(rows.blocks, neighbours)
        else:
            together = groups.with_rows(rows.blocks, neighbours)
            best = shuffle.shuffle(together, groups.n_groups, groups.recommend)
        return made(_ranked_frame(best, rows))


def errors_of(ratings: Given, chosen: Any, test: DataFrame, config: SparkConfig) -> list[float]:
    """Return the numbers of ratings and of predictions, and sum and sum of squares of the errors."""
    predicted, cell = predict(ratings, chosen, test, config=config), ["user", "item"]
    off = test.join(predicted.dropDuplicates(cell), cell).selectExpr("abs(prediction - rating) as off")
    parts = ("count(*)", "count_if(not isnan(off))", "sum(nanvl(off, 0D))", "sum(nanvl(off * off, 0D))")
    with failures_in_one_sentence():
        (found,) = off.selectExpr(*parts).collect()
    predicted.unpersist()
    return [float(one or 0) for one in found]


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of consecutive rows (or items), for which a task predicts from the ratings of their neighbours."""

    layout: BlockLayout
    group_rows: int
    n_groups: int
    over_raters: bool  # as in `Neighbourhoods`
    n: int = 0  # how many columns are recommended to each row; 0 where cells are predicted

    @classmethod
    def of(cls, layout: BlockLayout, known: NeighboursThere, config: SparkConfig, n: int = 0) -> Groups:
        """Return groups for which what a task needs (ratings, or neighbours of items) fits in its memory."""
        first = known.chosen.first()
        if first is None:
            raise DataError("chosen must have a row for each row of the ratings, and it has none")
        k, n_rows, n_held = len(first["neighbours"]), layout.n_rows, layout.n_ratings
        if n and known.axis == "item":
            n_rows, n_held = layout.n_columns, layout.n_columns * k
        size = config.rows_of_a_group(n_rows, n_held, k)
        return cls(layout, size, -(-n_rows // size), known.over == "raters", n)

    def with_rows(self, blocks: DataFrame, neighbours: DataFrame) -> DataFrame:
        """Return the neighbours of the groups, and the rows that they ask for, on their way to them."""
        requests = shuffle.run_tasks(neighbours, self.request)
        n_blocks = self.layout.n_blocks
        return neighbours.union(shuffle.shuffle(blocks.union(requests), n_blocks, send_rows))

    def request(self, partition: int, inbox: Inbox) -> Iterator[RowRequest]:
        """Ask the blocks for the ratings of the neighbours of a group, and for its own where these matter."""
        group = inbox.only(GroupNeighbours)
        wanted = np.unique(group.neighbours)
        if self.n:
            wanted = np.union1d(wanted, group.rows)
        blocks = wanted // self.layout.block_rows
        for block in np.unique(blocks).tolist():
            yield RowRequest(block, partition, wanted[blocks == block])

    def predict(self, _partition: int, inbox: Inbox) -> Iterator[Cells]:
        """Predict the cells of a group."""
        (near, csr, _), cells = self._neighbourhoods(inbox), inbox.only(Cells)
        local = np.searchsorted(inbox.only(GroupNeighbours).rows, cells.rows)
        yield replace(cells, predictions=near.predict(csr, local, cells.columns, threads=1))

    def recommend(self, partition: int, inbox: Inbox) -> Iterator[NumberedLists]:
        """Rank what the rows of a group have not rated."""
        near, csr, rows = self._neighbourhoods(inbox)
        allowed = np.ones(csr.shape[1], dtype=np.bool_)
        chosen = near.neighbours, near.weights
        lists = UserVotes(csr).rank(chosen, csr[rows], allowed, self.n, threads=1)
        yield _numbered(partition, partition, inbox.only(GroupNeighbours).rows, lists)

    def _neighbourhoods(self, inbox: Inbox) -> tuple[Neighbourhoods, sparse.csr_array, Integers]:
        """Return the neighbours of a group, the rows that were sent, and where its own are or would be in them."""
        group, sent = inbox.only(GroupNeighbours), inbox.every(NumberedRows)
        numbers = np.concatenate([one.numbers for one in sent])  # ascending
        local = np.searchsorted(numbers, group.neighbours).astype(np.int32)
        near = Neighbourhoods(local, group.weights, self.over_raters)
        return near, merged_rows(sent), np.searchsorted(numbers, group.rows)

    def best_of_items(self, blocks: DataFrame, neighbours: DataFrame) -> DataFrame:
        """Return `NumberedLists` of the best items, of each block of users."""
        n_blocks, n_groups = self.layout.n_blocks, self.n_groups
        users = shuffle.resend(blocks, f"partition * {n_groups} + one", n_groups)
        items = shuffle.resend(neighbours, f"one * {n_groups} + partition", n_blocks)
        ranked = shuffle.shuffle(users.union(items), n_blocks * n_groups, self.rank_items)
        return shuffle.shuffle(ranked, n_blocks, self.merge_ranked)

    def rank_items(self, partition: int, inbox: Inbox) -> Iterator[NumberedLists]:
        """Send the best of these items for each of these users."""
        users, items = inbox.only(Block), inbox.only(GroupNeighbours)
        csr = merged_rows([users])
        votes = ItemVotes.of(items.neighbours, items.weights, csr.shape[1], int(items.rows[0]))
        lists = votes.rank(csr, np.ones(csr.shape[1], dtype=np.bool_), self.n, threads=1)
        yield _numbered(users.sender, partition, users.numbers, lists)

    def merge_ranked(self, partition: int, inbox: Inbox) -> Iterator[NumberedLists]:
        """Send the best of all items for the users of a block."""
        found = inbox.every(NumberedLists)
        rows = found[0].numbers
        yield NumberedLists(partition, partition, *ragged(*merge(found, len(rows), self.n)), rows)


def send_rows(partition: int, inbox: Inbox) -> Iterator[NumberedRows]:
    """Send each group the rows of this block that it asked for."""
    block = inbox.only(Block)
    for one in inbox.every(RowRequest):
        yield chosen_rows(block, one.numbers, one.sender, partition)


def _numbered(partition: int, sender: int, rows: Integers, lists: Ranked) -> NumberedLists:
    lengths = (lists.columns != NO_ITEM).sum(axis=1, dtype=np.int32)
    return NumberedLists(partition, sender, *ragged(*lists, lengths), rows)


def _predict_frame(rows: RatingBlocks, groups: Groups, known: NeighboursThere, cells: DataFrame) -> DataFrame:
    """Return the predictions for cells (`user`, `item`) of a data frame; an id that nobody knows is an error."""
    if not {"user", "item"} <= {*getattr(cells, "columns", ())}:
        raise DataError("cells must be a data frame with the columns user and item")
    numbered = cells.select("user", "item")
    names = ("user", "item") if known.axis == "user" else ("item", "user")
    for index, name, number in zip(rows.ids, names, ("row", "column"), strict=True):
        ids = index.frame.selectExpr(f"id as {name}", f"number as {number}")
        numbered = numbered.join(ids, name, "left")
    if numbered.where("row is null or column is null").limit(1).count():
        raise UnknownId("at least one of the users or items asked for is not in the ratings")
    asking = known.chosen.join(numbered.select("row").distinct(), "row", "left_semi")
    neighbours = _gathered(asking, groups.group_rows, _NEIGHBOURS, _group_neighbours)

    def cells_of(group: int, table: pa.Table) -> Cells:
        return Cells(group, -1, *(one.to_numpy().astype(np.int64) for one in table.columns[1:]))

    asked = _gathered(numbered, groups.group_rows, ("row", "column"), cells_of)
    together = groups.with_rows(rows.blocks, neighbours).union(asked)
    found = shuffle.shuffle(together, groups.n_groups, groups.predict)

    def arrays_of(one: Cells) -> list[Any]:
        return [*(pa.array(own, pa.int32()) for own in (one.rows, one.columns)), one.predictions]

    schema, cell = "row int, column int, prediction double", ["row", "column"]
    predicted = shuffle.rows_of_messages(found, Cells, arrays_of, schema).dropDuplicates(cell)
    return numbered.join(predicted, cell).select("user", "item", "prediction")


def _gathered(
    frame: DataFrame, group_rows: int, columns: tuple[str, ...], message_of: Callable[[int, pa.Table], Message]
) -> DataFrame:
    """Return rows of a data frame as one message for each group, whatever partitions they come from."""

    def sent(batches: Batches) -> Iterator[Message]:
        arrived = [batch for batch in batches if batch.num_rows]
        if arrived:
            table = pa.Table.from_batches(arrived)
            for group in sorted(set(table.column("group").to_pylist())):
                yield message_of(group, table.filter(pc.equal(table.column("group"), group)))

    grouped = frame.selectExpr(f"cast(row div {group_rows} as int) as group", *columns)
    return shuffle.map_messages(grouped.repartition("group"), sent)


def _group_neighbours(group: int, table: pa.Table) -> GroupNeighbours:
    table = table.sort_by("row")
    matrices = (
        table.column(name).combine_chunks().flatten().to_numpy().reshape(len(table), -1)
        for name in ("neighbours", "weights")
    )
    return GroupNeighbours(group, -1, table.column("row").to_numpy().astype(np.int64), *matrices)


def _ranked_frame(best: DataFrame, rows: RatingBlocks) -> DataFrame:
    """Return recommendations by the caller's own ids, ranked from 1."""

    def arrays_of(one: NumberedLists) -> list[Any]:
        owners = np.repeat(one.numbers, one.lengths)
        starts = np.repeat(np.cumsum(one.lengths) - one.lengths, one.lengths)
        ranks = np.arange(len(owners)) - starts + 1
        return [*(pa.array(own, pa.int32()) for own in (owners, ranks, one.indices)), one.values]

    schema = "row int, rank int, column int, score double"
    ranked = shuffle.rows_of_messages(best, NumberedLists, arrays_of, schema)
    users, items = (index.frame for index in rows.ids)
    ranked = ranked.join(users.selectExpr("id as user", "number as row"), "row")
    ranked = ranked.join(items.selectExpr("id as item", "number as column"), "column")
    return ranked.select("user", "rank", "item", "score")
