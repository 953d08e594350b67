"""`goodfence compare OLD NEW`: two audits beside each other, from the JSON that `goodfence audit` wrote."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from goodfence.cli.command import argument, command, panel
from goodfence.cli.options import Output
from goodfence.cli.output import print_json, print_paragraphs, print_table

_COLUMNS = (
    "shares of 1 with 95% intervals: 0.25 is 25 of 100; mae and mae gain are in the unit of the ratings. without: the "
    "target is not in the data. exact and raw: by the answers alone, with no answer counted as nothing recovered."
)


@panel("Audits")
class Audits:
    """Which two audits."""

    old: Path = argument("OLD", "What `goodfence audit -o old.json` wrote.")
    new: Path = argument("NEW", "What a later audit wrote.")


@command("Two audits beside each other: what changed.")
def compare_command(pair: Audits, output: Output) -> None:
    """Compare two audits: their figures with intervals, and the settings in which they differ."""
    from goodfence.report.serialize import compared, different, read_audit

    old, new = read_audit(pair.old), read_audit(pair.new)
    figures = list(compared(old, new))
    settings = list(different(old, new))
    if output.json:
        listed = [{"setting": name, "old": a, "new": b} for name, a, b in settings]
        print_json({"figures": figures, "settings": listed})
        return
    rows = [
        [one["figure"], *(_shown(one[name]) for name in ("old", "new")), one["verdict"]]
        for one in figures
    ]
    print_table(["", pair.old.name, pair.new.name, ""], rows)
    print_paragraphs([("Columns", _COLUMNS)])
    texts = [f"{name}: {_text(a)} -> {_text(b)}" for name, a, b in settings] or ["none"]
    print_paragraphs([("Settings" if at == 0 else "", text) for at, text in enumerate(texts)])


def _shown(estimate: Mapping[str, float]) -> str:
    return f"{estimate['value']:.3f} ({estimate['low']:.3f} to {estimate['high']:.3f})"


def _text(value: Any) -> str:
    return "not given" if value is None else str(value)
