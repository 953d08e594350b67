"""The rule of what error to expect is the one that the benchmark fitted, and says how far off it was."""

from __future__ import annotations

import math

import pytest

from documents.tables import measured
from goodfence.models.private.expected import (
    LAWS,
    OFF_BY,
    OWN_MEAN,
    Law,
    Size,
    expected_errors,
    expected_unprotected,
    known_of_an_item,
)


def test_the_laws_are_those_of_the_benchmark() -> None:
    rows = measured("size_rule")
    assert len(rows) == len(LAWS)
    for row in rows:
        law = LAWS[row["model"], row["unit"] or None]  # type: ignore[index]
        fitted = [float(row[name]) for name in ("floor", "slope", "power")]
        assert [law.floor, law.slope, law.power] == fitted


def test_how_far_off_it_was_elsewhere() -> None:
    off = [abs(int(row["points off"])) for row in measured("size_trial")]
    assert max(off) == round(100 * OFF_BY)


def test_a_law_by_hand() -> None:
    assert Law(0.1, 0.2, 0.5).at(16.0) == pytest.approx(0.15)
    assert Law(0.1, 0.2, 0.5).at(0.0) == OWN_MEAN


def test_what_is_known_of_an_item_by_hand() -> None:
    """Twenty ratings an item; users of four ratings count for half as much."""
    size = Size(users=50, items=10, ratings=200)
    assert known_of_an_item(size, None) == 20.0
    assert known_of_an_item(size, "rating", 0.5) == 10.0
    assert known_of_an_item(size, "user", 0.5) == 5.0


def test_no_private_model_is_expected_to_beat_the_unprotected_one() -> None:
    size = Size(users=10**7, items=1000, ratings=10**9)
    least = expected_unprotected(size)
    assert all(least <= one.error <= OWN_MEAN for one in expected_errors(size))
    assert all(one.useful == (one.error <= (least + OWN_MEAN) / 2) for one in expected_errors(size))
    nobody = expected_errors(Size(users=100, items=2000, ratings=3000))
    assert not any(one.useful for one in nobody)
    assert math.isclose(min(one.error for one in expected_errors(size)), least, rel_tol=0.2)
