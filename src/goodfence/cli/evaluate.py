"""`goodfence evaluate FILE`: how far predictions are from held-out ratings, and how good lists are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from goodfence.cli.command import command, flag
from goodfence.cli.options import Method, Running, Source
from goodfence.cli.output import print_json, print_paragraphs
from goodfence.report.wording import liked, of_100

if TYPE_CHECKING:
    from goodfence.evaluation import Scores


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Which ratings are held out, and what is measured besides the error."""

    panel: ClassVar[str] = "Evaluation"
    fraction: float | None = flag(
        "X", "Share of all ratings to hold out, between 0 and 1.", shown="0.2"
    )
    per_user: int | None = flag(
        "N", "How many ratings of each user to hold out, 1 or more, instead of a share of all."
    )
    n: int | None = flag(
        "N",
        "Also score recommended lists of N items, 1 or more: NDCG, recall, precision and others.",
        "--n",
        "-n",
        shown="no lists; of events 10",
    )
    top: int | None = flag("N", "Another name of --n.")


@command("How far predictions are from held-out ratings, and how good lists are.")
def evaluate(source: Source, method: Method, evaluation: Evaluation, running: Running) -> None:
    """Hold ratings or events out, fit on the others, and measure the error of predictions and what lists find."""
    chosen = method.configured(running, rng=running.seed)
    ratings = source.read(running)
    from goodfence.data.splits import holdout
    from goodfence.evaluation import evaluate as score

    held_out: dict[str, Any] = {"fraction": evaluation.fraction, "per_user": evaluation.per_user}
    with running.noting():
        train, test = holdout(ratings, **held_out, rng=running.seed)
    held = "ratings" if ratings.feedback == "explicit" else "events"
    running.say(f"fitting {chosen.label} without the held-out {held}")
    scores = score(chosen.recommender.fit(train), test, n=evaluation.n, top=evaluation.top)
    least = ratings.liked_from
    if running.json:
        made_of = {} if least is None else {"liked_from": least}
        told = {"label": chosen.label, "settings": chosen.settings, "seed": running.seed, **made_of}
        print_json({**told, "protocol": "hold-out", **scores.to_dict()})
        return
    lines = [("Method", chosen.label)]
    if least is not None:
        lines.append(("Events", liked(least)))
    if not math.isnan(scores.coverage):
        lines += [
            ("Error", f"MAE {scores.mae:.4f}   RMSE {scores.rmse:.4f}"),
            ("Coverage", f"{of_100(scores.coverage)} of 100 of the {scores.n:,} held-out ratings"),
        ]
    print_paragraphs([*lines, *_of_lists(scores)])


def _of_lists(scores: Scores) -> list[tuple[str, str]]:
    """Return what is said of lists, if there are any."""
    if scores.top is None or scores.intervals is None:
        return []
    low, high = scores.intervals["ndcg"]
    shown = {"recall": scores.recall, "precision": scores.precision, "hit rate": scores.hit_rate}
    shown |= {"MRR": scores.mrr, "MAP": scores.map}
    figures = "   ".join(f"{name} {value:.4f}" for name, value in shown.items())
    lines = [
        ("Lists", f"of {scores.top}: NDCG {scores.ndcg:.4f} ({low:.4f} to {high:.4f}, 95%)"),
        ("", figures),
    ]
    told = f"{of_100(scores.catalogue_coverage or 0.0)} of 100 items are listed to somebody"
    if scores.mean_popularity is not None:
        told += f"; {of_100(scores.mean_popularity)} of 100 people have what is listed"
    return [*lines, ("Catalogue", told)]
