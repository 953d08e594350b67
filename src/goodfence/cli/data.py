"""`goodfence data list`, `data fetch NAME`, `data export NAME FILE`: the data sets that have a name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from goodfence.cli.command import argument, command, command_group, flag, panel
from goodfence.cli.options import Output
from goodfence.cli.output import CSV, PARQUET, check_out, out_option, print_table
from goodfence.errors import SettingError, UnknownDataset, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

    from goodfence.data.catalogue import Dataset
    from goodfence.data.ratings import Ratings


@command("List the data sets that have a name.")
def list_command(output: Output) -> None:
    """List the data sets that have a name, and whether they are on this machine."""
    from goodfence.data.catalogue import DATASETS

    head = ["name", "users x items", "ratings", "scale", "where", "licence"]
    rows = [
        [
            *(one.name, _shape(one), f"{one.n_ratings:,}", str(one.scale), where(one)),
            re.split("[:;,]", one.licence)[0],  # `fetch` prints all of it
        ]
        for one in DATASETS.values()
    ]
    told = {"datasets": [_as_json(one) for one in DATASETS.values()]}
    output.tell(told, lambda: print_table(head, rows))


@panel("Data set")
class NamedSet:
    """Which data set."""

    name: str = argument("NAME", "A name of `goodfence data list`.")

    def dataset(self) -> Dataset:
        """Return the data set of this name."""
        from goodfence.data.catalogue import DATASETS

        if self.name not in DATASETS:
            near = did_you_mean(self.name, DATASETS)
            raise UnknownDataset(f"name must be one of {', '.join(DATASETS)}, got {self.name!r}{near}")
        return DATASETS[self.name]


@panel("Data set")
class Exported(NamedSet):
    """Which data set, and where to."""

    file: Path | None = argument("FILE", "Where to write, as with -o.", default=None)
    likes: float | None = flag("X", "Write events instead: the ratings of X or more.")


@command("Export a data set to a file of text or parquet.")
def export_command(
    wanted: Exported, output: Output, out: Annotated[Path | None, out_option(CSV, PARQUET)] = None
) -> None:
    """Write a data set to a file with the columns userId, movieId and rating; with --likes without ratings."""
    dataset, likes = wanted.dataset(), wanted.likes
    file = wanted.file or out
    if file is None or None not in (wanted.file, out):
        raise SettingError("the file to write is required once, as FILE or as -o FILE")
    check_out(file, CSV, PARQUET)
    output.say(f"reading {dataset.name}")
    from goodfence.data.files import write_table
    from goodfence.data.load import load

    with output.noting():
        ratings = load(dataset.name, likes=likes)
    write_table(file, _table(ratings))
    liked = {} if likes is None else {"likes": likes, "events": ratings.n_ratings}
    scale = dataset.scale
    step = "" if scale.step == 1 else f" {scale.step:g}"
    flags = "--feedback implicit" if liked else f"--scale {scale.lowest:g} {scale.highest:g}{step}"
    what = "events" if liked else "ratings"
    lines = [
        ("Written", f"{file}, {ratings.n_ratings:,} {what} of {_shape(dataset)}"),
        ("Next", f"goodfence check {file} {flags}"),
    ]
    output.tell({**_as_json(dataset), **liked, "file": str(file)}, lines)


@command("Download a data set, unless it is on this machine.")
def fetch_command(wanted: NamedSet, output: Output) -> None:
    """Download a data set into the cache, unless it is on this machine, and compare its checksum."""
    output.say(f"looking for {wanted.name}")
    from goodfence.data.catalogue import find_dataset
    from goodfence.data.load import load_dataset

    dataset = wanted.dataset()
    folder = find_dataset(dataset)
    load_dataset(dataset, folder)
    lines = [
        ("Data", dataset.about),
        ("Shape", f"{_shape(dataset)}, {dataset.n_ratings:,} ratings, {dataset.scale}"),
        ("Licence", dataset.licence),
        ("Source", dataset.source),
        ("Folder", str(folder)),
    ]
    output.tell({**_as_json(dataset), "folder": str(folder)}, lines)


def _table(ratings: Ratings) -> pa.Table:
    """Return the columns userId, movieId and rating; of events weight and timestamp where they are known."""
    import pyarrow as pa

    cells = ratings.csr.tocoo()
    values = cells.data.astype(int) if (cells.data % 1 == 0).all() else cells.data
    columns = {"userId": ratings.users[cells.row], "movieId": ratings.items[cells.col]}
    if ratings.feedback == "explicit":
        return pa.table({**columns, "rating": values})
    if not (values == 1).all():
        columns["weight"] = values
    if ratings.times is not None:
        columns["timestamp"] = ratings.times
    return pa.table(columns)


def where(dataset: Dataset) -> str:
    """Return where a data set is, or how to get it."""
    from goodfence.data.catalogue import cache_folder, named_folder

    if dataset.bundled:
        return "bundled"
    for root in (named_folder(), cache_folder()):
        if root is not None and dataset.file(root / dataset.folder) is not None:
            return "here"
    return "to fetch" if dataset.archive is not None else "by hand"


def _shape(dataset: Dataset) -> str:
    return "{:,} x {:,}".format(*dataset.shape)


def _as_json(dataset: Dataset) -> dict[str, object]:
    n_users, n_items = dataset.shape
    told = {name: getattr(dataset, name) for name in ("name", "about", "licence", "source")}
    counts = {"users": n_users, "items": n_items, "ratings": dataset.n_ratings}
    return {**told, **counts, "scale": str(dataset.scale), "where": where(dataset)}


_ABOUT = "List, fetch or export the data sets that have a name."
app = command_group("data", _ABOUT, list_command, fetch_command, export_command)
