"""The table of what practice leaks: each row is kept when it is measured, and never measured again."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from benchmarks import libraries
from benchmarks.libraries import HEAD, kept_rows

pytestmark = pytest.mark.real("ml-100k")
NAME = "goodfence KNN, as in the paper"


def test_a_row_is_measured_once_and_has_all_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "SETS", ("ml-100k",))
    options = argparse.Namespace(minutes=10, only=NAME, targets=30)
    [row] = kept_rows(tmp_path, options)
    assert len(row) == len(HEAD)
    assert (row[0], row[2], row[4]) == ("ml-100k", NAME, "30")
    assert row[9] == "leaks"
    [path] = tmp_path.iterdir()
    path.write_text(json.dumps(["kept"]))
    assert kept_rows(tmp_path, options) == [["kept"]]
