"""`goodfence reproduce [FIGURE]`: the paper's figures again, and a verdict on every claim."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goodfence.cli.failures import failing_plainly
from goodfence.cli.printing import collected_notes, print_json, print_notes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from goodfence.experiments.claims.verdict import Claim

_COLOURS = {"holds": "green", "fails": "red", "reversed": "red", "cannot tell": "yellow"}


def reproduce(
    figure: Annotated[
        str | None,
        typer.Argument(
            metavar="[FIGURE]",
            help="item-movielens, user-movielens, user-douban, attack-beta, attack-k, attack-epsilon or attack-m; "
            "all, with all fourteen claims, if none is named.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer points, seeds and targets.")
    ] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same tables.")] = 7,
    data: Annotated[
        str | None,
        typer.Option(help="A catalogue name or a file to use instead of the paper's data."),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(help="The folder for the results; a run that was stopped goes on there."),
    ] = Path("reproduction"),
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.md",
            help="Also compare readings and data sets, and write a report; charts go to docs/reproduction beside it.",
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="How many threads; as many as cores if not given.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Draw the figures of the paper again and judge its claims; a failed claim is a result, not an error."""
    with failing_plainly(as_json=json):
        from goodfence.errors import SettingError

        if report is not None and (figure is not None or data is not None):
            raise SettingError("report must be left out for a single figure, or for other data")
        settings: dict[str, Any] = {
            "rng": seed,
            "quick": quick,
            "data": data,
            "keep": out / "points",
            "threads": threads,
        }
        with collected_notes() as notes:
            claims, manifest = _run(figure, settings, out, report)
        if json:
            told = {"out": str(out), "claims": [claim.as_json() for claim in claims]}
            print_json({**told, "manifest": manifest, "notes": notes})
        else:
            print_notes(notes)
            _print(claims, figure, out)


def _run(
    figure: str | None, settings: dict[str, Any], out: Path, report: Path | None
) -> tuple[Sequence[Claim], Any]:
    from goodfence.experiments.reproduce import reproduce as one
    from goodfence.experiments.reproduce import reproduce_all

    if figure is not None:
        drawn = one(figure, **settings)
        drawn.save(out / figure)
        return drawn.claims, drawn.manifest
    if report is not None:
        from goodfence.experiments.document import require_data, write_report

        require_data()  # before the long run, not after it
    whole = reproduce_all(**settings)
    whole.save(out)
    if report is not None:
        write_report(whole, report)
    return whole.claims, whole.manifest


def _print(claims: Sequence[Claim], figure: str | None, out: Path) -> None:
    about = "every claim of the paper" if figure is None else f"the claims that {figure} can judge"
    typer.echo(f"\nA verdict on {about}\n")
    for claim in claims:
        verdict = typer.style(claim.verdict.ljust(11), fg=_COLOURS[claim.verdict], bold=True)
        typer.echo(f"  {claim.number:>2}  {verdict}  {claim.text}")
        needed = f" It would take {claim.needed:,} targets." if claim.needed else ""
        typer.echo(f"      {'':11}  {typer.style(claim.sentence + needed, dim=True)}")
    typer.echo(f"\nTables, charts and manifests: {out}")
