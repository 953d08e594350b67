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
from goodfence.cli.alpha import alpha
from goodfence.cli.attack import attack
from goodfence.cli.audit import audit
from goodfence.cli.check import check
from goodfence.cli.choose import choose
from goodfence.cli.command import Commands, register
from goodfence.cli.compare import compare
from goodfence.cli.demo import demo
from goodfence.cli.doctor import doctor
from goodfence.cli.evaluate import evaluate
from goodfence.cli.explain import explain
from goodfence.cli.fit import fit
from goodfence.cli.frontier import frontier
from goodfence.cli.membership import membership
from goodfence.cli.predict import predict
from goodfence.cli.recommend import recommend
from goodfence.cli.related_items import related_items
from goodfence.cli.reproduce import reproduce

app = typer.Typer(
    name="goodfence",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    context_settings={"max_content_width": 100},
    rich_markup_mode=None,  # drawing boxes costs more time than everything else that --help does
    pretty_exceptions_enable=False,  # it would print local variables, which hold users' ratings
    epilog="An error has a code; `goodfence explain GF203` says what to do about it.",
)
for _declared in (
    demo,
    check,
    audit,
    compare,
    attack,
    membership,
    related_items,
    frontier,
    choose,
    fit,
    recommend,
    predict,
    evaluate,
    alpha,
    reproduce,
    explain,
):
    register(app, _declared)
app.add_typer(data.app, short_help="The data sets that have a name: list, fetch, export.")
register(app, doctor)


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
