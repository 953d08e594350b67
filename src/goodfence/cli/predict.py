"""`goodfence predict FILE --user U --item I`: Algorithm 1 of the paper, one prediction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from goodfence.cli.command import command, flag
from goodfence.cli.options import Method, Running, Source
from goodfence.cli.output import print_json, print_paragraphs, print_table
from goodfence.errors import SettingError

if TYPE_CHECKING:
    import numpy.typing as npt

    from goodfence.data.ratings import Id


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedSource(Source):
    """The ratings, where `--user` and `--item` say who is asked about and not which columns."""

    panel: ClassVar[str] = "Ratings"
    user: str | None = flag(
        "COLUMN",
        "Column of the user ids: `--user` of the other commands.",
        "--user-column",
        shown="found by its name",
    )
    item: str | None = flag("COLUMN", "Column of the item ids, likewise.", "--item-column")


@dataclass(frozen=True, slots=True, kw_only=True)
class OnePrediction:
    """Whose rating of what."""

    panel: ClassVar[str] = "Prediction"
    whom: str | None = flag("ID", "Whose rating is predicted, by the file's own id.", "--user")
    what: str | None = flag("ID", "Of which item, by the file's own id.", "--item")
    show_neighbours: bool = flag(
        None,
        "Also print who the neighbours are. For the operator only: it tells who is like whom.",
        "--show-neighbours",
        default=False,
    )


@command("One prediction: the neighbours of a user, and what they say of an item.")
def predict(source: AskedSource, asked: OnePrediction, method: Method, running: Running) -> None:
    """Choose the neighbours of one user and predict one rating, as Algorithm 1 of the paper does."""
    if asked.whom is None or asked.what is None:
        raise SettingError("user and item must be given, as in --user 21 --item 0088247")
    chosen = method.configured(running, rng=running.seed)
    from goodfence.models.neighbour_cf import NeighbourCF

    model = chosen.recommender
    if not isinstance(model, NeighbourCF):
        raise SettingError("mechanism must be neighbour-based: knn, npns, pncf or ppns")
    for name in ("center", "among", "min_neighbours", "fallback"):
        if getattr(method, name) is not None:
            raise SettingError(f"{name} must be left out: Algorithm 1 has none; `fit` takes it")
    ratings = source.read(running)
    from goodfence.papers.algorithm_1 import algorithm_1

    user, item = id_of(asked.whom, ratings.users), id_of(asked.what, ratings.items)
    settings: dict[str, Any] = {
        "axis": model.axis,
        "similarity": model.similarity,
        "over": model.over,
    }
    found = algorithm_1(ratings, model.mechanism, user, item, **settings, rng=running.seed)
    made = not math.isnan(found.rating)
    pairs = list(zip(found.neighbours.tolist(), found.similarities.tolist(), strict=True))
    if running.json:
        told = {"label": chosen.label, "settings": chosen.settings, "seed": running.seed}
        near = [{"neighbour": one, "similarity": similarity} for one, similarity in pairs]
        shown = {"neighbours": near} if asked.show_neighbours else {}
        print_json({**told, "prediction": found.rating if made else None, **shown})
        return
    text = f"{found.rating:.4f}" if made else "none: no neighbour rated the item"
    print_paragraphs([("Method", chosen.label), ("Predicted", text)])
    if asked.show_neighbours:
        print_table(
            ["", "similarity", "neighbour"],
            [
                [str(rank), f"{similarity:.4f}", str(one)]
                for rank, (one, similarity) in enumerate(pairs, start=1)
            ],
        )


def id_of(text: str, ids: npt.NDArray[Any]) -> Id:
    """Return the id that is meant: an integer where the ratings have integers."""
    digits = text.removeprefix("-")
    number = ids.dtype.kind in "iu" and digits.isascii() and digits.isdecimal()
    return int(text) if number else text
