"""`goodfence demo`: what a common recommender gives away on the bundled films, and what would stop it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import typer

from goodfence.cli.audit import finding_as_json
from goodfence.cli.command import command, flag, panel
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
    words_of,
)

if TYPE_CHECKING:
    from goodfence.attack.report import LeakReport
    from goodfence.data.ratings import Ratings, Summary
    from goodfence.evaluation import Scores
    from goodfence.models.method import Configured

DATASET = "movietweetings"
_LIKED = 8
"""From how many points of ten a film counts as liked."""
_AT_ONCE, _REFITTED = 200, 120
"""How many users are attacked, and how many where each takes fits: what takes a quarter of a minute."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DemoRow:
    """One recommender: what was read, and how far its predictions are."""

    chosen: Configured
    report: LeakReport
    scores: Scores


@panel("Demo")
class Shape:
    """What is recommended: predicted ratings, or lists."""

    lists: bool = flag(
        None,
        f"Films rated {_LIKED} or better as events, and lists of ten instead of predicted ratings.",
        "--lists",
        default=False,
    )


@command("What kNN gives away on the bundled films, and what stops it.")
def demo_command(shape: Shape, running: SeededRunning) -> None:
    """Audit kNN on the film ratings that come with goodfence, and show what would stop the leak."""
    running.say("reading the film ratings that come with goodfence")
    from goodfence.data.load import load
    from goodfence.data.ratings import summarise
    from goodfence.models.method import default_methods

    if compiled_kernels()["compiled"] == 0:
        running.say("the first time kernels are compiled, which takes about a minute")
    films = load(DATASET, likes=_LIKED) if shape.lists else load(DATASET)
    summary = summarise(films)
    compared = default_methods("demo", films.feedback)
    tried = [_try(Method(method=line), films, running) for line in compared]
    if running.json:
        print_json({"dataset": DATASET, **asdict(summary), "tried": [_as_json(t) for t in tried]})
    else:
        _print(summary, tried)


def _try(method: Method, films: Ratings, running: SeededRunning) -> DemoRow:
    """Attack a recommender, fewer users where each needs fits, and score it on held-out ratings."""
    from goodfence.attack.attack import Subject
    from goodfence.attack.list_attack import LISTED
    from goodfence.auditing.audit import leak
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
    lists = films.feedback == "implicit"
    answering = (
        Method(method=f"{method.method} fallback=item_mean") if at_once and not lists else method
    )
    fitted = answering.configured(running, rng=running.seed).recommender.fit(train)
    scores = evaluate(fitted, test, n=LISTED) if lists else evaluate(fitted, test)
    return DemoRow(chosen=chosen, report=report, scores=scores)


def _as_json(tried: DemoRow) -> dict[str, Any]:
    return {**finding_as_json(tried.report, tried.chosen), "scores": tried.scores.to_dict()}


def _print(summary: Summary, tried: list[DemoRow]) -> None:
    _heading("MovieTweetings: film ratings that people posted in public, bundled with goodfence")
    common = tried[0]
    words = words_of(common.report)
    shape = f"{summary.n_users:,} people x {summary.n_items:,} films, {summary.n_ratings:,} "
    kind = f"ratings of {_LIKED} or more, as likes" if words.lists else f"ratings, {summary.scale}"
    print_paragraphs([("Data", shape + kind)])
    _heading('What "people like you also liked" gives away')
    print_paragraphs(
        [
            ("Method", f"{common.chosen.label}: {_HOW[words.lists]} the 50 people most like you"),
            ("Verdict", verdict(common.report, common.chosen.label)),
            ("Attacker", f"{who_attacks(common.report)}."),
            ("People", people(common.report)),
            (words.held.capitalize(), recovered(common.report)),
            ("Guarantee", guarantee_cell(common.chosen.guarantee)),
        ]
    )
    _heading("What would stop it")
    print_table(
        [
            *("method", "people fully %", "advantage %", f"{words.measure} %"),
            *("NDCG@10" if words.lists else "MAE", "guarantee"),
        ],
        [_row(one) for one in tried],
    )
    at_once, refitted = (
        f"{one.n_choosing} and {one.n_targets}" for one in (common.report, tried[-1].report)
    )
    about = _ABOUT_LISTS if words.lists else _ABOUT_RATINGS
    typer.echo(about.format(at_once=at_once, refitted=refitted))
    typer.echo(_YOUR_OWN)


_HOW = {False: "predict from", True: "list what is liked by"}
_ABOUT_RATINGS = """
  Each time the strongest of several attackers, chosen on some of the people and shown on others
  ({at_once}, PrivateMeans {refitted}); in brackets the 95% interval over people.
  Advantage: recovered with a person in the data, less without. MAE: ratings held out, the film's
  mean where no neighbour rated it. A proved guarantee is about any number of fakes."""
_ABOUT_LISTS = """
  Each time the strongest of several attackers, chosen on some of the people and shown on others
  ({at_once}, PrivateTopN {refitted}); in brackets the 95% interval over people.
  Precision: listed films that are a person's own. Advantage: with the person in the data, less
  without. NDCG@10: likes held out. A proved guarantee is about any number of fakes."""
_YOUR_OWN = """
Your own ratings, or clicks (--feedback implicit)
  goodfence check FILE       what is in a file, or wrong with it
  goodfence audit FILE       this, for your ratings
  goodfence frontier FILE    leak against error, many methods"""


def _heading(text: str) -> None:
    typer.echo(f"\n{typer.style(text, bold=True)}\n")


def _row(tried: DemoRow) -> list[str]:
    estimates, scores = tried.report.estimates, tried.scores
    quality = f"{scores.mae:.2f}" if scores.ndcg is None else f"{scores.ndcg:.3f}"
    return [
        tried.chosen.label,
        measured(estimates["fully_recovered"]),
        measured(estimates["advantage"]),
        measured(tried.report.found),
        quality,
        guarantee_short(tried.chosen.guarantee),
    ]
