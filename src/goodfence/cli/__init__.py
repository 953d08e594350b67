"""The command line: it parses, calls and prints.

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 found what `--fail-above` forbids, 2 a
setting or the usage, 3 the data, 4 an optional part is missing, 70 a fault of goodfence, 130 interrupted.

Nothing heavy is imported before a command runs, so that `goodfence --help` answers at once.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from goodfence import __version__
from goodfence.cli import data, ledger, paper
from goodfence.cli.audit import audit_command
from goodfence.cli.check import check_command
from goodfence.cli.command import Commands, add_commands
from goodfence.cli.compare import compare_command
from goodfence.cli.demo import demo_command
from goodfence.cli.doctor import doctor_command
from goodfence.cli.evaluate import evaluate_command
from goodfence.cli.explain import explain_command
from goodfence.cli.fit import fit_command
from goodfence.cli.frontier import frontier_command
from goodfence.cli.recommend import recommend_command
from goodfence.cli.serve import promise, serve_command

app = typer.Typer(
    name="goodfence",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    context_settings={"max_content_width": 100},
    rich_markup_mode=None,  # drawing boxes costs more time than everything else that --help does
    pretty_exceptions_enable=False,  # it would print local variables, which hold users' ratings
    epilog="An error has a code; `goodfence explain GF203` says what to do.",
)
add_commands(app, demo_command, check_command, audit_command, frontier_command, fit_command)
add_commands(app, recommend_command, evaluate_command, compare_command, serve_command)
app.add_typer(promise, short_help="Check what a service promises.")
app.add_typer(data.app, short_help="List, fetch or export the data sets that have a name.")
add_commands(app, explain_command, doctor_command)
app.add_typer(ledger.app, short_help="Show, check, restore or export a privacy ledger.")
app.add_typer(paper.app, short_help="Reproduce the paper: figures, predictions, metrics.")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"goodfence {__version__}")
        raise typer.Exit


_VERSION = typer.Option("--version", callback=_print_version, is_eager=True, help="Show version.")


@app.callback()
def _options(version: Annotated[bool, _VERSION] = False) -> None:
    """Measure how much user data a recommender leaks, and train one that provably does not."""


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # a terminal that lacks a letter gets a question mark
            reconfigure(errors="replace")
    app()
