"""The code on the page about adapters runs beside the real libraries, as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import goodfence as gf

PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "adapters.md"
_SECTION = re.compile(r"^## (.*?)$.*?^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTIONS = dict(_SECTION.findall(PAGE.read_text(encoding="utf-8")))


def run(section: str, films: gf.Ratings, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run the code of a section on few ratings; return what it defines."""
    monkeypatch.setattr(gf, "load", lambda _: films)
    names: dict[str, Any] = {}
    exec(compile(SECTIONS[section], str(PAGE), "exec"), names)  # noqa: S102 - our own page
    return names


@pytest.mark.adapters("surprise")
def test_surprise(films: gf.Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run("Surprise", films, monkeypatch)
    assert np.isfinite(names["scores"]["test_mae"]).all()
    assert names["report"].n_targets == 3


@pytest.mark.adapters("sklearn")
def test_scikit_learn(films: gf.Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run("scikit-learn", films, monkeypatch)
    assert names["search"].best_score_ < 0
    assert names["report"].coverage == 1


@pytest.mark.adapters("lenskit")
def test_lenskit(films: gf.Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run("LensKit", films, monkeypatch)
    assert len(names["lists"]) == 3
    assert names["report"].n_targets == 1


def test_every_section_with_code_is_run() -> None:
    assert list(SECTIONS) == ["Surprise", "scikit-learn", "LensKit"]
