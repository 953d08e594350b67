"""Mechanisms as plain settings: what a file may say, and what it may not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import goodfence as gf
from goodfence import registry, selection
from goodfence.errors import SettingError
from goodfence.models.method import parsed
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.registry import find, find_kind, made_of, named, settings_of
from goodfence.selection.ppns import PPNS
from goodfence.selection.sensitivity import Sensitivity
from tests.support.running import run


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


def test_names_stand_in_the_order_of_packages_whatever_was_imported_first() -> None:
    packages = ["selection", "models", "models.private", "papers", "papers.published"]
    homes = [kind.__module__.removeprefix("goodfence.").rpartition(".")[0] for kind in named().values()]
    assert list(dict.fromkeys(homes)) == packages
    assert homes == sorted(homes, key=packages.index)
    assert [kind.label for kind in named().values()][:4] == ["kNN", "nPNS", "PNCF", "PPNS"]


NEW_MECHANISM = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from goodfence.privacy.guarantee import Guarantee
from goodfence.registry import register
from goodfence.selection.mechanism import Pool
from goodfence.settings import Length, checked


@checked
@register
@dataclass(frozen=True, slots=True, kw_only=True)
class SecondBest:
    \"\"\"The k after the k nearest.\"\"\"

    name: ClassVar[str] = "second-best"
    label: ClassVar[str] = "Second best"
    sensitivity: ClassVar[None] = None
    k: Length

    def reach(self, n_candidates):
        return 2 * self.k

    def pools(self, similarities, sensitivity=None):
        return (Pool(self.k, 2 * self.k, take=self.k),)

    def log_weights(self, similarities, sensitivity=None):
        return np.zeros(similarities.shape)

    def noise_scale(self, sensitivity=None):
        return None

    def guarantee(self):
        return Guarantee(status="none", reason="It reads the neighbours' ratings as they are.")
"""


def test_a_new_mechanism_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other file names it: Python, `--method`, `explain`, saved models and attacks find it."""
    (tmp_path / "second_best.py").write_text(NEW_MECHANISM)
    monkeypatch.setattr(selection, "__path__", [*selection.__path__, str(tmp_path)])
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    try:
        kind: Any = vars(gf)["__getattr__"]("SecondBest")
        assert find("second best") is kind
        assert parsed("second-best k=4 axis=item").recommender.mechanism == kind(k=4)
        done, told, _ = run("explain", "second-best")
        assert done == 0
        assert "The k after the k nearest." in told
        assert "k (required)" in told
        films = gf.synthetic(users=40, items=20, ratings=300, rng=7)
        model = gf.NeighbourCF(made_of({"mechanism": "second-best", "k": 4}), rng=7).fit(films)
        model.save(tmp_path / "model.gf")
        loaded: Any = gf.load_model(tmp_path / "model.gf")
        assert loaded.mechanism == kind(k=4)
        assert gf.KNNAttack(known=3).run(films, kind(k=4), targets=2, rng=7).attacked
        with pytest.raises(SettingError, match="k must be an integer of at least 1, got 0"):
            kind(k=0)
    finally:
        vars(gf).pop("SecondBest", None)
        sys.modules.pop("goodfence.selection.second_best", None)


def test_a_mistyped_public_name_is_corrected() -> None:
    with pytest.raises(AttributeError, match="did you mean 'PrivateTopN'"):
        _ = gf.PrivateTopn  # type: ignore[attr-defined]


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
