"""`goodfence demo`: what a common recommender gives away on the bundled films, and what would stop it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from goodfence.cli.attack import as_json
from goodfence.cli.command import command
from goodfence.cli.doctor import compiled_kernels
from goodfence.cli.options import Method, SeededRunning
from goodfence.cli.output import print_json, print_paragraphs, print_table
from goodfence.report.wording import (
    guarantee_cell,
    guarantee_short,
    measured,
    people,
    recovered,
    verdict,
    who_attacks,
)

if TYPE_CHECKING:
    from goodfence.attack.report import LeakReport
    from goodfence.data.ratings import Ratings, Summary
    from goodfence.evaluation import Scores
    from goodfence.models.configuration import Configured

DATASET = "movietweetings"
_FALLBACK = "item_mean"
_COMPARED = (
    Method(mechanism="knn", k=50),
    Method(mechanism="ppns", k=50, beta=7, epsilon=1.0),
    Method(mechanism="private-means", epsilon=1.0),
)
_AT_ONCE, _REFITTED = 200, 120
"""How many users are attacked, and how many where each takes fits: what takes a quarter of a minute."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Shown:
    """One recommender: what was read, and how far its predictions are."""

    chosen: Configured
    report: LeakReport
    scores: Scores


@command("What kNN gives away on the bundled films, and what stops it.")
def demo(running: SeededRunning) -> None:
    """Audit kNN on the film ratings that come with goodfence, and show what would stop the leak."""
    running.say("reading the film ratings that come with goodfence")
    from goodfence.data.load import load
    from goodfence.data.ratings import summarise

    if compiled_kernels()["compiled"] == 0:
        running.say("the first time kernels are compiled, which takes about a minute")
    films = load(DATASET)
    summary = summarise(films)
    tried = [_try(method, films, running) for method in _COMPARED]
    if running.json:
        print_json({"dataset": DATASET, **asdict(summary), "tried": [_as_json(t) for t in tried]})
    else:
        _print(summary, tried)


def _try(method: Method, films: Ratings, running: SeededRunning) -> Shown:
    """Attack a recommender, fewer users where each needs fits, and score it on held-out ratings."""
    from goodfence.attack.attack import Subject
    from goodfence.audit.audit import leak
    from goodfence.data.splits import holdout
    from goodfence.evaluation import evaluate
    from goodfence.models.neighbour_cf import NeighbourCF

    chosen = method.configured(running)
    running.say(f"attacking {chosen.label}")
    at_once = isinstance(chosen.recommender, NeighbourCF)
    report = leak(
        Subject(films, chosen.recommender, threads=running.threads),
        targets=_AT_ONCE if at_once else _REFITTED,
        rng=running.seed,
        progress=running.progress,
    )
    train, test = holdout(films, rng=running.seed)
    answering = replace(method, fallback=_FALLBACK) if at_once else method
    fitted = answering.configured(running, rng=running.seed).recommender.fit(train)
    return Shown(chosen=chosen, report=report, scores=evaluate(fitted, test))


def _as_json(tried: Shown) -> dict[str, Any]:
    return {**as_json(tried.report, tried.chosen), "scores": tried.scores.to_dict()}


def _print(summary: Summary, tried: list[Shown]) -> None:
    _heading("MovieTweetings: film ratings that people posted in public, bundled with goodfence")
    shape = f"{summary.n_users:,} people x {summary.n_items:,} films, {summary.n_ratings:,} ratings"
    print_paragraphs([("Data", f"{shape}, {summary.scale}")])
    common = tried[0]
    _heading('What "people like you also liked" gives away')
    print_paragraphs(
        [
            ("Method", f"{common.chosen.label}: predict from the 50 people most like you"),
            ("Verdict", verdict(common.report, common.chosen.label)),
            ("Attacker", f"{who_attacks(common.report)}."),
            ("People", people(common.report)),
            ("Ratings", recovered(common.report)),
            ("Guarantee", guarantee_cell(common.chosen.guarantee)),
        ]
    )
    _heading("What would stop it")
    print_table(
        ["method", "people fully %", "advantage %", "recovery %", "MAE", "guarantee"],
        [_row(one) for one in tried],
    )
    at_once, refitted = (
        f"{one.n_choosing} and {one.n_targets}" for one in (common.report, tried[-1].report)
    )
    typer.echo(
        f"""
  Each time the strongest of several attackers, chosen on some of the people and shown on others
  ({at_once}, PrivateMeans {refitted}); in brackets the 95% interval over people.
  Advantage: recovered with a person in the data, less without. MAE: ratings held out, the film's
  mean where no neighbour rated it. A proved guarantee is about any number of fakes.

Your own ratings
  goodfence check FILE       what is in a file, or wrong with it
  goodfence audit FILE       this, for your ratings
  goodfence frontier FILE    leak against error, many methods"""
    )


def _heading(text: str) -> None:
    typer.echo(f"\n{typer.style(text, bold=True)}\n")


def _row(tried: Shown) -> list[str]:
    estimates = tried.report.estimates
    return [
        tried.chosen.label,
        measured(estimates["fully_recovered"]),
        measured(estimates["advantage"]),
        measured(estimates["recovery"]),
        f"{tried.scores.mae:.2f}",
        guarantee_short(tried.chosen.guarantee),
    ]
