"""`goodfence check` on good files, and the command line around it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import goodfence.data.readers
from goodfence import __version__
from goodfence.cli import app
from goodfence.cli.scale import join_scale
from goodfence.errors import MissingExtra

CSV = "userId,movieId,rating,timestamp\n7,10,4.5,99\n8,9,0,98\n7,9,1,97\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ratings.csv"
    path.write_text(CSV)
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


def test_what_was_read_is_printed(file: Path) -> None:
    code, stdout, stderr = run("check", file, "--scale", 0, 5, 0.5)
    assert (code, stderr) == (0, "")
    assert stdout.splitlines() == [
        "  Columns   person <- userId   item <- movieId   rating <- rating   (timestamp not used)",
        "  Scale     0-5 in steps of 0.5      Shape   2 people x 2 items, 3 ratings",
        "  Problems  0 missing · 0 out of scale · 0 repeated",
    ]


def test_json(file: Path) -> None:
    code, stdout, stderr = run("check", file, "--json")
    assert (code, stderr) == (0, "")
    assert json.loads(stdout) == {
        "columns": {
            "user": "userId",
            "item": "movieId",
            "rating": "rating",
            "unused": ["timestamp"],
            "by_position": False,
        },
        "scale": {"lowest": 0.0, "highest": 4.5, "step": 0.5, "declared": False},
        "users": 2,
        "items": 2,
        "ratings": 3,
        "problems": {"missing": 0, "out_of_scale": 0, "repeated": 0},
        "notes": [],
    }


def test_an_error_as_json(tmp_path: Path) -> None:
    code, stdout, stderr = run("check", tmp_path / "none.csv", "--json")
    assert (code, stdout) == (3, "")
    assert json.loads(stderr)["error"]["code"] == "GF201"


def test_repeats_are_counted_and_noted(file: Path) -> None:
    file.write_text(CSV + "8,9,3,1\n")
    code, stdout, stderr = run("check", file, "--duplicates", "last")
    assert code == 0
    assert "1 repeated (last kept)" in stdout
    assert stderr == "note: 1 ratings repeat a pair of person and item; kept the last\n"
    code, stdout, _ = run("check", file, "--duplicates", "last", "--json")
    assert json.loads(stdout)["problems"]["repeated"] == 1
    assert len(json.loads(stdout)["notes"]) == 1


def test_positions_are_called_columns(tmp_path: Path) -> None:
    (tmp_path / "u.data").write_text("1\t2\t3\t4\n")
    _, stdout, _ = run("check", tmp_path / "u.data")
    assert "person <- column 1   item <- column 2   rating <- column 3   (column 4 not" in stdout


@pytest.mark.parametrize("separator", [";", "\\t", "tab"])
def test_a_separator(separator: str, file: Path) -> None:
    file.write_text(CSV.replace(",", ";" if separator == ";" else "\t"))
    assert run("check", file, "--separator", separator)[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("--duplicates", "both"),
        ("--scale", "5", "1"),
        ("--scale", "1"),
        ("--scale", "low,high"),
        ("--max-bytes", "0"),
        ("--max-bytes", "many"),
        ("--separator", "ab"),
        ("--unknown",),
    ],
)
def test_wrong_settings_exit_with_2(arguments: tuple[str, ...], file: Path) -> None:
    code, stdout, stderr = run("check", file, *arguments)
    assert (code, stdout) == (2, "")
    assert stderr


def test_a_data_set_by_its_name() -> None:
    code, stdout, _ = run("check", "movietweetings")
    assert code == 0
    assert "whole numbers 0-10 " in stdout
    assert "1,238 people x 1,191 items, 45,027 ratings" in stdout


def test_a_mistyped_command_gets_a_suggestion() -> None:
    code, _, stderr = run("chek")
    assert code == 2
    assert "check" in stderr


def test_version() -> None:
    assert run("--version") == (0, f"goodfence {__version__}\n", "")


def test_the_numbers_after_scale_are_joined() -> None:
    assert join_scale(["f", "--scale", "-1", "1"]) == ["f", "--scale=-1,1"]
    assert join_scale(["--scale", "1", "5", "f.csv"]) == ["--scale=1,5", "f.csv"]
    assert join_scale(["--scale", "1", "5", "1", "5"]) == ["--scale=1,5,1", "5"]
    assert join_scale(["--scale=1,5", "f"]) == ["--scale=1,5", "f"]
    assert join_scale(["--scale", "f"]) == ["--scale", "f"]
    assert join_scale(["f"]) == ["f"]


@pytest.mark.parametrize(
    ("fault", "code", "says"),
    [
        (RuntimeError("Undine Quark rated 3.14159"), 70, "fault of goodfence (RuntimeError at"),
        (KeyError("Undine Quark"), 70, "please report this line"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 3, "must fit in memory"),
        (MissingExtra("the spark extra is not installed"), 4, "error GF401: the spark extra"),
    ],
)
def test_faults(
    fault: BaseException, code: int, says: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr(goodfence.data.readers, "read_reported", fail)
    done, stdout, stderr = run("check", file)
    assert (done, stdout) == (code, "")
    assert says in stderr
    assert stderr.count("\n") == 1
    assert "Undine" not in stderr
    assert "3.14159" not in stderr


def test_a_name_cannot_command_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("user,item,rating,\x1b[31mred[bold]\n1,2,3,4\n")
    _, stdout, _ = run("check", path)
    assert "?[31mred[bold] not used" in stdout
    _, _, stderr = run("check", tmp_path / "\x1b[2J.csv")
    assert "\x1b[2J" not in stderr


def test_a_broken_pipe_is_no_fault(file: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "goodfence", "check", str(file)],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )
    os.close(writer)
    assert done.returncode != 70
    assert "fault of goodfence" not in done.stderr
    assert time.monotonic() - start < 60


@pytest.mark.parametrize("encoding", ["ascii", "cp1250", "shift_jis"])
def test_a_terminal_without_the_letters_is_no_fault(encoding: str, file: Path) -> None:
    file.write_text(CSV.replace("timestamp", "Ω≈ç"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "goodfence", "check", str(file)],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert done.returncode == 0
    assert b"3 ratings" in done.stdout
