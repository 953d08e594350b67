"""Mechanisms as plain settings: what a file may say, and what it may not."""

from __future__ import annotations

from typing import Any

import pytest

from goodfence.errors import SettingError
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.registry import find, find_kind, made_of, named, settings_of
from goodfence.selection.ppns import PPNS
from goodfence.selection.sensitivity import Sensitivity


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
        ({"k": 3}, "method must be one of .*ppns.*, got None"),
        ({"mechanism": "KKN", "k": 3}, "method must be one of"),
        ({"mechanism": "PPNS", "k": 3}, "PPNS needs the setting 'beta'"),
        ({"mechanism": "KNN"}, "KNN needs the setting 'k'"),
        ({"mechanism": "PNCF", "k": 3, "epsilom": 1}, "no setting 'epsilom'; did you mean 'eps"),
        ({"mechanism": "PNCF", "k": 3, "sensitivity": [1]}, "sensitivity must be a Sensitivity"),
        ({"mechanism": "KNN", "k": "3"}, "k must be an integer"),
    ],
)
def test_a_file_that_says_something_else_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        made_of(settings)


def test_what_is_no_dataclass_has_no_settings() -> None:
    unfit: Any = object()
    with pytest.raises(SettingError, match="mechanism must be a dataclass"):
        settings_of(unfit)


def test_names_stand_in_declared_order_whatever_was_imported_first() -> None:
    names = ["knn", "npns", "pncf", "ppns", "popularity", "ease"]
    names += ["private-means", "private-cf", "private-top-n", "mcsherry-mironov"]
    published = [
        *("noisy-answers", "randomised-perturbation", "nends", "blurme", "randomised-response"),
        *("local-laplace", "item-swap", "slope-one", "threshold-neighbours"),
        *("matrix-factorisation", "reuse-knn", "dp-als", "ind-knn", "mcsherry-mironov-knn"),
    ]
    assert list(named()) == names + published
    assert [kind.label for kind in named().values()][:4] == ["kNN", "nPNS", "PNCF", "PPNS"]


@pytest.mark.parametrize("text", ["Private CF", "private_cf", "PRIVATE-CF", "PrivateCF"])
def test_a_name_is_found_however_it_is_spelt(text: str) -> None:
    assert find(text).__name__ == "PrivateCF"


def test_private_models_have_settings_too() -> None:
    made = made_of({"mechanism": "private-means", "epsilon": 2.0})
    assert settings_of(made) == {
        "mechanism": "PrivateMeans",
        "epsilon": 2.0,
        "delta": 1e-5,
        "unit": "rating",
        "items": None,
    }
    with pytest.raises(SettingError, match="PrivateMeans needs the setting 'epsilon'"):
        made_of({"mechanism": "PrivateMeans"})


def test_saved_kinds_are_found_by_their_class_name_alone() -> None:
    assert find_kind("NeighbourCF") is NeighbourCF
    assert find_kind("neighbourcf") is None
    with pytest.raises(SettingError, match="method must be one of"):
        find("NeighbourCF")
