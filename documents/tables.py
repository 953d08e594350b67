"""Measured tables, read from benchmarks/results/, and tables written for a document."""

from __future__ import annotations

from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
UNMEASURED = "not measured"

Row = dict[str, str]


@cache
def measured(name: str) -> tuple[Row, ...]:
    """Return the rows of a measured table; none where it was not measured yet."""
    path = RESULTS / f"{name}.md"
    return rows_of(path.read_text(encoding="utf-8")) if path.is_file() else ()


def rows_of(text: str) -> tuple[Row, ...]:
    """Return the rows of the first table of a text, by the names of its columns."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    if len(cells) < 2:
        return ()
    head, _, *body = cells
    return tuple(dict(zip(head, row, strict=True)) for row in body)


def whole_table(name: str) -> str:
    """Return a measured table with the line that says by what, on what and with which settings, without its title."""
    path = RESULTS / f"{name}.md"
    if not path.is_file():
        return f"({UNMEASURED} yet: `./scripts/bench {name}`)"
    _, text = path.read_text(encoding="utf-8").split("\n", 1)
    return text.strip()


def find(rows: tuple[Row, ...], *keys: str) -> Row | None:
    """Return the row that begins with these cells."""
    return next((row for row in rows if tuple(row.values())[: len(keys)] == keys), None)


def cell(name: str, *words: str) -> str:
    """Return one cell of a measured table: the row that begins with these words, the last names the column."""
    *keys, column = words
    rows = measured(name)
    if not rows:
        return UNMEASURED
    row = find(rows, *keys)
    if row is None or column not in row:  # a row that was renamed must not become a silent gap
        raise LookupError(f"the table {name} has no {column!r} of {', '.join(keys)}")
    return row[column]


def value(name: str, *words: str) -> str:
    """Return the first word of a cell, which is the value without its interval."""
    found = cell(name, *words)
    return found if found == UNMEASURED else found.split()[0]


def as_table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
