"""The page of errors, docs/errors.md, from what `goodfence explain` knows."""

from __future__ import annotations

from typing import Any

from goodfence.cli.explain import explanations

_ABOUT = """\
Every error has a code; `goodfence explain GF203` prints the same as this page. In Python each is a class of
`goodfence.errors`, and its `code` says which. No message holds a rating or somebody's id."""


def error_index(errors: dict[str, Any] | None = None) -> str:
    """Return the text of docs/errors.md."""
    parts = ["# Errors", _ABOUT]
    for code, text in (errors or explanations("errors")).items():
        advice = "\n".join(f"* {one}" for one in text["do"])
        parts.append(f"## {code}: {text['title']}\n\n{text['means']}\n\n{advice}")
        parts.append(f"Exit code {text['exit']}.")
    return "\n\n".join(parts) + "\n"
