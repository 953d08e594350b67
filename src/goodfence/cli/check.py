"""`goodfence check FILE`: what was read, which column is what, scale, shape, how all is spread, problems."""

from __future__ import annotations

from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
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
    from goodfence.data.scale import Scale

_BAR = 40
_MERGED = {
    **{rule: f"{rule} kept" for rule in ("last", "first", "mean")},
    "once": "counted once",
    "count": "counted",
    "sum": "weights summed",
}
"""What was done about rows that repeat a pair."""


@command("Check a file of ratings or events.")
def check_command(source: Source, output: Output) -> None:
    """Read a file of ratings or events and print what is in it, or everything that is wrong with it (exit code 3)."""
    options = source.options()
    from goodfence.data.load import on_disk, refuse_events
    from goodfence.data.problems import measure_spread

    path, declared = named_file(source.file)
    if declared is not None:
        refuse_events(options)
        options = replace(options, scale=options.scale or declared)
    with output.noting() as notes, on_disk(path, options.max_bytes) as file:
        listed = source.item_list()
        found = _read(file, options, output)
        if listed is not None:
            found = replace(found, ratings=listed.applied_to(found.ratings))
    about = measure_spread(found.ratings)
    output.tell(
        {**_as_json(found), "spread": asdict(about), "notes": notes},
        lambda: print_lines(_as_lines(found, options.repeated, about)),
    )


def _read(path: str | PathLike[str], options: ReadOptions, output: Output) -> ReadReport:
    """Return what is in the file; if it cannot be read, print first what is wrong with its rows."""
    from goodfence.data.load import read_reported

    try:
        return read_reported(path, options)
    except DataError:
        _tell_problems(path, options, output)
        raise


def _tell_problems(path: str | PathLike[str], options: ReadOptions, output: Output) -> None:
    from goodfence.data.problems import count_problems

    try:
        problems = count_problems(path, options)
    except DataError:  # the file as a whole, which the error is about
        return
    if output.json and problems:
        print_json({"problems": [asdict(one) for one in problems]})
    elif problems and not output.quiet:
        print_notes([str(one) for one in problems])


def named_file(file: str) -> tuple[str | Path, Scale | None]:
    """Return where the ratings are and, for a named data set, their scale."""
    from goodfence.data.catalogue import DATASETS, find_dataset

    if file not in DATASETS:
        return file, None
    dataset = DATASETS[file]
    folder = find_dataset(dataset)
    return dataset.file(folder) or folder / dataset.files[0], dataset.scale


def _as_lines(found: ReadReport, duplicates: str, about: Spread) -> list[tuple[str, str]]:
    columns, ratings = found.columns, found.ratings
    before = "column " if columns.positional else ""
    shown = "   ".join(f"{role} <- {before}{name}" for role, name in columns.by_role.items())
    unused = ", ".join(
        f"{before}{name}" if name else "one without a name" for name in columns.unused
    )
    n_users, n_items = ratings.shape
    events = ratings.feedback == "implicit"
    what = "events" if events else "ratings"
    shape = f"{n_users:,} users x {n_items:,} items, {ratings.n_ratings:,} {what}"
    told = [("Columns", f"{shown}   ({unused} not used)" if unused else shown)]
    if events:
        told += [("Events", _events(found, duplicates)), ("Shape", shape)]
    else:
        told.append(("Scale", f"{ratings.scale!s:<23}  Shape   {shape}"))
    told += [
        ("Per user", _counted(about.per_user, what)),
        ("Per item", _counted(about.per_item, what)),
    ]
    if about.span is not None:
        told.append(("Time", " to ".join(about.span)))
    if not events or len(about.grades) > 1:
        told += _histogram(about.grades, "Values" if events else "Ratings")
    problems = (
        f"{found.n_repeated:,} repeated ({_MERGED[duplicates]})" if found.n_repeated else "none"
    )
    return [*told, ("Repeats" if events else "Problems", problems)]


def _events(found: ReadReport, duplicates: str) -> str:
    """Return what an event is, and what it counts."""
    if found.ratings.liked_from is not None:
        return liked(found.ratings.liked_from)
    if found.columns.weight is not None:
        return "each counts its weight"
    return "each counts as often as it is there" if duplicates == "count" else "each counts 1"


def _counted(counts: tuple[int, int, int], what: str) -> str:
    fewest, median, most = counts
    return f"{fewest:,} to {most:,} {what}, median {median:,}"


def _histogram(grades: tuple[tuple[str, int], ...], what: str) -> list[tuple[str, str]]:
    """Return a line for each grade, with a bar as long as its share of the most frequent one."""
    width = max(len(grade) for grade, _ in grades)
    total, most = sum(n for _, n in grades), max(n for _, n in grades)
    lines = [
        f"{grade:>{width}}  {'#' * round(_BAR * n / most):<{_BAR}} {100 * n / total:5.1f}%"
        for grade, n in grades
    ]
    return [(what if at == 0 else "", line) for at, line in enumerate(lines)]


def _as_json(found: ReadReport) -> dict[str, Any]:
    columns, ratings = found.columns, found.ratings
    n_users, n_items = ratings.shape
    return {
        "feedback": ratings.feedback,
        "liked_from": ratings.liked_from,
        "columns": {
            "user": columns.user,
            "item": columns.item,
            "rating": columns.rating,
            "weight": columns.weight,
            "time": columns.time,
            "unused": list(columns.unused),
            "by_position": columns.positional,
        },
        "scale": asdict(ratings.scale),
        "users": n_users,
        "items": n_items,
        "ratings": ratings.n_ratings,
        "problems": {"repeated": found.n_repeated},
    }
