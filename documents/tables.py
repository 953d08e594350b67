"""Measured tables, read from benchmarks/results/, and tables written for a document."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
UNMEASURED = "not measured"

Row = dict[str, str]


@cache
def measured(name: str) -> tuple[Row, ...]:
    """Return the rows of a measured table, or none if it does not exist."""
    path = RESULTS / f"{name}.md"
    return rows_of(path.read_text(encoding="utf-8")) if path.is_file() else ()


def rows_of(text: str) -> tuple[Row, ...]:
    """Return the rows of the first table of a text, by column name."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    if len(cells) < 2:
        return ()
    head, _, *body = cells
    return tuple(dict(zip(head, row, strict=True)) for row in body)


def find(rows: tuple[Row, ...], *keys: str) -> Row | None:
    """Return the row that begins with these cells."""
    return next((row for row in rows if tuple(row.values())[: len(keys)] == keys), None)


def cell(name: str, *words: str) -> str:
    """Return one cell of a measured table: the first words are the row's first cells, the last is the column."""
    *keys, column = words
    rows = measured(name)
    if not rows:
        return UNMEASURED
    row = find(rows, *keys)
    if row is None or column not in row:  # a renamed row must not leave a silent gap
        raise LookupError(f"the table {name} has no {column!r} of {', '.join(keys)}")
    return row[column]


def value(name: str, *words: str) -> str:
    """Return the first word of a cell: the value without its interval."""
    found = cell(name, *words)
    return found if found == UNMEASURED else found.split()[0]


@cache
def chosen() -> dict[str, Any]:
    """Return which rows and columns of which measured tables documents show."""
    return tomllib.loads((Path(__file__).parent / "shown_tables.toml").read_text(encoding="utf-8"))


def shown_table(name: str) -> str:
    """Return the rows and columns of a measured table that `shown_tables.toml` names, and where the table is."""
    asked = chosen()[name]
    table, names = asked.get("table", name), [one.strip() for one in asked["columns"].split("|")]
    lines = {" | ".join(row.values()): row for row in measured(table)}
    if not lines:
        return f"({UNMEASURED} yet: `./scripts/bench {table}`)"
    found = []
    for start in asked.get("rows", [""]):
        wanted = [row for line, row in lines.items() if line.startswith(start)]
        if not wanted or not set(names) <= set(wanted[0]):
            raise LookupError(f"the table {table} has no row {start!r} with {asked['columns']}")
        found += [[row[column] for column in names] for row in wanted]
    return f"{as_table(names, found)}\n\nSource: `benchmarks/results/{table}.md`."


def as_table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
