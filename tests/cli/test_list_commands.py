"""The commands on events: what they print, write, refuse, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import goodfence as gf
from tests.support.running import run, run_json

LIKED = "ratings of 8 or more; lower ratings are ignored"
SMALL = ("--method", "knn k=20", "--targets", 24, "--seed", 7, "--threads", 1, "--quiet")


@pytest.fixture(scope="module")
def clicks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a person and an item in each line."""
    events = gf.load("movietweetings").likes(8)
    cells = events.csr.tocoo()
    lines = zip(events.users[cells.row], events.items[cells.col], strict=True)
    path = tmp_path_factory.mktemp("clicks") / "clicks.csv"
    path.write_text("user,item\n" + "".join(f"{user},{item}\n" for user, item in lines))
    return path


def test_an_audit_of_clicks_is_what_python_finds(clicks: Path) -> None:
    told = run_json("audit", clicks, "--feedback", "implicit", *SMALL)
    report = gf.audit(gf.load(clicks, feedback="implicit"), gf.KNN(k=20), targets=24, rng=7, trials=0)
    assert told["estimates"]["precision"]["value"] == report.leakage.found.value
    assert told["data"]["feedback"] == "implicit"
    assert told["attack"]["name"] == "ListAttack"
    code, stdout, stderr = run("audit", clicks, "--feedback", "implicit", *SMALL)
    assert (code, stderr) == (0, "")
    text = " ".join(stdout.split())
    assert "Of ten listed items" in text
    assert "are the target's own" in text
    assert "hidden ratings" not in text


def test_likes_of_ratings_are_audited_as_events() -> None:
    told = run_json("audit", "movietweetings", "--likes", 8, *SMALL)
    assert (told["data"]["feedback"], told["data"]["liked_from"]) == ("implicit", 8.0)
    code, stdout, _ = run("audit", "movietweetings", "--likes", 8, *SMALL)
    assert code == 0
    assert LIKED in " ".join(stdout.split())


@pytest.mark.parametrize(
    "asked",
    [
        ("evaluate", "--method", "popularity"),
        ("fit", "--method", "private-top-n"),
        ("fit", "--method", "ease"),
        ("audit", "--attack", "membership", "--method", "popularity", "--targets", 8),
        ("frontier", "--method", "popularity", "--targets", 4),
    ],
)
def test_every_command_says_which_ratings_are_likes(asked: tuple[str, ...], tmp_path: Path) -> None:
    command, *given = asked
    given += ["--seed", "7", "--quiet"]
    if command == "fit":
        given += ["-o", str(tmp_path / "model.gf")]
    _, stdout, _ = run(command, "movietweetings", "--likes", 8, *given)
    assert LIKED in " ".join(stdout.split())
    told = run_json(command, "movietweetings", "--likes", 8, *given)
    said = told if command == "evaluate" else told["settings" if command == "frontier" else "data"]
    assert said["liked_from"] == 8.0


@pytest.mark.slow
def test_a_page_says_which_ratings_are_likes(tmp_path: Path) -> None:
    page = tmp_path / "audit.html"
    code, _, _ = run("audit", "movietweetings", "--likes", 8, *SMALL, "-o", page)
    assert code == 0
    text = page.read_text()
    assert text.count(LIKED) >= 2  # beside the verdict, and where it is said how to do it again
    assert '"liked_from": 8.0' in text


def test_fail_above_is_about_lists(clicks: Path) -> None:
    given = [word for word in SMALL if word != "--quiet"]
    code, _, stderr = run("audit", clicks, "--feedback", "implicit", *given, "--fail-above", 5)
    assert code == 1
    assert "of the listed items" in stderr


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (("--attack", "cover", "--method", "ppns k=20 beta=3"), "fakes=60, n=10, pages=1, ask='all'"),
        (("--attack", "adaptive"), "adaptive=True"),
        (("--attack", "list pages=2 n=5"), "n=5, pages=2"),
        (("--attack", "list ask=all fakes=7"), "fakes=7"),
    ],
)
def test_the_attacker_of_lists_is_as_said(clicks: Path, tmp_path: Path, given: tuple[object, ...], name: str) -> None:
    out = tmp_path / "report"
    code, _, _ = run("audit", clicks, "--feedback", "implicit", *SMALL, *given, "-o", out)
    assert code == 0
    assert name in json.loads((out / "manifest.json").read_text())["attack"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--feedback", "implicit", "--attack", "list rounds=2"), "list has no setting 'rounds'"),
        (("--feedback", "implicit", "--attack", "knn"), "attack must be one of list, cover, adaptive"),
        (("--feedback", "implicit", "--attack", "list fakes=0"), "fakes must be"),
    ],
)
def test_what_is_not_for_lists_is_told(clicks: Path, given: tuple[object, ...], words: str) -> None:
    code, _, stderr = run("audit", clicks, *given, "--seed", 7)
    assert code == 2
    assert words in " ".join(stderr.split())


def test_pages_are_refused_for_ratings(small: Path) -> None:
    code, _, stderr = run("audit", small, "--method", "knn k=5", "--attack", "knn pages=2")
    assert code == 2
    assert "knn has no setting 'pages'" in " ".join(stderr.split())


def test_a_frontier_of_lists(clicks: Path, tmp_path: Path) -> None:
    compared = ("--method", "knn k=20", "--method", "popularity", "--targets", 8, "--seed", 7)
    page = tmp_path / "frontier.html"
    given = (*compared, "--feedback", "implicit", "--threads", 1, "--quiet", "--min-ndcg", 0.9)
    code, stdout, _ = run("frontier", clicks, *given, "-o", page)
    assert code == 0
    text = " ".join(stdout.split())
    assert "NDCG@10" in text
    assert "NDCG@10 of at least 0.9" in text
    assert "NDCG@10" in page.read_text()


def test_membership_through_lists(clicks: Path) -> None:
    attack = ("--attack", "membership n=20 left_out=2")
    told = run_json("audit", clicks, "--feedback", "implicit", *SMALL, *attack)
    assert told["attack"]["n"] == 20
    assert told["auc"]["value"] > 0.7
