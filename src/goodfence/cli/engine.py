"""`--engine local|spark`: where a model is fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from goodfence.cli.command import flag
from goodfence.cli.options import Running, Source
from goodfence.errors import SettingError, require

if TYPE_CHECKING:
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
            raise SettingError("engine must be local for a private model: its fit is one pass")
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
        from goodfence.spark.config import MEMORY, SparkConfig
        from goodfence.spark.session import start

        located = source.located()
        if str(located.path) == STDIN:
            raise SettingError("FILE must be a file on Spark: tasks do not read standard input")
        listed = source.item_list()
        if listed is not None and chosen.recommender.axis == "item":
            raise SettingError("items must be left out for item-based neighbours on Spark")
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
                return fit_on_spark(
                    chosen.recommender,
                    located.path,
                    config,
                    lambda found: (
                        located.completed(found)
                        if listed is None
                        else listed.applied_to(located.completed(found))
                    ),
                )
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
