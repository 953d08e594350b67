"""`goodfence data list`, `data fetch NAME`, `data export NAME FILE`: the data sets that have a name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from goodfence.cli.command import argument, command, command_group, flag, panel
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
from goodfence.errors import SettingError, UnknownDataset, did_you_mean

if TYPE_CHECKING:
    from goodfence.data.catalogue import Dataset


@command("Every data set that has a name, and whether it is here.")
def list_command(output: Output) -> None:
    """Print every data set that has a name, and whether it is here."""
    from goodfence.data.catalogue import DATASETS

    if output.json:
        print_json({"datasets": [_as_json(one) for one in DATASETS.values()]})
        return
    rows = [
        [one.name, _shape(one), f"{one.n_ratings:,}", str(one.scale), where(one), _licence(one)]
        for one in DATASETS.values()
    ]
    print_table(["name", "users x items", "ratings", "scale", "where", "licence"], rows)


@panel("Data set")
class NamedSet:
    """Which data set."""

    name: str = argument("NAME", "A name of `goodfence data list`.")

    def dataset(self) -> Dataset:
        """Return the data set of this name."""
        from goodfence.data.catalogue import DATASETS

        if self.name not in DATASETS:
            known = ", ".join(DATASETS)
            near = did_you_mean(self.name, DATASETS)
            raise UnknownDataset(f"name must be one of {known}, got {self.name!r}{near}")
        return DATASETS[self.name]


@panel("Data set")
class Exported(NamedSet):
    """Which data set, and where to."""

    file: Path | None = argument("FILE", "Where to write, as with -o.", default=None)
    likes: float | None = flag("X", "Write events instead: the ratings of X or more.")


@command("Write a data set to a file, as text or parquet.")
def export_command(
    wanted: Exported, output: Output, out: Annotated[Path | None, out_option(CSV, PARQUET)] = None
) -> None:
    """Write the ratings of a data set to a file with the columns userId, movieId and rating; of likes, without one."""
    dataset = wanted.dataset()
    file = wanted.file or out
    if file is None or None not in (wanted.file, out):
        raise SettingError("out must be given once, as FILE or as -o FILE")
    check_out(file, CSV, PARQUET)
    output.say(f"reading {dataset.name}")
    from goodfence.data.files import write_table
    from goodfence.data.load import load
    from goodfence.report.serialize import ratings_table

    with output.noting():
        ratings = load(dataset.name, likes=wanted.likes)
    write_table(file, ratings_table(ratings))
    liked = {} if wanted.likes is None else {"likes": wanted.likes, "events": ratings.n_ratings}
    if output.json:
        print_json({**_as_json(dataset), **liked, "file": str(file)})
        return
    what = "events" if liked else "ratings"
    print_paragraphs(
        [
            ("Written", f"{file}, {ratings.n_ratings:,} {what} of {_shape(dataset)}"),
            ("Next", f"goodfence check {file} {_reading(dataset, wanted.likes)}"),
        ]
    )


def _reading(dataset: Dataset, likes: float | None) -> str:
    """Return the flags with which what was exported is read."""
    if likes is not None:
        return "--feedback implicit"
    scale = dataset.scale
    step = "" if scale.step == 1 else f" {scale.step:g}"
    return f"--scale {scale.lowest:g} {scale.highest:g}{step}"


@command("Download a data set into the cache, unless it is here.")
def fetch_command(wanted: NamedSet, output: Output) -> None:
    """Download a data set into the cache, unless it is here, and compare its checksum."""
    output.say(f"looking for {wanted.name}")
    from goodfence.data.catalogue import find_dataset
    from goodfence.data.load import load_dataset

    dataset = wanted.dataset()
    folder = find_dataset(dataset)
    load_dataset(dataset, folder)
    if output.json:
        print_json({**_as_json(dataset), "folder": str(folder)})
        return
    print_paragraphs(
        [
            ("Data", dataset.about),
            ("Shape", f"{_shape(dataset)}, {dataset.n_ratings:,} ratings, {dataset.scale}"),
            ("Licence", dataset.licence),
            ("Source", dataset.source),
            ("Folder", str(folder)),
        ]
    )


def where(dataset: Dataset) -> str:
    """Return where a data set is, or how it can be had."""
    from goodfence.data.catalogue import cache_folder, named_folder

    if dataset.bundled:
        return "bundled"
    for root in (named_folder(), cache_folder()):
        if root is not None and dataset.file(root / dataset.folder) is not None:
            return "here"
    return "to fetch" if dataset.archive is not None else "by hand"


def _licence(dataset: Dataset) -> str:
    """Return the licence in a word or two; `fetch` prints all of it."""
    return re.split("[:;,]", dataset.licence)[0]


def _shape(dataset: Dataset) -> str:
    n_users, n_items = dataset.shape
    return f"{n_users:,} x {n_items:,}"


def _as_json(dataset: Dataset) -> dict[str, object]:
    return {
        "name": dataset.name,
        "about": dataset.about,
        "users": dataset.shape[0],
        "items": dataset.shape[1],
        "ratings": dataset.n_ratings,
        "scale": str(dataset.scale),
        "where": where(dataset),
        "licence": dataset.licence,
        "source": dataset.source,
    }


app = command_group(
    "data",
    "List, fetch or export the data sets that have a name.",
    list_command,
    fetch_command,
    export_command,
)
