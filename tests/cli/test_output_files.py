"""`-o` onto what cannot be written: told before the work, and after it the finding is told all the same."""

from __future__ import annotations

import json
import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest

from tests.support.running import run

FEW = ("--method", "knn k=5", "--known", 3, "--targets", 12, "--seed", 7)
READ_ONLY = Path("/sys")
"""Where not even the administrator makes files."""


@contextmanager
def no_file_larger_than(n_bytes: int) -> Iterator[None]:
    """Let the system refuse larger files, as it does where the disk is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", ["audit.html", "audit.json"])
def test_a_folder_of_that_name_is_told_at_once(name: str, small: Path, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    code, stdout, stderr = run("audit", small, *FEW, "-o", tmp_path / name)
    assert (code, stdout) == (3, "")
    assert "out must be a file, and a folder of that name is there" in stderr
    assert "reading" not in stderr


@pytest.mark.parametrize("name", ["audit.html", "audit.json"])
def test_a_pipe_of_that_name_is_told_at_once_and_stays(name: str, small: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    code, stdout, stderr = run("audit", small, *FEW, "-o", tmp_path / name)
    assert (code, stdout) == (3, "")
    assert "out must be an ordinary file, and is a pipe, a socket or a device" in stderr
    assert "reading" not in stderr
    assert (tmp_path / name).is_fifo()


def test_a_link_of_that_name_stays_and_its_file_is_written(small: Path, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    link = tmp_path / "audit.json"
    link.symlink_to(Path("results") / "audit.json")
    code, stdout, _ = run("audit", small, *FEW, "--json", "-o", link)
    assert code == 0
    assert link.is_symlink()
    assert json.loads((tmp_path / "results" / "audit.json").read_text()) == json.loads(stdout)
    assert [one.name for one in (tmp_path / "results").iterdir()] == ["audit.json"]


@pytest.mark.parametrize(
    ("command", "name"), [("audit", "a.html"), ("audit", "a.json"), ("audit", "a"), ("frontier", "a")]
)
@pytest.mark.skipif(not READ_ONLY.is_dir(), reason="a folder that nobody can write to is missing")
def test_a_place_that_cannot_be_written_is_told_at_once_with_its_cause(command: str, name: str, small: Path) -> None:
    code, stdout, stderr = run(command, small, "-o", READ_ONLY / name)
    assert (code, stdout) == (3, "")
    assert "out could not be written: " in stderr
    assert "denied" in stderr or "permitted" in stderr or "read-only" in stderr
    assert "reading" not in stderr


@pytest.mark.parametrize(("command", "name"), [("audit", "a.html"), ("frontier", "a.html")])
def test_a_full_disk_is_told_before_the_work(command: str, name: str, small: Path, tmp_path: Path) -> None:
    with no_file_larger_than(1_000):
        code, stdout, stderr = run(command, small, "-o", tmp_path / name)
    assert (code, stdout) == (3, "")
    assert "out could not be written: file too large" in stderr
    assert [one.name for one in tmp_path.iterdir()] == [small.name]


@pytest.mark.slow
def test_what_was_found_is_told_where_writing_fails_in_the_end(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("goodfence.auditing.survey"), "FRONTIER_TARGETS", 3)
    out = tmp_path / "audit.html"
    arguments = ("audit", small, *FEW, "--scale", 1, 5, "-o", out)
    assert run(*arguments)[0] == 0  # compiled kernels are files, too
    assert out.stat().st_size > 100_000
    out.write_text("an older page")
    with no_file_larger_than(100_000):  # enough to begin with, and not for a page
        code, stdout, stderr = run(*arguments)
    assert code == 3
    assert stdout.startswith("  Verdict   kNN k=5")
    assert "Saved" not in stdout
    assert "could not be written: file too large" in stderr
    assert str(tmp_path) not in stderr.replace(str(small), "")
    assert out.read_text() == "an older page"
    assert sorted(one.name for one in tmp_path.iterdir()) == [out.name, small.name]


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_in_the_end(small: Path, tmp_path: Path) -> None:
    compared = ("--method", "knn k=5", "--known", 3, "--targets", 4, "--seed", 7)
    arguments = ("frontier", small, *compared, "-o", tmp_path / "result")
    assert run(*arguments)[0] == 0
    shutil.rmtree(tmp_path / "result")
    with no_file_larger_than(100_000):
        code, stdout, stderr = run(*arguments)
    assert code == 3
    assert "Choice" in stdout
    assert "folder could not be written: file too large" in stderr
    assert [one.name for one in tmp_path.iterdir()] == [small.name]
