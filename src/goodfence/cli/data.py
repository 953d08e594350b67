"""`goodfence data list` and `goodfence data fetch NAME`: the data sets that have a name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from goodfence.cli.grouping import command
from goodfence.cli.options import Output, Running
from goodfence.cli.printing import print_json, print_paragraphs, print_table
from goodfence.cli.reading import say

if TYPE_CHECKING:
    from goodfence.data.datasets import Dataset

app = typer.Typer(
    name="data",
    help="The data sets that have a name: which there are, and fetching one.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@command
def list_(output: Output) -> None:
    """Print every data set that has a name, and whether it is here."""
    from goodfence.data.datasets import DATASETS

    if output.json:
        print_json({"datasets": [_as_json(one) for one in DATASETS.values()]})
        return
    rows = [
        [one.name, _shape(one), f"{one.n_ratings:,}", str(one.scale), where(one), _terms(one)]
        for one in DATASETS.values()
    ]
    print_table(["name", "people x items", "ratings", "scale", "where", "terms"], rows)


@command
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name of `goodfence data list`.")],
    running: Running,
) -> None:
    """Download a data set into the cache, unless it is here, and check that it is the one."""
    say(f"looking for {name}", running)
    from goodfence.data.catalogue import find, read_dataset
    from goodfence.data.datasets import DATASETS
    from goodfence.errors import UnknownDataset, did_you_mean

    if name not in DATASETS:
        known = ", ".join(DATASETS)
        near = did_you_mean(name, DATASETS)
        raise UnknownDataset(f"name must be one of {known}, got {name!r}{near}")
    dataset = DATASETS[name]
    folder = find(dataset)
    read_dataset(dataset, folder)
    if running.json:
        print_json({**_as_json(dataset), "folder": str(folder)})
        return
    print_paragraphs(
        [
            ("Data", dataset.about),
            ("Shape", f"{_shape(dataset)}, {dataset.n_ratings:,} ratings, {dataset.scale}"),
            ("Terms", dataset.licence),
            ("Source", dataset.source),
            ("Folder", str(folder)),
        ]
    )


def where(dataset: Dataset) -> str:
    """Return where a data set is, or how it can be had."""
    from goodfence.data.places import cache_folder, named_folder

    if dataset.bundled:
        return "bundled"
    for root in (named_folder(), cache_folder()):
        if root is not None and any((root / dataset.folder / f).is_file() for f in dataset.files):
            return "here"
    return "to fetch" if dataset.archive is not None else "by hand"


def _terms(dataset: Dataset) -> str:
    """Return the terms in a word or two; `fetch` prints them whole."""
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


app.command("list")(list_)
app.command()(fetch)
