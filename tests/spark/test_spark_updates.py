"""Private models with a life on Spark: the users stay on the cluster, and every update is that of one machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import goodfence as gf
from goodfence import spark as engine
from goodfence.data.frame import ReadOptions
from goodfence.errors import DataError, KeyReused, SettingError, UnknownId
from goodfence.ledger.export import told
from goodfence.ledger.verify import verify
from goodfence.spark.messages import UserState, from_arrow, to_arrow
from tests.models.test_lasting import ITEMS, batch, ledger_in
from tests.models.test_lasting import sums_of as totals_of
from tests.models.test_lasting_ledger import Dies
from tests.spark.test_spark_private import same_release
from tests.support.frames import table_of

HOW: dict[str, Any] = {"epsilon": 4.0, "catalogue": ITEMS, "rng": 3}
MODELS: dict[str, Callable[[], Any]] = {
    "means, rating": lambda: gf.PrivateMeans(**HOW, lasting=gf.Lasting(updates=4)),
    "cf, rating, history": lambda: gf.PrivateCF(
        **HOW, plan="covariance", lasting=gf.Lasting(updates=4, pairs="history")
    ),
    "cf, user, wait": lambda: gf.PrivateCF(
        **HOW, unit="user", plan="covariance", lasting=gf.Lasting(updates=4, wait=1)
    ),
    "lists, event, history": lambda: gf.PrivateTopN(**HOW, lasting=gf.Lasting(updates=4, pairs="history")),
    "lists, user": lambda: gf.PrivateTopN(**HOW, unit="user", lasting=gf.Lasting(updates=4)),
}


class Weeks:
    """Batches with users who return, each as ratings of this machine and as a file."""

    def __init__(self, folder: Path, spark: Any, implicit: bool = False) -> None:
        self.folder, self.spark, self.implicit = folder, spark, implicit
        read = ReadOptions(feedback="implicit") if implicit else ReadOptions(scale=(1, 5, 1))
        self.config = engine.SparkConfig(spark=spark, read=read, work=str(folder / "life"), progress=False)

    def ratings(self, week: int) -> gf.Ratings:
        own = batch(week, 40 + 20 * week, 10 * week)
        if not self.implicit:
            return own
        once = sparse.csr_array((np.ones(own.csr.nnz), own.csr.indices, own.csr.indptr), shape=own.shape)
        return gf.Ratings(once, own.users, own.items, feedback="implicit")

    def path(self, week: int) -> str:
        path = self.folder / f"week{week}.parquet"
        table = table_of(self.ratings(week), seed=week)
        pq.write_table(table.select(["user", "item"]) if self.implicit else table, path)
        return str(path)


def same_life(here: Any, there: Any) -> None:
    same_release(here, there)
    for mine, yours in zip(totals_of(here), totals_of(there), strict=True):
        assert np.array_equal(mine, yours)


def deleted_of(model: Any) -> dict[int, list[int]]:
    """Half of the ratings of some users who return, each with an item that they did not rate."""
    ratings = model.ratings_
    rated = {user: ratings.items[ratings.csr[[row]].indices].tolist() for row, user in enumerate(ratings.users)}
    others = {user: [item for item in ITEMS if item not in rated[user]] for user in rated}
    return {int(user): [*rated[user][::2], *others[user][:1]] for user in list(rated)[20:26] if rated[user]}


@pytest.mark.spark
@pytest.mark.parametrize("name", MODELS)
def test_a_life_is_that_of_one_machine(spark: Any, tmp_path: Path, name: str) -> None:
    """With a catalogue that grows, users who are forgotten, an empty update, and a model that was saved meanwhile."""
    weeks, here, there = Weeks(tmp_path, spark, "lists" in name), MODELS[name](), MODELS[name]()
    config = weeks.config
    here.fit(weeks.ratings(0))
    engine.fit(there, weeks.path(0), config=config)
    same_life(here, there)
    deleted = deleted_of(here)
    for user, items in deleted.items():
        here.withdraw(user, items)
        engine.withdraw(there, user, items, config=config)
    here.update(weeks.ratings(1), add_items=[100])
    engine.update(there, weeks.path(1), add_items=[100], config=config)
    same_life(here, there)
    assert there.ratings_.shape[0] == 0
    for model, file in ((here, "here"), (there, "there")):
        model.save(tmp_path / file)
    loaded: list[Any] = [gf.load_model(tmp_path / file) for file in ("here", "there")]
    here, there = loaded
    here.forget([12, 30])
    engine.forget(there, [12, 30], config=config)
    same_life(here, there)
    for model in (here, there):
        model.rng = 5
    here.update(None)
    engine.update(there, None, config=config)
    same_life(here, there)
    here.update(weeks.ratings(2))
    engine.update(there, weeks.path(2), config=config)
    same_life(here, there)
    assert there.updates_left_ == 0
    assert len(list((tmp_path / "life").glob("users-*"))) == 2
    with pytest.raises(SettingError, match="cannot be updated"):
        there.update(weeks.ratings(3))


@pytest.mark.spark
def test_failing_tasks_change_no_update(spark: Any, tmp_path: Path, failing: None) -> None:
    weeks, name = Weeks(tmp_path, spark), "cf, rating, history"
    here, there = MODELS[name]().fit(weeks.ratings(0)).update(weeks.ratings(1)), MODELS[name]()
    engine.fit(there, weeks.path(0), config=weeks.config)
    engine.update(there, weeks.path(1), config=weeks.config)
    same_life(here, there)


@pytest.mark.spark
@pytest.mark.parametrize("unit", ["rating", "user"])
def test_a_ledger_counts_the_same(spark: Any, tmp_path: Path, unit: Any) -> None:
    weeks, entries, known = Weeks(tmp_path, spark), [], []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        ledger = ledger_in(tmp_path / name)
        model = gf.PrivateMeans(epsilon=4.0, unit=unit, catalogue=ITEMS, lasting=gf.Lasting(updates=4))
        for week in range(2):
            counted: dict[str, Any] = {"ledger": ledger, "key": f"week {week}"}
            if name == "here":
                (model.update if week else model.fit)(weeks.ratings(week), **counted)
            else:
                (engine.update if week else engine.fit)(model, weeks.path(week), config=weeks.config, **counted)
                engine.update(model, weeks.path(week), config=weeks.config, **counted)  # asked again: nothing new
        told_by = [told(entry) for entry in ledger.book.entries("kind IN ('open', 'charge')")]
        entries.append([(one["kind"], one["idem"], one["cost"], one["slack"]) for one in told_by])
        users = weeks.ratings(1).users[np.diff(weeks.ratings(1).csr.indptr) > 0]
        names = list(map(repr, users.tolist())) if unit == "user" else ["week 0/week 1"]
        known.append([ledger.spent(ledger.account(unit, one)).cost for one in names])
        assert model.updates_left_ == 2
        with pytest.raises(KeyReused):
            engine.update(model, None, config=weeks.config, **counted) if name == "there" else model.update(
                None, **counted
            )
        assert verify(ledger.book) == []
        ledger.close()
    assert entries[0] == entries[1]
    assert known[0] == known[1]
    assert min(known[0]) > 0


@pytest.mark.spark
def test_an_update_that_failed_goes_on_where_it_stopped(spark: Any, tmp_path: Path) -> None:
    weeks, name = Weeks(tmp_path, spark), "means, rating"
    here, there = MODELS[name]().fit(weeks.ratings(0)), MODELS[name]()
    engine.fit(there, weeks.path(0), config=weeks.config)
    noise, there.life_.noise = there.life_.noise, Dies()
    with pytest.raises(MemoryError):
        engine.update(there, weeks.path(1), config=weeks.config)
    there.life_.noise = noise
    with pytest.raises(SettingError, match="an update failed after it had begun"):
        engine.update(there, weeks.path(2), config=weeks.config)
    engine.update(there, weeks.path(1), config=weeks.config)
    same_life(here.update(weeks.ratings(1)), there)


@pytest.mark.spark
def test_what_a_life_on_the_cluster_refuses(spark: Any, tmp_path: Path) -> None:
    weeks, model = Weeks(tmp_path, spark), MODELS["means, rating"]()
    without = engine.SparkConfig(spark=spark, read=ReadOptions(scale=(1, 5, 1)), progress=False)
    with pytest.raises(SettingError, match="work must be a folder"):
        engine.fit(model, weeks.path(0), config=without)
    with pytest.raises(DataError, match="a data frame of Spark, or a path"):
        engine.fit(model, weeks.ratings(0), config=weeks.config)
    with pytest.raises(SettingError, match="lasting must be given with a ledger"):
        engine.fit(gf.PrivateMeans(**HOW), weeks.path(0), ledger=ledger_in(tmp_path), key="1", config=without)
    engine.fit(model, weeks.path(0), config=weeks.config)
    with pytest.raises(UnknownId, match="users named"):
        engine.forget(model, [12, 999], config=weeks.config)
    with pytest.raises(UnknownId, match="users named"):
        engine.withdraw(model, 999, [ITEMS[0]], config=weeks.config)
    with pytest.raises(UnknownId, match="item"):
        engine.withdraw(model, 12, [-5], config=weeks.config)
    other = engine.SparkConfig(spark=spark, read=weeks.config.read, work=str(tmp_path / "other"), progress=False)
    with pytest.raises(SettingError, match="does not hold its users"):
        engine.update(model, weeks.path(1), config=other)
    with pytest.raises(SettingError, match="another folder"):
        engine.fit(MODELS["means, rating"](), weeks.path(0), config=weeks.config)


def test_what_is_kept_of_users_survives_the_way() -> None:
    kept: dict[str, Any] = {"a": np.arange(3), "b": np.empty(0), "c": np.ones((2, 3), dtype=np.uint8)}
    (found,) = from_arrow([to_arrow([UserState(1, 1, pa.array(["ann", "bob"]), kept)])])
    assert isinstance(found, UserState)
    assert found.ids.to_pylist() == ["ann", "bob"]
    assert list(found.kept) == list(kept)
    assert all(np.array_equal(found.kept[name], array) for name, array in kept.items())
    assert [array.dtype for array in found.kept.values()] == [array.dtype for array in kept.values()]
