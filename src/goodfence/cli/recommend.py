"""`goodfence recommend MODEL USER`: what one person may like, best first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goodfence.cli.grouping import command
from goodfence.cli.options import Output
from goodfence.cli.printing import print_json, print_table

if TYPE_CHECKING:
    from goodfence.data.ratings import Id, Ratings


@command
def recommend(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A folder that `goodfence fit` wrote.")
    ],
    user: Annotated[
        str, typer.Argument(metavar="USER", help="A person of the ratings, by her id.")
    ],
    output: Output,
    n: Annotated[int, typer.Option("--n", "-n", help="How many items.")] = 10,
) -> None:
    """Print the best items that somebody has not rated, with the predicted ratings."""
    from goodfence.models.loading import load_model

    fitted: Any = load_model(model)
    ratings: Ratings = fitted.ratings_
    found = fitted.recommend(_id_of(user, ratings), n)
    pairs = list(zip(found.items.tolist(), found.scores.tolist(), strict=True))
    if output.json:
        listed = [{"item": i, "score": s, "title": ratings.title(i)} for i, s in pairs]
        print_json({"items": listed})
        return
    titles = ratings.titles
    rows = [
        [f"{place}", f"{score:.2f}", str(item), *([titles.get(item, "")] if titles else [])]
        for place, (item, score) in enumerate(pairs, start=1)
    ]
    print_table(["", "score", "item", *(["title"] if titles else [])], rows)


def _id_of(text: str, ratings: Ratings) -> Id:
    """Return the id that is meant: a number where the ratings have numbers."""
    numbers = ratings.users.dtype.kind in "iu"
    digits = text.removeprefix("-")
    return int(text) if numbers and digits.isascii() and digits.isdecimal() else text
