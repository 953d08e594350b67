"""`-o x.html`: pages for people, with the command that makes them again and no folder of whoever ran it."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from goodfence.cli.options import Method, Running, Source, command_line
from tests.support.running import run, run_json

SURVEY = import_module("goodfence.auditing.survey")
AUDIT = ("--method", "knn k=5", "--known", 3)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SURVEY, "FRONTIER_TARGETS", 3)


def command_in(page: str) -> str:
    found = re.search(r"<pre>(.*?)</pre>", page)
    assert found is not None
    return found[1]


@pytest.mark.slow
def test_audit_writes_a_page(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit.html"
    code, stdout, stderr = run("audit", small, *AUDIT, "--scale", 1, 5, "--seed", 7, "-o", out)
    assert code == 0, stderr
    assert "comparing other" in stderr
    assert "Saved" in stdout
    page = out.read_text()
    wanted = "goodfence audit ratings.csv --scale 1 5 --method &#39;knn k=5&#39; --known 3 --seed 7 --out audit.html"
    assert command_in(page) == wanted
    assert str(tmp_path) not in page
    assert str(small.parent) not in page
    assert "PrivateMeans, per rating ε=1" in page


@pytest.mark.slow
def test_a_page_without_a_seed_gets_one(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit.html"
    told = run_json("audit", small, *AUDIT, "-o", out, "-q")
    assert told["seed"] is not None
    assert f"--seed {told['seed']} " in command_in(out.read_text())
    plain = run_json("audit", small, *AUDIT, "-o", tmp_path / "a.json", "-q")
    assert plain["seed"] not in (None, told["seed"])  # drawn, and told


def test_frontier_writes_a_page(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "frontier.html"
    compared = ("--method", "knn k=5", "--method", "private-means epsilon=8 unit=user")
    arguments = ("frontier", small, "--scale", 1, 5, *compared, "--known", 3, "--targets", 4)
    code, _, stderr = run(*arguments, "--max-mae", 3, "--seed", 7, "-o", out)
    assert code == 0, stderr
    page = out.read_text()
    assert "--method &#39;private-means epsilon=8 unit=user&#39;" in command_in(page)
    assert "Leak and error" in page
    assert str(tmp_path) not in page


@pytest.mark.parametrize("command", ["audit", "frontier"])
@pytest.mark.parametrize(
    ("out", "code", "says"),
    [("a.pdf", 2, ".json or .html, got .pdf"), ("no/such/a.html", 3, "the folder of out does not exist")],
)
def test_what_cannot_be_written_is_told_at_once(
    command: str, out: str, code: int, says: str, small: Path, tmp_path: Path
) -> None:
    done, stdout, stderr = run(command, small, "-o", tmp_path / out)
    assert (done, stdout) == (code, "")
    assert says in stderr
    assert "reading" not in stderr


def test_the_command_has_what_was_given_and_nothing_else() -> None:
    source = Source(file="folder/our ratings.csv", user="who")
    line = command_line("audit", source, Method(method="ppns beta=3"), seed=None, full=True)
    assert line == "goodfence audit 'our ratings.csv' --user who --method 'ppns beta=3' --full"
    assert command_line("x", Running(json=False)) == "goodfence x"
