"""`goodfence check` on good files, and the command line around it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

import goodfence.data.load
from goodfence import __version__
from goodfence.cli import app
from goodfence.cli.command import join_scale
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
        "  Columns   user <- userId   item <- movieId   rating <- rating   time <- timestamp",
        "  Scale     0-5 in steps of 0.5      Shape   2 users x 2 items, 3 ratings",
        "  Per user  1 to 2 ratings, median 1",
        "  Per item  1 to 2 ratings, median 1",
        "  Time      97 to 99",
        f"  Ratings     0  {'#' * 40}  33.3%",
        f"              1  {'#' * 40}  33.3%",
        f"            4.5  {'#' * 40}  33.3%",
        "  Problems  none",
    ]


def test_the_bars_are_as_long_as_the_shares(tmp_path: Path) -> None:
    rows = "".join(f"{n},1,{1 + (n >= 8)}\n" for n in range(10))
    (tmp_path / "a.csv").write_text("user,item,rating\n" + rows)
    _, stdout, _ = run("check", tmp_path / "a.csv")
    assert f"  Ratings   1  {'#' * 40}  80.0%\n            2  {'#' * 10}{' ' * 30}  20.0%\n" in stdout
    many = "".join(f"{n},1,{n / 7}\n" for n in range(70))
    (tmp_path / "a.csv").write_text("user,item,rating\n" + many)
    _, stdout, _ = run("check", tmp_path / "a.csv")
    assert stdout.count("10.0%") == 10  # ten ranges of seven each


BROKEN = """user,item,rating
1,2,3

1,,4
2,2,x
3,3
1,2,9

4,4,nan
5,4,"",
5,4,
,1,
6,NA,1e999
7,4,
8,4,
"""


def test_all_problems_are_counted_with_lines_and_without_ids(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(BROKEN)
    code, stdout, stderr = run("check", tmp_path / "a.csv", "--scale", 1, 5)
    assert (code, stdout) == (3, "")
    assert stderr.splitlines() == [
        "note: 4 rows without a rating (lines 11, 12, 14, ...)",
        "note: 2 rows without an item (lines 4, 13)",
        "note: 2 rows with a rating that is not finite (lines 9, 13)",
        "note: 2 rows with another number of fields (lines 6, 10)",
        "note: 1 row without a user (line 12)",
        "note: 1 row with a rating that is no number (line 5)",
        "note: 1 row off the scale (line 7)",
        "note: 1 row for a pair of user and item that has a rating already (line 7)",
        "error GF201: 'a.csv' must have 3 fields in each row, row 4 has 2",
    ]
    code, stdout, _ = run("check", tmp_path / "a.csv", "--json", "--read", "duplicates=last")
    kinds = {one["kind"]: one for one in json.loads(stdout)["problems"]}
    assert kinds["without a rating"] == {"kind": "without a rating", "n": 4, "lines": [11, 12, 14]}
    assert not any("already" in kind or "scale" in kind for kind in kinds)


def test_all_problems_of_a_parquet_file_and_of_sections(tmp_path: Path) -> None:
    table = pa.table(
        {"user": ["a", None, "a", "", "b"], "item": [1, 2, 1, 3, None], "rating": [1.0, None, 7, 2, float("nan")]}
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    _, _, stderr = run("check", tmp_path / "a.parquet", "--scale", 1, 5)
    assert stderr.splitlines()[:-1] == [
        "note: 2 rows without a user (lines 2, 4)",
        "note: 1 row without an item (line 5)",
        "note: 1 row without a rating (line 2)",
        "note: 1 row with a rating that is not finite (line 5)",
        "note: 1 row off the scale (line 3)",
        "note: 1 row for a pair of user and item that has a rating already (line 3)",
    ]
    (tmp_path / "mv.txt").write_text("1:\n7,5,2005\n8,x,2005\n2:\n7,,2005\n")
    _, _, stderr = run("check", tmp_path / "mv.txt")
    assert stderr.splitlines()[:-1] == [
        "note: 1 row without a rating (line 5)",
        "note: 1 row with a rating that is no number (line 3)",
    ]


def test_sentinels_are_warned_of(tmp_path: Path) -> None:
    rows = "".join(f"{n},1,{n % 10 + 1}\n" for n in range(100))
    for odd in ("-1", "99"):
        (tmp_path / "a.csv").write_text(f"user,item,rating\n{rows}101,1,{odd}\n")
        _, _, stderr = run("check", tmp_path / "a.csv")
        assert f"{odd} (0.99 of 100 ratings) may mean" in stderr
        assert f"unrated={odd}" in stderr
        code, stdout, stderr = run("check", tmp_path / "a.csv", "--read", f"unrated={odd}")
        assert code == 0
        assert "integers 1-10" in stdout
    zeros = "".join(f"{n},2,0\n" for n in range(150))  # Book-Crossing: 0 is no opinion
    (tmp_path / "a.csv").write_text(f"user,item,rating\n{rows}{zeros}")
    _, _, stderr = run("check", tmp_path / "a.csv")
    assert "0 (60 of 100 ratings) may mean" in stderr
    assert "the rating next to it is rare" in stderr
    (tmp_path / "a.csv").write_text(f"user,item,rating\n{rows}101,1,0\n")
    assert run("check", tmp_path / "a.csv")[2] == ""


@pytest.mark.slow
def test_standard_input_is_checked(file: Path) -> None:
    for arguments, code in (([], 0), (["--rating", "no"], 3), (["--scale", "1", "5"], 3)):
        done = subprocess.run(
            [sys.executable, "-m", "goodfence", "check", "-", *arguments],
            input=file.read_text(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
    assert "off the scale" in done.stderr


def test_json(file: Path) -> None:
    code, stdout, stderr = run("check", file, "--json")
    assert (code, stderr) == (0, "")
    assert json.loads(stdout) == {
        "feedback": "explicit",
        "liked_from": None,
        "columns": {
            "user": "userId",
            "item": "movieId",
            "rating": "rating",
            "weight": None,
            "time": "timestamp",
            "unused": [],
            "by_position": False,
        },
        "scale": {"lowest": 0.0, "highest": 4.5, "step": 0.5, "declared": False},
        "users": 2,
        "items": 2,
        "ratings": 3,
        "problems": {"repeated": 0},
        "spread": {
            "grades": [["0", 1], ["1", 1], ["4.5", 1]],
            "per_user": [1, 1, 2],
            "per_item": [1, 1, 2],
            "span": ["97", "99"],
        },
        "notes": [],
    }


def test_an_error_as_json(tmp_path: Path) -> None:
    code, stdout, stderr = run("check", tmp_path / "none.csv", "--json")
    assert (code, stdout) == (3, "")
    assert json.loads(stderr)["error"]["code"] == "GF201"


def test_repeats_are_counted_and_noted(file: Path) -> None:
    file.write_text(CSV + "8,9,3,1\n")
    code, stdout, stderr = run("check", file, "--read", "duplicates=last")
    assert code == 0
    assert "1 repeated (last kept)" in stdout
    assert stderr == "note: 1 ratings repeat a pair of user and item; kept the last\n"
    code, stdout, _ = run("check", file, "--read", "duplicates=last", "--json")
    assert json.loads(stdout)["problems"]["repeated"] == 1
    assert len(json.loads(stdout)["notes"]) == 1


def test_positions_are_called_columns(tmp_path: Path) -> None:
    (tmp_path / "u.data").write_text("1\t2\t3\t4\n")
    _, stdout, _ = run("check", tmp_path / "u.data")
    assert "user <- column 1   item <- column 2   rating <- column 3   (column 4 not" in stdout


@pytest.mark.parametrize("separator", [";", "'\\t'", "tab"])
def test_a_separator(separator: str, file: Path) -> None:
    file.write_text(CSV.replace(",", ";" if separator == ";" else "\t"))
    assert run("check", file, "--read", f"separator={separator}")[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("--read", "duplicates=both"),
        ("--scale", "5", "1"),
        ("--scale", "1"),
        ("--scale", "low,high"),
        ("--read", "max_bytes=0"),
        ("--read", "max_bytes=many"),
        ("--read", "separator=ab"),
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
    assert "integers 0-10 " in stdout
    assert "1,238 users x 1,191 items, 45,027 ratings" in stdout


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
        (MemoryError(), 3, "do not fit in memory"),
        (MissingExtra("the spark extra is not installed"), 4, "error GF401: the spark extra"),
    ],
)
def test_faults(fault: BaseException, code: int, says: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr(goodfence.data.load, "read_reported", fail)
    done, stdout, stderr = run("check", file)
    assert (done, stdout) == (code, "")
    assert says in stderr
    assert stderr.count("\n") == 1
    assert "Undine" not in stderr
    assert "3.14159" not in stderr


@pytest.mark.slow
def test_a_name_cannot_command_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("user,item,rating,\x1b[31mred[bold]\n1,2,3,4\n")
    _, stdout, _ = run("check", path)
    assert "?[31mred[bold] not used" in stdout
    _, _, stderr = run("check", tmp_path / "\x1b[2J.csv")
    assert "\x1b[2J" not in stderr


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_a_guessed_column_of_ids_is_told_before_repeated_pairs(tmp_path: Path) -> None:
    rows = "".join(f"{880000000 + n // 4},{n % 2},{n % 1500},{n % 5}\n" for n in range(3000))
    (tmp_path / "a.csv").write_text(rows)  # time, user, item, rating: no header line says so
    code, stdout, stderr = run("check", tmp_path / "a.csv", "--quiet")
    assert (code, stdout) == (3, "")
    assert stderr.startswith("error GF202: rating (column 3) must look like ratings")


def test_a_column_without_a_name_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(",user,item,rating\n0,1,1,4\n1,1,2,5\n")
    _, stdout, _ = run("check", tmp_path / "a.csv")
    assert "(one without a name not used)" in stdout.splitlines()[0]


def test_a_long_scale_keeps_its_distance_from_the_shape(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item,rating\n1,1,0.5\n1,2,4.5\n")
    _, stdout, _ = run("check", tmp_path / "a.csv")
    assert "(observed)  Shape   1 users x 2 items" in stdout
