"""Private models on Spark: tasks sum integers over users, the driver draws the noise once.

A model asks for its sums with `profiles.total(of, *public)`. Here a task calls the very same `of` for each block, which
holds whole users, and the integers of all blocks are added: the released numbers are those of one machine for the same
noise. Every block counts once, whatever fails or runs twice: `docs/how-to/spark.md`, "Exactly once".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from goodfence.arrays import Integers
from goodfence.data.columns import ROLES, Feedback
from goodfence.data.ids import Ids, code_ids
from goodfence.data.matrix import move_columns
from goodfence.data.ratings import Ratings, positions_among
from goodfence.data.scale import Scale
from goodfence.errors import require
from goodfence.parallel import THREADS, ranges
from goodfence.privacy.fixed_point import Contributions
from goodfence.privacy.updates import narrowed
from goodfence.spark import shuffle
from goodfence.spark.chunks import Given
from goodfence.spark.id_index import made
from goodfence.spark.messages import Block, BlockFigures, SortedIds, Totals, from_arrow
from goodfence.spark.neighbours import fit_on_spark
from goodfence.spark.ratings import Rated, RatingBlocks, merged_rows, open_ratings
from goodfence.spark.session import Batches, SparkConfig, job, map_batches, planned_once
from goodfence.spark.shuffle import Inbox

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Completed: TypeAlias = Callable[..., Ratings]
"""Adds what is known of ratings (titles, whether their items are declared), after a look at their shape and number."""
Split: TypeAlias = Callable[[Ratings, int], tuple[Ratings, Ratings]]
ScoreBlock: TypeAlias = Callable[[Any, Any], dict[str, Any]]
_SMALLEST_PART = 1 << 16


def as_they_are(ratings: Ratings, *_: object) -> Ratings:
    """Return ratings of which nothing else is known."""
    return ratings


def fit_there(model: Any, ratings: Rated, config: SparkConfig, completed: Completed = as_they_are) -> Any:
    """Fit a recommender; `completed` adds what is known of the ratings."""
    if not hasattr(model, "fit_profiles"):
        return fit_on_spark(model, ratings, config, completed)
    require(config.work is None, "work", "left out for a private model: to resume a fit is to spend again", config.work)
    with open_profiles(model, ratings, config, completed) as (profiles, laid):
        return model.fit_profiles(profiles, laid)


def score_there(
    model: Any, ratings: Given, split: Split, score: ScoreBlock, config: SparkConfig, completed: Completed = as_they_are
) -> list[dict[str, Any]]:
    """Fit a private model to one part of each block; return what `score` tells of it and the other part."""
    with open_profiles(model, ratings, config, completed, split) as (profiles, laid):
        model.fit_profiles(profiles, laid)
        answers = BlockAnswers(layout=profiles.layout, released=(model.model_, model.record_), items=laid.items)
        with job(config, "scoring", profiles.n_blocks):
            told = shuffle.run_tasks(profiles.blocks, partial(answers.figures, score))
            found = shuffle.collect(told, BlockFigures)
    require_once([one.sender for one in found], profiles.n_blocks)
    return [one.told for one in found]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LaidOutBlocks:
    """How the rows of a block become ratings on the model's items: public, and known to every task."""

    model: Any
    """What makes profiles of ratings."""
    positions: Integers | None
    """Where the columns of a block are among the items; None where they are the items."""
    n_items: int
    scale: Scale
    feedback: Feedback
    split: Split | None = None
    """What cuts the ratings of a block in those that are fitted and those that are held out."""

    def ratings_of(self, inbox: Inbox, items: Any = None) -> Ratings:
        """Return the ratings of a block, by the numbers of users, and of items unless their ids are given."""
        block = inbox.only(Block)
        csr = merged_rows([block])
        if self.positions is not None:
            csr = move_columns(csr, self.positions, self.n_items)
        events = self.feedback == "implicit"
        if events:  # each once
            csr = sparse.csr_array((np.ones(csr.nnz), csr.indices, csr.indptr), shape=csr.shape)
        columns = np.arange(self.n_items) if items is None else items
        return Ratings(csr, block.numbers, columns, None if events else self.scale, feedback=self.feedback)

    def parts(self, inbox: Inbox, items: Any = None) -> tuple[Ratings, Ratings | None]:
        """Return what of a block is fitted, and what is held out."""
        ratings = self.ratings_of(inbox, items=items)
        return (ratings, None) if self.split is None else self.split(ratings, inbox.only(Block).partition)

    def profiles(self, inbox: Inbox) -> Any:
        """Return what each user of a block contributes to releases."""
        return self.model.profiles_of(self.parts(inbox)[0])


@dataclass(frozen=True, eq=False, repr=False)
class ProfileBlocks(Contributions):
    """All users' profiles on a cluster, each user in one block. Nothing leaves it but sums over all users."""

    blocks: DataFrame
    """The messages of each block, at the partition of its number."""
    n_blocks: int
    read: Callable[[Inbox], Any]
    """Makes profiles of the messages of a block."""
    nobody: Any
    """The profiles of no users, with the same items."""
    config: SparkConfig = field(kw_only=True)
    layout: Any = field(default=None, kw_only=True)
    """How their ratings are laid out, where these are blocks of ratings."""

    def __getattr__(self, name: str) -> Any:
        """Return what is public of profiles: the number of items, for how many bounds hold, whether users return."""
        if name not in ("n_items", "most_items", "room", "arrival"):
            raise AttributeError(name)
        return getattr(self.nobody, name)

    def total(self, of: Callable[..., Any], *public: Any) -> Any:
        """Return `of(profiles, *public)`: arrays are sums over users, the rest follows from public numbers."""
        told = of(self.nobody, *public)  # sums over no users are zeros of the right shape
        parts = told if isinstance(told, tuple) else (told,)
        shapes = [one.shape for one in parts if isinstance(one, np.ndarray)]
        size = sum(math.prod(shape) for shape in shapes)
        flat = self._added(partial(sum_block, self.read, of, public), size)
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        sums = iter(one.reshape(shape) for one, shape in zip(np.split(flat, ends), shapes, strict=True))
        found = tuple(next(sums) if isinstance(one, np.ndarray) else one for one in parts)
        return found if isinstance(told, tuple) else found[0]

    def _added(self, task: Callable[..., Iterator[Totals]], size: int) -> Integers:
        """Return the sums of the integers that `task` sends from each block, each part added by another task."""
        most = max(_SMALLEST_PART, self.config.memory // (16 * self.n_blocks))
        length = min(most, max(_SMALLEST_PART, -(-size // self.config.n_cores)))
        n_parts = -(-size // length)
        with job(self.config, "summing", self.n_blocks + n_parts), planned_once(self.config.spark):
            sent = shuffle.run_tasks(self.blocks, partial(task, length))
            added = shuffle.shuffle(sent, n_parts, partial(add_blocks, self.n_blocks))
            found = shuffle.collect(added, Totals)
        require_once([one.partition for one in found], n_parts)
        require_once([one.count for one in found], n_parts, each=self.n_blocks)
        return np.concatenate([one.totals for one in found], dtype=np.int64)


def sum_block(
    read: Callable[[Inbox], Any],
    of: Callable[..., Any],
    public: Sequence[Any],
    length: int,
    partition: int,
    inbox: Inbox,
) -> Iterator[Totals]:
    """Send the sums over the users of one block, in parts."""
    THREADS.set(1)  # other tasks have the other cores
    found = of(read(inbox), *public)
    sums = [one.ravel() for one in (found if isinstance(found, tuple) else (found,)) if isinstance(one, np.ndarray)]
    flat = np.concatenate(sums)
    for part, piece in enumerate(ranges(len(flat), length)):
        yield Totals(part, partition, narrowed(flat[slice(*piece)]), count=1)


def add_blocks(n_blocks: int, partition: int, inbox: Inbox) -> Iterator[Totals]:
    """Send the sums of one part over all blocks, each of which must be there once."""
    parts = inbox.every(Totals)
    require_once([one.sender for one in parts], n_blocks)
    total = np.zeros(len(parts[0].totals), dtype=np.int64)
    for one in parts:
        total += one.totals
    yield Totals(partition, partition, narrowed(total), count=len(parts))


def require_once(found: Sequence[int], n: int, each: int | None = None) -> None:
    """Raise unless these are 0, ..., n - 1, or n times `each`: a contribution that counts twice breaks the proof."""
    if list(found) != (list(range(n)) if each is None else [each] * n):
        raise RuntimeError("every block must be in a sum exactly once; nothing was released")


@contextmanager
def open_profiles(
    model: Any, ratings: Rated, config: SparkConfig, completed: Completed = as_they_are, split: Split | None = None
) -> Iterator[tuple[ProfileBlocks, Ratings]]:
    """Bring ratings into blocks of whole users; hand out their profiles, and what the model keeps of the ratings."""
    given = model.laid_out(ratings) if isinstance(ratings, Ratings) else ratings
    with open_ratings(given, "user", lambda _: 1, config) as rows:
        laid, positions = (given, None) if isinstance(given, Ratings) else public_of(model, rows, config, completed)
        kind: Any = {"scale": laid.scale, "feedback": laid.feedback}
        layout = LaidOutBlocks(model=bare_of(model), positions=positions, n_items=laid.shape[1], split=split, **kind)
        nobody = model.profiles_of(_of_nobody(laid.items, **kind))
        n_blocks = rows.layout.n_blocks
        yield ProfileBlocks(rows.blocks, n_blocks, layout.profiles, nobody, config=config, layout=layout), laid


def _feedback(config: SparkConfig) -> Feedback:
    return "implicit" if config.read.likes is not None or not config.read.rated else "explicit"


def bare_of(model: Any) -> Any:
    """Return a recommender of the same class without anything it holds, for tasks."""
    return object.__new__(type(model))


def _of_nobody(items: Any, scale: Scale, feedback: Feedback, **how: Any) -> Ratings:
    empty, nobody = sparse.csr_array((0, len(items))), np.empty(0, dtype=np.int64)
    return Ratings(empty, nobody, items, None if feedback == "implicit" else scale, feedback=feedback, **how)


def public_of(
    model: Any, rows: RatingBlocks, config: SparkConfig, completed: Completed
) -> tuple[Ratings, Integers | None]:
    """Return what is public of the ratings, as the model lays them out, and where their columns are on its items."""
    read, layout = config.read, rows.layout
    found = item_ids(rows)
    scale = Scale.observed(np.array([layout.lowest])) if read.scale is None else Scale.of(read.scale)
    how: dict[str, Any] = {"items_declared": False, "liked_from": read.likes}
    public = completed(
        _of_nobody(found, scale, _feedback(config), **how), (layout.n_rows, layout.n_columns), layout.n_ratings
    )
    laid = model.laid_out(public)
    if np.array_equal(laid.items, public.items):
        return laid, None
    return laid, positions_on(laid.items, public.items)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BlockAnswers:
    """What a task needs to answer the users of a block from a fitted private model."""

    layout: LaidOutBlocks
    released: tuple[Any, Any]
    """The model and its record."""
    items: Any

    def model_of(self, ratings: Ratings) -> Any:
        """Return the model with the ratings of a block."""
        THREADS.set(1)
        return bare_of(self.layout.model).restore(ratings, *self.released)

    def figures(self, score: ScoreBlock, partition: int, inbox: Inbox) -> Iterator[BlockFigures]:
        """Send what is told of the users of a block."""
        fitted, held_out = self.layout.parts(inbox, self.items)
        yield BlockFigures(partition, partition, score(self.model_of(fitted), held_out))

    def lists(self, n: int, batches: Batches) -> Batches:
        """Yield the lists of the users of a block, by their ids."""
        inbox = Inbox(from_arrow(batches))
        for block in inbox.every(Block):
            table = self.model_of(self.layout.parts(inbox, self.items)[0]).recommend_many(None, n).table()
            ids = pa.concat_arrays([one.ids for one in inbox.every(SortedIds)])
            users = ids.take(pc.subtract(table.column("user"), block.first).combine_chunks())
            yield from table.set_column(0, "user", users).to_batches()


def recommend_private(ratings: Given, model: Any, n: int, config: SparkConfig) -> DataFrame:
    """Return for every user of the ratings the list of a fitted private model: user, rank, item and score."""
    laid: Ratings = model.ratings_
    how: dict[str, Any] = {"n_items": laid.shape[1], "scale": laid.scale, "feedback": _feedback(config)}
    with open_ratings(ratings, "user", lambda _: n, config) as rows:
        positions, (users, _) = positions_on(laid.items, item_ids(rows)), rows.ids
        layout = LaidOutBlocks(model=bare_of(model), positions=positions, **how)
        serving = BlockAnswers(layout=layout, released=(model.model_, model.record_), items=laid.items)
        item_type = "string" if laid.items.dtype == object else "bigint"
        schema = f"user {users.id_type}, rank bigint, item {item_type}, score double"
        with job(config, "recommending", rows.layout.n_blocks):
            together = rows.blocks.union(users.of_blocks(rows.layout.block_rows))
            blocks = together.repartitionById(rows.layout.n_blocks, "partition")
            return made(map_batches(blocks, partial(serving.lists, n), schema))


def positions_on(items: Any, found: Any) -> Integers:
    """Return where these items are among those of a model."""
    return positions_among(Ids.of_sorted(found, "items"), Ids.of_sorted(items, "items"))


def item_ids(rows: RatingBlocks) -> Any:
    """Return the ids of the items that somebody rated."""
    return code_ids(pa.chunked_array([rows.ids[1].collect()]), ROLES[1], "items").ids.values
