"""How results look in a notebook: a small table of plain HTML, every cell escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "") -> str:
    """Return a table; what is in it cannot be markup."""
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{caption}<thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"
