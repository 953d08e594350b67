"""`goodfence demo`: what a common recommender gives away on the bundled films, and what would stop it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goodfence.cli.attacking import Attacker, as_json, run_attack
from goodfence.cli.doctor import compiled_kernels
from goodfence.cli.grouping import command
from goodfence.cli.options import Running, Settings
from goodfence.cli.printing import print_json, print_paragraphs, print_table
from goodfence.cli.reading import say
from goodfence.cli.recipes import SELECTIONS, Recipe, build
from goodfence.report.wording import finding, measured, promise, whole

if TYPE_CHECKING:
    from goodfence.attack.report import AttackReport
    from goodfence.data.ratings import Ratings
    from goodfence.data.summary import Summary
    from goodfence.evaluation.scores import Scores

DATASET = "movietweetings"
_FALLBACK = "item_mean"
_COMPARED = (
    Settings(mechanism="knn", k=50),
    Settings(mechanism="ppns", k=50, beta=7, epsilon=1.0),
    Settings(mechanism="private-means", epsilon=1.0),
)
_REFITTED = 20
"""How many people are attacked where each needs two fits of her own: what fits into a few seconds."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Tried:
    """One recommender: what was read, and how far its predictions are."""

    recipe: Recipe
    report: AttackReport
    scores: Scores


@command
def demo(
    running: Running,
    seed: Annotated[int, typer.Option(help="The same seed gives the same result.")] = 7,
) -> None:
    """Audit kNN on the film ratings that come with goodfence, and show what would stop the leak."""
    say("reading the film ratings that come with goodfence", running)
    from goodfence.data.catalogue import load
    from goodfence.data.summary import summarise

    if compiled_kernels()["compiled"] == 0:
        say("the first time kernels are compiled, which takes about a minute", running)
    films = load(DATASET)
    summary = summarise(films)
    tried = [_try(settings, films, running, seed) for settings in _COMPARED]
    if running.json:
        print_json({"dataset": DATASET, **asdict(summary), "tried": [_as_json(t) for t in tried]})
    else:
        _print(summary, tried)


def _try(settings: Settings, films: Ratings, running: Running, seed: int) -> Tried:
    """Attack a recommender, everybody where that is quick, and score it on held-out ratings."""
    recipe = build(settings, running)
    say(f"attacking {recipe.label}", running)
    at_once = settings.mechanism in SELECTIONS
    attack = Attacker().attack(recipe)
    n_targets = films.shape[0] if at_once else _REFITTED
    report = run_attack(recipe, films, attack, targets=n_targets, seed=seed, running=running)
    answering = replace(settings, fallback=_FALLBACK) if at_once else settings
    return Tried(recipe=recipe, report=report, scores=_scores(answering, films, running, seed))


def _scores(settings: Settings, films: Ratings, running: Running, seed: int) -> Scores:
    from goodfence.data.splits import holdout
    from goodfence.evaluation.holdout_scores import evaluate

    train, test = holdout(films, rng=seed)
    return evaluate(build(settings, running, seed).recommender.fit(train), test)


def _as_json(tried: Tried) -> dict[str, Any]:
    return {**as_json(tried.report, tried.recipe), "scores": asdict(tried.scores)}


def _print(summary: Summary, tried: list[Tried]) -> None:
    _heading("MovieTweetings: film ratings that people posted in public, bundled with goodfence")
    shape = f"{summary.n_users:,} people x {summary.n_items:,} films, {summary.n_ratings:,} ratings"
    print_paragraphs([("Data", f"{shape}, {summary.scale}")])
    common = tried[0]
    _heading('What "people like you also liked" gives away')
    print_paragraphs(
        [
            ("Tried", f"{common.recipe.label}: predict from the 50 people most like you"),
            ("Finding", finding(common.report)),
            ("Who", whole(common.report.read_whole)),
            ("Promise", promise(common.recipe.promised)),
        ]
    )
    _heading("What would stop it")
    print_table(
        ["mechanism", "read of 100", "because of her data", "MAE", "promise"],
        [_row(one) for one in tried]
        + [["guessing", measured(common.report.estimates["guess"]), "", "", ""]],
    )
    typer.echo(
        f"""
  The same attacker each time; in brackets the 95% interval over people. "Because of her data": read with
  her in the data, less what is read without her. Private means: {_REFITTED} people, the others everybody.
  MAE: ratings held out, the film's mean where no neighbour rated it.

Your own ratings
  goodfence check FILE       what is in a file, or wrong with it
  goodfence audit FILE       this, for your ratings
  goodfence frontier FILE    leak against error, many mechanisms"""
    )


def _heading(text: str) -> None:
    typer.echo(f"\n{typer.style(text, bold=True)}\n")


def _row(tried: Tried) -> list[str]:
    estimates = tried.report.estimates
    return [
        tried.recipe.label,
        measured(estimates["recovery"]),
        measured(estimates["advantage"]),
        f"{tried.scores.mae:.2f}",
        promise(tried.recipe.promised),
    ]
