"""Every bad input is refused: exit code 3, one sentence, no traceback, no hang, nothing private."""

from __future__ import annotations

import signal
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from goodfence.cli import app
from goodfence.data.load import read_ratings
from goodfence.errors import DataError, GoodfenceWarning
from tests.support.bad_inputs import SECRETS, BadInput, corpus

CORPUS = {bad.name: bad for bad in corpus()}
LONGEST_SECONDS = 30
LARGE = [name for name in CORPUS if "gigabytes" in name or "1_GiB" in name]
SUBPROCESSES = [*LARGE, "named_pipe-a.csv", "device-zero", "missing_file-a.csv", "UTF-16-csv"]


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    """End a test that waits for ever."""
    signal.alarm(LONGEST_SECONDS)
    yield
    signal.alarm(0)


def test_the_corpus_is_large_enough() -> None:
    kinds = Counter(bad.kind for bad in corpus())
    assert len(kinds) >= 60
    assert len(CORPUS) == kinds.total()  # no two of one name
    assert kinds.total() >= 3 * 60


@pytest.mark.parametrize("name", CORPUS)
def test_check_refuses_it(name: str, tmp_path: Path) -> None:
    bad = CORPUS[name]
    path = bad.make(tmp_path)
    result = CliRunner().invoke(app, ["check", str(path), *bad.arguments])
    assert result.exit_code == 3, result.output
    assert result.stdout == ""
    assert isinstance(result.exception, SystemExit)
    _check_sentence(result.stderr, bad)
    if not bad.arguments:
        _check_raised(path, bad)


def _check_sentence(stderr: str, bad: BadInput) -> None:
    last = stderr.splitlines()[-1]
    assert last.startswith("error GF2")
    assert all(line.startswith("note: ") for line in stderr.splitlines()[:-1])
    assert bad.says in last
    assert not [secret for secret in SECRETS if secret in stderr]


def _check_raised(path: Path, bad: BadInput) -> None:
    """Check that Python users get the same sentence, and no value by way of its cause."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GoodfenceWarning)
        with pytest.raises(DataError) as caught:
            read_ratings(path)
    problem = caught.value
    assert bad.says in str(problem)
    assert not [secret for secret in SECRETS if secret in repr(problem)]
    assert problem.__cause__ is None
    assert problem.__suppress_context__ or problem.__context__ is None


RUN = """
import pathlib, sys
from goodfence.cli import main
note = pathlib.Path(sys.argv.pop(1))
try:
    main()
finally:
    status = pathlib.Path("/proc/self/status")
    note.write_text(status.read_text() if status.exists() else "VmHWM: 0 kB")
"""


@pytest.mark.parametrize("name", SUBPROCESSES)
def test_a_process_refuses_it_soon_and_with_little_memory(name: str, tmp_path: Path) -> None:
    bad = CORPUS[name]
    path = bad.make(tmp_path)
    note = tmp_path / "status"
    command = [sys.executable, "-c", RUN, str(note), "check", str(path), *bad.arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_SECONDS / 2, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    _check_sentence(done.stderr, bad)
    peak = next(line for line in note.read_text().splitlines() if line.startswith("VmHWM:"))
    assert int(peak.split()[1]) / 1024 < 400, "more than the libraries and a few chunks need"
