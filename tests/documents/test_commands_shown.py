"""What docs/cli.md shows is what the commands print; `./scripts/check` compares the other documents too."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
import typer

from documents.commands import EXACT, agree, blocks, printed, reader_folder
from documents.tables import ROOT
from goodfence.cli import app

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MENTIONED = sorted(
    {
        command
        for document in DOCUMENTS
        for block in re.findall(r"^```(?:bash|yaml)\n(.*?)^```$", document.read_text(), re.M | re.S)
        for command in re.findall(r"^(?:- run: )?goodfence (.*)$", block, re.M)
    }
)
"""Commands that stand in a document without their output."""
SHOWN = list(blocks((ROOT / "docs" / "cli.md").read_text()))


def test_every_command_is_shown() -> None:
    group: Any = typer.main.get_command(app)
    names = set(group.commands) - {"doctor"}  # it prints what differs on every machine
    blocks_of = [text for page in DOCUMENTS for _, text, _ in blocks(page.read_text())]
    assert names - {text.split()[0] for text in blocks_of} == set()


def test_no_output_is_shown_twice() -> None:
    shown = [text for page in DOCUMENTS for _, text, _ in blocks(page.read_text())]
    assert sorted(set(shown)) == sorted(shown)


@pytest.mark.slow
def test_the_documented_commands_print_this() -> None:
    """One after the other in one folder, as a reader would: a model that one fits, the next asks."""
    compared = [(text, output) for kind, text, output in SHOWN if kind == EXACT]
    assert len(compared) >= 8
    with reader_folder():
        now = {text: printed(text) for text, _ in compared}
    assert {text: now[text] for text, output in compared if not agree(EXACT, output, now[text])} == {}


@pytest.mark.parametrize("command", MENTIONED)
def test_a_mentioned_command_exists_with_its_options(command: str) -> None:
    group: Any = typer.main.get_command(app)  # of a click that typer brings along
    words = shlex.split(command, comments=True)
    with group.make_context("goodfence", words) as context:
        name, chosen, rest = group.resolve_command(context, words)
        assert chosen is not None
        chosen.make_context(name, rest, parent=context)  # an unknown option is an error
