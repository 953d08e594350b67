"""Saved models in hostile hands: a short run of what `benchmarks/hostile_models.py` does at length."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.hostile_models import GOOD, in_process, stronger, unfitted
from tests.support.model_memory import largest, peak_share

ROOT = Path(__file__).parents[2]


def test_mutated_models_are_refused_or_answer() -> None:
    """No signal, no raw error, no guarantee that was not made."""
    outcomes, wrong = in_process(1_000_000, 400)
    assert not wrong
    assert set(outcomes) == set(unfitted())
    assert all(outcome in GOOD for counts in outcomes.values() for outcome in counts)
    total = sum(counts.get("refused", 0) for counts in outcomes.values())
    assert 200 < total < 400  # not all are refused: some changes say nothing


def test_a_stronger_guarantee_is_noticed() -> None:
    models = {name: model.guarantee() for name, (model, _, _) in unfitted().items()}
    assert stronger(models["means"], models["means, seeded"])
    assert stronger(models["cf, catalogue"], models["cf"])
    assert stronger(models["means, user"], models["means"])
    assert stronger(models["means"], models["mcsherry"])
    assert not stronger(models["ppns"], models["knn"])
    assert not stronger(models["means"], models["cf"])


@pytest.mark.skipif(sys.platform != "linux", reason="needs processes that fork")
def test_a_whole_model_is_at_the_path_whatever_interrupts() -> None:
    command = [sys.executable, "-m", "tests.support.interrupted_saves", "30", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    found = json.loads(done.stdout)
    assert len(found) == 5
    assert all(n == whole for n, whole in found.values()), found


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("kind", ["many items, short text", "many ratings, by users"])
def test_the_limit_of_memory_holds_within_half_as_much_again(kind: str, tmp_path: Path) -> None:
    limit = 2**25
    largest(kind, tmp_path / "model.gf", limit)
    assert 0.2 < peak_share(tmp_path / "model.gf", limit) < 1.5
