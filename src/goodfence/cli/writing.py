"""Where an audit is written to: a JSON file here, an HTML report by `goodfence.report`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from goodfence.cli.attacking import audit_as_json
from goodfence.cli.printing import as_text
from goodfence.errors import FileProblem, SettingError

if TYPE_CHECKING:
    from goodfence.auditing.report import AuditReport
    from goodfence.cli.recipes import Recipe

Writer: TypeAlias = "Callable[[AuditReport, Recipe, Path], None]"


def find_writer(out: Path) -> Writer:
    """Return what writes a report to a file of this name; asked before anything long begins."""
    writers: dict[str, Writer] = {".json": write_json}
    # The HTML report hooks in here: writers[".html"] = a function of the same three arguments.
    ending = out.suffix.lower()
    if ending not in writers:
        raise SettingError(f"out must end in {' or '.join(writers)}, got {ending or 'no ending'}")
    if not out.parent.is_dir():
        raise FileProblem("out must be in a folder that is there")
    return writers[ending]


def write_json(report: AuditReport, recipe: Recipe, out: Path) -> None:
    """Write the report as JSON."""
    write_whole(out, as_text(audit_as_json(report, recipe)) + "\n")


def write_whole(out: Path, text: str) -> None:
    """Write a file whole or not at all."""
    from goodfence.data.whole import written_whole

    try:
        with written_whole(out) as file:
            file.write(text.encode())
    except OSError:
        raise FileProblem("out must be a file that can be written") from None
