"""`goodfence fit --engine spark`: the model of one machine, from a path that only tasks read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import goodfence as gf
from goodfence.data import load, text, typed
from goodfence.errors import SettingError
from goodfence.spark import chunks, session
from goodfence.spark.neighbours import fit_on_spark
from tests.support.frames import table_of
from tests.support.running import run

FILMS = gf.synthetic(users=60, items=40, ratings=900, rng=2)
SETTINGS = ["--method", "ppns k=10 beta=3", "--seed", "7", "--json"]


def test_the_command_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "find_spec", lambda _: None)
    out = str(tmp_path / "model.gf")
    code, _, stderr = run("fit", "movietweetings", "-o", out, "--engine", "spark")
    assert code == 4
    assert "pip install 'goodfence[spark]'" in stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--engine", "ray"], "engine"),
        (["--master", "local[2]"], "--engine spark"),
        (["--engine", "spark", "--memory", "lots"], "memory"),
        (["--engine", "spark", "--method", "popularity"], "engine"),
        (["--engine", "spark", "--method", "knn similarity=adjusted_cosine"], "similarity"),
    ],
)
def test_engine_options_outside_their_rule(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    out = str(tmp_path / "model.gf")
    code, _, stderr = run("fit", "movietweetings", "-o", out, *arguments)
    assert code == 2
    assert sentence in stderr


def test_neighbours_of_each_item_are_not_chosen_on_spark() -> None:
    config: Any = None
    with pytest.raises(SettingError, match="among must be 'all' on Spark"):
        fit_on_spark(gf.NeighbourCF(gf.KNN(k=5), among="raters"), FILMS, config)


@pytest.fixture
def fit_there(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Fit on Spark, with readers of the driver that fail: a task is another process, and has its own."""
    monkeypatch.setattr(type(spark), "stop", lambda _: None)  # other tests need the session

    def forbidden(*_: Any, **__: Any) -> Any:
        raise AssertionError("the driver reads ratings")

    def fit(*arguments: str) -> tuple[int, str, str]:
        with monkeypatch.context() as patched:
            for module, name in (
                *((load, name) for name in ("load", "read_ratings", "read_reported", "read_table")),
                *((load, name) for name in ("read_text", "read_parquet")),
                (text, "read_text"),
                (typed, "read_parquet"),
                (chunks, "read_table"),
                (pq.ParquetFile, "read"),
                (pq.ParquetFile, "iter_batches"),
            ):
                patched.setattr(module, name, forbidden)
            return run("fit", *arguments, "--engine", "spark", "--master", "local[2]")

    return fit


def same_model(here: Path, there: Path) -> None:
    one, other = gf.load_model(here), gf.load_model(there)
    assert isinstance(one, gf.NeighbourCF)
    assert isinstance(other, gf.NeighbourCF)
    assert (one.neighbours_ == other.neighbours_).all()
    assert (one.weights_ == other.weights_).all()
    assert (one.ratings_.csr != other.ratings_.csr).nnz == 0
    assert one.ratings_.users.tolist() == other.ratings_.users.tolist()
    assert one.ratings_.items.tolist() == other.ratings_.items.tolist()
    assert one.ratings_.titles == other.ratings_.titles
    assert one.ratings_.scale == other.ratings_.scale


@pytest.mark.spark
def test_the_command_fits_the_model_of_one_machine(fit_there: Any, tmp_path: Path, finished: Any) -> None:
    here, there = tmp_path / "here.gf", tmp_path / "there.gf"
    work = ["--work", str(tmp_path / "work"), "--memory", "256m"]
    told = [
        run("fit", "movietweetings", *SETTINGS, "-o", str(here)),
        fit_there("movietweetings", *SETTINGS, "-o", str(there), *work),
    ]
    for code, stdout, stderr in told:
        assert code == 0, stderr
        assert json.loads(stdout)["data"]["users"] == 1238
    same_model(here, there)
    assert "lists" in finished(tmp_path / "work")


@pytest.mark.spark
@pytest.mark.parametrize("ending", ["parquet", "csv", "float ids"])
def test_every_file_gives_the_model_of_one_machine(fit_there: Any, tmp_path: Path, ending: str) -> None:
    """With repeated pairs, a declared scale and item-based neighbours."""
    table = table_of(FILMS)
    table = pyarrow.concat_tables([table, table.slice(0, 50).set_column(2, "rating", [[3.0] * 50])])
    path = tmp_path / f"ratings.{'csv' if ending == 'csv' else 'parquet'}"
    if ending == "csv":
        pyarrow.csv.write_csv(table, path)
    else:
        odd = ending == "float ids"
        users = table["user"].cast("float64") if odd else table["user"]
        pq.write_table(table.set_column(0, "user", users), path, row_group_size=300)
    options = ["--method", "ppns k=10 beta=3 axis=item", *SETTINGS[2:], "--scale", "1 5", "--read", "duplicates=last"]
    here, there = tmp_path / "here.gf", tmp_path / "there.gf"
    code, _, stderr = run("fit", str(path), *options, "-o", str(here))
    assert code == 0, stderr
    code, _, stderr = fit_there(str(path), *options, "-o", str(there))
    assert code == 0, stderr
    assert "50 ratings repeat a pair of user and item; kept the last" in stderr
    same_model(here, there)


@pytest.mark.spark
def test_what_is_wrong_with_a_file_is_one_sentence(fit_there: Any, tmp_path: Path) -> None:
    path, out = tmp_path / "ratings.csv", str(tmp_path / "model.gf")
    path.write_text("user,item,rating\n1,2,4.25\n1,3,four\n")
    code, _, stderr = fit_there(str(path), "-o", out)
    assert code == 3
    assert "rating (column 'rating') must be a number, row 2 is not" in stderr
    assert "4.25" not in stderr
    code, _, stderr = fit_there(str(tmp_path / "nothing.parquet"), "-o", out)
    assert code == 3
    assert "does not exist" in stderr
    code, _, stderr = fit_there("-", "-o", out)
    assert code == 2
    assert "FILE must be a file on Spark" in stderr
    listed = tmp_path / "items.txt"
    listed.write_text("2\n3\n")
    code, _, stderr = fit_there(str(path), "-o", out, "--items", str(listed), "--method", "knn axis=item")
    assert code == 2
    assert "items must be left out for item-based neighbours on Spark" in stderr


@pytest.mark.spark
def test_a_public_list_of_items_is_taken(fit_there: Any, tmp_path: Path) -> None:
    path, listed = tmp_path / "ratings.parquet", tmp_path / "items.txt"
    pq.write_table(table_of(FILMS), path)
    listed.write_text("".join(f"{item}\n" for item in reversed(range(45))))
    options = [str(path), *SETTINGS, "--items", str(listed)]
    here, there = tmp_path / "here.gf", tmp_path / "there.gf"
    assert run("fit", *options, "-o", str(here))[0] == 0
    code, _, stderr = fit_there(*options, "-o", str(there))
    assert code == 0, stderr
    same_model(here, there)
