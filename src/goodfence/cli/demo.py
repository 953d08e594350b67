"""`goodfence demo`: what kNN leaks on the bundled film ratings, and what stops the leak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from goodfence.cli.audit import finding_as_json
from goodfence.cli.command import command
from goodfence.cli.doctor import compiled_kernels
from goodfence.cli.options import Method, SeededRunning
from goodfence.cli.output import print_paragraphs, print_table
from goodfence.report import wording

if TYPE_CHECKING:
    from goodfence.attack.report import LeakReport
    from goodfence.data.ratings import Ratings
    from goodfence.evaluation import Scores
    from goodfence.models.method import Configured

    Tried = tuple[Configured, LeakReport, Scores]

DATASET = "movietweetings"
_LIKED = 8  # the lowest rating that counts as a like
_AT_ONCE, _REFITTED = 200, 60
"""How many users are attacked, and how many where each needs two fits, so that it takes seconds."""
_LISTS = typer.Option(
    "--lists", rich_help_panel="Demo", help=f"Recommend lists of films; ratings of {_LIKED} or more are likes."
)
_HOW = {False: "predict from", True: "list items liked by"}
_ABOUT = """
  Each user is judged by the attacker that is strongest on others ({at_once} users; {private} {refitted});
  brackets: 95% interval over users.
  {measures}
  A proved guarantee holds no matter how many fake accounts are used.

Your own ratings, or clicks (--feedback implicit)
  goodfence check FILE       what is in a file, or wrong with it
  goodfence audit FILE       this audit, for your ratings
  goodfence frontier FILE    leak and error of many recommenders"""
_MEASURES = {
    False: "Advantage: recovery with the user in the data, minus without. MAE: on held-out ratings.",
    True: "Precision: listed films that the user likes. Advantage: with the user in the data, minus\n"
    "  without. NDCG@10: on held-out likes.",
}


@command("Show what kNN leaks on bundled film ratings, and what stops it.")
def demo_command(running: SeededRunning, lists: Annotated[bool, _LISTS] = False) -> None:
    """Audit kNN on the film ratings that come with goodfence, and show what stops the leak."""
    running.say("reading the film ratings that come with goodfence")
    from goodfence.data.load import load
    from goodfence.data.problems import summarise
    from goodfence.models.method import default_methods

    if compiled_kernels()["compiled"] == 0:
        running.say("compiling kernels; this takes about a minute, once")
    films = load(DATASET, likes=_LIKED if lists else None)
    tried = [_tried(line, films, running) for line in default_methods("demo", films.feedback)]
    told: dict[str, Any] = {"dataset": DATASET, **summarise(films)}
    told["tried"] = [
        {**finding_as_json(report, chosen), "scores": scores.to_dict()} for chosen, report, scores in tried
    ]
    running.tell(told, lambda: _print(films, tried))


def _tried(line: str, films: Ratings, running: SeededRunning) -> Tried:
    """Attack a recommender, fewer users where each needs fits, and score it on held-out ratings."""
    from goodfence.attack.attack import Subject
    from goodfence.attack.list_attack import LISTED
    from goodfence.attack.strongest import strongest
    from goodfence.data.splits import holdout
    from goodfence.evaluation import evaluate

    chosen = Method(method=line).configured(running)
    running.say(f"attacking {chosen.label}")
    subject, lists = Subject(films, chosen.recommender), films.feedback == "implicit"
    at_once = not subject.traits.needs_refits
    n_targets = _AT_ONCE if at_once else _REFITTED
    report = strongest(subject, targets=n_targets, **running.how)
    train, test = holdout(films, rng=running.seed)
    answering = Method(method=f"{line} fallback=item_mean" if at_once and not lists else line)
    fitted = answering.configured(running, rng=running.seed).recommender.fit(train)
    return chosen, report, evaluate(fitted, test, n=LISTED if lists else None)


def _print(films: Ratings, tried: list[Tried]) -> None:
    _heading("MovieTweetings: film ratings that people posted in public, bundled with goodfence")
    chosen, report, _ = tried[0]
    words = wording.words_of(report)
    shape = "{:,} users x {:,} films, {:,} ".format(*films.shape, films.n_ratings)
    kind = f"ratings of {_LIKED} or more, as likes" if words.lists else f"ratings, {films.scale}"
    print_paragraphs([("Data", shape + kind)])
    _heading('What "people like you also liked" leaks')
    print_paragraphs(
        [
            ("Method", f"{chosen.label}: {_HOW[words.lists]} the 50 users most similar to you"),
            ("Verdict", wording.verdict(report, chosen.label)),
            ("Attacker", f"{wording.who_attacks(report)}."),
            ("Users", wording.people(report)),
            (words.held.capitalize(), wording.recovered(report)),
            ("Guarantee", wording.guarantee_cell(chosen.guarantee)),
        ]
    )
    _heading("What stops it")
    head = ["method", "fully recovered %", "advantage %", f"{words.measure} %"]
    quality = "NDCG@10" if words.lists else "MAE"
    print_table([*head, quality, "guarantee"], [_row(*one) for one in tried])
    private, last, _ = tried[-1]
    numbers: dict[str, str] = {"private": private.label.split()[0], "measures": _MEASURES[words.lists]}
    for name, one in (("at_once", report), ("refitted", last)):
        numbers[name] = f"{one.n_targets}"
    typer.echo(_ABOUT.format(**numbers))


def _heading(text: str) -> None:
    typer.echo(f"\n{typer.style(text, bold=True)}\n")


def _row(chosen: Configured, report: LeakReport, scores: Scores) -> list[str]:
    shares = (report.estimates["fully_recovered"], report.estimates["advantage"], report.found)
    quality = f"{scores.mae:.2f}" if scores.ndcg is None else f"{scores.ndcg:.3f}"
    guarantee = wording.guarantee_short(chosen.guarantee)
    return [chosen.label, *map(wording.measured, shares), quality, guarantee]
