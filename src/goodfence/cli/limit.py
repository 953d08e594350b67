"""`--fail-above N`: exit code 1 where more than N of 100 hidden ratings are read exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from goodfence.cli.reading import say
from goodfence.errors import require

if TYPE_CHECKING:
    from goodfence.attack.report import AttackReport
    from goodfence.cli.options import Running

FOUND = 1


def check_limit(fail_above: float | None) -> None:
    """Raise before anything long begins unless the limit can be one."""
    possible = fail_above is None or 0 <= fail_above <= 100
    require(possible, "fail_above", "between 0 and 100", fail_above)


def exit_if_above(fail_above: float | None, report: AttackReport, running: Running) -> None:
    """Exit with 1 where the attack read more than is allowed."""
    if fail_above is None or 100 * report.recovery <= fail_above:
        return
    say(f"more than {fail_above:g} of 100 hidden ratings were read exactly (--fail-above)", running)
    raise typer.Exit(FOUND)
