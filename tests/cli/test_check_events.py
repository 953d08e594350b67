"""Events on the command line: what `check` says of them, flags that declare them, and exported likes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import goodfence as gf
from goodfence.cli import app

CLICKS = """user,item,date,plays
ann,p1,2026-01-01,2
ann,p2,2026-01-03T10:00,1
bob,p1,2026-01-02,5
bob,p1,2026-01-09,1
"""
DECLARED = "say so with feedback='implicit' (--feedback implicit)"


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    path = tmp_path / "clicks.csv"
    path.write_text(CLICKS)
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


def test_what_was_read_is_printed(clicks: Path) -> None:
    code, stdout, stderr = run("check", clicks, "--feedback", "implicit")
    assert code == 0
    assert stderr.startswith("note: 'plays' sounds like a count and is not used: each row is one event")
    assert stdout.splitlines() == [
        "  Columns   user <- user   item <- item   time <- date   (plays not used)",
        "  Events    each counts 1",
        "  Shape     2 users x 2 items, 3 events",
        "  Per user  1 to 2 events, median 1",
        "  Per item  1 to 2 events, median 1",
        "  Time      2026-01-01 to 2026-01-03",
        "  Repeats   1 repeated (counted once)",
    ]


def test_only_the_rows_of_one_kind(clicks: Path) -> None:
    for asked in (["--where", "plays=5"], ["--where=plays=5"], ["--read", "where=plays=5"]):
        code, stdout, _ = run("check", clicks, "--feedback", "implicit", *asked, "--read", "duplicates=count")
        assert code == 0
        assert "  Shape     1 users x 1 items, 1 events\n" in stdout
    assert run("check", clicks, "--feedback", "implicit", "--where", "plays=a b")[2].endswith("asks for (--where)\n")
    assert run("explain", "--where", "x")[0] == 2


def test_lists_and_tables_are_told_as_they_are_laid_out(tmp_path: Path) -> None:
    lists, table = tmp_path / "a.txt", tmp_path / "b.csv"
    lists.write_text("7 1 2\n8 1\n")
    table.write_text("5,99,4\n99,3,2\n")
    _, stdout, _ = run("check", lists, "--feedback", "implicit", "--read", "layout=lists")
    assert stdout.startswith("  Columns   user <- first field   item <- fields behind it\n")
    _, stdout, _ = run("check", table, "--read", "layout=wide unrated=99", "--scale", "1", "5")
    assert stdout.startswith("  Columns   user <- row number   item <- columns 1 to 3   rating <- cells\n")


def test_weights_and_counts_are_printed(clicks: Path) -> None:
    code, stdout, stderr = run("check", clicks, "--feedback", "implicit", "--read", "weight=plays")
    assert (code, stderr) == (0, "")
    assert "weight <- plays   time <- date" in stdout
    assert "  Events    each counts its weight\n" in stdout
    assert "  Repeats   1 repeated (weights summed)\n" in stdout
    assert "  Values    1  " in stdout
    _, stdout, _ = run("check", clicks, "--feedback", "implicit", "--read", "duplicates=count")
    assert "  Events    each counts as often as it is there\n" in stdout
    assert "  Repeats   1 repeated (counted)\n" in stdout


def test_which_ratings_are_likes_is_printed() -> None:
    code, stdout, _ = run("check", "movietweetings", "--likes", 8)
    assert code == 0
    assert "  Events    ratings of 8 or more; lower ratings are ignored\n" in stdout
    assert "20,391 events" in stdout
    assert "  Repeats   none\n" in stdout


def test_as_json(clicks: Path) -> None:
    code, stdout, _ = run("check", clicks, "--feedback", "implicit", "--json")
    told = json.loads(stdout)
    assert code == 0
    assert (told["feedback"], told["liked_from"], told["ratings"]) == ("implicit", None, 3)
    assert told["columns"]["time"] == "date"
    assert told["columns"]["rating"] is None
    assert told["spread"]["span"] == ["2026-01-01", "2026-01-03"]
    assert told["problems"] == {"repeated": 1}
    _, stdout, _ = run("check", "movietweetings", "--likes", 8, "--json")
    assert json.loads(stdout)["liked_from"] == 8


def test_what_was_not_declared_names_the_flag(clicks: Path) -> None:
    code, stdout, stderr = run("check", clicks)
    assert (code, stdout) == (3, "")
    assert stderr.strip().endswith(DECLARED)
    assert stderr.count("\n") == 1


def test_all_problems_of_events_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("user,item,plays\n1,2,3\n,2,4\n2,,x\n3,3,0\n1,2,1\n")
    _, _, stderr = run("check", path, "--feedback", "implicit", "--read", "weight=plays", "--read", "duplicates=error")
    assert stderr.splitlines()[:-1] == [
        "note: 1 row without a user (line 3)",
        "note: 1 row without an item (line 4)",
        "note: 1 row with a weight that is no number (line 4)",
        "note: 1 row with a weight that is not more than 0 (line 5)",
        "note: 1 row for a pair of user and item that is there already (line 6)",
    ]
    path.write_text("user,item\n1,2\n,2\n2,\n")
    _, _, stderr = run("check", path, "--feedback", "implicit")
    assert stderr.splitlines()[:-1] == ["note: 1 row without a user (line 3)", "note: 1 row without an item (line 4)"]


def test_settings_that_do_not_go_together_are_one_sentence(clicks: Path) -> None:
    for flags, said in (
        (("--feedback", "clicks"), "feedback must be one of explicit, implicit, got 'clicks'"),
        (("--feedback", "implicit", "--scale", 1, 5), "scale must be left out for events"),
        (("--read", "weight=plays"), "weight must be left out for ratings"),
    ):
        code, _, stderr = run("check", clicks, *flags)
        assert code == 2
        assert said in stderr
    code, _, stderr = run("check", "movietweetings", "--feedback", "implicit")
    assert code == 2
    assert "say which of them are likes with likes= (--likes)" in stderr


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_exported_likes_are_read_again(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"likes{ending}"
    code, stdout, _ = run("data", "export", "movietweetings", path, "--likes", 8)
    assert code == 0
    told = "".join(stdout.split())  # a long path is folded
    assert "20,391eventsof1,238x1,191" in told
    assert told.endswith(f"goodfencecheck{path}--feedbackimplicit")
    read, known = gf.load(path, feedback="implicit"), gf.load("movietweetings", likes=8)
    assert read.n_ratings == known.n_ratings
    assert read.csr.sum() == known.csr.sum()
