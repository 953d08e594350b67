"""`goodfence evaluate FILE`: the accuracy of a recommender on held-out ratings or events."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from goodfence.cli.command import command, flag, panel
from goodfence.cli.fit import Engine
from goodfence.cli.options import Method, Running, Source
from goodfence.errors import SettingError
from goodfence.report.wording import liked, of_100

if TYPE_CHECKING:
    from goodfence.evaluation import Scores
    from goodfence.models.method import Configured


@panel("Evaluation")
class Evaluation:
    """Which ratings are held out, and the length of lists."""

    fraction: float | None = flag("X", "Share of all ratings to hold out.", shown="0.2")
    per_user: int | None = flag("N", "Ratings of each user to hold out instead.")
    by: str = flag("chance|time", "Hold out by chance, or the last ones of each user.", default="chance")
    n: int | None = flag("N", "Also score lists of N items.", "--n", "-n", shown="events: 10")


@command("Measure the accuracy of a recommender.")
def evaluate_command(source: Source, method: Method, evaluation: Evaluation, engine: Engine, running: Running) -> None:
    """Hold out ratings or events, fit on the rest, and measure the error of predictions and the quality of lists."""
    chosen = method.configured(running, rng=running.seed)
    engine.check(chosen)
    held_out: dict[str, Any] = {name: getattr(evaluation, name) for name in ("fraction", "per_user", "by")}
    if engine.engine == "spark":
        _evaluate_there(source, chosen, (held_out, evaluation.n), engine, running)
        return
    ratings = source.load(running)
    from goodfence.data.splits import holdout
    from goodfence.evaluation import evaluate

    with running.noting():
        train, test = holdout(ratings, **held_out, rng=running.seed)
    held = "ratings" if ratings.feedback == "explicit" else "events"
    running.say(f"fitting {chosen.label} without held-out {held}")
    scores = evaluate(chosen.recommender.fit(train), test, n=evaluation.n)
    least = ratings.liked_from
    made_of = {} if least is None else {"liked_from": least}
    told = {**chosen.stated(running.seed), **made_of, "protocol": "hold-out", **scores.to_dict()}
    running.tell(told, _lines(chosen.label, least, scores))


def _evaluate_there(
    source: Source, chosen: Configured, asked: tuple[dict[str, Any], int | None], engine: Engine, running: Running
) -> None:
    """Fit on Spark to a part of each block of users, and score on the rest."""
    from goodfence.evaluation import evaluate_there
    from goodfence.rng import fresh_seed

    if not hasattr(chosen.recommender, "fit_profiles"):
        raise SettingError("engine spark evaluates the private models only")
    held_out, n = asked
    seed = fresh_seed() if running.seed is None else running.seed
    with engine.opened(source.file, source.options(), running) as (located, config), running.noting():
        how: dict[str, Any] = {"held_out": held_out, "n": n, "rng": seed, "completed": located.completed}
        scores = evaluate_there(chosen.recommender, located.path, config, **how)
    made_of = {} if source.likes is None else {"liked_from": source.likes}
    told = {**chosen.stated(running.seed), **made_of, "protocol": "hold-out by block", **scores.to_dict()}
    running.tell(told, _lines(chosen.label, source.likes, scores))


def _lines(label: str, least: float | None, scores: Scores) -> list[tuple[str, str]]:
    lines = [("Method", label)]
    if least is not None:
        lines.append(("Events", liked(least)))
    if not math.isnan(scores.coverage):
        lines += [
            ("Error", f"MAE {scores.mae:.4f}   RMSE {scores.rmse:.4f}"),
            ("Coverage", f"{of_100(scores.coverage)}% of {scores.n:,} held-out ratings"),
        ]
    if scores.top is None or scores.intervals is None:
        return lines
    low, high = scores.intervals["ndcg"]
    shown = {"recall": scores.recall, "precision": scores.precision, "hit rate": scores.hit_rate}
    shown |= {"MRR": scores.mrr, "MAP": scores.map}
    figures = "   ".join(f"{name} {value:.4f}" for name, value in shown.items())
    lines += [("Lists", f"of {scores.top}: NDCG {scores.ndcg:.4f} ({low:.4f} to {high:.4f}, 95%)"), ("", figures)]
    told = f"{of_100(scores.catalogue_coverage or 0.0)}% of items are on some list"
    if scores.mean_popularity is not None:
        told += f"; {of_100(scores.mean_popularity)}% of users have the average listed item"
    return [*lines, ("Catalogue", told)]
