"""`goodfence frontier`: what it compares, prints, writes and chooses."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest

from goodfence.cli.options import Running
from goodfence.cli.recipes import parse
from tests.cli.running import run, run_json

HEADING = "mechanism read of 100 because of her data people MAE covered promise"


def test_frontier_compares_and_chooses(small: Path, tmp_path: Path) -> None:
    ways = ("--compared", "knn k=5", "--compared", "private-means epsilon=8 unit=user")
    arguments = ("frontier", small, "--scale", 1, 5, *ways, "--known", 3, "--targets", 4)
    code, stdout, stderr = run(*arguments, "--seed", 7, "-o", tmp_path / "frontier")
    assert code == 0, stderr
    assert "comparing 2 ways to recommend" in stderr
    lines = stdout.splitlines()
    assert " ".join(lines[0].split()) == HEADING
    assert lines[1].startswith("  kNN k=5 ")
    assert "proved: one person, eps=" in lines[2]
    assert lines[3].startswith("  guessing ")
    assert "Someone" not in stdout
    assert "knows 3 of a person's ratings" in stdout
    assert list((tmp_path / "frontier").iterdir())


def test_frontier_as_json(small: Path, tmp_path: Path) -> None:
    ways = ("--compared", "knn k=5", "--compared", "ppns k=5 beta=2")
    arguments = ("frontier", small, *ways, "--known", 3, "--targets", 10, "--seed", 7, "-q")
    out = tmp_path / "frontier.json"
    told = run_json(*arguments, "--max-mae", 0.01, "-o", out)
    assert [point["promise"] for point in told["points"]] == ["none", "refuted"]
    assert told["recommended"] is None
    assert json.loads(out.read_text()) == told
    assert "None of these" in run(*arguments, "--max-mae", 0.01)[1]


@pytest.mark.parametrize(
    ("way", "says"),
    [
        ("knm k=5", "did you mean 'knn'"),
        ("ppns k=5 bata=2", "did you mean 'beta'"),
        ("ppns k=5 beta=", "compared must be as in"),
        ("ppns k=many beta=2", "k must be"),
        ("", "mechanism must be one of"),
    ],
)
def test_frontier_refuses_what_it_cannot_read(way: str, says: str, small: Path) -> None:
    code, stdout, stderr = run("frontier", small, "--compared", way)
    assert (code, stdout) == (2, "")
    assert says in stderr


def test_the_default_frontier_can_be_built() -> None:
    compared = import_module("goodfence.cli.frontier").COMPARED
    labels = [parse(text, Running()).label for text in compared]
    assert labels[1] == "PPNS k=50 beta=7 eps=1"
    assert len(set(labels)) == len(compared)


def test_a_scale_that_nobody_declared_is_told_at_once(small: Path) -> None:
    code, stdout, stderr = run("frontier", small, "--compared", "private-means epsilon=1")
    assert (code, stdout) == (3, "")
    assert "scale" in stderr
    assert "comparing" not in stderr
