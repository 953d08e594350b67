"""`--scale 0.5 5 0.5` keeps its step: in what is read, attacked, saved, asked again and shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import goodfence as gf
from goodfence.attack.targets import with_fakes
from goodfence.data.scale import Scale
from tests.support.running import run, run_json

HALVES = Scale(0.5, 5, 0.5)
WORDS = "0.5-5 in steps of 0.5"


@pytest.fixture
def stars(tmp_path: Path) -> Path:
    """Whole stars only: nothing in the file tells of halves."""
    generator = np.random.default_rng(7)
    cells = generator.permutation(40 * 30)[:900]
    lines = [f"{one // 30},{one % 30},{generator.integers(1, 6)}" for one in cells]
    path = tmp_path / "stars.csv"
    path.write_text("\n".join(["user,item,rating", *lines]) + "\n")
    return path


@pytest.mark.parametrize("given", [("--scale", "0.5", "5", "0.5"), ("--scale=0.5,5,0.5",), ("--scale", "0.5 5 0.5")])
def test_the_step_is_read(stars: Path, given: tuple[str, ...]) -> None:
    told = run_json("check", stars, *given)
    assert told["scale"] == {"lowest": 0.5, "highest": 5, "step": 0.5, "declared": True}


def test_the_step_is_kept_by_what_is_made_of_ratings(stars: Path) -> None:
    ratings = gf.load(stars, scale=(0.5, 5, 0.5))
    train, test = gf.holdout(ratings, fraction=0.2, rng=7)
    world, _ = with_fakes(ratings, 0, [np.array([1, 2])], [np.array([4.5, 1.0])])
    for one in (ratings, train, test, world, ratings.transposed, ratings.on_items(range(40))):
        assert one.scale == HALVES


@pytest.mark.slow
def test_the_step_is_kept_by_commands(stars: Path, tmp_path: Path) -> None:
    given = (stars, "--scale", 0.5, 5, 0.5)
    how = ("--method", "knn k=5", "--seed", 7, "--quiet")
    for attack in ((), ("--attack", "membership known=8 left_out=2")):
        told = run_json("audit", *given, *how, *attack, "--targets", 12)
        assert told["data"]["scale"] == WORDS
    page = tmp_path / "page.html"
    assert run("audit", *given, *how, "--targets", 12, "-o", page)[0] == 0
    assert "--scale 0.5 5 0.5" in page.read_text()
    model = tmp_path / "stars.gf"
    assert run("fit", *given, "--method", "knn k=5", "-o", model)[0] == 0
    loaded = gf.load_model(model)
    assert loaded.ratings_.scale == HALVES


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("0.5", "5"), "scale must be a whole number of steps of 1, got (0.5, 5.0)"),
        (("0.5", "5", "0.4"), "scale must be a whole number of steps of 0.4"),
        (("0.5", "5", "0"), "step must be"),
        (("1", "5", "2"), "must be on the scale (1-5 in steps of 2), row"),
    ],
)
def test_a_step_that_does_not_fit_is_one_sentence(stars: Path, given: tuple[str, ...], says: str) -> None:
    code, stdout, stderr = run("check", stars, "--scale", *given, "--quiet")
    assert code in (2, 3)
    assert says in stdout + stderr
