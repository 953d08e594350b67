"""docs/architecture.md names nothing that is not there, and its layers are those that the check enforces."""

from __future__ import annotations

import pytest

from documents import architecture

TEXT = architecture.PAGE.read_text(encoding="utf-8")
WALKS = architecture.walks(TEXT)


def test_the_page_has_every_layer_in_the_order_that_is_enforced() -> None:
    assert [names for names, _ in architecture.said(TEXT)] == architecture.layers()
    there = {one.stem for one in architecture.SOURCE.iterdir() if not one.name.startswith("_")}
    assert {name for row in architecture.layers() for name in row} == there - {"py"}


@pytest.mark.parametrize("heading", WALKS)
def test_every_file_and_function_of_a_walk_exists(heading: str) -> None:
    steps = WALKS[heading]
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert len(steps) >= 8
    assert architecture.missing(steps) == []


def test_there_are_five_walks() -> None:
    assert len(WALKS) == 5


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        ("1. `cli/fit.py`: `fit_command`", []),
        ("1. `cli/fit.py`: `fitted`", ["cli/fit.py fitted"]),
        ("1. `cli/fitted.py`", ["cli/fitted.py"]),
        (
            "1. `cli/fit.py`: `fit_command`, by\n   `predict_cell` of `kernels/predict.py`",
            ["kernels/predict.py predict_cell"],
        ),
        ("1. `rng.py`: `Streams.key`, `Streams.lock`", ["rng.py Streams.lock"]),
    ],
)
def test_what_is_not_there_is_found(text: str, absent: list[str]) -> None:
    (steps,) = architecture.walks(f"\n### `walk`\n{text}\n").values()
    assert architecture.missing(steps) == absent


def test_the_picture_is_the_one_of_the_page() -> None:
    assert architecture.PICTURE.read_text(encoding="utf-8") == architecture.drawn_again()
