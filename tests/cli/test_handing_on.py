"""What the command line hands on: exported data, recommendations for all, two audits compared, full disks."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from typer.testing import CliRunner

import goodfence as gf
from goodfence.cli import app
from goodfence.evaluation import Scores


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("name", ["ratings.csv", "ratings.parquet"])
def test_an_exported_data_set_is_read_as_the_same(name: str, tmp_path: Path) -> None:
    code, stdout, _ = run("data", "export", "movietweetings", tmp_path / name)
    assert code == 0
    assert "--scale 0 10" in " ".join(stdout.split())
    own, again = gf.load("movietweetings"), gf.load(tmp_path / name, scale=(0, 10))
    assert again.users.tolist() == own.users.tolist()
    assert again.items.tolist() == own.items.tolist()
    assert (again.csr != own.csr).nnz == 0


def test_an_export_takes_its_file_by_position_or_as_out_and_once(tmp_path: Path) -> None:
    by_place, by_name = tmp_path / "a.csv", tmp_path / "b.csv"
    assert run("data", "export", "movietweetings", by_place)[0] == 0
    assert run("data", "export", "movietweetings", "-o", by_name)[0] == 0
    assert by_place.read_bytes() == by_name.read_bytes()
    for files in ((), (by_place, "--out", by_name)):
        code, _, stderr = run("data", "export", "movietweetings", *files)
        assert (code, "is required once" in stderr) == (2, True)


def test_an_export_says_what_is_wrong(tmp_path: Path) -> None:
    assert run("data", "export", "movietweets", tmp_path / "a.csv")[0] == 3
    assert run("data", "export", "movietweetings", tmp_path / "a.txt")[0] == 2
    assert run("data", "export", "movietweetings", tmp_path / "none" / "a.csv")[0] == 3
    (tmp_path / "b.csv").mkdir()
    code, _, stderr = run("data", "export", "movietweetings", tmp_path / "b.csv")
    assert code == 3
    assert "a folder of that name is there" in stderr


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    films = gf.synthetic(users=30, items=20, ratings=200, rng=7)
    path = tmp_path_factory.mktemp("models") / "m.gf"
    gf.NeighbourCF(gf.KNN(k=5), rng=7).fit(films).save(path)
    return path


def test_recommendations_for_everybody_are_those_of_each(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "recs.parquet"
    code, stdout, _ = run("recommend", model, "--all", "-n", 3, "-o", out)
    assert code == 0
    assert "recommendations for 30 users" in stdout
    table = parquet.read_table(out).to_pylist()
    fitted = gf.load_model(model)
    for user in range(1, 31):
        mine = [row for row in table if row["user"] == user]
        items, scores = fitted.recommend(user, 3)
        assert [row["item"] for row in mine] == items.tolist()
        assert np.allclose([row["score"] for row in mine], scores)
        assert [row["rank"] for row in mine] == list(range(1, len(mine) + 1))
    code, _, _ = run("recommend", model, "--all", "-n", 3, "-o", tmp_path / "recs.csv", "--json")
    assert csv.read_csv(tmp_path / "recs.csv").num_rows == len(table)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "either USER, --profile or --all"),
        (("7", "--profile", "3"), "either USER, --profile or --all"),
        (("--profile", "3=5 4"), "ITEM=RATING for each item, or ITEM for each"),
        (("--profile", "3=five"), "ITEM=RATING for each item, or ITEM for each"),
        (("--profile", "'3"), "ITEM=RATING for each item, or ITEM for each"),
        (("--profile", " "), "ITEM=RATING for each item, or ITEM for each"),
        (("--profile", "3=5 3=4"), "profile must name each item once"),
        (("7", "--all"), "either USER, --profile or --all"),
        (("--all",), "--all needs a file"),
        (("--all", "-o", "a.txt"), r"out must end in .csv or .parquet"),
    ],
)
def test_whom_to_recommend_to_must_be_said(arguments: tuple[str, ...], says: str, model: Path) -> None:
    code, _, stderr = run("recommend", model, *arguments)
    assert code == 2
    assert says in stderr


def audit(**changes: Any) -> dict[str, Any]:
    def estimate(value: float) -> dict[str, float]:
        return {"value": value, "low": value - 0.05, "high": value + 0.05}

    return {
        "recommender": {"label": "kNN k=50", "k": 50},
        "data": {"users": 10, "checksum": "abc"},
        "seed": 7,
        "estimates": {"mae": estimate(0.5), "advantage": estimate(0.8), "guess": estimate(0.3)},
        "more": [1, 2],
        **changes,
    }


def test_two_audits_are_compared(tmp_path: Path) -> None:
    old = audit()
    new = audit(recommender={"label": "kNN k=9", "k": 9}, data={"users": 10, "checksum": "xyz"})
    new["estimates"] = {
        **old["estimates"],
        "advantage": {"value": 0.2, "low": 0.1, "high": 0.3},
        "mae": {"value": 0.52, "low": 0.4, "high": 0.6},
        "unheard of": {"value": 1, "low": 1, "high": 1},
    }
    (tmp_path / "a.json").write_text(json.dumps(old))
    (tmp_path / "b.json").write_text(json.dumps(new))
    code, stdout, _ = run("compare", tmp_path / "a.json", tmp_path / "b.json")
    assert code == 0
    lines = stdout.splitlines()
    assert lines[1].split() == [
        "advantage",
        "0.800",
        "(0.750",
        "to",
        "0.850)",
        "0.200",
        "(0.100",
        "to",
        "0.300)",
        "lower",
    ]
    assert lines[2].endswith("the same")
    assert lines[3].endswith("higher, within the intervals")
    assert "recommender k: 50 -> 9" in stdout
    assert "0.25 is 25 of 100" in stdout
    assert "checksum" not in stdout
    told = json.loads(run("compare", tmp_path / "a.json", tmp_path / "b.json", "--json")[1])
    assert [one["verdict"] for one in told["figures"]][:2] == ["lower", "the same"]
    assert {"setting": "recommender k", "old": 50, "new": 9} in told["settings"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "no", '{"estimates": 3}', '{"estimates": {"a": {"value": "x"}}}', "[" * 99999]
)
def test_what_is_no_audit_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(audit()))
    (tmp_path / "b.json").write_text(text)
    code, _, stderr = run("compare", tmp_path / "a.json", tmp_path / "b.json")
    assert code == 3
    assert "'b.json' " in stderr
    assert "must be the JSON of an audit" in stderr
    assert run("compare", tmp_path / "a.json", tmp_path / "none.json")[0] == 3


FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
from goodfence.cli import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1000, 100_000])
def test_a_disk_without_room_is_named(limit: int, tmp_path: Path) -> None:
    """Before the work where it can be seen, and after it where it only shows then."""
    assert resource.RLIMIT_FSIZE is not None
    out = tmp_path / "m.gf"
    command = [sys.executable, "-c", FULL, str(limit), "fit", "movietweetings", "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert "could not be" in done.stderr
    assert "ile too large" in done.stderr
    assert ("fitting" in done.stderr) == (limit == 100_000)
    assert not out.exists()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("folder", ["/proc/self", "/sys"])
def test_a_folder_that_cannot_be_written_to_is_found_before_the_work(folder: str) -> None:
    if not Path(folder).is_dir():
        pytest.skip(f"there is no {folder} here")
    code, _, stderr = run("fit", "movietweetings", "-o", f"{folder}/m.gf")
    assert code == 3
    assert "out could not be written: " in stderr
    assert "fitting" not in stderr


def test_a_result_shows_itself_in_a_notebook() -> None:
    films = gf.load("movietweetings")
    shown = films._repr_html_()
    assert "<td>1,238</td>" in shown
    found = gf.NeighbourCF(gf.KNN(k=5), rng=7).fit(films).recommend(films.users[0], 2)
    assert str(found.items[0]) in found._repr_html_()
    assert str(films.users[0]) not in found._repr_html_().replace("<td>2</td>", "").split("item")[0]
    scores = Scores(mae=0.5, rmse=1.0, coverage=1.0, n=7)
    assert "<tr><td>mae</td><td>0.5</td></tr>" in scores._repr_html_()
    assert "<td>none</td>" in gf.KNN(k=5).guarantee()._repr_html_()


def test_several_users_at_once_are_told_what_to_call() -> None:
    table = pa.table({"user": ["ann", "bob"], "item": ["x", "y"], "rating": [3, 4]})
    films = gf.Ratings.from_frame(table, scale=(1, 5))
    fitted = gf.NeighbourCF(gf.KNN(k=1), rng=7).fit(films)
    message = r"none of the items of the profile is known \(ids here are text\); for several users call recommend_many"
    with pytest.raises(gf.DataError, match=message) as told:
        fitted.recommend(["ann", "bob"])
    assert "ann" not in str(told.value)


def test_too_few_neighbours_are_told_without_a_beta_that_nobody_gave() -> None:
    films = gf.synthetic(users=3, items=20, ratings=30, rng=7)
    with pytest.raises(gf.SettingError, match=r"^k must be at most the list's length 2, got 50: ") as caught:
        gf.NeighbourCF(gf.KNN(k=50)).fit(films)
    assert "beta" not in str(caught.value)
