"""What docs/cli.md shows is what the commands print; `./scripts/check` compares the other documents too."""

from __future__ import annotations

from goodfence.cli import app
from tests.shown.commands import EXACT, blocks, printed, reader_folder
from tests.shown.tables import ROOT

SHOWN = list(blocks((ROOT / "docs" / "cli.md").read_text()))


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


def test_the_documented_commands_print_this() -> None:
    """One after the other in one folder, as a reader would: a model that one fits, the next asks."""
    compared = [(text, output) for kind, text, output in SHOWN if kind == EXACT]
    assert len(compared) >= 8
    with reader_folder():
        assert {text: printed(text) for text, _ in compared} == dict(compared)
