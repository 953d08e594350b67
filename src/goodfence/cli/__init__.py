"""The command line: it parses, calls and prints.

Results go to stdout, everything else to stderr. Exit codes: 0 done, 2 a setting or the usage, 3
the data, 4 an optional part is missing, 70 a fault of goodfence, 130 interrupted.

Nothing heavy is imported before a command runs, so that `goodfence --help` answers at once.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from goodfence import __version__
from goodfence.cli.check import check
from goodfence.cli.demo import demo
from goodfence.cli.reproduce import reproduce
from goodfence.cli.scale import CommandWithScale

app = typer.Typer(
    name="goodfence",
    help="Neighbourhood-based recommendation that shows what it leaks, and can stop it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # it would print local variables, which hold people's ratings
)
app.command(cls=CommandWithScale)(check)
app.command()(demo)
app.command()(reproduce)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"goodfence {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Neighbourhood-based recommendation that shows what it leaks, and can stop it."""


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if (
            reconfigure is not None
        ):  # a terminal that lacks a letter gets a question mark, not a fault
            reconfigure(errors="replace")
    app()
