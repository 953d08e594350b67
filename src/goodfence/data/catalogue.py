"""Loading ratings by name or by path."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from goodfence.data.archive import extract
from goodfence.data.datasets import DATASETS, Archive, Dataset
from goodfence.data.download import fetch
from goodfence.data.limits import DEFAULT_MAX_BYTES
from goodfence.data.places import FOLDER_VARIABLE, cache_folder, named_folder
from goodfence.data.ratings import Id, Ratings
from goodfence.data.readers import read_ratings
from goodfence.data.scale import Scale
from goodfence.data.triplets import Duplicates
from goodfence.errors import (
    DownloadProblem,
    FileProblem,
    SettingError,
    UnknownDataset,
    did_you_mean,
)

BUNDLED = Path(__file__).parent / "bundled"
"""The data that comes with goodfence."""


def load(
    name: str | os.PathLike[str],
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    scale: Scale | tuple[float, ...] | None = None,
    duplicates: Duplicates | None = None,
    items: Sequence[Id] | npt.NDArray[Any] | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Ratings:
    """Return the ratings of a data set that has a name, or of a file.

    A named one is looked for in what comes with goodfence, then in the folder `GOODFENCE_DATA`,
    then in the user's cache; then its original archive is downloaded into the cache.

    Parameters
    ----------
    name
        A name of the catalogue, or a path: csv, tsv, "::" dat, parquet, and gz of the text ones.
    user, item, rating
        For a file: its columns, where their names do not tell.
    scale
        For a file: what ratings can be given; None observes it from the data.
    duplicates
        What is done about a pair that was rated twice. None means "error" for a file, and for a
        name what the catalogue declares, with a warning where that leaves ratings out.
    items
        All items there are, from a public source, in the order of the columns; every item that was rated must be
        among them. None takes those that somebody rated.
    max_bytes
        The most memory that the ratings may take when they are unpacked.

    Examples
    --------
    >>> ratings = load("movietweetings")
    >>> ratings
    Ratings(1,238 users x 1,191 items, 45,027 ratings, whole numbers 0-10)
    >>> ratings.title("0068646")
    'The Godfather (1972)'
    """
    dataset = DATASETS.get(name) if isinstance(name, str) else None
    if dataset is None:
        columns = {"user": user, "item": item, "rating": rating}
        path = _path(name)
        given = duplicates or "error"
        found = read_ratings(path, **columns, scale=scale, duplicates=given, max_bytes=max_bytes)
        return found if items is None else found.on_items(items)
    for setting, value in (("user", user), ("item", item), ("rating", rating), ("scale", scale)):
        if value is not None:
            raise SettingError(f"{setting} must be left out for a named data set, which states it")
    found = read_dataset(dataset, find(dataset), duplicates=duplicates, max_bytes=max_bytes)
    return found if items is None else found.on_items(items)


def find(
    dataset: Dataset,
    *,
    named: Path | None = None,
    cache: Path | None = None,
    timeout: float = 30.0,
) -> Path:
    """Return the folder that holds a data set, after downloading it if need be.

    Parameters
    ----------
    dataset
        What to look for.
    named, cache
        Where to look; None takes the folder `GOODFENCE_DATA` and the user's cache.
    timeout
        Seconds without an answer after which a server counts as gone.
    """
    if dataset.bundled:
        return BUNDLED
    cached = cache or cache_folder()
    roots = [root for root in (named or named_folder(), cached) if root is not None]
    for root in roots:
        if _ratings_file(dataset, root / dataset.folder) is not None:
            return root / dataset.folder
    if dataset.archive is None:
        raise DownloadProblem(
            f"{dataset.name} is not here and cannot be fetched; put {dataset.files[0]} into "
            f"{roots[0] / dataset.folder} or name the folder above it in {FOLDER_VARIABLE} "
            f"(it comes from: {dataset.source})"
        )
    return _fetched(dataset.archive, cached, cached / dataset.folder, timeout)


def read_dataset(
    dataset: Dataset,
    folder: Path,
    *,
    duplicates: Duplicates | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Ratings:
    """Return the ratings of a data set from its folder, after making sure that it is the one."""
    path = _ratings_file(dataset, folder)
    if path is None:
        raise FileProblem(f"{folder} must hold {' or '.join(dataset.files)}")
    _check_sum(dataset, path)
    rule = duplicates or dataset.duplicates
    ratings = read_ratings(path, scale=dataset.scale, duplicates=rule, max_bytes=max_bytes)
    if (ratings.shape, ratings.n_ratings) != (dataset.shape, dataset.n_ratings):
        users, items = dataset.shape
        raise FileProblem(
            f"{path} must be {dataset.name} with {users:,} users, {items:,} items and "
            f"{dataset.n_ratings:,} ratings, got {ratings!r}; load it by its path if that is meant"
        )
    if dataset.titles is None:
        return ratings
    return _titled(ratings, dataset.titles.read(folder, ratings.items.tolist()))


def _path(name: str | os.PathLike[str]) -> Path:
    """Return the path that is meant: one that exists, or that looks like one."""
    path = Path(name)
    if not isinstance(name, str) or path.suffix or len(path.parts) > 1 or _exists(path):
        return path
    known = ", ".join(DATASETS)
    raise UnknownDataset(
        f"name must be a file or one of {known}, got {name!r}{did_you_mean(name, DATASETS)}"
    )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long for a name, or with a NUL in it
        return False


def _ratings_file(dataset: Dataset, folder: Path) -> Path | None:
    files = (folder / file for file in dataset.files)
    return next((file for file in files if file.is_file()), None)


def _fetched(archive: Archive, cache: Path, folder: Path, timeout: float) -> Path:
    """Download an archive into the cache and unpack what is wanted; the ratings come last."""
    downloaded = fetch(archive.remote, cache, timeout=timeout)
    members = [f"{archive.folder}/{file}" for file in archive.wanted]
    others = [f"{archive.folder}/{file}" for file in archive.others]
    extract(
        downloaded,
        folder=folder,
        wanted=members,
        expected={f"{archive.folder}/", *members, *others},
    )
    return folder


def _check_sum(dataset: Dataset, path: Path) -> None:
    if dataset.sha256 is None or path.name != dataset.files[0]:
        return
    with path.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != dataset.sha256:
        raise FileProblem(
            f"{path} must be the original of {dataset.name}, and its checksum differs; "
            "get it again, or load it by its path if that is meant"
        )


def _titled(ratings: Ratings, titles: dict[str | int, str]) -> Ratings:
    return Ratings(ratings.csr, ratings.users, ratings.items, ratings.scale, titles)
