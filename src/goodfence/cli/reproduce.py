"""`goodfence reproduce [FIGURE]`: the paper's figures, and a verdict on every claim."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from goodfence.cli.command import argument, command, flag
from goodfence.cli.options import SeededRunning
from goodfence.cli.output import (
    FOLDER,
    LINE,
    collected_notes,
    out_option,
    print_json,
    print_notes,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from goodfence.papers.reproduction.claims import Claim
    from goodfence.papers.reproduction.figures import Figure, Reproduction

_UNDER = " " * 19
"""What is before a sentence, below the claim that it is about."""
_COLOURS = {"holds": "green", "fails": "red", "reversed": "red", "cannot tell": "yellow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureOptions:
    """Which figure, at what size, on what data."""

    panel: ClassVar[str] = "Experiment"
    figure: str | None = argument(
        "FIGURE",
        "item-movielens, user-movielens, user-douban, attack-beta, attack-k, attack-epsilon or attack-m; "
        "all, with all sixteen claims, if none is named.",
        default=None,
    )
    quick: bool = flag(
        None, "Fewer points, seeds and targets: minutes, not hours.", "--quick", default=False
    )
    data: str | None = flag(
        "NAME|FILE", "Other ratings: a named data set, or a file.", shown="the paper's data"
    )


@command("The paper's figures, and a verdict on every claim.")
def reproduce(
    chosen: FigureOptions,
    running: SeededRunning,
    out: Annotated[
        Path,
        out_option(
            FOLDER,
            of="the folder of tables, charts and manifests; a run that was stopped resumes there",
        ),
    ] = Path("reproduction"),
) -> None:
    """Draw the figures of the paper and judge its claims; a failed claim is a result, not an error."""
    settings: dict[str, Any] = {
        "rng": running.seed,
        "quick": chosen.quick,
        "data": chosen.data,
        "keep": out / "points",
        "threads": running.threads,
    }
    with collected_notes() as notes:
        found = _run(chosen.figure, settings, out)
    if running.json:
        print_json({"out": str(out), **found.to_dict(), "notes": notes})
        return
    print_notes([] if running.quiet else notes)
    _print(found.claims, chosen.figure, out)


def _run(figure: str | None, settings: dict[str, Any], out: Path) -> Figure | Reproduction:
    from goodfence.papers.reproduction.figures import reproduce as reproduce_one
    from goodfence.papers.reproduction.figures import reproduce_all

    found = reproduce_all(**settings) if figure is None else reproduce_one(figure, **settings)
    found.save(out if figure is None else out / figure)
    return found


def _print(claims: Sequence[Claim], figure: str | None, out: Path) -> None:
    about = "every claim of the paper" if figure is None else f"the claims that {figure} can judge"
    typer.echo(f"\nA verdict on {about}\n")
    for claim in claims:
        verdict = typer.style(claim.verdict.ljust(11), fg=_COLOURS[claim.verdict], bold=True)
        typer.echo(f" {claim.label:>3}  {verdict}  {claim.text}")
        needed = f" It would take {claim.needed:,} targets." if claim.needed else ""
        for line in textwrap.wrap(claim.sentence + needed, LINE - len(_UNDER)):
            typer.echo(f"{_UNDER}{typer.style(line, dim=True)}")
    typer.echo(f"\nTables, charts and manifests: {out}")
