"""The page of errors, docs/errors.md, from what `goodfence explain` knows."""

from __future__ import annotations

from typing import Any

from documents.tables import as_table
from goodfence.cli.explain import explanations

_ABOUT = """\
Every error has a code, and `goodfence explain GF203` explains it. In Python each error is a class of `goodfence.errors`
with an attribute `code`. No message contains a rating or a user id."""


def error_index(errors: dict[str, Any] | None = None) -> str:
    """Return the text of docs/errors.md."""
    rows = []
    for code, text in (errors or explanations("errors")).items():
        cells = [f"**{code}**", f"**{text['title']}.** {text['means']}", " ".join(text["do"])]
        rows.append([*(cell.replace("|", "\\|") for cell in cells), str(text["exit"])])
    head = ["code", "meaning", "what to do", "exit code"]
    return f"# Errors\n\n{_ABOUT}\n\n{as_table(head, rows)}\n"
