"""`goodfence evaluate FILE`: how far predictions are from ratings that were held out."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from goodfence.cli.grouping import command
from goodfence.cli.options import Running, Seed, Settings, Source
from goodfence.cli.printing import collected_notes, print_json, print_notes, print_paragraphs
from goodfence.cli.reading import read, say
from goodfence.cli.recipes import build
from goodfence.report.wording import of_100

if TYPE_CHECKING:
    from goodfence.cli.recipes import Recipe
    from goodfence.evaluation.scores import Scores


@command
def evaluate(
    source: Source,
    settings: Settings,
    running: Running,
    fraction: Annotated[
        float | None, typer.Option(help="The part of all ratings to hold out; 0.2 if not given.")
    ] = None,
    per_user: Annotated[
        int | None, typer.Option(help="Instead: how many of each person to hold out.")
    ] = None,
    top: Annotated[
        int | None, typer.Option(help="Also score recommended lists of this length.")
    ] = None,
    seed: Seed = None,
) -> None:
    """Hold ratings out, fit on the others, and say how far the predictions are."""
    recipe = build(settings, running, seed)
    ratings = read(source, running)
    from goodfence.data.splits import holdout
    from goodfence.evaluation.holdout_scores import evaluate as score

    with collected_notes() as notes:
        train, test = holdout(ratings, fraction=fraction, per_user=per_user, rng=seed)
    if not running.quiet:
        print_notes(notes)
    say(f"fitting {recipe.label} without the held-out ratings", running)
    scores = score(recipe.recommender.fit(train), test, top=top)
    if running.json:
        told = {"label": recipe.label, "settings": recipe.settings, "seed": seed}
        print_json({**told, "protocol": "hold-out", **asdict(scores)})
    else:
        _print(scores, recipe)


def _print(scores: Scores, recipe: Recipe) -> None:
    lines = [
        ("Tried", recipe.label),
        ("Error", f"MAE {scores.mae:.4f}   RMSE {scores.rmse:.4f}"),
        ("Covered", f"{of_100(scores.coverage)} of 100 of the {scores.n:,} held-out ratings"),
    ]
    if scores.top is not None:
        found = f"NDCG {scores.ndcg:.4f}   recall {scores.recall:.4f}   (lists of {scores.top})"
        lines.append(("Lists", found))
    print_paragraphs(lines)
