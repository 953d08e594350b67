"""How results are printed: labels and lines for people, JSON for programs, notes on stderr."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import typer

from goodfence.errors import GoodfenceWarning
from goodfence.report.known import known

_WIDTH = 9
LINE = 100
"""How long a printed line may be."""


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


def print_paragraphs(lines: Sequence[tuple[str, str]]) -> None:
    """Print pairs of a label and a text that may need several lines."""
    import textwrap

    for label, text in lines:
        first, *others = textwrap.wrap(printable(text), LINE - _WIDTH - 3) or [""]
        print_lines([(label, first), *(("", other) for other in others)])


def print_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under names, each column as wide as it needs."""
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    typer.echo(typer.style(_row(names, widths), bold=True))
    for row in rows:
        typer.echo(_row([printable(cell) for cell in row], widths))


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"  {'  '.join(padded)}".rstrip()


def print_json(result: Mapping[str, object]) -> None:
    """Print one JSON object."""
    typer.echo(as_text(result))


def as_text(result: Mapping[str, object]) -> str:
    r"""Return one JSON object as text; what is not known is null, since JSON has no NaN.

    Examples
    --------
    >>> as_text({"mae": float("nan")})
    '{\n  "mae": null\n}'
    """
    import json

    return json.dumps(known(result), indent=2, allow_nan=False)


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
