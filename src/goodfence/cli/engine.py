"""`--engine local|spark`: where a model is fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goodfence.cli.options import Running
from goodfence.cli.reading import say
from goodfence.errors import SettingError, require

if TYPE_CHECKING:
    from goodfence.cli.recipes import Recipe
    from goodfence.data.ratings import Ratings

_PANEL = "Engine"
_MASTER = "local[*]"
_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30}


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Where the work is done; it changes nothing in the result."""

    engine: Annotated[
        str,
        typer.Option(metavar="local|spark", help="This machine, or Spark.", rich_help_panel=_PANEL),
    ] = "local"
    master: Annotated[
        str | None,
        typer.Option(
            help="spark: where, as in local[2], yarn, spark://host:7077; local[*] if not given.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    work: Annotated[
        str | None,
        typer.Option(
            help="spark: a folder for finished parts; the same command goes on from there.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="spark: what a task may take, as in 512m; it sets the size of a block.",
            rich_help_panel=_PANEL,
        ),
    ] = None

    def check(self, recipe: Recipe) -> None:
        """Refuse what cannot be done, before anything long is begun."""
        require(self.engine in ("local", "spark"), "engine", "local or spark", self.engine)
        if self.engine == "local":
            for name in ("master", "work", "memory"):
                if getattr(self, name) is not None:
                    raise SettingError(f"{name} must be left out unless --engine spark is given")
            return
        from goodfence.engines.spark.session import require_spark
        from goodfence.models.neighbour_cf import NeighbourCF

        if not isinstance(recipe.recommender, NeighbourCF):
            raise SettingError("engine must be local for a private model: its fit is one pass")
        bytes_of(self.memory)
        require_spark()

    def fit(self, recipe: Recipe, ratings: Ratings, running: Running) -> Any:
        """Return the fitted model."""
        if self.engine == "local":
            return recipe.recommender.fit(ratings)
        from goodfence.engines.spark.running import MEMORY
        from goodfence.engines.spark.running import Running as Job
        from goodfence.engines.spark.session import start
        from goodfence.models.on_spark import fit_on_spark

        master = self.master or _MASTER
        say(f"starting Spark on {master}", running)
        spark = start(master)
        try:
            job = Job(
                spark=spark,
                memory=bytes_of(self.memory) or MEMORY,
                work=self.work,
                progress=running.progress,
            )
            return fit_on_spark(recipe.recommender, ratings, job)
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
