"""Mechanisms as plain settings: what a file may say, and what it may not."""

from __future__ import annotations

from typing import Any

import pytest

from goodfence.errors import SettingError
from goodfence.selection.ppns import PPNS
from goodfence.selection.sensitivity import Sensitivity
from goodfence.selection.settings import mechanism_of, settings_of


def test_settings_are_plain() -> None:
    options = Sensitivity(scope="pair", clamp=False)
    mechanism = PPNS(k=2, beta=3, allocation=(1, 0, 1), sensitivity=options)
    assert settings_of(mechanism) == {
        "mechanism": "PPNS",
        "k": 2,
        "beta": 3,
        "epsilon": 1.0,
        "allocation": [1, 0, 1],
        "sensitivity": {"reading": "printed", "scope": "pair", "clamp": False},
    }


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 3}, "mechanism must be one of .*PPNS.*, got None"),
        ({"mechanism": "KKN", "k": 3}, "mechanism must be one of"),
        ({"mechanism": "PPNS", "k": 3}, "PPNS needs the setting 'beta'"),
        ({"mechanism": "KNN"}, "KNN needs the setting 'k'"),
        ({"mechanism": "PNCF", "k": 3, "epsilom": 1}, "no setting 'epsilom'; did you mean 'eps"),
        ({"mechanism": "PNCF", "k": 3, "sensitivity": [1]}, "sensitivity must be a Sensitivity"),
        ({"mechanism": "KNN", "k": "3"}, "k must be an integer"),
    ],
)
def test_a_file_that_says_something_else_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        mechanism_of(settings)


def test_what_is_no_dataclass_has_no_settings() -> None:
    unfit: Any = object()
    with pytest.raises(SettingError, match="mechanism must be a dataclass"):
        settings_of(unfit)
