"""Private models on Spark: tasks sum integers over users, the driver draws the noise once.

A model asks for its sums with `profiles.total(of, *public)`. Here a task calls the very same `of` for each block, which
holds whole users, and the integers of all blocks are added: the released numbers are those of one machine for the same
noise. Every block counts once, whatever fails or runs twice: `docs/how-to/spark.md`, "Exactly once".
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
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
from goodfence.errors import DataError, SettingError, UnknownId, require
from goodfence.parallel import THREADS, ranges
from goodfence.privacy.fixed_point import Contributions
from goodfence.privacy.updates import narrowed
from goodfence.spark import shuffle
from goodfence.spark.chunks import Given
from goodfence.spark.id_index import made, send_to_blocks
from goodfence.spark.messages import Block, Message, SortedIds, Totals, UserRows, UserState, from_arrow
from goodfence.spark.neighbours import fit_on_spark
from goodfence.spark.ratings import Rated, RatingBlocks, compact, merged_rows, open_ratings
from goodfence.spark.session import Batches, SparkConfig, config_of, job, map_batches
from goodfence.spark.shuffle import Checkpoint, Inbox, checkpoints

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Completed: TypeAlias = Callable[..., Ratings]
"""Adds what is known of ratings (titles, whether their items are declared), after a look at their shape and number."""
_SMALLEST_PART = 1 << 16


def _as_they_are(ratings: Ratings, *_: object) -> Ratings:
    return ratings


def spark_fit(
    model: Any,
    ratings: Rated,
    *,
    ledger: Any = None,
    key: str | None = None,
    spark: SparkSession | None = None,
    config: SparkConfig | None = None,
) -> Any:
    """Fit a recommender to ratings on the cluster, and return it: the same model as on one machine.

    Parameters
    ----------
    model : PrivateMeans, PrivateCF, PrivateTopN or NeighbourCF
        What to fit. A private one keeps only what it released, unless the ratings are `Ratings`: it answers profiles,
        and `recommend` answers everybody. With `lasting` the folder `config.work`, as secret as the ratings, keeps the
        users for `update`. A `NeighbourCF` collects the ratings from which it predicts.
    ledger, key
        As in `PrivateCF.update`, with `lasting`.
    ratings, spark, config
        As in `candidate_lists`.
    """
    settled = config_of(spark, config)
    if getattr(model, "lasting", None) is None:
        require(ledger is None, "lasting", "given with a ledger", None)
        return fit_there(model, ratings, settled)
    with _arriving(model, ratings, None, settled) as new:
        return model.begin_life(new, ledger, key)


def spark_update(
    model: Any,
    new: Rated | None = None,
    *,
    ledger: Any = None,
    key: str | None = None,
    add_items: Any = None,
    spark: SparkSession | None = None,
    config: SparkConfig | None = None,
) -> Any:
    """Let a private model that was fitted with `lasting` on the cluster learn from what is new, and return it.

    Parameters
    ----------
    model : PrivateMeans, PrivateCF or PrivateTopN
        The model. `config.work` names the folder that was given to `fit`: it keeps the users between updates.
    new : DataFrame or path, optional
        What arrived since the last update; None for an empty batch.
    ledger, key, add_items
        As in `PrivateCF.update`.
    spark, config
        As in `candidate_lists`.
    """
    settled = config_of(spark, config)
    with _arriving(model, new, model.on_items_with(add_items), settled) as arrived:
        return model.continue_life(arrived, ledger, key)


def spark_forget(
    model: Any, users: Sequence[Any], *, spark: SparkSession | None = None, config: SparkConfig | None = None
) -> Any:
    """Delete users with all that they ever gave from a life on the cluster, as `forget` does, and return the model.

    The folder `config.work` has a new version of all users without them; the next update removes the earlier one.
    """
    settled = config_of(spark, config)
    life = model.life_
    life.require_finished()
    gone = {str(user) for user in users}
    with _users_of(model, model.ratings_, settled) as there:
        there.forget(gone)
    return model


def fit_there(model: Any, ratings: Rated, config: SparkConfig, completed: Completed = _as_they_are) -> Any:
    """Fit a recommender; `completed` adds what is known of the ratings."""
    if not hasattr(model, "fit_profiles"):
        return fit_on_spark(model, ratings, config, completed)
    require(config.work is None, "work", "left out for a private model: to resume a fit is to spend again", config.work)
    with open_profiles(model, ratings, config, completed) as (profiles, laid):
        return model.fit_profiles(profiles, laid)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Layout:
    """How the rows of a block become ratings on the model's items: public, and known to every task."""

    model: Any
    """What makes profiles of ratings."""
    positions: Integers | None
    """Where the columns of a block are among the items; None where they are the items."""
    n_items: int
    scale: Scale
    feedback: Feedback

    def ratings_of(self, inbox: Inbox, users: Any = None, items: Any = None) -> Ratings:
        """Return the ratings of a block, by the numbers of users and items unless their ids are given."""
        block = inbox.only(Block)
        csr = merged_rows([block])
        if self.positions is not None:
            csr = move_columns(csr, self.positions, self.n_items)
        events = self.feedback == "implicit"
        if events:  # each once
            csr = sparse.csr_array((np.ones(csr.nnz), csr.indices, csr.indptr), shape=csr.shape)
        ids = block.numbers if users is None else users, np.arange(self.n_items) if items is None else items
        return Ratings(csr, *ids, None if events else self.scale, feedback=self.feedback)

    def profiles(self, inbox: Inbox) -> Any:
        """Return what each user of a block contributes to releases."""
        return self.model.profiles_of(self.ratings_of(inbox))


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
        with job(self.config, "summing", self.n_blocks + n_parts):
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
    model: Any, ratings: Rated, config: SparkConfig, completed: Completed = _as_they_are
) -> Iterator[tuple[ProfileBlocks, Ratings]]:
    """Bring ratings into blocks of whole users; hand out their profiles, and what the model keeps of the ratings."""
    given = model.laid_out(ratings) if isinstance(ratings, Ratings) else ratings
    with open_ratings(given, "user", lambda _: 1, config) as rows:
        laid, positions = (given, None) if isinstance(given, Ratings) else _public(model, rows, config, completed)
        kind: Any = {"scale": laid.scale, "feedback": laid.feedback}
        layout = Layout(model=_bare(model), positions=positions, n_items=laid.shape[1], **kind)
        nobody = model.profiles_of(_of_nobody(laid.items, **kind))
        yield ProfileBlocks(rows.blocks, rows.layout.n_blocks, layout.profiles, nobody, config=config), laid


def _feedback(config: SparkConfig) -> Feedback:
    return "implicit" if config.read.likes is not None or not config.read.rated else "explicit"


def _bare(model: Any) -> Any:
    """Return a recommender of the same class without anything it holds, for tasks."""
    return object.__new__(type(model))


def _of_nobody(items: Any, scale: Scale, feedback: Feedback, **how: Any) -> Ratings:
    empty, nobody = sparse.csr_array((0, len(items))), np.empty(0, dtype=np.int64)
    return Ratings(empty, nobody, items, None if feedback == "implicit" else scale, feedback=feedback, **how)


def _public(
    model: Any, rows: RatingBlocks, config: SparkConfig, completed: Completed
) -> tuple[Ratings, Integers | None]:
    """Return what is public of the ratings, as the model lays them out, and where their columns are on its items."""
    read, layout = config.read, rows.layout
    found = _item_ids(rows)
    scale = Scale.observed(np.array([layout.lowest])) if read.scale is None else Scale.of(read.scale)
    how: dict[str, Any] = {"items_declared": False, "liked_from": read.likes}
    public = completed(
        _of_nobody(found, scale, _feedback(config), **how), (layout.n_rows, layout.n_columns), layout.n_ratings
    )
    laid = model.laid_out(public)
    if np.array_equal(laid.items, public.items):
        return laid, None
    items = (Ids.of_sorted(one.items, "items") for one in (public, laid))
    return laid, positions_among(*items)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Serving:
    """What a task needs to answer the users of a block from a fitted private model."""

    layout: Layout
    released: tuple[Any, Any]
    """The model and its record."""
    items: Any

    def model_of(self, inbox: Inbox) -> Any:
        """Return the model with the ratings of a block, by the numbers of its users."""
        THREADS.set(1)
        return _bare(self.layout.model).restore(self.layout.ratings_of(inbox, items=self.items), *self.released)

    def lists(self, n: int, batches: Batches) -> Batches:
        """Yield the lists of the users of a block, by their ids."""
        inbox = Inbox(from_arrow(batches))
        for block in inbox.every(Block):
            table = self.model_of(inbox).recommend_many(None, n).table()
            ids = pa.concat_arrays([one.ids for one in inbox.every(SortedIds)])
            users = ids.take(pc.subtract(table.column("user"), block.first).combine_chunks())
            yield from table.set_column(0, "user", users).to_batches()


def recommend_private(ratings: Given, model: Any, n: int, config: SparkConfig) -> DataFrame:
    """Return for every user of the ratings the list of a fitted private model: user, rank, item and score."""
    with open_ratings(ratings, "user", lambda _: n, config) as rows:
        serving, users = _serving(model, rows, config), rows.ids[0]
        sent = shuffle.run_tasks(users.sorted_ids, partial(send_to_blocks, users.starts, rows.layout.block_rows))
        schema = f"user {users.id_type}, rank bigint, item {_id_type(serving.items)}, score double"
        with job(config, "recommending", rows.layout.n_blocks):
            blocks = rows.blocks.union(sent).repartitionById(rows.layout.n_blocks, "partition")
            return made(map_batches(blocks, partial(serving.lists, n), schema))


def _serving(model: Any, rows: RatingBlocks, config: SparkConfig) -> Serving:
    laid: Ratings = model.ratings_
    items = Ids.of_sorted(_item_ids(rows), "items"), Ids.of_sorted(laid.items, "items")
    how: dict[str, Any] = {"n_items": laid.shape[1], "scale": laid.scale, "feedback": _feedback(config)}
    layout = Layout(model=_bare(model), positions=positions_among(*items), **how)
    return Serving(layout=layout, released=(model.model_, model.record_), items=laid.items)


def _item_ids(rows: RatingBlocks) -> Any:
    return code_ids(pa.chunked_array([rows.ids[1].collect()]), ROLES[1], "items").ids.values


def _id_type(ids: Any) -> str:
    return "string" if ids.dtype == object else "bigint"


@dataclass(eq=False, repr=False)
class UsersThere:
    """The users of a life, in buckets by their ids, and what an update gives them: they stay on the cluster."""

    model: Any
    before: Ratings
    """Of nobody, on the items of the update."""
    given: DataFrame
    """`UserRows` that arrived for each bucket."""
    n_buckets: int
    config: SparkConfig
    stack: ExitStack
    n_ratings: int = 0

    @property
    def scale(self) -> Scale:
        """The scale of what arrived, which was read on that of the model."""
        return self.before.scale

    @property
    def kept(self) -> Ratings:
        """What the model keeps of all ratings."""
        return self.before

    @cached_property
    def recipe(self) -> Any:
        """How a task goes on with the life of the users of a bucket."""
        return self.model.bucket_of(self.before)

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """The folder of this life."""
        life = self.model.life_
        return self.stack.enter_context(checkpoints(self.config, {"life": life.digest(b"users").hex()}))

    @cached_property
    def _digest(self) -> bytes:
        found = self.given.selectExpr("partition", "sender", "sha2(payload, 256)").collect()
        return hashlib.sha256(repr(sorted(map(tuple, found))).encode()).digest()

    def digest(self) -> bytes:
        """Return a digest of everything that the update was given."""
        return bytes(self.model.digest_of(self.before, np.frombuffer(self._digest, dtype=np.uint8)))

    @property
    def name(self) -> str:
        """What the folder calls the users after this update: other ratings give other users."""
        life = self.model.life_
        return f"users-{life.now}-{life.digest(self.digest()).hex()[:16]}"

    def last(self) -> DataFrame:
        """Return the users after the last update."""
        there = self.model.life_.there
        if there is None:
            ids = pa.array([], pa.int64())
            return shuffle.frame_of(self.config.spark, [UserState(at, -1, ids, {}) for at in range(self.n_buckets)])
        return self._at_home(self.checkpoint.keep(there[0], _missing))

    def _at_home(self, users: DataFrame) -> DataFrame:
        return users.repartitionById(self.n_buckets, "partition")

    @cached_property
    def users_after(self) -> DataFrame:
        """The users after this update."""

        def make() -> DataFrame:
            task = partial(open_bucket, self.recipe)
            return shuffle.shuffle(self.last().union(self.given), self.n_buckets, task)

        with job(self.config, "closing the batch", 2 * self.n_buckets):
            kept = self.checkpoint.keep(self.name, make)
            return self.checkpoint.persist(self._at_home(kept))

    def _ids(self, of: Callable[..., Any]) -> list[Any]:
        """Return ids of users on the driver: a ledger has an account for each."""
        with job(self.config, "accounts", self.n_buckets):
            found = shuffle.collect(shuffle.run_tasks(self.users_after, partial(list_ids, of)), SortedIds)
        ids = [one.ids for one in found if len(one.ids)]
        return list(code_ids(pa.chunked_array(ids), ROLES[0], "users").ids.values.tolist()) if ids else []

    def users(self) -> list[Any]:
        """Return all users."""
        return self._ids(_everybody)

    def entered(self, at: int) -> list[Any]:
        """Return the users of whom a batch holds something."""
        return self._ids(partial(self.recipe.entered, at=at))

    def profiles_at(self, users: DataFrame, at: int) -> ProfileBlocks:
        """Return what each user contributes to the sums of a batch."""
        nobody = self.recipe.profiles(np.empty(0, dtype=np.int64), {}, at)
        read = partial(read_bucket, partial(self.recipe.profiles, at=at))
        return ProfileBlocks(users, self.n_buckets, read, nobody, config=self.config)

    def close(self) -> ProfileBlocks:
        """Close the batch, and return what each user contributes to its sums."""
        return self.profiles_at(self.users_after, self.model.life_.now)

    def finish(self, _profiles: Any, known: Any) -> None:
        """Note that everything was published; of the users before only the last ones stay."""
        life = self.model.life_
        kept = {self.name, *life.there[:1]} if life.there else {self.name}
        life.there = self.name, self.n_buckets
        life.finish(known, None)
        self.checkpoint.remove_others("users-", kept)

    def forget(self, gone: set[str]) -> None:
        """Delete users, and compute the sums of all batches again without them."""
        model, before = self.model, self.model.life_
        named = hashlib.blake2b(repr(sorted(gone)).encode("utf-8", "surrogatepass"), key=before.key, digest_size=8)
        name = f"{before.there[0]}-{named.hexdigest()}"
        forgotten = shuffle.run_tasks(self.last(), partial(forget_users, self.recipe, gone))
        with job(self.config, "forgetting", 2 * self.n_buckets):
            lost = shuffle.collect(shuffle.of_kind(forgotten, Totals), Totals)
            if sum(one.count for one in lost) != len(gone):
                raise UnknownId("at least one of the users to be forgotten is not among those of the life")
            made = self.checkpoint.keep(name, lambda: shuffle.of_kind(forgotten, UserState))
            users = self.checkpoint.persist(self._at_home(made))
        model.life_ = before.copied()
        try:
            for at in sorted({at for one in lost for at in one.totals.tolist()}):
                model.sum_again(self.profiles_at(users, at), at)
        except BaseException:
            model.life_ = before
            raise
        model.life_.there = name, self.n_buckets


def _missing() -> DataFrame:
    raise SettingError("work must be the folder of this model's life, and it does not hold its users")


def _everybody(users: Any, _kept: Any) -> Any:
    return users


def _ids_as_array(ids: pa.Array) -> Any:
    return Ids.of(ids.to_numpy() if pa.types.is_integer(ids.type) else ids.to_pylist(), "users").values


def open_bucket(recipe: Any, partition: int, inbox: Inbox) -> Iterator[UserState]:
    """Close the batch of one bucket, and send what is kept of its users."""
    state, before = inbox.only(UserState), recipe.before
    rows = inbox.every(UserRows)
    given = before
    if rows:
        ids = pa.concat_arrays([one.ids for one in rows])
        csr = merged_rows(rows)
        how: dict[str, Any] = {"feedback": before.feedback, "liked_from": before.liked_from}
        given = Ratings(csr, _ids_as_array(ids), before.items, _scale_of(before), **how)
    users, kept = recipe.opened(_ids_as_array(state.ids), state.kept, given)
    yield UserState(partition, partition, pa.array(users), kept)


def _scale_of(ratings: Ratings) -> Scale | None:
    return None if ratings.feedback == "implicit" else ratings.scale


def forget_users(recipe: Any, gone: set[str], partition: int, inbox: Inbox) -> Iterator[Message]:
    """Send what is kept of a bucket without some users; how many these are, and which batches lost something."""
    state = inbox.only(UserState)
    users, kept, touched = recipe.without(_ids_as_array(state.ids), state.kept, gone)
    yield UserState(partition, partition, pa.array(users), kept)
    yield Totals(partition, partition, np.array(touched, dtype=np.int64), count=len(state.ids) - len(users))


def list_ids(of: Callable[..., Any], partition: int, inbox: Inbox) -> Iterator[SortedIds]:
    """Send the ids of some users of a bucket."""
    state = inbox.only(UserState)
    yield SortedIds(partition, partition, pa.array(of(_ids_as_array(state.ids), state.kept)))


def read_bucket(of: Callable[..., Any], inbox: Inbox) -> Any:
    """Return the profiles of the users of a bucket."""
    state = inbox.only(UserState)
    return of(_ids_as_array(state.ids), state.kept)


def send_to_buckets(layout: Layout, n_buckets: int, partition: int, inbox: Inbox) -> Iterator[UserRows]:
    """Send the rows of a block to the buckets of their users: a bucket depends on the id alone."""
    csr = layout.ratings_of(inbox).csr
    ids = pa.concat_arrays([one.ids for one in inbox.every(SortedIds)])
    own = np.array([zlib.crc32(str(one).encode("utf-8", "surrogatepass")) % n_buckets for one in ids.to_pylist()])
    for bucket in np.unique(own).tolist():
        rows = np.flatnonzero(own == bucket)
        yield UserRows(bucket, partition, *compact(csr[rows]), ids.take(pa.array(rows)))


@contextmanager
def _arriving(model: Any, new: Rated | None, before: Ratings | None, config: SparkConfig) -> Iterator[UsersThere]:
    """Hand out what an update is given; the first one says what is public of it."""
    if isinstance(new, Ratings):
        raise DataError("ratings of a life on the cluster must be a data frame of Spark, or a path")
    if new is None and before is not None:
        with _users_of(model, before, config) as there:
            yield there
        return
    scale = _scale_of(before) if before is not None and config.read.scale is None else config.read.scale
    in_store = replace(config, read=replace(config.read, scale=scale))
    with open_ratings(new, "user", lambda _: 1, in_store) as rows:  # type: ignore[arg-type]
        found, positions = _public(model, rows, in_store, _as_they_are) if before is None else (before, None)
        if before is not None:
            items = Ids.of_sorted(_item_ids(rows), "items"), Ids.of_sorted(before.items, "items")
            positions = positions_among(*items)
        kind: Any = {"scale": found.scale, "feedback": found.feedback}
        layout = Layout(model=_bare(model), positions=positions, n_items=found.shape[1], **kind)
        ids = rows.ids[0]
        sent = shuffle.run_tasks(ids.sorted_ids, partial(send_to_blocks, ids.starts, rows.layout.block_rows))
        n_buckets = max(rows.layout.n_blocks, 2 * config.n_cores)
        with _users_of(model, found, config, n_buckets) as there:
            task = partial(send_to_buckets, layout, there.n_buckets)
            rows_of_users = shuffle.shuffle(rows.blocks.union(sent), rows.layout.n_blocks, task)
            there.given = there.stack.enter_context(shuffle.persisting())(rows_of_users)
            there.n_ratings = rows.layout.n_ratings
            yield there


@contextmanager
def _users_of(model: Any, before: Ratings, config: SparkConfig, n_buckets: int = 1) -> Iterator[UsersThere]:
    """Hand out the users of a life, to whom nothing has arrived yet."""
    require(config.work is not None, "work", "a folder that keeps the users of the life", None)
    life = getattr(model, "life_", None)
    if life is not None and life.there is not None:
        n_buckets = life.there[1]
    with ExitStack() as stack:
        nothing = shuffle.frame_of(config.spark, [])
        yield UsersThere(model, before, nothing, n_buckets, config, stack)
