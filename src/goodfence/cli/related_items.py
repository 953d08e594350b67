"""`goodfence related-items LOG`: what public lists "related to this item" give away from refresh to refresh."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from goodfence.cli.check import named_file
from goodfence.cli.command import argument, command, flag
from goodfence.cli.options import Output, separator_named
from goodfence.cli.output import (
    JSON,
    check_out,
    out_option,
    print_lines,
    print_paragraphs,
    print_table,
)
from goodfence.errors import ColumnProblem, SettingError, ValueProblem
from goodfence.report.wording import measured, of_100

if TYPE_CHECKING:
    import pyarrow as pa

    from goodfence.attack.related_items import RelatedItemsReport


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSource:
    """Where the log is, and its columns."""

    panel: ClassVar[str] = "Log"
    file: str = argument(
        "LOG", "A path (csv, tsv, dat, parquet), or a name of `goodfence data list`."
    )
    user: str | None = flag(
        "COLUMN",
        "Column of the user ids, by name, or by position from 1 where the file has no header line.",
        shown="found by its name",
    )
    item: str | None = flag("COLUMN", "Column of the item ids, likewise.")
    time: str = flag("COLUMN", "Column of the times, numbers, likewise.", default="timestamp")
    separator: str | None = flag(
        "TEXT", "What separates the fields, as in ; or tab.", shown="as the file's ending says"
    )

    def read(self, running: Output) -> pa.Table:
        """Return a table with the columns user, item and time."""
        running.say(f"reading {self.file}")
        from goodfence.data.columns import ROLES
        from goodfence.data.frame import ReadOptions
        from goodfence.data.load import read_table

        separator = separator_named(self.separator)
        # The readers know three columns: the time is read in the place of the rating.
        options = ReadOptions(user=self.user, item=self.item, rating=self.time, separator=separator)
        try:
            table, _ = read_table(named_file(self.file)[0], options)
        except (ColumnProblem, ValueProblem) as problem:
            said = str(problem)
            told = f"time{said.removeprefix('rating')}" if said.startswith("rating") else said
            raise type(problem)(told) from None
        return table.select(list(ROLES)).rename_columns(["user", "item", "time"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeatable(Output):
    """How it runs, and prints."""

    panel: ClassVar[str] = "Running"
    seed: int | None = flag(
        "N", "Seed of a repeatable experiment, 0 or more.", shown="fresh randomness"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Watcher:
    """Who watches whom, with the names of `RelatedItemsAttack`'s arguments."""

    panel: ClassVar[str] = "Attacker"
    known: int = flag("N", "How many items of each target the attacker knows.", default=16)
    n: int = flag("N", "How many items a list shows.", "--n", default=50)
    every: str = flag(
        "N,N,...", "Refresh intervals to try, in ratings by anybody.", default="1,20,100,500"
    )
    at_least: int | None = flag(
        "N",
        "Name every item that rose on at least N of the known items' lists.",
        shown="the one that rose on most, if it is alone",
    )
    targets: int = flag("N", "How many users to watch, drawn by chance.", default=60)
    precision: float = flag(
        "X",
        "The advice keeps the share of named items that are right because of the target below this.",
        default=0.1,
    )

    def intervals(self) -> tuple[int, ...]:
        """Return the refresh intervals.

        Examples
        --------
        >>> Watcher(every="1,50").intervals()
        (1, 50)
        """
        parts = self.every.split(",")
        if not all(part.isascii() and part.isdecimal() for part in parts):
            raise SettingError(
                f"every must be integers, as in --every 1,20,100, got {self.every!r}"
            )
        return tuple(int(part) for part in parts)


@command("What related-items lists give away over time.")
def related_items(
    log: LogSource,
    watcher: Watcher,
    running: Repeatable,
    out: Annotated[Path | None, out_option(JSON)] = None,
) -> None:
    """Play a log of ratings in the order of time, and watch the lists of items with common raters."""
    check_out(out, JSON)
    every = watcher.intervals()
    from goodfence import __version__
    from goodfence.attack.related_items import RelatedItemsAttack

    attack = RelatedItemsAttack(
        known=watcher.known, n=watcher.n, every=every, at_least=watcher.at_least
    )
    with running.noting():
        found = attack.run(
            log.read(running), targets=watcher.targets, rng=running.seed, progress=running.progress
        )
    told = found.to_dict(watcher.precision)
    stated = {"goodfence": __version__, "attack": told.pop("settings"), **told}
    running.tell(stated, lambda: _print(found, watcher.precision), out)


def _print(found: RelatedItemsReport, precision: float) -> None:
    head = ["refreshed every", "named of 100 new ratings", "right of 100 named"]
    head += ["without the target", "false alarms of 100"]
    rows = []
    for one in found.refreshes:
        shares = (one.found, one.precision, one.precision_without, one.false_alarms)
        cells = ("none" if share.value != share.value else measured(share) for share in shares)
        rows.append([f"{one.every:,}", *cells])
    print_table(head, rows)
    advised = found.refresh_after(precision)
    level = f"for fewer than {of_100(precision)} of 100 named to be right because of the target"
    advice = (
        f"refresh after at least {advised:,} ratings, {level}"
        if advised is not None
        else f"none of the intervals tried is long enough {level}"
    )
    watched = f"{found.n_targets:,} users, of whom {found.settings['known']} items are known"
    print_lines([("Watched", watched)])
    print_paragraphs([("Advice", advice)])
