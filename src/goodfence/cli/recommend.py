"""`goodfence recommend MODEL USER`: the best items for one user, or with `--all` for everybody, from a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from goodfence.cli.command import argument, command, flag, panel
from goodfence.cli.options import Output
from goodfence.cli.output import (
    CSV,
    PARQUET,
    check_out,
    out_option,
    print_json,
    print_paragraphs,
    print_table,
)
from goodfence.cli.paper import id_of
from goodfence.errors import SettingError

if TYPE_CHECKING:
    from goodfence.data.ratings import Ratings


@panel("Recommendations")
class Request:
    """Which model is asked, and for whom."""

    model: Path = argument("MODEL", "A model that `goodfence fit` saved.")
    user: str | None = argument(
        "USER", "A user of the ratings, by the file's own id.", default=None
    )
    n: int = flag("N", "How many items to recommend, 1 or more.", "--n", "-n", default=10)
    everybody: bool = flag(None, "For every user, into the file -o.", "--all", default=False)
    allowed: Path | None = flag(
        "FILE", "A list of items, as for --items: no other item is recommended."
    )
    max_bytes: int | None = flag("N", "How many bytes of memory the model may take.", shown="2 GiB")

    def check(self, out: Path | None) -> None:
        """Refuse what cannot be meant, before the model is read."""
        if self.everybody == (self.user is not None):
            raise SettingError("user must be given, or --all, and not both")
        if self.everybody and out is None:
            raise SettingError("out must be given with --all, as in -o recommendations.parquet")
        check_out(out, CSV, PARQUET)

    def listed(self, limit: int) -> Any:
        """Return the items of `--allowed`, if they are given."""
        from goodfence.data.load import read_item_list

        return None if self.allowed is None else read_item_list(self.allowed, limit).alone()


@command("The best items for one user, or for all, from a saved model.")
def recommend_command(
    request: Request, output: Output, out: Annotated[Path | None, out_option(CSV, PARQUET)] = None
) -> None:
    """Print the best items that a user has not rated, with what ranks them; or write them to a file."""
    request.check(out)
    from goodfence.data.files import DEFAULT_MAX_BYTES
    from goodfence.models.persistence import load_model

    limit = DEFAULT_MAX_BYTES if request.max_bytes is None else request.max_bytes
    fitted: Any = load_model(request.model, max_bytes=limit)
    ratings: Ratings = fitted.ratings_
    allowed = request.listed(limit)
    if out is not None:
        asked = None if request.user is None else [id_of(request.user, ratings.users)]
        lists = fitted.recommend_many(asked, request.n, allowed=allowed)
        lists.save(out)
        n_listed = int((lists.columns >= 0).sum())
        if output.json:
            print_json({"out": str(out), "users": len(lists), "recommendations": n_listed})
            return
        told = f"{n_listed:,} recommendations for {len(lists):,} users: user, rank, item, score"
        print_paragraphs([("Written", f"{out}, {told}")])
        return
    user = id_of(request.user or "", ratings.users)
    found = fitted.recommend(user, request.n, allowed=allowed)
    pairs = list(zip(found.items.tolist(), found.scores.tolist(), strict=True))
    if output.json:
        listed = [{"item": i, "score": s, "title": ratings.title(i)} for i, s in pairs]
        print_json({"items": listed})
        return
    titles = ratings.titles
    rows = [
        [f"{rank}", f"{score:.2f}", str(item), *([titles.get(item, "")] if titles else [])]
        for rank, (item, score) in enumerate(pairs, start=1)
    ]
    print_table(["", "score", "item", *(["title"] if titles else [])], rows)
