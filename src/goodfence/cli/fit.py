"""`goodfence fit FILE -o model.gf`: train a recommender, and save it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goodfence.cli.command import command
from goodfence.cli.engine import Engine
from goodfence.cli.options import Method, Running, Source
from goodfence.cli.output import FOLDER, check_out, out_option, print_json, print_paragraphs
from goodfence.errors import SettingError
from goodfence.report.wording import guarantee_cell

if TYPE_CHECKING:
    from goodfence.data.ratings import Ratings
    from goodfence.models.configuration import Configured


@command("Train a recommender on ratings and save it.")
def fit(
    source: Source,
    method: Method,
    engine: Engine,
    running: Running,
    out: Annotated[Path, out_option(FOLDER, of="the folder of the model")],
    without_ratings: Annotated[
        bool,
        typer.Option(
            "--without-ratings",
            help="Private models: save what was released and nothing else, a folder that anybody may hold.",
        ),
    ] = False,
) -> None:
    """Fit a recommender and save it; every random choice is made here, once."""
    check_out(out, FOLDER)
    chosen = method.configured(running, rng=running.seed, public={})
    engine.check(chosen)
    private = _is_private(chosen, without_ratings)
    if private:
        with running.noting():
            public = source.public_items()
        chosen = method.configured(running, rng=running.seed, public=public)
    model = engine.fit(chosen, source, running, on_items=not private)
    model.save(out, **({"ratings": not without_ratings} if private else {}))
    guarantee = model.guarantee()
    data = _told(model.ratings_, private)
    if running.json:
        told = {
            "out": str(out),
            "label": chosen.label,
            "settings": chosen.settings,
            "seed": running.seed,
        }
        print_json({**told, "data": data, "guarantee": asdict(guarantee)})
        return
    trained = (
        f"{data['items']:,} items"
        if private
        else "{users:,} users x {items:,} items, {ratings:,} ratings"
    )
    print_paragraphs(
        [
            ("Model", chosen.label),
            ("Trained", trained.format(**data)),
            ("Guarantee", f"{guarantee_cell(guarantee)}. {guarantee.reason}"),
            ("Saved", f"{out}, {_holder(guarantee.status, without_ratings)}"),
        ]
    )


def _is_private(chosen: Configured, without_ratings: bool) -> bool:
    """Return whether the model is a private one; raise where what is asked needs one."""
    from goodfence.models.private.base import PrivateRecommender

    if isinstance(chosen.recommender, PrivateRecommender):
        return True
    if without_ratings:
        raise SettingError(
            f"without_ratings must be left out with {chosen.label}: it answers from the ratings themselves"
        )
    return False


def _told(ratings: Ratings, private: bool) -> dict[str, Any]:
    """Return what may be printed of the data: of a private model the list of items alone, which is public."""
    n_users, n_items = ratings.shape
    if private:
        return {"items": n_items}
    return {"users": n_users, "items": n_items, "ratings": ratings.n_ratings}


def _holder(status: str, without_ratings: bool) -> str:
    if not without_ratings:
        return "with the ratings that it answers from: keep it as you keep them"
    if status == "none":
        return "without the ratings; whoever knows the seed can take its noise away"
    return "without the ratings: anybody may hold it"
