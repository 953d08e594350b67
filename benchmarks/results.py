"""How a measured table is written: Markdown for people, with the machine and the versions beside it."""

from __future__ import annotations

import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "results"


def write_table(
    name: str,
    title: str | None,
    head: list[str],
    rows: list[list[str]],
    *,
    command: str | None = None,
    **settings: object,
) -> Path:
    """Write the table to `benchmarks/results/<name>.md`, print it, and return its path.

    `command` names the benchmark that measured it, where the table has another name; "./..." is a script of its own.
    """
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    lines = [_line(head, widths), "|" + "|".join("-" * (width + 2) for width in widths) + "|"]
    lines += [_line(row, widths) for row in rows]
    words = ", ".join(f"{key} {value}" for key, value in settings.items())
    libraries = ", ".join(f"{package} {version(package)}" for package in ("goodfence", "numpy", "numba"))
    own = command or name
    by = own if own.startswith("./") else f"./scripts/bench {own}"
    about = (
        f"Measured {datetime.now(UTC):%Y-%m-%d} by `{by}`"
        f" on {platform.machine()}, Python {platform.python_version()}, {libraries}"
    )
    text = "\n".join([f"# {title}", "", f"{about}; {words}." if words else f"{about}.", "", *lines, ""])
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.md"
    path.write_text(text, encoding="utf-8")
    print("\n".join(lines), file=sys.stdout)
    return path


def _line(cells: list[str], widths: list[int]) -> str:
    padded = (str(cell).ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "| " + " | ".join(padded) + " |"
