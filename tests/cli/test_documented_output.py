"""What docs/cli.md shows is what the commands print."""

from __future__ import annotations

from pathlib import Path

import pytest

from goodfence.cli import app
from tests.cli.documented import COMPARED, DOCS, blocks, prepare, printed

SHOWN = list(blocks((DOCS / "cli.md").read_text()))


def test_every_command_is_shown() -> None:
    names = {
        command.name or getattr(command.callback, "__name__", "")
        for command in app.registered_commands
    }
    names |= {f"data {name}" for name in ("list", "fetch")}
    shown = {
        name for name in names if any(f"{text} ".startswith(f"{name} ") for _, text, _ in SHOWN)
    }
    assert names - shown == set()


def test_the_documented_commands_print_this(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other in one folder, as a reader would: a model that one fits, the next asks."""
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GOODFENCE_DATA", raising=False)
    compared = [(text, output) for kind, text, output in SHOWN if kind == COMPARED]
    assert len(compared) >= 8
    assert {text: printed(text) for text, _ in compared} == dict(compared)
