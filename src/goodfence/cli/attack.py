"""`goodfence attack FILE`: what fake accounts read of some people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from goodfence.cli.attacking import Attacker, as_json, run_attack
from goodfence.cli.grouping import command
from goodfence.cli.limit import check_limit, exit_if_above
from goodfence.cli.options import FailAbove, Out, Running, Seed, Settings, Source
from goodfence.cli.printing import print_json, print_paragraphs
from goodfence.cli.reading import read, say
from goodfence.cli.recipes import build
from goodfence.report.wording import attacked, because, finding, promise, whole

if TYPE_CHECKING:
    from goodfence.attack.report import AttackReport
    from goodfence.cli.recipes import Recipe

_ALL = "all"


@command
def attack(
    source: Source,
    settings: Settings,
    attacker: Attacker,
    running: Running,
    targets: Annotated[
        str, typer.Option(metavar="N|all", help="How many people to attack, drawn by chance.")
    ] = "200",
    seed: Seed = None,
    fail_above: FailAbove = None,
    out: Out = None,
) -> None:
    """Attack a recommender with fake accounts, and say how much they read (exit code 1: too much)."""
    check_limit(fail_above)
    recipe = build(settings, running)
    plan = attacker.attack(recipe)
    ratings = read(source, running)
    n_targets = n_of(targets, ratings.shape[0])
    say(f"attacking {recipe.label}", running)
    report = run_attack(recipe, ratings, plan, targets=n_targets, seed=seed, running=running)
    if out is not None:
        report.save(out)
    if running.json:
        print_json(as_json(report, recipe))
    else:
        print_finding(report, recipe)
        if out is not None:
            print_paragraphs([("Saved", str(out))])
    exit_if_above(fail_above, report, running)


def n_of(targets: str, n_users: int) -> int:
    """Return how many people `--targets` means.

    Examples
    --------
    >>> n_of("all", 943), n_of("20", 943)
    (943, 20)
    """
    from goodfence.errors import require

    number = targets.isascii() and targets.isdecimal() and int(targets) >= 1
    require(number or targets == _ALL, "targets", "a positive integer or 'all'", targets)
    return n_users if targets == _ALL else int(targets)


def print_finding(report: AttackReport, recipe: Recipe) -> None:
    """Print what was read by whom, beside what guessing gives and what is promised."""
    print_paragraphs(
        [
            ("Tried", recipe.label),
            ("Finding", finding(report)),
            ("Leak", because(report)),
            ("Who", whole(report.read_whole)),
            ("Attacked", attacked(report, report.ratings.shape[0])),
            ("Promise", f"{promise(recipe.promised)}. {recipe.promised.reason}"),
        ]
    )
