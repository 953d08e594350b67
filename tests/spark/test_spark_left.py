"""Neighbours that a fit leaves on the cluster: a folder of parquet that answers as the model of one machine does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import goodfence as gf
from goodfence import spark as engine
from goodfence.data.frame import ReadOptions
from goodfence.errors import DataError, SettingError
from goodfence.evaluation import evaluate_neighbours
from goodfence.spark import shuffle
from goodfence.spark.neighbours import NeighboursThere
from goodfence.spark.ratings import open_ratings
from tests.support.frames import table_of
from tests.support.running import run

pytestmark = pytest.mark.spark

CHANCE = np.random.default_rng(3)
CELLS = CHANCE.integers(1, 6, (100, 40)) * (CHANCE.random((100, 40)) < 0.4)
FILMS = gf.Ratings(sparse.csr_array(CELLS.astype(float)), list(range(1, 101)), list(range(1, 41)), (1, 5, 1))
TRAIN, TEST = gf.holdout(FILMS, fraction=0.1, rng=7)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("ratings") / "films.parquet"
    pq.write_table(table_of(TRAIN, seed=3), made)
    return str(made)


def config_for(spark: Any, **how: Any) -> engine.SparkConfig:
    return engine.SparkConfig(spark=spark, read=ReadOptions(scale=(1, 5, 1)), progress=False, **how)


@pytest.fixture(autouse=True)
def no_rating_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only facts, and one sum of hashes for each block, come to the driver."""
    collect = shuffle.collect

    def counted(frame: Any, kind: Any) -> Any:
        assert kind.__name__ in ("ChunkFacts", "Totals"), "messages came to the driver"
        found = collect(frame, kind)
        assert all(one.totals.shape == (1,) for one in found if kind.__name__ == "Totals")
        return found

    monkeypatch.setattr(shuffle, "collect", counted)


@pytest.mark.parametrize(("axis", "over"), [("user", "raters"), ("user", "neighbours"), ("item", "raters")])
def test_a_folder_answers_as_the_model_of_one_machine(
    spark: Any, path: str, tmp_path: Path, axis: Any, over: Any
) -> None:
    models: list[gf.NeighbourCF] = [gf.NeighbourCF(gf.PPNS(k=8, beta=3), axis=axis, over=over, rng=7) for _ in range(2)]
    here, folder = models[0].fit(TRAIN), str(tmp_path / "left.parquet")
    assert engine.fit(models[1], path, out=folder, config=config_for(spark, block_rows=70)) == folder
    left = pq.read_table(folder).sort_by("row")
    assert left["id"].to_pylist() == (TRAIN.users if axis == "user" else TRAIN.items).tolist()
    for name in ("neighbours", "similarities", "weights"):
        assert np.array_equal(np.array(left[name].to_pylist()), getattr(here, f"{name}_"))
    config = config_for(spark, block_rows=40)  # other blocks than in the fit
    test = spark.createDataFrame(table_of(TEST))
    predicted = engine.predict(path, folder, test, config=config).toArrow()
    wanted = here.predict(predicted["user"].to_pylist(), predicted["item"].to_pylist())
    assert predicted.num_rows == TEST.n_ratings
    assert np.array_equal(predicted["prediction"].to_numpy(), wanted, equal_nan=True)
    best = engine.recommend(path, folder, n=4, config=config).orderBy("user", "rank").toArrow().to_pylist()
    for user, listed in zip(TRAIN.users.tolist(), here.recommend_many(None, 4), strict=True):
        assert [one["item"] for one in best if one["user"] == user] == listed.items.tolist()
    scores, local = evaluate_neighbours(folder, path, test, config).figures(), gf.evaluate(here, TEST).figures()
    assert scores == pytest.approx(local, rel=1e-12)


def test_what_a_folder_refuses(spark: Any, path: str, tmp_path: Path) -> None:
    config, folder = config_for(spark), tmp_path / "left.parquet"
    asked = spark.createDataFrame(table_of(TEST))
    with pytest.raises(DataError, match="the folder of neighbours is not there"):
        engine.predict(path, folder, asked, config=config)
    with pytest.raises(SettingError, match="center must be None"):
        engine.fit(gf.NeighbourCF(gf.KNN(k=5), center="user_mean"), path, out=folder, config=config)
    with pytest.raises(SettingError, match="out must be left out for a private model"):
        engine.fit(gf.PrivateMeans(epsilon=1.0, items="from ratings"), path, out=folder, config=config)
    with pytest.raises(DataError, match="ratings must be of Spark"):
        engine.fit(gf.NeighbourCF(gf.KNN(k=5)), TRAIN, out=folder, config=config)
    assert not folder.exists()
    engine.fit(gf.NeighbourCF(gf.KNN(k=5), rng=7), path, out=folder, config=config)
    engine.fit(gf.NeighbourCF(gf.KNN(k=6), rng=7), path, out=folder, config=config)  # in its place
    assert len(pq.read_table(folder)["neighbours"][0]) == 6
    with pytest.raises(SettingError, match="axis must be left out or 'user'"):
        engine.recommend(path, folder, axis="item", config=config)
    with pytest.raises(SettingError, match="over must be left out or 'raters'"):
        engine.predict(path, folder, asked, over="neighbours", config=config)
    with pytest.raises(DataError, match="and are others"):
        engine.recommend(spark.createDataFrame(table_of(FILMS)), folder, config=config)
    shutil.rmtree(folder / "_manifest")  # as after a failure
    with pytest.raises(DataError, match="no neighbours that a fit left to the end"):
        engine.recommend(path, folder, config=config)
    with pytest.raises(DataError, match="no neighbours that a fit left to the end"):
        engine.predict(path, folder, asked, config=config)
    with pytest.raises(SettingError, match="out must be a new folder"):
        engine.fit(gf.NeighbourCF(gf.KNN(k=5)), path, out=folder, config=config)


def test_one_changed_rating_makes_other_ratings(spark: Any, path: str) -> None:
    """In whatever blocks and along whichever axis; a value, a cell and a missing rating are seen."""

    def checksum(ratings: Any, axis: Any, **how: Any) -> str:
        with open_ratings(ratings, axis, lambda _: 1, config_for(spark, **how)) as rows:
            return rows.checksum(axis)

    known = checksum(path, "user")
    assert {checksum(path, "item"), checksum(path, "user", block_rows=13), checksum(path, "item", block_rows=7)} == {
        known
    }
    table = table_of(TRAIN)
    values, items = table["rating"].to_pylist(), table["item"].to_pylist()
    values[5] = 6 - values[5] if values[5] != 3 else 1
    own = {
        item for user, item in zip(table["user"].to_pylist(), items, strict=True) if user == table["user"][9].as_py()
    }
    items[9] = next(one for one in TRAIN.items.tolist() if one not in own)
    others = [
        table.set_column(table.schema.get_field_index("rating"), "rating", [values]),
        table.set_column(table.schema.get_field_index("item"), "item", [items]),
        table.slice(1),
    ]
    found = {checksum(spark.createDataFrame(one), "user") for one in others}
    assert len(found | {known}) == 4


def test_the_commands(spark: Any, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(spark), "stop", lambda _: None)  # other tests need the session
    folder, lists, there = tmp_path / "left.parquet", tmp_path / "lists.parquet", ["--master", "local[2]"]
    method = ["--method", "ppns k=8 beta=3", "--seed", "7"]
    code, stdout, stderr = run("fit", path, *method, "--engine", "spark", *there, "-o", str(folder), "--json")
    assert code == 0, stderr
    assert json.loads(stdout)["out"] == str(folder)
    asked = ["recommend", str(folder), "--all", "-n", "5", *there, "-o"]
    code, stdout, stderr = run(*asked, str(lists), "--ratings", path, "--json")
    assert code == 0, stderr
    model = gf.NeighbourCF(gf.PPNS(k=8, beta=3), rng=7).fit(TRAIN)
    wanted = model.recommend_many(None, 5).table()
    found = pq.read_table(lists).sort_by([("user", "ascending"), ("rank", "ascending")])
    assert json.loads(stdout)["recommendations"] == found.num_rows
    for name in ("user", "rank", "item"):
        assert found[name].to_pylist() == wanted[name].to_pylist()
    code, _, stderr = run(*asked, str(tmp_path / "other.parquet"))
    assert code == 2
    assert "ratings must be given" in stderr
    private = ["--method", "private-means epsilon=1"]
    code, _, stderr = run("fit", path, *private, "--engine", "spark", *there, "-o", str(folder))
    assert code == 2
    assert "out must be name.gf" in stderr


def test_neighbours_at_hand_keep_their_defaults() -> None:
    config: Any = None
    found = NeighboursThere.of(None, None, None, None, config)
    assert (found.axis, found.over, found.checksum) == ("user", "raters", None)
