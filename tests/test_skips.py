"""The closing word on what was skipped: every group is named, and can be made an error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import conftest

ROOT = Path(__file__).parents[1]


def run(*arguments: str) -> tuple[int, str]:
    """Run the bundled-data tests as somebody without real ratings would."""
    environment = {key: value for key, value in os.environ.items() if key != "GOODFENCE_DATA"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(
        [*command, "tests/data/test_bundled.py", "-k", "ml_100k or licence"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.slow
def test_a_skipped_group_is_named_with_what_was_missing_and_can_be_an_error() -> None:
    code, output = run("--no-skips")
    assert code == 1
    assert "skipped, and not allowed to be" in output
    assert "skipped: real ratings (1 test): set GOODFENCE_DATA to a folder with movietw" in output
    assert output.splitlines()[-1].startswith("1 passed, 1 skipped")


def test_only_the_sets_a_test_names_are_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ml-1m").mkdir()
    monkeypatch.setenv("GOODFENCE_DATA", str(tmp_path))
    assert conftest.missing_sets(("ml-1m",)) == []
    assert conftest.missing_sets(("ml-1m", "ml-100k")) == ["ml-100k"]
    assert "netflix-tenth" in conftest.missing_sets(())


def test_other_skips_have_their_reason() -> None:
    groups = {(conftest.OTHER, "no Java"): 2, (conftest.OTHER, "no browser"): 1}
    assert conftest.skip_lines(groups) == ["skipped: other (3 tests): no Java; no browser"]
