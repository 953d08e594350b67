"""How results are printed: labels and lines for people, JSON for programs, notes on stderr."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import typer

from goodfence.errors import GoodfenceWarning

_WIDTH = 9


def printable(text: str) -> str:
    r"""Return `text` with a question mark for what would move the cursor or change colours.

    Examples
    --------
    >>> printable("a\x1b[31mb")
    'a?[31mb'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def print_lines(lines: Sequence[tuple[str, str]]) -> None:
    """Print pairs of a label and what it labels."""
    for label, text in lines:
        name = typer.style(label.ljust(_WIDTH), bold=True)
        typer.echo(f"  {name} {printable(text)}".rstrip())


def print_json(result: Mapping[str, object]) -> None:
    """Print one JSON object."""
    typer.echo(json.dumps(result, indent=2))


@contextmanager
def collected_notes() -> Iterator[list[str]]:
    """Collect what goodfence warns about.

    The list is filled when the block ends without an error.
    """
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GoodfenceWarning)
        yield notes
        notes.extend(str(one.message) for one in caught if one.category is GoodfenceWarning)


def print_notes(notes: Sequence[str]) -> None:
    """Print notes on stderr."""
    for note in notes:
        typer.echo(f"note: {printable(note)}", err=True)
