"""`goodfence compare OLD NEW`: two audits side by side, from the JSON that `goodfence audit` wrote."""

from __future__ import annotations

from pathlib import Path

from goodfence.cli.command import argument, command, panel
from goodfence.cli.options import Output
from goodfence.cli.output import print_paragraphs, print_table

_COLUMNS = (
    "shares with 95% intervals: 0.25 is 25 of 100; mae and mae gain are in the unit of the ratings. without: the "
    "target is not in the data. exact and raw: from the answers alone; a missing answer recovers nothing."
)


@panel("Audits")
class Audits:
    """Which two audits."""

    old: Path = argument("OLD", "JSON file of `goodfence audit -o old.json`.")
    new: Path = argument("NEW", "JSON file of a later audit.")


@command("Compare two audits.")
def compare_command(pair: Audits, output: Output) -> None:
    """Compare two audits: their figures with intervals, and the settings in which they differ."""
    from goodfence.report.serialize import compared, different, read_audit

    old, new = read_audit(pair.old), read_audit(pair.new)
    figures, settings = list(compared(old, new)), list(different(old, new))

    def show() -> None:
        rows = [
            [one["figure"], _shown(one["old"]), _shown(one["new"]), one["verdict"]]
            for one in figures
        ]
        print_table(["", pair.old.name, pair.new.name, ""], rows)
        shown = [
            (name, *("not given" if x is None else x for x in both)) for name, *both in settings
        ]
        texts = ["{}: {} -> {}".format(*one) for one in shown] or ["none"]
        changed = [("" if at else "Settings", text) for at, text in enumerate(texts)]
        print_paragraphs([("Columns", _COLUMNS), *changed])

    listed = [{"setting": name, "old": a, "new": b} for name, a, b in settings]
    output.tell({"figures": figures, "settings": listed}, show)


def _shown(estimate: dict[str, float]) -> str:
    return "{value:.3f} ({low:.3f} to {high:.3f})".format(**estimate)
