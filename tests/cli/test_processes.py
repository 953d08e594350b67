"""Real processes: how soon they answer, what they import, how they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

GOODFENCE = [sys.executable, "-m", "goodfence"]
HEAVY = {"numpy", "pyarrow", "scipy", "numba", "narwhals", "altair", "opendp", "rich"}
MOST_MODULES = 250
"""typer alone brings about 140."""


def start(*arguments: str, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*GOODFENCE, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


@pytest.mark.parametrize("arguments", [["--help"], ["audit", "--help"], ["explain", "GF203"]])
def test_nothing_heavy_is_imported(arguments: list[str]) -> None:
    code = (
        "import sys; from goodfence.cli import app\n"
        f"try: app({arguments!r})\n"
        "except SystemExit: pass\n"
        "print(sorted(name for name in sys.modules if '.' not in name))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1]
    assert not [name for name in HEAVY if f"'{name}'" in loaded]


def test_help_imports_only_what_it_shows() -> None:
    """What it costs is what it imports: of goodfence the commands and their words, and few modules beside."""
    code = "import sys; from goodfence.cli import app\ntry: app(['--help'])\nexcept SystemExit: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    own = {".".join(name.split(".")[:2]) for name in loaded if name.startswith("goodfence.")}
    assert own == {f"goodfence.{name}" for name in ("attack", "cli", "errors", "registry", "report")}
    assert not [name for name in loaded if name.startswith("goodfence.attack.")]
    assert len(loaded) < MOST_MODULES


@pytest.mark.slow
def test_the_first_line_comes_before_the_slow_imports() -> None:
    with start("audit", "movietweetings", "--targets", "5", "--seed", "7") as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "reading movietweetings\n"
        stdout, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "Verdict" in stdout


@pytest.mark.slow
def test_an_interrupt_ends_it_with_130() -> None:
    arguments = ("audit", "movietweetings", "--method", "private-cf epsilon=1")
    with start(*arguments, "--targets", "all") as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("reading")
        assert process.stderr.readline().startswith("attacking")
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (130, "")
    assert stderr.splitlines()[-1] == "error GF130: interrupted"


@pytest.mark.slow
def test_a_limit_that_is_passed_ends_it_with_1(tmp_path: Path) -> None:
    out = tmp_path / "audit.json"
    arguments = ("audit", "movietweetings", "--targets", "20", "--seed", "7", "--fail-above", "45")
    with start(*arguments, "-o", str(out)) as process:
        stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "Verdict" in stdout
    said = stderr.splitlines()[-1]
    assert said.startswith("--fail-above: above the limit of 45%: ")
    assert " of the users are fully recovered" in said
    assert out.is_file()
