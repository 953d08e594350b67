"""`goodfence check FILE`: what was read, which column is what, scale, shape, problems."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from goodfence.cli.failures import failing_plainly
from goodfence.cli.items import read_items
from goodfence.cli.printing import collected_notes, print_json, print_lines, print_notes
from goodfence.cli.scale import parse_scale

if TYPE_CHECKING:
    from goodfence.data.readers import Reading
    from goodfence.data.scale import Scale
    from goodfence.data.triplets import Duplicates

_POSITION = "by name, or by position from 1 where there is no header line"


def check(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A path (csv, tsv, dat, parquet), or a name of `goodfence data list`.",
        ),
    ],
    user: Annotated[
        str | None, typer.Option(help=f"The column of the person, {_POSITION}.")
    ] = None,
    item: Annotated[str | None, typer.Option(help="The column of the item, likewise.")] = None,
    rating: Annotated[str | None, typer.Option(help="The column of the rating, likewise.")] = None,
    scale: Annotated[
        str | None,
        typer.Option(metavar="LOW HIGH [STEP]", help="Which ratings can be given; steps of 1."),
    ] = None,
    duplicates: Annotated[
        str,
        typer.Option(
            metavar="error|last|first|mean", help="What to do where a pair is rated twice."
        ),
    ] = "error",
    separator: Annotated[
        str | None, typer.Option(help="What separates the fields, if not what the name says.")
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="All items there are, from a public source: one id a line, as the ratings have it.",
        ),
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(help="How many bytes the file may inflate to (2 GiB if not given)."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Read a file of ratings and say what is in it, or what is wrong with it (exit code 3)."""
    with failing_plainly(as_json=json):
        stated = parse_scale(scale)
        from goodfence.data.limits import DEFAULT_MAX_BYTES
        from goodfence.data.readers import read_reported

        limit = DEFAULT_MAX_BYTES if max_bytes is None else max_bytes
        place, declared = _named(file)
        with collected_notes() as notes:
            listed = None if items is None else read_items(items, limit)
            reading = read_reported(
                place,
                user=user,
                item=item,
                rating=rating,
                scale=stated or declared,
                duplicates=cast("Duplicates", duplicates),
                separator="\t" if separator in ("\\t", "tab") else separator,
                max_bytes=limit,
            )
            if listed is not None:
                reading = replace(reading, ratings=listed.under(reading.ratings))
        if json:
            print_json(_as_json(reading, notes))
        else:
            print_notes(notes)
            print_lines(_as_lines(reading, duplicates))


def _named(file: str) -> tuple[str | Path, Scale | None]:
    """Return where the ratings are and, for a data set that has a name, their scale."""
    from goodfence.data.catalogue import find
    from goodfence.data.datasets import DATASETS

    if file not in DATASETS:
        return file, None
    dataset = DATASETS[file]
    folder = find(dataset)
    here = (folder / name for name in dataset.files if (folder / name).is_file())
    return next(here, folder / dataset.files[0]), dataset.scale


def _as_lines(reading: Reading, duplicates: str) -> list[tuple[str, str]]:
    columns, ratings = reading.columns, reading.ratings
    before = "column " if columns.positional else ""
    found = "   ".join(
        f"{role} <- {before}{name}"
        for role, name in zip(("person", "item", "rating"), columns.chosen, strict=True)
    )
    unused = ", ".join(f"{before}{name}" for name in columns.unused)
    n_users, n_items = ratings.shape
    shape = f"{n_users:,} people x {n_items:,} items, {ratings.n_ratings:,} ratings"
    settled = f" ({duplicates} kept)" if reading.n_repeated else ""
    problems = f"0 missing · 0 out of scale · {reading.n_repeated:,} repeated{settled}"
    return [
        ("Columns", f"{found}   ({unused} not used)" if unused else found),
        ("Scale", f"{ratings.scale!s:<24} Shape   {shape}"),
        ("Problems", problems),
    ]


def _as_json(reading: Reading, notes: list[str]) -> dict[str, Any]:
    columns, scale = reading.columns, reading.ratings.scale
    n_users, n_items = reading.ratings.shape
    return {
        "columns": {
            "user": columns.user,
            "item": columns.item,
            "rating": columns.rating,
            "unused": list(columns.unused),
            "by_position": columns.positional,
        },
        "scale": {
            "lowest": scale.lowest,
            "highest": scale.highest,
            "step": scale.step,
            "declared": scale.declared,
        },
        "users": n_users,
        "items": n_items,
        "ratings": reading.ratings.n_ratings,
        "problems": {"missing": 0, "out_of_scale": 0, "repeated": reading.n_repeated},
        "notes": notes,
    }
