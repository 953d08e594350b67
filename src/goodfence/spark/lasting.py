"""Private models with a life on Spark: users stay on the cluster, in buckets by their ids.

A task goes on with the life of the users of its bucket by the code of one machine (`BucketOfUsers`). The folder `work`
keeps them between updates; the driver keeps what was released and the exact sums.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from goodfence.data.columns import ROLES
from goodfence.data.ids import Ids, code_ids
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale
from goodfence.errors import DataError, SettingError, UnknownId, require
from goodfence.spark import shuffle
from goodfence.spark.messages import Message, SortedIds, Totals, UserRows, UserState
from goodfence.spark.neighbours import leave_neighbours
from goodfence.spark.private import (
    LaidOutBlocks,
    ProfileBlocks,
    as_they_are,
    bare_of,
    fit_there,
    item_ids,
    positions_on,
    public_of,
)
from goodfence.spark.ratings import Rated, compact, merged_rows, open_ratings
from goodfence.spark.session import SparkConfig, config_of, job
from goodfence.spark.shuffle import Checkpoint, Inbox, checkpoints

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def spark_fit(
    model: Any,
    ratings: Rated,
    *,
    ledger: Any = None,
    key: str | None = None,
    out: str | os.PathLike[str] | None = None,
    spark: SparkSession | None = None,
    config: SparkConfig | None = None,
) -> Any:
    """Fit a recommender to ratings on the cluster, and return it: the same model as on one machine.

    A private one keeps only what it released, unless the ratings are `Ratings`: it answers profiles, and `recommend`
    answers everybody. With `lasting` the folder `config.work`, as secret as the ratings, keeps the users for `update`;
    `ledger` and `key` are as in `PrivateCF.update`. A `NeighbourCF` collects the ratings from which it predicts, unless
    `out` names a folder in which to leave its neighbours as parquet: it is returned, and `predict` and `recommend` take
    it for `chosen`. The rest is as in `candidate_lists`.
    """
    settled = config_of(spark, config)
    if out is not None:
        require(not hasattr(model, "fit_profiles"), "out", "left out for a private model, which can be saved", None)
        return leave_neighbours(model, ratings, out, settled)
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

    `new` is a data frame or a path with what arrived since the last update; None for an empty batch. `config.work`
    names the folder that was given to `fit`: it keeps the users between updates. The rest is as in `PrivateCF.update`.
    """
    settled = config_of(spark, config)
    with _arriving(model, new, model.on_items_with(add_items), settled) as arrived:
        return model.continue_life(arrived, ledger, key)


def spark_forget(model: Any, user: Any, *, spark: SparkSession | None = None, config: SparkConfig | None = None) -> Any:
    """Delete a user, or several, with all they ever gave from a life on the cluster; return the model."""
    asked = [user] if isinstance(user, str | int | np.integer) else user
    with _users_of(model, model.ratings_, config_of(spark, config)) as there:
        there.delete({str(one) for one in asked}, None)
    return model


def spark_withdraw(
    model: Any, user: Any, items: Any, *, spark: SparkSession | None = None, config: SparkConfig | None = None
) -> Any:
    """Delete ratings of a user from a life on the cluster, as `PrivateCF.withdraw` does; return the model."""
    with _users_of(model, model.ratings_, config_of(spark, config)) as there:
        there.delete({str(user)}, model.ratings_.columns(items).tolist())
    return model


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

    def __post_init__(self) -> None:
        self.kept, self.scale = self.before, self.before.scale  # what arrives is read on the scale of the model

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
        return self.checkpoint.keep(there[0], _missing).repartitionById(self.n_buckets, "partition")

    @cached_property
    def users_after(self) -> DataFrame:
        """The users after this update."""

        def make() -> DataFrame:
            task = partial(open_bucket, self.recipe)
            return shuffle.shuffle(self.last().union(self.given), self.n_buckets, task)

        with job(self.config, "closing the batch", 2 * self.n_buckets):
            kept = self.checkpoint.keep(self.name, make)
            return self.checkpoint.persist(kept.repartitionById(self.n_buckets, "partition"))

    def _ids(self, of: Callable[..., Any]) -> list[Any]:
        """Return ids of users on the driver: a ledger has an account for each."""
        with job(self.config, "accounts", self.n_buckets):
            found = shuffle.collect(shuffle.run_tasks(self.users_after, partial(list_ids, of)), SortedIds)
        ids = [one.ids for one in found if len(one.ids)]
        return list(code_ids(pa.chunked_array(ids), ROLES[0], "users").ids.values.tolist()) if ids else []

    def users(self) -> list[Any]:
        """Return all users."""
        return self._ids(lambda users, _: users)

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

    def delete(self, gone: set[str], items: list[int] | None) -> None:
        """Delete users and compute the sums of all batches again without them, or what they said of some items."""
        model, before = self.model, self.model.life_
        before.require_finished()
        asked = repr((before.there[0], sorted(gone), items)).encode("utf-8", "surrogatepass")
        name = f"users-{before.now}-{before.digest(asked).hex()[:16]}"
        changed = shuffle.run_tasks(self.last(), partial(delete_from_bucket, self.recipe, gone, items))
        with job(self.config, "deleting", 2 * self.n_buckets):
            lost = shuffle.collect(shuffle.of_kind(changed, Totals), Totals)
            if sum(one.count for one in lost) != len(gone):
                raise UnknownId("at least one of the users named is not among those of the life")
            made = self.checkpoint.keep(name, lambda: shuffle.of_kind(changed, UserState))
            users = self.checkpoint.persist(made.repartitionById(self.n_buckets, "partition"))
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


def delete_from_bucket(recipe: Any, gone: set[str], items: Any, partition: int, inbox: Inbox) -> Iterator[Message]:
    """Send what is kept of a bucket after users, or some of their ratings, are deleted; and what that changed."""
    state = inbox.only(UserState)
    users, kept, n_changed, touched = recipe.without(_ids_as_array(state.ids), state.kept, gone, items)
    yield UserState(partition, partition, pa.array(users), kept)
    yield Totals(partition, partition, np.array(touched, dtype=np.int64), count=n_changed)


def list_ids(of: Callable[..., Any], partition: int, inbox: Inbox) -> Iterator[SortedIds]:
    """Send the ids of some users of a bucket."""
    state = inbox.only(UserState)
    yield SortedIds(partition, partition, pa.array(of(_ids_as_array(state.ids), state.kept)))


def read_bucket(of: Callable[..., Any], inbox: Inbox) -> Any:
    """Return the profiles of the users of a bucket."""
    state = inbox.only(UserState)
    return of(_ids_as_array(state.ids), state.kept)


def send_to_buckets(layout: LaidOutBlocks, n_buckets: int, partition: int, inbox: Inbox) -> Iterator[UserRows]:
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
    given: Any = new
    with open_ratings(given, "user", lambda _: 1, in_store) as rows:
        found, positions = public_of(model, rows, in_store, as_they_are) if before is None else (before, None)
        if before is not None:
            positions = positions_on(before.items, item_ids(rows))
        kind: Any = {"scale": found.scale, "feedback": found.feedback}
        layout = LaidOutBlocks(model=bare_of(model), positions=positions, n_items=found.shape[1], **kind)
        n_buckets = max(rows.layout.n_blocks, 2 * config.n_cores)
        with _users_of(model, found, config, n_buckets) as there:
            task = partial(send_to_buckets, layout, there.n_buckets)
            together = rows.blocks.union(rows.ids[0].of_blocks(rows.layout.block_rows))
            rows_of_users = shuffle.shuffle(together, rows.layout.n_blocks, task)
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
