"""`goodfence fit FILE -o model.gf`: train a recommender, and save it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from goodfence.cli.command import command, flag
from goodfence.cli.options import Method, Running, Source
from goodfence.cli.output import MODEL, check_out, out_option, print_json, print_paragraphs
from goodfence.errors import SettingError, require
from goodfence.report.wording import guarantee_cell, liked

if TYPE_CHECKING:
    from goodfence.data.ratings import Ratings
    from goodfence.models.configuration import Configured

_MASTER = "local[*]"
_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30}


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Where the work is done; it changes nothing in the result."""

    panel: ClassVar[str] = "Engine"
    engine: str = flag("local|spark", "Fit on this machine, or on Apache Spark.", default="local")
    master: str | None = flag(
        "URL", "spark: the cluster, as in local[2], yarn or spark://host:7077.", shown=_MASTER
    )
    work: str | None = flag(
        "FOLDER",
        "spark: where checkpoints are kept; the same command resumes from there.",
        shown="no checkpoints",
    )
    memory: str | None = flag(
        "SIZE",
        "spark: how much memory a task may take, as in 512m or 2g; blocks are made to fit.",
        shown="1g",
    )

    def check(self, chosen: Configured) -> None:
        """Refuse what cannot be done, before anything long is begun."""
        require(self.engine in ("local", "spark"), "engine", "local or spark", self.engine)
        if self.engine == "local":
            for name in ("master", "work", "memory"):
                if getattr(self, name) is not None:
                    raise SettingError(f"{name} must be left out unless --engine spark is given")
            return
        from goodfence.models.neighbour_cf import NeighbourCF, choice_on_spark
        from goodfence.spark.session import require_spark

        if not isinstance(chosen.recommender, NeighbourCF):
            raise SettingError(
                "engine must be local unless neighbours are chosen (knn, npns, pncf, ppns)"
            )
        bytes_of(self.memory)
        choice_on_spark(chosen.recommender)
        require_spark()

    def fit(
        self, chosen: Configured, source: Source, running: Running, *, on_items: bool = True
    ) -> Any:
        """Return the fitted model; Spark's tasks read the file themselves. `on_items` as in `Source.read`."""
        fitting = f"fitting {chosen.label}"
        if self.engine == "local":
            ratings = source.read(running, on_items=on_items)
            running.say(fitting)
            return chosen.recommender.fit(ratings)
        from goodfence.data.load import STDIN
        from goodfence.models.neighbour_cf import fit_on_spark
        from goodfence.spark.session import MEMORY, SparkConfig, start

        located = source.located()
        if str(located.path) == STDIN:
            raise SettingError("FILE must be a file on Spark: tasks do not read standard input")
        listed = source.item_list()
        if listed is not None and chosen.recommender.axis == "item":
            raise SettingError("items must be left out for item-based neighbours on Spark")

        def completed(found: Ratings) -> Ratings:
            whole = located.completed(found)
            return whole if listed is None else listed.applied_to(whole)

        master = self.master or _MASTER
        running.say(f"starting Spark on {master}")
        spark = start(master)
        try:
            config = SparkConfig(
                spark=spark,
                memory=bytes_of(self.memory) or MEMORY,
                work=self.work,
                progress=running.progress,
                read=located.options,
            )
            running.say(fitting)
            with running.noting():
                return fit_on_spark(chosen.recommender, located.path, config, completed)
        finally:
            spark.stop()


def bytes_of(text: str | None) -> int | None:
    """Return a size as bytes.

    Examples
    --------
    >>> bytes_of("512m"), bytes_of("2g"), bytes_of(None)
    (536870912, 2147483648, None)
    """
    if text is None:
        return None
    number, unit = text[:-1], text[-1:].casefold()
    require(number.isdecimal() and unit in _UNITS, "memory", "a size as in 512m or 2g", text)
    return int(number) * _UNITS[unit]


@command("Train a recommender on ratings and save it.")
def fit(
    source: Source,
    method: Method,
    engine: Engine,
    running: Running,
    out: Annotated[Path, out_option(MODEL)],
    without_ratings: Annotated[
        bool,
        typer.Option(
            "--without-ratings",
            help="Private models: save what was released and nothing else: a file that you may hand on.",
        ),
    ] = False,
) -> None:
    """Fit a recommender and save it; every random choice is made here, once."""
    from goodfence.models.persistence import check_replaceable

    check_out(out, MODEL)
    check_replaceable(out)
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
    # Of a private model only the list of items may be printed, which is public.
    (n_users, n_items), n_ratings = model.ratings_.shape, model.ratings_.n_ratings
    kind = "ratings" if model.ratings_.feedback == "explicit" else "events"
    data = {"users": n_users, "items": n_items, kind: n_ratings}
    data = {"items": n_items} if private else data
    least = model.ratings_.liked_from
    made_of = {} if least is None else {"liked_from": least}
    if running.json:
        told: dict[str, Any] = {"out": str(out), "label": chosen.label, "settings": chosen.settings}
        told |= {"seed": running.seed, "data": {**data, **made_of}}
        print_json({**told, "guarantee": guarantee.to_dict()})
        return
    shape = f"{n_items:,} items"
    print_paragraphs(
        [
            ("Model", chosen.label),
            (
                "Trained",
                shape if private else f"{n_users:,} users x {shape}, {n_ratings:,} {kind}",
            ),
            *([] if least is None else [("Events", liked(least))]),
            ("Guarantee", f"{guarantee_cell(guarantee)}. {guarantee.reason}"),
            ("Saved", f"{out}, {_holder(guarantee.status, without_ratings, kind)}"),
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


def _holder(status: str, without_ratings: bool, kind: str) -> str:
    if not without_ratings:
        return f"with the {kind} that it answers from: keep it as you keep them"
    if status == "none":
        return f"without the {kind}; whoever knows the seed can take its noise away"
    return f"without the {kind}: anybody may hold it"
