"""`goodfence choose`: what it expects, from which numbers, and what it says where nothing useful can be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.running import run, run_json

DECLARED = ("choose", "--users", 3000, "--items", 1200, "--ratings", 90_000, "--scale", 1, 5)


def test_it_answers_from_declared_numbers() -> None:
    code, stdout, _ = run(*DECLARED)
    assert code == 0
    assert "3,000 users, 1,200 items, 90,000 ratings, as declared" in stdout
    for words in ("Answer", "one rating", "one user", "PrivateCF", "unprotected", "No rating was"):
        assert words in stdout


def test_more_budget_and_more_people_are_expected_to_help() -> None:
    small = run_json(*DECLARED)
    large = run_json("choose", "--users", 300_000, "--items", 1200, "--ratings", 9_000_000)
    assert large["scale"] == [1, 5]
    for unit in ("rating", "user"):
        for model in ("PrivateCF", "PrivateMeans"):
            errors = [
                [
                    one["error"]
                    for one in told["expected"]
                    if (one["unit"], one["model"]) == (unit, model)
                ]
                for told in (small, large)
            ]
            assert errors[0] == sorted(errors[0], reverse=True)
            assert all(few >= many for few, many in zip(*errors, strict=True))


def test_few_people_are_told_plainly() -> None:
    told = run_json("choose", "--users", 100, "--items", 2000, "--ratings", 3000)
    assert told["answer"].count("too few ratings of each item to protect") == 2
    assert not any(one["useful"] for one in told["expected"])


def test_errors_are_in_stars_of_the_scale() -> None:
    five, ten = (run_json(*DECLARED[:-2], 0, most) for most in (5, 10))
    for one, two in zip(five["expected"], ten["expected"], strict=True):
        assert two["error"] == pytest.approx(2 * one["error"])


def test_a_known_error_sets_the_level_and_not_the_ratio() -> None:
    plain, known = run_json(*DECLARED), run_json(*DECLARED, "--mae", 0.9)
    assert known["unprotected"] == pytest.approx(0.9)
    ratios = [
        [one["error"] / told["unprotected"] for one in told["expected"]] for told in (plain, known)
    ]
    assert ratios[0] == pytest.approx(ratios[1])


def test_a_file_is_only_counted_in(tmp_path: Path) -> None:
    """Other ratings of the same number give the same answer; what is declared is not counted."""
    paths = [tmp_path / name for name in ("one.csv", "two.csv")]
    for path, low in zip(paths, (1, 3), strict=True):
        rows = [
            f"{user},{item},{low + (user + item) % 3}" for user in range(40) for item in range(9)
        ]
        path.write_text("\n".join(["user,item,rating", *rows]))
    one, two = (run_json("choose", path, "--scale", 1, 5) for path in paths)
    assert one == two
    assert one["size"] == {
        "users": 40,
        "items": 9,
        "ratings": 360,
        "counted": ["users", "items", "ratings"],
    }
    declared = run_json("choose", paths[0], "--scale", 1, 5, "--users", 5000, "--ratings", 9000)
    assert declared["size"]["counted"] == ["items"]
    code, stdout, _ = run("choose", paths[0], "--scale", 1, 5)
    assert code == 0
    assert "counted in one.csv" in stdout


def test_an_observed_scale_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\n1,1,3\n1,2,5\n2,1,4\n")
    code, _, stderr = run("choose", path)
    assert code == 3
    assert "scale of the ratings must be declared" in stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--users", 5], "items must be given where there is no FILE to count in"),
        ([*DECLARED[1:], "--mae", 0], "mae must be above 0"),
        (["--users", 0, "--items", 5, "--ratings", 5], "users must be a positive integer"),
        (["--users", 2, "--items", 2, "--ratings", 5], "ratings must be at most users times items"),
    ],
)
def test_what_cannot_be(arguments: list[object], says: str) -> None:
    code, stdout, stderr = run("choose", *arguments)
    assert (code, stdout) == (2, "")
    assert says in stderr
