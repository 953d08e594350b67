"""`goodfence evaluate FILE`: how far predictions are from ratings that were held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from goodfence.cli.command import command, flag
from goodfence.cli.options import Method, Running, Source
from goodfence.cli.output import print_json, print_paragraphs
from goodfence.report.wording import of_100


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
    top: int | None = flag(
        "N", "Also score recommended lists of N items by NDCG and recall, 1 or more."
    )


@command("How far predictions are from held-out ratings.")
def evaluate(source: Source, method: Method, evaluation: Evaluation, running: Running) -> None:
    """Hold ratings out, fit on the others, and measure the error of the predictions."""
    chosen = method.configured(running, rng=running.seed)
    ratings = source.read(running)
    from goodfence.data.splits import holdout
    from goodfence.evaluation import evaluate as score

    held_out: dict[str, Any] = {"fraction": evaluation.fraction, "per_user": evaluation.per_user}
    with running.noting():
        train, test = holdout(ratings, **held_out, rng=running.seed)
    running.say(f"fitting {chosen.label} without the held-out ratings")
    scores = score(chosen.recommender.fit(train), test, top=evaluation.top)
    if running.json:
        told = {"label": chosen.label, "settings": chosen.settings, "seed": running.seed}
        print_json({**told, "protocol": "hold-out", **scores.to_dict()})
        return
    lines = [
        ("Method", chosen.label),
        ("Error", f"MAE {scores.mae:.4f}   RMSE {scores.rmse:.4f}"),
        ("Coverage", f"{of_100(scores.coverage)} of 100 of the {scores.n:,} held-out ratings"),
    ]
    if scores.top is not None:
        found = f"NDCG {scores.ndcg:.4f}   recall {scores.recall:.4f}   (lists of {scores.top})"
        lines.append(("Lists", found))
    print_paragraphs(lines)
