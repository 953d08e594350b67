"""`goodfence frontier`: what it compares, prints, writes and chooses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from goodfence.models.method import default_methods, parsed
from tests.support.running import run, run_json

HEADING = "method fully recovered % advantage % recovery % n MAE answers % guarantee"


@pytest.mark.slow
def test_frontier_compares_and_chooses(small: Path, tmp_path: Path) -> None:
    compared = ("--method", "knn k=5", "--method", "private-means epsilon=8 unit=user")
    arguments = ("frontier", small, "--scale", 1, 5, *compared, "--known", 3, "--targets", 4)
    code, stdout, stderr = run(*arguments, "--seed", 7, "-o", tmp_path / "frontier")
    assert code == 0, stderr
    assert "comparing 2 recommenders" in stderr
    lines = stdout.splitlines()
    assert lines[0].startswith("  Choice    ")
    assert "knows" not in lines[0]
    place = next(number for number, line in enumerate(lines) if line.startswith("  method"))
    assert " ".join(lines[place].split()) == HEADING
    assert lines[place + 1].startswith("  kNN k=5 ")
    assert "proved: user, eps=" in lines[place + 2]
    told = " ".join(stdout.split())
    assert "ratings.csv; the attacker knows 3 ratings of each user" in told
    assert "PPNS are goodfence's own: neighbours among all users, by cosine" in told
    assert list((tmp_path / "frontier").iterdir())
    manifest = json.loads((tmp_path / "frontier" / "manifest.json").read_text())
    assert (manifest["data"], manifest["date"]) == ("ratings.csv", told.split("Scope ")[1][:10])


@pytest.mark.slow
def test_frontier_as_json(small: Path, tmp_path: Path) -> None:
    compared = ("--method", "knn k=5", "--method", "ppns k=5 beta=2")
    arguments = ("frontier", small, *compared, "--known", 3, "--targets", 10, "--seed", 7, "-q")
    out = tmp_path / "frontier.json"
    told = run_json(*arguments, "--max-mae", 0.01, "-o", out)
    assert [point["status"] for point in told["points"]] == ["none", "refuted"]
    assert told["recommended"] is None
    assert json.loads(out.read_text()) == told
    assert "No recommender" in run(*arguments, "--max-mae", 0.01)[1]


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("knm k=5", "did you mean 'knn'"),
        ("ppns k=5 bata=2", "did you mean 'beta'"),
        ("ppns k=5 beta=", "a setting must be NAME=VALUE"),
        ("ppns k=many beta=2", "k must be"),
        ("", "method must be one of"),
    ],
)
def test_frontier_refuses_what_it_cannot_read(method: str, says: str, small: Path) -> None:
    code, stdout, stderr = run("frontier", small, "--method", method)
    assert (code, stdout) == (2, "")
    assert says in stderr


def test_the_default_frontier_can_be_built() -> None:
    compared = default_methods("usual")
    labels = [parsed(text).label for text in compared]
    assert labels[1] == "PPNS k=50 beta=7 eps=1"
    assert len(set(labels)) == len(compared)


def test_a_scale_that_nobody_declared_is_told_at_once(small: Path) -> None:
    code, stdout, stderr = run("frontier", small, "--method", "private-means epsilon=1")
    assert (code, stdout) == (3, "")
    assert "scale" in stderr
    assert "comparing" not in stderr
