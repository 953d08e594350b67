"""`goodfence fit FILE -o model.gf`: train a recommender and save it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goodfence.cli.command import command, flag, panel
from goodfence.cli.options import Method, Output, Running, Source
from goodfence.cli.output import MODEL, PARQUET, check_out, out_option
from goodfence.errors import SettingError, require
from goodfence.report.wording import guarantee_cell, liked

if TYPE_CHECKING:
    from goodfence.data.frame import ReadOptions
    from goodfence.data.load import LocatedRatings
    from goodfence.data.ratings import Ratings
    from goodfence.models.method import Configured
    from goodfence.spark.session import SparkConfig

_MASTER = "local[*]"
_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30}


@panel("Engine")
class Engine:
    """Where the work is done; the result is the same."""

    engine: str = flag("local|spark", "Fit on this machine or on Apache Spark.", default="local")
    master: str | None = flag("URL", "spark: the cluster, as in yarn or spark://host:7077.", shown=_MASTER, hidden=True)
    work: str | None = flag("FOLDER", "spark: checkpoints; the same command resumes there.", hidden=True)
    memory: str | None = flag("SIZE", "spark: memory of a task, as in 2g.", shown="1g", hidden=True)

    def check(self, chosen: Configured) -> None:
        """Raise if Spark cannot fit this recommender, before anything long begins."""
        require(self.engine in ("local", "spark"), "engine", "local or spark", self.engine)
        if self.engine == "local":
            for name in ("master", "work", "memory"):
                if getattr(self, name) is not None:
                    raise SettingError(f"{name} needs --engine spark")
            return
        from goodfence.models.neighbour_cf import NeighbourCF
        from goodfence.models.private.base import PrivateRecommender
        from goodfence.spark.neighbours import Choice
        from goodfence.spark.session import require_spark

        bytes_of(self.memory or "1g")
        if isinstance(chosen.recommender, NeighbourCF):
            Choice.of(chosen.recommender)
        elif not isinstance(chosen.recommender, PrivateRecommender):
            raise SettingError("engine spark fits knn, npns, pncf, ppns and the private models only")
        require_spark()

    def fit(
        self, chosen: Configured, source: Source, running: Running, *, on_items: bool = True, out: Path | None = None
    ) -> Any:
        """Return the fitted model; Spark's tasks read the file themselves. `on_items` as in `Source.load`.

        With `out` the neighbours stay in that folder, and there is no model.
        """
        fitting = f"fitting {chosen.label}"
        if self.engine == "local":
            ratings = source.load(running, on_items=on_items)
            running.say(fitting)
            return chosen.recommender.fit(ratings)
        from goodfence.spark.neighbours import leave_neighbours
        from goodfence.spark.private import fit_there

        listed = source.item_list() if on_items else None
        if listed is not None and chosen.recommender.axis == "item":
            raise SettingError("items must be left out for item-based neighbours on Spark")
        require(out is None or listed is None, "items", "left out where neighbours stay on the cluster", "a list")
        with self.opened(source.file, source.options(), running) as (located, config):

            def completed(found: Ratings, *size: Any) -> Ratings:
                whole = located.completed(found, *size)
                return whole if listed is None else listed.applied_to(whole)

            running.say(fitting)
            with running.noting():
                if out is not None:
                    return leave_neighbours(chosen.recommender, located.path, out, config)
                return fit_there(chosen.recommender, located.path, config, completed)

    @contextmanager
    def opened(self, file: str, options: ReadOptions, running: Output) -> Iterator[tuple[LocatedRatings, SparkConfig]]:
        """Start Spark, and hand out where the ratings are and how a job reads them."""
        from goodfence.data.load import STDIN, locate
        from goodfence.spark.session import MEMORY, SparkConfig, start

        located = locate(file, options)
        if str(located.path) == STDIN:
            raise SettingError("FILE must be a file on Spark: tasks do not read standard input")
        master = self.master or _MASTER
        running.say(f"starting Spark on {master}")
        spark = start(master)
        try:
            memory = bytes_of(self.memory) if self.memory else MEMORY
            how: dict[str, Any] = {"memory": memory, "work": self.work, "read": located.options}
            yield located, SparkConfig(spark=spark, progress=running.progress, **how)
        finally:
            spark.stop()


def bytes_of(text: str) -> int:
    """Return a size such as 512m or 2g in bytes."""
    number, unit = text[:-1], text[-1:].casefold()
    require(number.isdecimal() and unit in _UNITS, "memory", "a size as in 512m or 2g", text)
    return int(number) * _UNITS[unit]


@panel("Ratings")
class FitSource(Source):
    """The ratings, and the public list of items that a private model needs."""

    items: Path | None = flag("FILE|from-ratings", "Private models: public list of items.")


@command("Train a recommender and save it.")
def fit_command(
    source: FitSource,
    method: Method,
    engine: Engine,
    running: Running,
    out: Annotated[Path, out_option(MODEL)],
    without_ratings: Annotated[
        bool, typer.Option("--without-ratings", help="Private models: save no ratings.")
    ] = False,
) -> None:
    """Fit a recommender and save it; all its random choices are made here, once."""
    from goodfence.models.persistence import check_replaceable
    from goodfence.models.private.base import PrivateRecommender

    stays = out.suffix == PARQUET and engine.engine == "spark"  # neighbours, in a folder on the cluster
    if not stays:
        check_out(out, MODEL)
        check_replaceable(out)
    chosen = method.configured(running, rng=running.seed, public={})
    engine.check(chosen)
    private = isinstance(chosen.recommender, PrivateRecommender)
    require(not (private and stays), "out", "name.gf for a private model", None)
    if private:
        with running.noting():
            public = source.public_items()
        chosen = method.configured(running, rng=running.seed, public=public)
    elif without_ratings:
        raise SettingError("without_ratings must be left out: this model predicts from ratings")
    model = engine.fit(chosen, source, running, on_items=not private, out=out if stays else None)
    if not stays:
        _save(model, chosen, out, running, bare=private and (without_ratings or engine.engine == "spark"))
        return
    told = {"out": str(out), **chosen.stated(running.seed)}
    running.tell(told, [("Model", chosen.label), ("Written", f"{out}, neighbours: protect them as the ratings")])


def _save(model: Any, chosen: Configured, out: Path, running: Running, *, bare: bool) -> None:
    """Save a model, and tell of it; `bare` without its ratings, which Spark does not bring here."""
    private = hasattr(model, "fit_profiles")
    model.save(out, **({"ratings": not bare} if private else {}))
    guarantee, ratings = model.guarantee(), model.ratings_
    kind = "ratings" if ratings.feedback == "explicit" else "events"
    (n_users, n_items), least = ratings.shape, ratings.liked_from
    # The numbers of users and ratings of a private model are not public.
    data = {} if private else {"users": n_users, kind: ratings.n_ratings}
    data |= {"items": n_items} | ({} if least is None else {"liked_from": least})
    held = f"with the {kind}: protect the file as you protect them"
    if bare and guarantee.status == "none":
        held = f"without the {kind}; anyone who knows the seed can remove its noise"
    elif bare:
        held = f"without the {kind}: safe to publish"
    counts = f"{n_users:,} users x {n_items:,} items, {ratings.n_ratings:,} {kind}"
    lines = [
        ("Model", chosen.label),
        ("Trained", f"{n_items:,} items" if private else counts),
        *([] if least is None else [("Events", liked(least))]),
        ("Guarantee", f"{guarantee_cell(guarantee)}. {guarantee.reason}"),
        ("Saved", f"{out}, {held}"),
    ]
    told = {"out": str(out), **chosen.stated(running.seed)}
    running.tell({**told, "data": data, "guarantee": guarantee.to_dict()}, lines)
