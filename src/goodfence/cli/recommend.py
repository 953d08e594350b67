"""`goodfence recommend MODEL USER`: the best items for one user, or with `--all` for every user, from a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from goodfence.cli.command import argument, command, flag, panel
from goodfence.cli.options import Output
from goodfence.cli.output import CSV, PARQUET, check_out, out_option, print_table
from goodfence.cli.paper import id_of
from goodfence.errors import SettingError


@panel("Recommendations")
class Request:
    """Which model is asked, and for whom."""

    model: Path = argument("MODEL", "A model that `goodfence fit` saved.")
    user: str | None = argument("USER", "The user's id.", default=None)
    n: int = flag("N", "Number of items to recommend.", "--n", "-n", default=10)
    everybody: bool = flag(None, "Recommend to every user, into the file -o.", "--all", default=False)
    allowed: Path | None = flag("FILE", "Recommend only these items, one id a line.")
    max_bytes: int | None = flag("N", "Memory limit of the model, in bytes.", shown="2 GiB")


@command("Recommend items to one user or to all, from a saved model.")
def recommend_command(
    request: Request, output: Output, out: Annotated[Path | None, out_option(CSV, PARQUET)] = None
) -> None:
    """Print the best items that a user has not rated, with their scores, or write them to a file."""
    if request.everybody == (request.user is not None):
        raise SettingError("either USER or --all is required")
    if request.everybody and out is None:
        raise SettingError("--all needs a file, as in -o recommendations.parquet")
    check_out(out, CSV, PARQUET)
    from goodfence.data.files import DEFAULT_MAX_BYTES
    from goodfence.data.load import read_item_list
    from goodfence.models.persistence import load_model

    limit = DEFAULT_MAX_BYTES if request.max_bytes is None else request.max_bytes
    model: Any = load_model(request.model, max_bytes=limit)
    ratings, titles = model.ratings_, model.ratings_.titles
    allowed = None if request.allowed is None else read_item_list(request.allowed, limit).alone()
    user = None if request.user is None else id_of(request.user, ratings.users)
    if out is not None:
        asked = None if user is None else [user]
        lists = model.recommend_many(asked, request.n, allowed=allowed)
        lists.save(out)
        n_listed = int((lists.columns >= 0).sum())
        text = f"{n_listed:,} recommendations for {len(lists):,} users: user, rank, item, score"
        told = {"out": str(out), "users": len(lists), "recommendations": n_listed}
        output.tell(told, [("Written", f"{out}, {text}")])
        return
    found = model.recommend(user, request.n, allowed=allowed)
    pairs = list(zip(found.items.tolist(), found.scores.tolist(), strict=True))
    listed = [{"item": i, "score": s, "title": ratings.title(i)} for i, s in pairs]
    rows = [
        [f"{rank}", f"{score:.2f}", str(item), *([titles.get(item, "")] if titles else [])]
        for rank, (item, score) in enumerate(pairs, start=1)
    ]
    head = ["", "score", "item", *(["title"] if titles else [])]
    output.tell({"items": listed}, lambda: print_table(head, rows))
