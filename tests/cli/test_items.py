"""`--items FILE`: the public list of items, in every command that reads ratings."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import goodfence as gf
from goodfence.cli.options import Source, command_line
from tests.support.bad_inputs import ITEMS, SECRETS
from tests.support.running import run, run_json

LISTED = [f"m{number}" for number in range(75)]
"""What there is: fifteen items more than anybody rated."""


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    path = tmp_path / "films.txt"
    path.write_text("\n".join(LISTED) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def numbered(tmp_path: Path) -> Path:
    """Ratings of numbered items, which no message may repeat."""
    path = tmp_path / "numbered.csv"
    rows = [f"{user},{item},{user + 1}" for user in range(5) for item in ITEMS]
    path.write_text("user,item,rating\n" + "\n".join(rows) + "\n")
    return path


def put(folder: Path, *lines: str) -> Path:
    path = folder / "list.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_model_is_fitted_on_the_list(small: Path, listed: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.gf"
    arguments = ("--scale", 1, 5, "--method", "private-means epsilon=1", "-o", model, "-q")
    told = run_json("fit", small, "--items", listed, *arguments)
    assert told["data"] == {"items": 75}
    assert "the given catalogue" in told["guarantee"]["reason"]
    assert told["guarantee"]["status"] == "proved"
    fitted: Any = gf.load_model(model)
    assert fitted.ratings_.items.tolist() == LISTED
    told = run_json("fit", small, "--items", "from-ratings", *arguments)
    assert told["data"] == {"items": 60}
    assert "the list of items in the ratings" in told["guarantee"]["reason"]
    code, _, stderr = run("fit", small, *arguments)
    assert code == 2
    assert "--items from-ratings" in stderr


def test_a_private_model_leaves_out_what_the_list_lacks(small: Path, tmp_path: Path) -> None:
    """An error would tell that somebody rated it; and the list alone says whether ids are numbers."""
    model = tmp_path / "model.gf"
    arguments = ("--scale", 1, 5, "--method", "private-means epsilon=1", "-o", model, "-q")
    assert run("fit", small, "--items", put(tmp_path, "m3", "m4", "9"), *arguments)[0] == 0
    fitted: Any = gf.load_model(model)
    assert fitted.ratings_.items.tolist() == ["m3", "m4", "9"]
    assert run("fit", small, "--items", put(tmp_path, "3", "4"), *arguments)[0] == 0
    fitted = gf.load_model(model)
    assert fitted.ratings_.items.tolist() == [3, 4]


def test_the_list_is_that_of_load(small: Path, listed: Path) -> None:
    same = gf.load(small, scale=(1, 5), items=LISTED)
    train, test = gf.holdout(same, fraction=0.2, rng=3)
    scores = gf.evaluate(gf.NeighbourCF(gf.KNN(k=5)).fit(train), test)
    arguments = ("--scale", 1, 5, "--method", "knn k=5", "--seed", 3)
    assert run_json("evaluate", small, "--items", listed, *arguments)["mae"] == scores.mae


def test_it_is_attacked_on_the_list(small: Path, listed: Path) -> None:
    arguments = ("--method", "knn k=5", "--targets", 3, "--seed", 1, "-q")
    assert run_json("audit", small, "--items", listed, *arguments)["data"]["items"] == 75


def test_a_frontier_on_the_list(small: Path, listed: Path) -> None:
    arguments = ("--method", "knn k=5", "--known", 5, "--targets", 3, "--seed", 1, "-q")
    told = run_json("frontier", small, "--items", listed, *arguments)
    assert [point["name"] for point in told["points"]] == ["kNN k=5"]


def test_check_counts_the_list(small: Path, listed: Path) -> None:
    assert run_json("check", small, "--items", listed)["items"] == 75
    assert run_json("check", small)["items"] == 60


def test_a_page_names_the_list_without_its_folder() -> None:
    source = Source(file="/home/ann/ratings.csv", items=Path("/home/ann/films.txt"))
    assert command_line("audit", source) == "goodfence audit ratings.csv --items films.txt"


def test_numbers_are_numbers_where_the_ratings_have_numbers(numbered: Path, tmp_path: Path) -> None:
    path = put(tmp_path, "7", *ITEMS, "-3")
    assert run_json("check", numbered, "--items", path)["items"] == 7


def test_numbers_are_text_where_the_ratings_have_text(tmp_path: Path) -> None:
    ratings = tmp_path / "r.parquet"
    columns = {"user": [1, 2, 3], "item": ["7", "8", "8"], "rating": [1.0, 2.0, 3.0]}
    parquet.write_table(pa.table(columns), ratings)
    assert run_json("check", ratings, "--items", put(tmp_path, "7", "8", "9"))["items"] == 3


def test_what_editors_do_to_a_text_is_no_other_list(small: Path, tmp_path: Path) -> None:
    path = tmp_path / "films.txt"
    path.write_bytes(codecs.BOM_UTF8 + "\r\n".join([*LISTED[:-1], "", "Zoë"]).encode())
    assert run_json("check", small, "--items", path)["items"] == 75


def test_spaces_are_left_out_with_a_word(small: Path, tmp_path: Path) -> None:
    path = put(tmp_path, *LISTED[:-1], "m74 ")
    code, _, stderr = run("check", small, "--items", path)
    assert code == 0
    assert stderr == "note: 'list.txt' has ids with spaces around them; the spaces were left out\n"


def _missing(folder: Path) -> Path:
    return folder / "nowhere.txt"


def _latin(folder: Path) -> Path:
    path = folder / "list.txt"
    path.write_bytes("Zoë".encode("latin-1"))
    return path


def _empty(folder: Path) -> Path:
    path = folder / "list.txt"
    path.touch()
    return path


BAD: dict[str, tuple[Callable[[Path], Path], str]] = {
    "missing": (_missing, "GF201: 'nowhere.txt' does not exist"),
    "a folder": (lambda folder: folder, "is a directory"),
    "Latin-1": (_latin, "GF201: 'list.txt' must be UTF-8 text, line 1 is not"),
    "empty": (_empty, "GF201: 'list.txt' is empty; it must list items"),
    "blank": (lambda folder: put(folder, "", " "), "is empty; it must list items"),
    "twice": (
        lambda folder: put(folder, *ITEMS, "", ITEMS[1]),
        "GF203: 'list.txt' must list each item once, line 7 repeats line 2",
    ),
    "a header": (lambda folder: put(folder, "movieId", *ITEMS), "line 1 is not one"),
    "not a number": (
        lambda folder: put(folder, *ITEMS, f"0{ITEMS[0]}"),
        "GF203: 'list.txt' must list integers, since the ratings number their items, line 6 is",
    ),
    "too many digits": (lambda folder: put(folder, *ITEMS, "9" * 19), "line 6 is not one"),
    "too short": (
        lambda folder: put(folder, *ITEMS[:-1]),
        "GF200: items must list every item that was rated, and at least one is missing",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("command", ["check", "fit", "audit", "frontier", "evaluate"])
def test_a_bad_list_is_refused(command: str, kind: str, numbered: Path, tmp_path: Path) -> None:
    make, says = BAD[kind]
    out = ("-o", tmp_path / "model.gf") if command == "fit" else ()
    path = make(tmp_path)
    code, stdout, stderr = run(command, numbered, "--items", path, *out, "-q")
    assert (code, stdout) == (3, "")
    *notes, last = stderr.splitlines()
    assert all(note.startswith("note: ") for note in notes)
    assert last.startswith("error GF2")
    assert says in last
    assert not [secret for secret in SECRETS if secret in stderr]


def test_a_bad_list_as_json(numbered: Path, tmp_path: Path) -> None:
    code, stdout, stderr = run("check", numbered, "--items", put(tmp_path, "a"), "--json")
    assert (code, stdout) == (3, "")
    assert json.loads(stderr)["error"]["code"] == "GF203"


def test_no_limit_is_a_setting(numbered: Path, tmp_path: Path) -> None:
    path = put(tmp_path, *ITEMS)
    code, _, stderr = run("check", numbered, "--items", path, "--read", "max_bytes=0")
    assert code == 2
    assert "max_bytes must be a positive integer" in stderr
