"""`goodfence recommend MODEL USER`: the best items for a user, a profile or every user, from a saved model."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from goodfence.cli.command import argument, command, flag, panel
from goodfence.cli.fit import Engine
from goodfence.cli.options import Output
from goodfence.cli.output import CSV, PARQUET, check_out, out_option, print_table
from goodfence.cli.paper import id_of
from goodfence.errors import SettingError, require

if TYPE_CHECKING:
    from goodfence.data.ratings import Id, ProfileLike, Ratings


@panel("Recommendations")
class Request:
    """Which model is asked, and for whom."""

    model: Path = argument("MODEL", "A model that `goodfence fit` saved.")
    user: str | None = argument("USER", "The user's id.", default=None)
    profile: str | None = flag("'ITEM=RATING ...'", "Recommend to somebody with these ratings, or items.")
    n: int = flag("N", "Number of items to recommend.", "--n", "-n", default=10)
    everybody: bool = flag(None, "Recommend to every user, into the file -o.", "--all", default=False)
    ratings: str | None = flag("FILE", "--all: recommend to the users of this file, on Spark.", hidden=True)
    read: list[str] | None = flag("'KEY=VALUE ...'", "--ratings: how the file is read; `explain read`.", hidden=True)
    master: str | None = flag("URL", "--ratings: the cluster, as in yarn.", shown="local[*]", hidden=True)
    allowed: Path | None = flag("FILE", "Recommend only these items, one id a line.")
    max_bytes: int | None = flag("N", "Memory limit of the model, in bytes.", shown="2 GiB")

    def whom(self, ratings: Ratings) -> Id | ProfileLike:
        """Return the user, or the profile, that the command line names."""
        if self.profile is None:
            return id_of(self.user or "", ratings.users)
        return parse_profile(self.profile, ratings)


@command("Recommend items to a user, a profile or all users, from a saved model.")
def recommend_command(
    request: Request, output: Output, out: Annotated[Path | None, out_option(CSV, PARQUET)] = None
) -> None:
    """Print the best items that a user has not rated, with predicted ratings, or write lists to a file."""
    if request.everybody + (request.user is not None) + (request.profile is not None) != 1:
        raise SettingError("either USER, --profile or --all is required, and only one of them")
    if request.everybody and out is None:
        raise SettingError("--all needs a file, as in -o recommendations.parquet")
    check_out(out, CSV, PARQUET)
    output.say(f"reading {request.model.name}")
    from goodfence.data.files import DEFAULT_MAX_BYTES
    from goodfence.data.load import read_item_list
    from goodfence.models.persistence import load_model

    if request.model.suffix == PARQUET:  # neighbours that a fit left on the cluster
        _list_there(str(request.model), request, output, out)
        return
    limit = DEFAULT_MAX_BYTES if request.max_bytes is None else request.max_bytes
    model: Any = load_model(request.model, max_bytes=limit)
    if request.ratings is not None:
        _list_there(model, request, output, out)
        return
    allowed = None if request.allowed is None else read_item_list(request.allowed, limit).alone()
    with output.noting():
        asked = None if request.everybody else [request.whom(model.ratings_)]
        lists = model.recommend_many(asked, request.n, allowed=allowed)
    if out is not None:
        lists.save(out)
        n_listed = int((lists.columns >= 0).sum())
        text = f"{n_listed:,} recommendations for {len(lists):,} users: user, rank, item, score"
        told = {"out": str(out), "users": len(lists), "recommendations": n_listed}
        output.tell(told, [("Written", f"{out}, {text}")])
        return
    found = next(iter(lists))
    pairs = zip(found.items.tolist(), found.scores.tolist(), strict=True)
    listed = [{"item": item, "score": score, "title": model.ratings_.title(item)} for item, score in pairs]
    output.tell({"items": listed}, lambda: print_table(*found.shown()))


def _list_there(model: Any, request: Request, output: Output, out: Path | None) -> None:
    """Write the lists of everybody in a file of ratings, which tasks read, to a folder of parquet files."""
    from goodfence.data.frame import ReadOptions
    from goodfence.spark.predict import recommend

    left = isinstance(model, str)
    fits = (left or hasattr(model, "fit_profiles")) and request.everybody and request.allowed is None
    rule = "for --all of a private model or of neighbours on a cluster, to .parquet"
    require(fits and out is not None and out.suffix == PARQUET, "ratings", rule, None)
    require(request.ratings is not None, "ratings", "given with neighbours on a cluster", None)
    options = ReadOptions.parse(" ".join(request.read or ()))
    if not left and model.learns_from == "explicit" and options.scale is None:
        options = options.merged(scale=model.ratings_.scale)
    with Engine(engine="spark", master=request.master).opened(str(request.ratings), options, output) as (
        located,
        config,
    ):
        lists = recommend(located.path, model, n=request.n, config=config)
        lists.write.mode("overwrite").parquet(str(out))
        n_listed = lists.count()
    told = {"out": str(out), "recommendations": n_listed}
    output.tell(told, [("Written", f"{out}, {n_listed:,} recommendations: user, rank, item, score")])


def parse_profile(text: str, ratings: Ratings) -> ProfileLike:
    """Return the profile that 'ITEM=RATING ...' means, or 'ITEM ...'; an id with spaces is quoted."""
    rule = "ITEM=RATING for each item, or ITEM for each, as in --profile '31=5 47=3'"
    try:
        words = shlex.split(text)
        rated = [word.rpartition("=") for word in words if "=" in word]
        values = [float(value) for _, _, value in rated]
    except ValueError:
        words, rated, values = [], [], []
    require(bool(words) and len(rated) in (0, len(words)), "profile", rule, str)
    if not rated:
        return [id_of(word, ratings.items) for word in words]
    items = [id_of(item, ratings.items) for item, _, _ in rated]
    if len(set(items)) < len(items):
        raise SettingError("profile must name each item once")
    return dict(zip(items, values, strict=True))
