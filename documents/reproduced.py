"""What REPRODUCTION.md found, for README.md and for a page of the documentation."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from documents.tables import ROOT, rows_of

_SECTION = re.compile(r"^## (.*?)$", re.MULTILINE)


@cache
def sections() -> dict[str, str]:
    """Return the sections of REPRODUCTION.md by their titles, with charts as a page of docs/ finds them."""
    text = (ROOT / "REPRODUCTION.md").read_text(encoding="utf-8")
    _, *parts = _SECTION.split(text.replace("](docs/reproduction/", "](reproduction/"))
    return {title: body.strip() for title, body in zip(parts[::2], parts[1::2], strict=True)}


def verdicts() -> Counter[str]:
    """Return how many claims got which verdict."""
    return Counter(row["verdict"].strip("*") for row in rows_of(sections()["The verdicts"]))


def claims() -> str:
    """Return the verdicts as a sentence has them: "10 of 18 statements (16 claims, ...) hold, 8 fail"."""
    counts = verdicts()
    labels = [row[""] for row in rows_of(sections()["The verdicts"])]
    n_claims = len({label.rstrip("ab") for label in labels})
    rest = ", ".join(
        f"{count} {'fail' if verdict == 'fails' else verdict}"
        for verdict, count in sorted(counts.items())
        if verdict != "holds"
    )
    parts = f"({n_claims} claims, {len(labels) - n_claims} of them in two parts)"
    return f"{counts['holds']} of {counts.total()} statements {parts} hold, {rest}"


def section(title: str) -> str:
    """Return one section of REPRODUCTION.md."""
    return sections()[title]
