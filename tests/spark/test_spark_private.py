"""Private models on Spark: the released numbers are those of one machine for the same noise, whatever fails."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import goodfence as gf
from goodfence import spark as engine
from goodfence.data.frame import ReadOptions
from goodfence.errors import DataError, SettingError
from goodfence.evaluation import evaluate_there
from goodfence.spark import messages, shuffle
from goodfence.spark.messages import Totals
from goodfence.spark.private import add_blocks, require_once
from goodfence.spark.shuffle import Inbox
from tests.support.frames import table_of
from tests.support.running import run

FILMS = gf.load("movietweetings")
SCALE = (0.0, 10.0, 1.0)
RATED: dict[str, Any] = {"items": "from ratings", "rng": 3}
MODELS: dict[str, Callable[[], Any]] = {
    "means, rating": lambda: gf.PrivateMeans(epsilon=1.0, **RATED),
    "means, user": lambda: gf.PrivateMeans(epsilon=1.0, unit="user", **RATED),
    "cf, rating, means": lambda: gf.PrivateCF(epsilon=1.0, **RATED, plan="means"),
    "cf, rating, covariance and half steps": lambda: gf.PrivateCF(epsilon=8.0, **RATED),
    "cf, user, means": lambda: gf.PrivateCF(epsilon=1.0, unit="user", **RATED),
    "cf, user, covariance": lambda: gf.PrivateCF(epsilon=8.0, unit="user", plan="covariance", **RATED),
    "cf, user, half steps": lambda: gf.PrivateCF(epsilon=8.0, unit="user", plan="half_step", **RATED),
    "lists, event": lambda: gf.PrivateTopN(epsilon=4.0, **RATED),
    "lists, user": lambda: gf.PrivateTopN(epsilon=4.0, unit="user", **RATED),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("ratings") / "films.parquet"
    pq.write_table(table_of(FILMS, seed=3), made)
    return os.fspath(made)


def config_for(spark: Any, model: Any, **how: Any) -> engine.SparkConfig:
    events = model.learns_from == "implicit"
    read = ReadOptions(likes=8.0) if events else ReadOptions(scale=SCALE)
    return engine.SparkConfig(spark=spark, read=read, progress=False, **how)


def local(model: Any) -> Any:
    return model.fit(FILMS.likes(8) if model.learns_from == "implicit" else FILMS)


def same_release(one: Any, other: Any) -> None:
    mine, yours = one._arrays(), other._arrays()
    assert mine.keys() == yours.keys()
    for name, array in mine.items():
        assert np.array_equal(array, yours[name]), name
    assert one.record_ == other.record_
    assert one.ratings_.items.tolist() == other.ratings_.items.tolist()


@pytest.mark.spark
@pytest.mark.parametrize("name", MODELS)
def test_a_path_gives_the_model_of_one_machine(spark: Any, path: str, name: str) -> None:
    make = MODELS[name]
    there = engine.fit(make(), path, config=config_for(spark, make()))
    same_release(local(make()), there)
    assert there.ratings_.shape[0] == there.ratings_.n_ratings == 0


@pytest.mark.spark
@pytest.mark.parametrize("name", ["cf, rating, covariance and half steps", "lists, user"])
def test_failing_tasks_change_nothing(spark: Any, path: str, name: str, failing: None) -> None:
    make = MODELS[name]
    config = config_for(spark, make(), block_rows=150)
    same_release(local(make()), engine.fit(make(), path, config=config))


@pytest.mark.spark
def test_a_worker_that_dies_changes_nothing(
    spark: Any, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Python worker of a task is killed once, after the task has sent a part of its sums."""
    run_tasks, mark = shuffle.run_tasks, tmp_path / "killed"

    def killing(frame: Any, task: shuffle.Task, combine: Any = None) -> Any:
        def dying(partition: int, inbox: shuffle.Inbox) -> Any:
            for number, sent in enumerate(task(partition, inbox)):
                yield sent
                if isinstance(sent, Totals) and partition == 2 and number == 0 and not mark.exists():
                    mark.touch()
                    os.kill(os.getpid(), signal.SIGKILL)

        return run_tasks(frame, dying, combine)

    monkeypatch.setattr(shuffle, "run_tasks", killing)
    make = MODELS["cf, user, half steps"]
    same_release(local(make()), engine.fit(make(), path, config=config_for(spark, make(), block_rows=300)))
    assert mark.exists()


@pytest.mark.spark
@pytest.mark.parametrize("block_rows", [1000, 37])
def test_frames_ratings_and_a_catalogue(spark: Any, block_rows: int) -> None:
    """Of a catalogue in another order, which lacks some items and has others; a frame has text for ids."""
    films = gf.synthetic(users=60, items=40, ratings=900, rng=2)
    catalogue = [*(str(item) for item in films.items[:30:-1]), "900", *(str(item) for item in films.items[:20])]
    made = [gf.PrivateCF(epsilon=4.0, catalogue=catalogue, rng=5) for _ in range(3)]
    table = table_of(films)
    table = table.set_column(0, "user", [[f"u{one}" for one in table["user"].to_pylist()]])
    read = ReadOptions(scale=(1, 5, 1))
    config = engine.SparkConfig(spark=spark, read=read, block_rows=block_rows, progress=False)
    here = made[0].fit(films)
    same_release(here, engine.fit(made[1], spark.createDataFrame(table), config=config))
    given = engine.fit(made[2], films, config=config)
    same_release(here, given)
    assert np.array_equal(given.predict(films.users[:5], catalogue[:5]), here.predict(films.users[:5], catalogue[:5]))


@pytest.mark.spark
def test_what_one_machine_refuses_is_refused(spark: Any, path: str) -> None:
    config = engine.SparkConfig(spark=spark, progress=False)
    with pytest.raises(DataError, match="scale of the ratings must be declared"):
        engine.fit(gf.PrivateMeans(epsilon=1.0, items="from ratings"), path, config=config)
    with pytest.raises(DataError, match="PrivateTopN needs events"):
        engine.fit(gf.PrivateTopN(items="from ratings"), path, config=config)
    declared = config_for(spark, gf.PrivateMeans(epsilon=1.0))
    with pytest.raises(SettingError, match="list of items must be chosen"):
        engine.fit(gf.PrivateMeans(epsilon=1.0), path, config=declared)
    with pytest.raises(SettingError, match="work must be left out for a private model"):
        engine.fit(
            gf.PrivateMeans(epsilon=1.0, items="from ratings"),
            path,
            config=config_for(spark, gf.PrivateMeans(epsilon=1.0), work="work"),
        )


@pytest.mark.spark
@pytest.mark.parametrize("name", ["cf, rating, means", "lists, event"])
def test_everybody_gets_the_lists_of_one_machine(spark: Any, path: str, tmp_path: Path, name: str) -> None:
    make = MODELS[name]
    config = config_for(spark, make(), block_rows=200)
    model = engine.fit(make(), path, config=config)
    found = engine.recommend(path, model, n=5, config=config)
    found.write.parquet(str(tmp_path / "lists"))
    found.unpersist()
    there = pq.read_table(tmp_path / "lists").sort_by([("user", "ascending"), ("rank", "ascending")])
    here = local(make()).recommend_many(None, 5).table()
    for column in ("user", "rank", "item", "score"):
        assert there[column].to_pylist() == here[column].to_pylist()
    here_only: Any = FILMS
    with pytest.raises(DataError, match="recommend_many"):
        engine.recommend(here_only, model, config=config)


@pytest.mark.spark
@pytest.mark.parametrize("method", ["private-cf epsilon=8", "private-top-n epsilon=4 unit=user"])
def test_the_command_brings_no_rating_to_the_driver(
    spark: Any, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(type(spark), "stop", lambda _: None)  # other tests need the session
    collected: list[str] = []
    collect = shuffle.collect

    def noted(frame: Any, kind: Any) -> Any:
        collected.append(kind.__name__)
        return collect(frame, kind)

    monkeypatch.setattr(shuffle, "collect", noted)
    low, high, step = SCALE
    flags = ["--likes", "8"] if "top-n" in method else ["--scale", f"{low:g} {high:g} {step:g}"]
    flags += ["--method", method, "--items", "from-ratings", "--seed", "3", "--json"]
    here, there = tmp_path / "here.gf", tmp_path / "there.gf"
    told = [
        run("fit", path, *flags, "--without-ratings", "-o", str(here)),
        run("fit", path, *flags, "--engine", "spark", "--master", "local[2]", "-o", str(there)),
    ]
    for code, _, stderr in told:
        assert code == 0, stderr
    first, second = ({**json.loads(stdout), "out": ""} for _, stdout, _ in told)
    assert first == second
    assert {*collected} == {"ChunkFacts", "SortedIds", "Totals"}
    same_release(gf.load_model(here), gf.load_model(there))
    assert there.stat().st_size < 1 << 24


@pytest.mark.spark
def test_the_command_knows_a_named_data_set(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    flags = ["--method", "private-means epsilon=1", "--seed", "3", "-o"]
    here, there = tmp_path / "here.gf", tmp_path / "there.gf"
    for code, _, stderr in (
        run("fit", "movietweetings", *flags, str(here)),
        run("fit", "movietweetings", *flags, str(there), "--engine", "spark", "--master", "local[2]"),
    ):
        assert code == 0, stderr
    same_release(gf.load_model(here), gf.load_model(there))


def part(sender: int, partition: int = 0) -> Totals:
    return Totals(partition, sender, np.array([1, 2], dtype=np.int32), count=1)


@pytest.mark.parametrize("senders", [[0, 1], [0, 1, 1, 2], [0, 1, 3], [0, 1, 2, 3]])
def test_a_block_that_is_missing_or_counted_twice_is_an_error(senders: list[int]) -> None:
    (added,) = add_blocks(3, 0, Inbox(map(part, [2, 0, 1])))
    assert added.totals.tolist() == [3, 6]
    assert added.count == 3
    with pytest.raises(RuntimeError, match="exactly once"):
        list(add_blocks(3, 0, Inbox(map(part, senders))))


def test_the_driver_takes_every_part_once() -> None:
    require_once([0, 1, 2], 3)
    require_once([4, 4], 2, each=4)
    for wrong in ([0, 1], [0, 1, 1], [0, 2, 1]):
        with pytest.raises(RuntimeError, match="exactly once"):
            require_once(wrong, 3)
    with pytest.raises(RuntimeError, match="exactly once"):
        require_once([4, 3], 2, each=4)


def test_sums_survive_the_way() -> None:
    sent = Totals(3, 1, np.array([-(2**50), 2**40]), count=1)
    (found,) = messages.from_arrow([messages.to_arrow([sent])])
    assert isinstance(found, Totals)
    assert found.totals.tolist() == [-(2**50), 2**40]


@pytest.mark.spark
@pytest.mark.parametrize("name", ["cf, rating, means", "lists, event"])
def test_scores_are_those_of_one_machine(spark: Any, path: str, name: str) -> None:
    """With one block the same ratings are held out; with several each block holds out its own."""
    make = MODELS[name]
    ratings = FILMS.likes(8) if "lists" in name else FILMS
    held_out = {"fraction": 0.2, "per_user": None, "by": "chance"}
    train, test = gf.holdout(ratings, fraction=0.2, rng=[7, 0])
    here = gf.evaluate(make().fit(train), test, n=5).figures()
    del here["mean_popularity"]
    for block_rows in (2000, 300):
        config = config_for(spark, make(), block_rows=block_rows)
        there = evaluate_there(make(), path, config, held_out=held_out, n=5, rng=7)
        found = there.figures()
        assert found.keys() == here.keys()
        exact = {"rel": 1e-12} if block_rows == 2000 else {"rel": 0.15, "abs": 0.01}
        assert found == pytest.approx(here, nan_ok=True, **exact)
        assert there.intervals is not None
        low, high = there.intervals["ndcg"]
        assert low < found["ndcg"] < high


@pytest.mark.spark
def test_the_commands_evaluate_and_list_from_a_path(
    spark: Any, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    scale, method = ["--scale", "0 10 1"], ["--method", "private-means epsilon=4", "--seed", "3"]
    there = ["--engine", "spark", "--master", "local[2]"]
    code, stdout, stderr = run("evaluate", path, *scale, *method, "-n", "5", *there, "--json")
    assert code == 0, stderr
    told = json.loads(stdout)
    assert 0 < told["mae"] < 3
    assert told["n"] == round(0.2 * FILMS.n_ratings)
    code, _, stderr = run("evaluate", path, *scale, "--method", "knn", *there)
    assert code == 2
    assert "private models only" in stderr
    code, _, stderr = run("evaluate", path, *scale, *method, "--by", "time", *there)
    assert code == 2
    assert "reads no times" in stderr
    model, lists = str(tmp_path / "model.gf"), tmp_path / "lists.parquet"
    code, _, stderr = run("fit", path, *scale, *method, "--items", "from-ratings", *there, "-o", model)
    assert code == 0, stderr
    asked = ["--all", "--ratings", path, "--master", "local[2]", "-n", "5"]
    code, stdout, stderr = run("recommend", model, *asked, "-o", str(lists), "--json")
    assert code == 0, stderr
    assert json.loads(stdout)["recommendations"] == 5 * FILMS.shape[0] == pq.read_table(lists).num_rows
    code, _, stderr = run("recommend", model, *asked, "-o", str(tmp_path / "lists.csv"))
    assert code == 2
    assert "to .parquet" in stderr
