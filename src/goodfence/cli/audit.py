"""`goodfence audit FILE`: what a recommender on these ratings gives away, about everybody."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goodfence.auditing.pace import find_pace
from goodfence.cli.again import command_line
from goodfence.cli.attack import n_of, print_finding
from goodfence.cli.attacking import Attacker, audit_as_json, run_attack
from goodfence.cli.grouping import command
from goodfence.cli.limit import check_limit, exit_if_above
from goodfence.cli.options import FailAbove, Running, Seed, Settings, Source
from goodfence.cli.printing import as_text, print_json, print_paragraphs
from goodfence.cli.reading import fresh_seed, read, say
from goodfence.cli.recipes import build
from goodfence.cli.writing import check_out, is_page, write_whole
from goodfence.report.wording import about

if TYPE_CHECKING:
    from goodfence.attack.attack import Attack
    from goodfence.auditing.report import AuditReport
    from goodfence.cli.recipes import Recipe
    from goodfence.data.ratings import Ratings


@command
def audit(
    source: Source,
    settings: Settings,
    attacker: Attacker,
    running: Running,
    targets: Annotated[
        str | None,
        typer.Option(
            metavar="N|all",
            help="How many people to attack; if not given everybody, or as many as a minute allows.",
        ),
    ] = None,
    seed: Seed = None,
    fail_above: FailAbove = None,
    trials: Annotated[
        int,
        typer.Option(
            metavar="N", help="Also try to break the promise, with N fits on each of two data sets."
        ),
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write the report: .html for people, or .json."),
    ] = None,
) -> None:
    """Say what the recommender gives away about everybody (exit code 1: more than --fail-above)."""
    check_limit(fail_above)
    check_out(out)
    if seed is None and is_page(out):
        seed = fresh_seed()  # a page says how it is made again
    recipe = build(settings, running)
    plan = attacker.attack(recipe)
    ratings = read(source, running)
    say(f"attacking {recipe.label}", running)
    if targets is None:
        n_targets = _affordable(recipe, ratings, plan, seed, running)
    else:
        n_targets = n_of(targets, ratings.shape[0])
    report = _report(recipe, ratings, plan, n_targets, trials, seed, running)
    if out is not None and is_page(out):
        chosen = {
            "targets": targets,
            "seed": seed,
            "fail_above": fail_above,
            "trials": trials or None,
        }
        line = command_line("audit", source, settings, attacker, **chosen, out=out)
        _write_page(report, recipe, plan, Path(source.file).name, line, seed, running, out)
    elif out is not None:
        write_whole(out, as_text(audit_as_json(report, recipe)) + "\n")
    if running.json:
        print_json(audit_as_json(report, recipe))
    else:
        print_finding(report.leakage, recipe)
        print_paragraphs(_tests(report) + ([] if out is None else [("Report", str(out))]))
    exit_if_above(fail_above, report.leakage, running)


def _report(
    recipe: Recipe,
    ratings: Ratings,
    plan: Attack,
    n_targets: int,
    trials: int,
    seed: int | None,
    running: Running,
) -> AuditReport:
    from goodfence.auditing.audit import audit as run

    return run(
        ratings,
        recipe.recommender,
        attack=plan,
        targets=n_targets,
        trials=trials,
        rng=seed,
        threads=running.threads,
        progress=running.progress,
    )


def _write_page(
    report: AuditReport,
    recipe: Recipe,
    plan: Attack,
    data: str,
    line: str,
    seed: int | None,
    running: Running,
    out: Path,
) -> None:
    """Look around the audit, and write all of it as a page."""
    from goodfence.auditing.survey import survey
    from goodfence.report.audit_page import AuditPage

    say("looking around: other attackers, and what would stop them", running)
    threads, progress = running.threads, running.progress
    around = survey(report, recipe.recommender, plan, rng=seed, threads=threads, progress=progress)
    AuditPage(survey=around, label=recipe.label, data=data, command=line).save(out)


def _tests(report: AuditReport) -> list[tuple[str, str]]:
    """Return what was tried against the promise, and what came of it."""
    lines = []
    if report.exhibit is not None:
        lines.append(("Witness", str(report.exhibit)))
    if report.bound is not None:
        lines.append(("Runs", f"{report.summary} {report.bound}; {report.pair}."))
    elif report.guarantee.status == "proved":
        lines.append(("", "This audit did not try to break it: --trials 1000 does."))
    return lines


def _affordable(
    recipe: Recipe, ratings: Ratings, plan: Attack, seed: int | None, running: Running
) -> int:
    """Return how many people are attacked within a minute; say so where these are not all."""
    silent = replace(running, quiet=True)

    def trial(n: int) -> object:
        return run_attack(recipe, ratings, plan, targets=n, seed=seed, running=silent)

    n_users = ratings.shape[0]
    pace = find_pace(trial, n_users)
    if pace.n_targets < n_users:
        say(
            f"note: everybody would take about {about(pace.seconds)}, so {pace.n_targets:,} of {n_users:,} people "
            "are attacked, drawn by chance; --targets all attacks everybody",
            running,
        )
    return pace.n_targets
