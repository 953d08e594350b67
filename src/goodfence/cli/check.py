"""`goodfence check FILE`: what is in a file (columns, scale, shape, spread), or what is wrong with it."""

from __future__ import annotations

from dataclasses import asdict, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from goodfence.cli.command import command
from goodfence.cli.options import Output, Source
from goodfence.cli.output import print_json, print_lines, print_notes
from goodfence.errors import DataError
from goodfence.report.wording import liked

if TYPE_CHECKING:
    from goodfence.data.frame import ReadOptions
    from goodfence.data.load import ReadReport
    from goodfence.data.problems import Spread

_BAR = 40
_MERGED = {
    **{rule: f"{rule} kept" for rule in ("last", "first", "mean")},
    "once": "counted once",
    "count": "counted",
    "sum": "weights summed",
}
"""How rows that repeat a pair were merged."""


@command("Check a file of ratings or events.")
def check_command(source: Source, output: Output) -> None:
    """Read a file of ratings or events and print what is in it, or everything that is wrong with it (exit code 3)."""
    options = source.options()
    from goodfence.data.load import locate, on_disk
    from goodfence.data.problems import measure_spread

    located = locate(source.file, options)
    options = located.options
    with output.noting() as notes, on_disk(located.path, options.max_bytes) as file:
        listed = source.item_list()
        found = _read(file, options, output)
        if listed is not None:
            found = replace(found, ratings=listed.applied_to(found.ratings))
    about = measure_spread(found.ratings)
    told = {**_as_json(found), "spread": asdict(about), "notes": notes}
    output.tell(told, lambda: print_lines(_as_lines(found, options.repeated, about)))


def _read(path: str | PathLike[str], options: ReadOptions, output: Output) -> ReadReport:
    """Return what is in the file; if it cannot be read, print first what is wrong with its rows."""
    from goodfence.data.load import read_reported
    from goodfence.data.problems import count_problems

    try:
        return read_reported(path, options)
    except DataError:
        try:
            problems = count_problems(path, options)
        except DataError:  # about the file as a whole, as the error itself
            problems = []
        if output.json and problems:
            print_json({"problems": [asdict(one) for one in problems]})
        elif not output.quiet:
            print_notes([str(one) for one in problems])
        raise


def _as_lines(found: ReadReport, duplicates: str, about: Spread) -> list[tuple[str, str]]:
    columns, ratings = found.columns, found.ratings
    before = columns.before
    shown = "   ".join(f"{role} <- {before}{name}" for role, name in columns.by_role.items())
    names = [f"{before}{name}" if name else "one without a name" for name in columns.unused]
    events = ratings.feedback == "implicit"
    what = "events" if events else "ratings"
    shape = "{:,} users x {:,} items, {:,} {}".format(*ratings.shape, ratings.n_ratings, what)
    told = [("Columns", f"{shown}   ({', '.join(names)} not used)" if names else shown)]
    if events:
        told += [("Events", _events(found, duplicates)), ("Shape", shape)]
    else:
        told.append(("Scale", f"{ratings.scale!s:<23}  Shape   {shape}"))
    for label, counts in (("Per user", about.per_user), ("Per item", about.per_item)):
        told.append((label, "{0:,} to {2:,} {3}, median {1:,}".format(*counts, what)))
    if about.span is not None:
        told.append(("Time", " to ".join(about.span)))
    if not events or len(about.grades) > 1:
        told += _histogram(about.grades, "Values" if events else "Ratings")
    merged = f"{found.n_repeated:,} repeated ({_MERGED.get(duplicates)})"
    return [*told, ("Repeats" if events else "Problems", merged if found.n_repeated else "none")]


def _events(found: ReadReport, duplicates: str) -> str:
    if found.ratings.liked_from is not None:
        return liked(found.ratings.liked_from)
    if found.columns.weight is not None:
        return "each counts its weight"
    return "each counts as often as it is there" if duplicates == "count" else "each counts 1"


def _histogram(grades: tuple[tuple[str, int], ...], what: str) -> list[tuple[str, str]]:
    """Return a line for each grade, with a bar as long as its share of the most frequent one."""
    width = max(len(grade) for grade, _ in grades)
    total, most = sum(n for _, n in grades), max(n for _, n in grades)
    lines = [f"{grade:>{width}}  {'#' * round(_BAR * n / most):<{_BAR}} {100 * n / total:5.1f}%" for grade, n in grades]
    return [("" if at else what, line) for at, line in enumerate(lines)]


def _as_json(found: ReadReport) -> dict[str, Any]:
    columns, ratings = found.columns, found.ratings
    n_users, n_items = ratings.shape
    roles = {name: getattr(columns, name) for name in ("user", "item", "rating", "weight", "time")}
    how = {"unused": list(columns.unused), "by_position": columns.positional}
    told: dict[str, Any] = {"feedback": ratings.feedback, "liked_from": ratings.liked_from}
    told |= {"columns": {**roles, **how}, "scale": asdict(ratings.scale)}
    told |= {"users": n_users, "items": n_items, "ratings": ratings.n_ratings}
    return {**told, "problems": {"repeated": found.n_repeated}}
