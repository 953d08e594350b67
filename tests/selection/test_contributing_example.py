"""The mechanism that CONTRIBUTING.md shows is a mechanism: what it prints is run, under the contract that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import goodfence as gf
from goodfence import registry
from tests.support.attack_worlds import tied_ratings
from tests.support.contracts import MechanismContract

PAGE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
MECHANISM, TEST = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SHOWN: dict[str, Any] = {"__name__": __name__, "MechanismContract": MechanismContract}
for block in (MECHANISM, TEST):
    exec(compile(block, "CONTRIBUTING.md", "exec", dont_inherit=True), SHOWN)  # noqa: S102 - our own page
EveryOther, TestEveryOther = SHOWN["EveryOther"], SHOWN["TestEveryOther"]
registry._registered.pop("EveryOther")  # other tests know what is registered


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    registry.register(EveryOther)
    yield
    registry._registered.pop("EveryOther")


def test_it_is_as_short_as_the_page_says() -> None:
    assert len(MECHANISM.splitlines()) <= 40


def test_it_is_found_attacked_and_saved(tmp_path: Path) -> None:
    assert registry.find("Every Other") is EveryOther
    model = gf.NeighbourCF(EveryOther(k=3), rng=1).fit(tied_ratings(1))
    model.save(tmp_path / "model")
    loaded = gf.NeighbourCF.load(tmp_path / "model")
    assert loaded.mechanism == EveryOther(k=3)
    report = gf.KNNAttack(known=3).run(tied_ratings(1), EveryOther(k=3), targets=3, rng=1)
    assert report.attacked == "EveryOther(k=3)"


def test_only_the_command_line_and_saving_ask_for_a_name() -> None:
    registry._registered.pop("EveryOther")
    try:
        report = gf.audit(tied_ratings(1), EveryOther(k=3), targets=3, trials=0, rng=1)
        assert report.audited == "EveryOther(k=3)"
    finally:
        registry.register(EveryOther)
