"""Payloads in a spill directory, and the memory of workers, without Spark."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from goodfence.spark import shuffle
from goodfence.spark.messages import RowRequest, pack, unpack
from goodfence.spark.session import SparkConfig


def config(master: str, work: str | None = None) -> SparkConfig:
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(master=master))
    return SparkConfig(spark=session, work=work)


def n_numbers(payload: bytes) -> int:
    found: Any = unpack("RowRequest", payload, 0, 0)
    return len(found.numbers)


def test_what_is_released_early_can_go_before_the_rest() -> None:
    with shuffle.released_early() as release:
        assert shuffle.SPILL.get() is None
    release()
    with shuffle.spill_directory(config("local[2]")):
        directory = Path(shuffle.SPILL.get() or "")
        stays = pack(RowRequest(0, 0, np.arange(3)), str(directory))
        with shuffle.released_early() as release:
            goes = pack(RowRequest(0, 0, np.arange(4)), shuffle.SPILL.get() or "")
        assert shuffle.SPILL.get() == str(directory)
        assert n_numbers(goes) == 4
        release()
        assert n_numbers(stays) == 3
        assert len(list(directory.iterdir())) == 1
    assert not directory.exists()


def test_only_tasks_on_this_machine_share_files_and_checkpoints_hold_payloads() -> None:
    for shared in (config("yarn"), config("local[2]", work="work")):
        with shuffle.spill_directory(shared):
            assert shuffle.SPILL.get() is None


def test_a_worker_takes_what_it_loaded_out_of_the_collectors_way_once() -> None:
    lines = (
        "import gc, sys",
        "from goodfence.spark.shuffle import freeze_memory",
        "freeze_memory()",
        "first = gc.get_freeze_count()",
        "held = [[] for _ in range(1000)]",
        "freeze_memory()",
        "assert first > 10_000, first",
        "assert gc.get_freeze_count() <= first",
        "sys.modules['something_more'] = sys",
        "freeze_memory()",
        "assert gc.get_freeze_count() > first",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_memory_is_frozen_once_for_each_time_that_something_was_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[str] = []
    monkeypatch.setattr(shuffle, "_LOADED", [0])
    monkeypatch.setattr(gc, "collect", lambda: frozen.append("collected"))
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append("frozen"))
    for _ in range(3):
        shuffle.freeze_memory()
    assert frozen == ["collected", "frozen"]
    monkeypatch.setitem(sys.modules, "goodfence_one_more", sys)
    shuffle.freeze_memory()
    assert frozen == ["collected", "frozen"] * 2
