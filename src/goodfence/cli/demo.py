"""`goodfence demo`: what the bundled ratings are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from goodfence.cli.failures import failing_plainly
from goodfence.cli.printing import print_json, print_lines, printable

if TYPE_CHECKING:
    from goodfence.data.summary import Summary

DATASET = "movietweetings"


def demo(
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Load the ratings that come with goodfence and print what they are."""
    with failing_plainly(as_json=json):
        from dataclasses import asdict

        from goodfence.data.catalogue import load
        from goodfence.data.summary import summarise

        summary = summarise(load(DATASET))
        if json:
            print_json({"dataset": DATASET, **asdict(summary)})
        else:
            _print(summary)


def _print(summary: Summary) -> None:
    typer.echo(
        "\nMovieTweetings: film ratings that people posted in public, bundled with goodfence\n"
    )
    lower, middle, upper = summary.per_user
    print_lines(
        [
            ("Shape", f"{summary.n_users:,} people x {summary.n_items:,} films"),
            ("Ratings", f"{summary.n_ratings:,}, {summary.density:.1%} of all pairs"),
            ("Scale", summary.scale),
            ("Each", f"half of the people gave {lower:g} to {upper:g}, the middle one {middle:g}"),
        ]
    )
    typer.echo("\n  Rated most")
    for title, count in summary.most_rated:
        typer.echo(f"  {count:>7,}  {printable(title)}")
    typer.echo("\nYour own ratings: goodfence check FILE")
