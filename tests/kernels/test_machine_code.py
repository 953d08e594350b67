"""Machine code that is kept on disk: what cannot be read is compiled anew."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

KINDS = "from typing import NamedTuple\nclass {name}(NamedTuple):\n    a: int\n    b: int\n"
ADDS = """
import kinds_of_a_test
from goodfence.kernels import kernel

@kernel
def total(pair):
    return pair.a + pair.b

def three():
    return total(kinds_of_a_test.{name}(1, 2))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    write(tmp_path, "Pair")
    assert asked_anew() == (3, 0)
    assert asked_anew() == (3, 1)  # it is kept, and found
    return tmp_path


def write(folder: Path, name: str) -> None:
    """Write a module with a type of this name, and one with a kernel that takes it, which is as old as ever."""
    for module, text in (("kinds_of_a_test", KINDS), ("adds_of_a_test", ADDS)):
        (folder / f"{module}.py").write_text(text.format(name=name))


def asked_anew() -> tuple[int, int]:
    """Return what the kernel returns after a new import, and how often machine code was found."""
    for name in ("kinds_of_a_test", "adds_of_a_test"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    module = importlib.import_module("adds_of_a_test")
    return module.three(), sum(module.total.stats.cache_hits.values())


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("left", [b"", b"no pickle"])
def test_a_damaged_file_is_written_anew(folder: Path, ending: str, left: bytes) -> None:
    for file in folder.rglob(f"*.{ending}"):
        file.write_bytes(left)
    assert asked_anew() == (3, 0)
    assert asked_anew() == (3, 1)


def test_a_type_that_is_gone_is_no_error(folder: Path) -> None:
    write(folder, "Both")
    assert asked_anew() == (3, 0)
