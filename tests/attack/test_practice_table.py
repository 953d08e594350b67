"""The table of what practice leaks: of each half of the targets stands what the strongest of the other half gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import goodfence as gf
from benchmarks import libraries
from benchmarks.libraries import BATCH, SEED, Cell, Measured, attackers_of, measure, per_person
from benchmarks.private_attack import counted
from goodfence.attack.attack import Subject

pytestmark = pytest.mark.real("ml-100k")
CELL = Cell("ml-100k", 8, "goodfence KNN, as in the paper")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two batches of targets, attacked by all attackers."""
    keep = tmp_path_factory.mktemp("libraries")
    for first in (0, BATCH):
        measure(CELL, keep, gf.load(CELL.data), first)
    return keep


def test_each_half_is_shown_by_the_strongest_of_the_other(kept: Path) -> None:
    measured, ratings = Measured(CELL, kept), gf.load(CELL.data)
    ids = np.array(libraries.eligible(ratings)[: 2 * BATCH])
    subject, first = Subject(ratings, gf.KNN(k=50)), measured.first
    gains: list[list[float]] = []
    shares = []
    for attack in attackers_of(CELL, kept):
        halves = (first, ~first)
        alone: list[Any] = [attack.run_on(subject, targets=ids[half], rng=SEED) for half in halves]
        told = [report.informed for report in alone]
        gains.append(
            [
                float(np.mean((one.with_target.recovered - one.without_target.recovered) / one.with_target.hidden))
                for one in told
            ]
        )
        whole: Any = attack.run_on(subject, targets=ids, rng=SEED)
        both = whole.informed
        shares.append(both.with_target.recovered / both.with_target.hidden)
    best_of_first, best_of_second = np.argmax(gains, axis=0)
    expected = np.where(first, shares[best_of_second], shares[best_of_first])
    _, report = measured.shown()
    inside = report.informed.with_target
    assert inside.recovered / inside.hidden == pytest.approx(expected)
    assert per_person(report)["recovery"].value == pytest.approx(expected.mean())


def test_who_was_lucky_on_one_half_is_not_shown_on_it(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each half has its own strongest, the two are swapped."""
    measured = Measured(CELL, kept)
    one, other = list(measured.paths)[:2]
    monkeypatch.setattr(Measured, "strongest", (one, other))
    attackers, report = measured.shown()
    whole = {attack: counted(measured.ratings, attack, measured.paths[attack]) for attack in (one, other)}
    hidden = np.where(measured.first, whole[other].with_target.recovered, whole[one].with_target.recovered)
    assert attackers == [one, other]
    assert report.with_target.recovered.tolist() == hidden.tolist()
    assert whole[one].with_target.recovered.tolist() != whole[other].with_target.recovered.tolist()
