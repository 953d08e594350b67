"""The commands for membership and for related items say what Python says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import goodfence as gf
from goodfence.report.serialize import describe, plain
from tests.support.running import run, run_json

FILMS = "movietweetings"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a log in a file with a header, two hundred distinct ratings in an order of chance."""
    generator = np.random.default_rng(7)
    cells = generator.permutation(400)[:200]
    lines = ["userId,movieId,rating,timestamp"]
    lines += [f"{one // 20},m{one % 20},{one % 5 + 1},{time}" for time, one in enumerate(cells.tolist())]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_membership_is_what_python_finds(tmp_path: Path) -> None:
    given = (
        "--method",
        "knn k=20",
        "--attack",
        "membership known=8 left_out=3",
        "--targets",
        40,
        "--seed",
        7,
        "--quiet",
    )
    out = tmp_path / "found.json"
    told = run_json("audit", FILMS, *given, "-o", out)
    attack = gf.MembershipAttack(known=8, left_out=3)
    found = attack.run(gf.load(FILMS), gf.KNN(k=20), targets=40, rng=7)
    expected = plain(found.to_dict())
    assert told["attack"] == expected.pop("settings")
    assert {key: told[key] for key in expected} == expected
    assert told["data"] == plain(describe(gf.load(FILMS)))
    assert json.loads(out.read_text()) == told
    code, stdout, stderr = run("audit", FILMS, *given)
    assert (code, stderr) == (0, "")
    assert f"AUC       {found.auc.value:.3f} (95%: {found.auc.low:.3f}-" in stdout
    assert "of what is published is right" in " ".join(stdout.split())
    assert "No guarantee is proved" in stdout


def test_membership_of_a_private_model(small: Path) -> None:
    given = ("--scale", 1, 5, "--method", "private-means epsilon=1 unit=user")
    told = run_json("audit", small, "--attack", "membership", *given, "--targets", 8, "--quiet")
    assert (told["fits"], told["fakes"]) == (1, 1)
    assert told["points"][0]["bound"] == pytest.approx(0.0272, abs=1e-4)
    assert "sees one fit" in told["bound"]


@pytest.mark.parametrize("named", [True, False])
def test_related_items_are_what_python_finds(log: Path, named: bool) -> None:
    if not named:  # without a header line columns are given by position
        log.write_text(log.read_text().partition("\n")[2])
    positions = ("--user", 1, "--item", 2, "--rating", 3, "--read", "time=4")
    where = ("--read", "time=timestamp") if named else positions
    attack, given = "related-items known=3 n=5 every=1,20", ("--targets", 6, "--seed", 7, "--quiet")
    told = run_json("audit", log, "--attack", attack, *where, *given)
    rows = [line.split(",") for line in log.read_text().splitlines() if "user" not in line]
    users, items, _, times = zip(*rows, strict=True)
    table = pa.table({"user": [*map(int, users)], "item": list(items), "time": [*map(int, times)]})
    clicks = gf.Ratings.from_frame(table, feedback="implicit")
    found = gf.RelatedItemsAttack(known=3, n=5, every=(1, 20)).run(clicks, targets=6, rng=7)
    expected = plain(found.to_dict())
    assert told["attack"] == expected.pop("settings")
    assert {key: told[key] for key in expected} == expected
    code, stdout, stderr = run("audit", log, "--attack", f"{attack} precision=0.2", *where, *given)
    assert (code, stderr) == (0, "")
    assert "refreshed every" in stdout
    assert "adds below 20%" in " ".join(stdout.split())


@pytest.mark.parametrize(
    ("settings", "arguments", "code", "says"),
    [
        ("", ("--read", "time=timestmp"), 3, "time must name a column, and there is none called 'timestmp'"),
        ("", ("--read", "time=movieId"), 3, "columns is called item"),
        ("every=1,x", (), 2, "every must be integers, as in every=1,20,100"),
        ("every=20,1", (), 2, "every must be ascending"),
        ("known=60", (), 3, "nobody has 120 ratings"),
        ("precision=2 known=3", (), 2, "precision must be between 0 and 1"),
    ],
)
def test_what_is_wrong_is_said(log: Path, settings: str, arguments: tuple[object, ...], code: int, says: str) -> None:
    done, stdout, stderr = run("audit", log, "--attack", f"related-items {settings}", *arguments)
    assert (done, stdout) == (code, "")
    assert says in stderr.splitlines()[-1]


def test_wrong_settings_of_membership() -> None:
    for arguments, says in (
        (("--attack", "membership left_out=20"), "left_out must be at most known"),
        (("--attack", "membership choose=rare"), "did you mean 'rarest'"),
        (("--attack", "membership", "--targets", 3), "at least 4 targets"),
    ):
        done, stdout, stderr = run("audit", FILMS, *arguments)
        assert done in (2, 3)
        assert stdout == ""
        assert says in stderr.splitlines()[-1]
