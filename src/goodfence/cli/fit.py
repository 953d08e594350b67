"""`goodfence fit FILE -o model.gf`: learn from ratings, and keep the model."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from goodfence.cli.engine import Engine
from goodfence.cli.grouping import command
from goodfence.cli.options import Running, Seed, Settings, Source
from goodfence.cli.printing import print_json, print_paragraphs
from goodfence.cli.reading import read, say
from goodfence.cli.recipes import build
from goodfence.report.wording import promise


@command
def fit(
    source: Source,
    settings: Settings,
    engine: Engine,
    running: Running,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the model.")],
    seed: Seed = None,
) -> None:
    """Fit a recommender and save it; every random choice is made here, once."""
    recipe = build(settings, running, seed)
    engine.check(recipe)
    ratings = read(source, running)
    say(f"fitting {recipe.label}", running)
    model = engine.fit(recipe, ratings, running)
    model.save(out)
    guarantee = model.guarantee()
    n_users, n_items = ratings.shape
    if running.json:
        told = {"out": str(out), "label": recipe.label, "settings": recipe.settings, "seed": seed}
        data = {"users": n_users, "items": n_items, "ratings": ratings.n_ratings}
        print_json({**told, "data": data, "guarantee": asdict(guarantee)})
        return
    print_paragraphs(
        [
            ("Model", recipe.label),
            ("Learnt", f"{n_users:,} people x {n_items:,} items, {ratings.n_ratings:,} ratings"),
            ("Promise", f"{promise(guarantee)}. {guarantee.reason}"),
            ("Saved", f"{out}, with the ratings that it answers from: keep it as you keep them"),
        ]
    )
