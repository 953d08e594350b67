"""What is mistyped is met with what was probably meant; every failure has its exit code and its error code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.running import run

FILMS = "movietweetings"
COMMANDS = (
    *("demo", "check", "audit", "frontier", "fit", "recommend", "evaluate", "compare"),
    *("data", "explain", "doctor", "paper"),
)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["adit", FILMS], "GF100", "'audit'"),
        (["data", "ftch"], "GF100", "'fetch'"),
        (["audit", FILMS, "--targts", "3"], "GF100", "'--targets'"),
        (["audit", FILMS, "--method", "pnps"], "GF101", "'ppns'"),
        (["audit", FILMS, "--method", "private-mean epsilon=1"], "GF101", "'private-means'"),
        (["audit", FILMS, "--method", "private-means beta=3"], "GF101", "'delta'"),
        (["audit", FILMS, "--attack", "adaptve"], "GF101", "'adaptive'"),
        (["audit", FILMS, "--attack", "knn choose=rare"], "GF101", "'rarest'"),
        (["audit", FILMS, "--method", "knn similarity=cosin"], "GF101", "'cosine'"),
        (["explain", "ppsn"], "GF101", "'ppns'"),
        (["explain", "private_mean"], "GF101", "'private-means'"),
    ],
)  # fmt: skip
def test_did_you_mean(arguments: list[str], code: str, says: str) -> None:
    done, stdout, stderr = run(*arguments)
    assert (done, stdout) == (2, "")
    assert stderr.startswith(f"error {code}: ")
    assert f"did you mean {says}" in stderr
    assert stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["audit"], "FILE"),
        (["fit", FILMS], "--out"),
        (["audit", FILMS, "--method", "knn k=many"], "k must be"),
        (["audit", FILMS, "--method", "knn k=0"], "k must be"),
        (["audit", FILMS, "--targets", "0"], "targets must be a positive integer, 'all', or a half-width"),
        (["audit", FILMS, "--targets", "some"], "targets must be"),
        (["audit", FILMS, "--fail-above", "101"], "fail_above must be a number from 0 to 100"),
        (["audit", FILMS, "--method", "ppns"], "needs the setting 'beta'"),
        (["audit", FILMS, "--method", "private-cf"], "needs the setting 'epsilon'"),
        (["audit", FILMS, "--method", "knn beta=3"], "KNN has no setting 'beta'"),
        (["audit", FILMS, "--attack", "adaptive ask=all"], "adaptive has no setting 'ask'"),
        (["audit", FILMS, "--method", "knn k=2000"], "k must be at most the list's length 1237"),
        (["audit", FILMS, "-o", "audit.pdf"], "end in .json"),
        (["audit", FILMS, "--trials", "5", "--targets", "2"], "trials must be 0, or from 30"),
        (["evaluate", FILMS, "--fraction", "2"], "fraction must be strictly between 0 and 1"),
        (["evaluate", FILMS, "--scale", "1", "5"], "scale must be left out for a named data set"),
        (["audit", FILMS, "--attack", "knn known=3 known=4"], "known must be given once"),
        (["frontier", FILMS, "--method", "knn k=3 k=4"], "k must be given once"),
        (["audit", FILMS, "--threads", "0"], "threads must be an integer of at least 1"),
    ],
)
def test_wrong_usage_and_settings_exit_with_2(arguments: list[str], says: str) -> None:
    done, stdout, stderr = run(*arguments)
    assert (done, stdout) == (2, "")
    last = stderr.splitlines()[-1]
    assert last.startswith("error GF10")
    assert says in last


def test_wrong_usage_as_json() -> None:
    done, stdout, stderr = run("audit", FILMS, "--json", "--targts", "3")
    assert (done, stdout) == (2, "")
    told = json.loads(stderr)["error"]
    assert told["code"] == "GF100"
    assert "--targets" in told["message"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["audit", "no-such-file.csv"], "GF201"),
        (["audit", "movietweeting"], "GF206"),
        (["recommend", "no-such-model", "1"], "GF301"),
    ],
)
def test_data_that_is_not_there_exits_with_3(arguments: list[str], code: str) -> None:
    done, stdout, stderr = run(*arguments)
    assert (done, stdout) == (3, "")
    assert stderr.splitlines()[-1].startswith(f"error {code}: ")


def test_an_unknown_folder_for_the_report_is_told_before_the_attack(tmp_path: Path) -> None:
    done, _, stderr = run("audit", FILMS, "-o", tmp_path / "none" / "audit.json")
    assert done == 3
    assert "attacking" not in stderr


def test_quiet_is_quiet() -> None:
    done, _, stderr = run("audit", FILMS, "--targets", "5", "--seed", "7", "--quiet")
    assert (done, stderr) == (0, "")


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_the_terminal_and_says_something(name: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = run(name, "--help")[1]
    assert max(map(len, text.splitlines())) <= width
    assert "{" not in text
    flags = re.findall(r"^  (?:-\w, )?--[\w-]+ [^\n]*(?:\n {12,}[^\n]*)?", text, re.M)
    assert flags
    assert [one for one in flags if len(one.split()) < 5] == []


@pytest.mark.parametrize("name", ["audit", "frontier", "fit"])
def test_what_writes_takes_out_and_o(name: str) -> None:
    assert "  -o, --out PATH " in run(name, "--help")[1]


def test_help_of_every_command_is_there() -> None:
    listed = run("--help")[1]
    for name in COMMANDS:
        assert f"\n  {name} " in listed
        done, stdout, _ = run(name, "--help")
        assert done == 0
        assert "--json" in stdout or name in ("data", "paper")
    assert "..." not in listed.partition("Commands:")[2]
