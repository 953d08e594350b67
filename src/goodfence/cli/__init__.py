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
from goodfence.cli import data
from goodfence.cli.attack import attack
from goodfence.cli.audit import audit
from goodfence.cli.check import check
from goodfence.cli.demo import demo
from goodfence.cli.doctor import doctor
from goodfence.cli.evaluate import evaluate
from goodfence.cli.explain import explain
from goodfence.cli.fit import fit
from goodfence.cli.frontier import frontier
from goodfence.cli.recommend import recommend
from goodfence.cli.reproduce import reproduce
from goodfence.cli.scale import CommandWithScale
from goodfence.cli.usage import Commands

app = typer.Typer(
    name="goodfence",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # drawing boxes costs more time than everything else that --help does
    pretty_exceptions_enable=False,  # it would print local variables, which hold people's ratings
    epilog="An error has a code: goodfence explain GF203 says what it means and what to do.",
)
app.command(short_help="See it on the bundled films: what kNN gives away, what would stop it.")(
    demo
)
app.command(short_help="What is in a file of ratings, or wrong with it.", cls=CommandWithScale)(
    check
)
app.command(short_help="What a recommender on your ratings gives away.", cls=CommandWithScale)(
    audit
)
app.command(short_help="The attack, with every setting of the attacker.", cls=CommandWithScale)(
    attack
)
app.command(short_help="Leak against error, mechanism by mechanism.", cls=CommandWithScale)(
    frontier
)
app.command(short_help="Learn from ratings and save the model.", cls=CommandWithScale)(fit)
app.command(short_help="The best items for one person, from a saved model.")(recommend)
app.command(short_help="How far predictions are from held-out ratings.", cls=CommandWithScale)(
    evaluate
)
app.command(short_help="The paper's figures, and a verdict on every claim.")(reproduce)
app.command(short_help="What a mechanism does, or what an error means.")(explain)
app.add_typer(data.app, short_help="The data sets that have a name: list, fetch.")
app.command(short_help="Versions, threads, caches, folders.")(doctor)


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
