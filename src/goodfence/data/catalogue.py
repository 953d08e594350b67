"""The data sets that have a name: what they are, who publishes them, on which terms, and where they lie."""

from __future__ import annotations

import csv
import os
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from goodfence.data.download import Archive, download, extract, sha256
from goodfence.data.frame import Duplicates
from goodfence.data.scale import Scale
from goodfence.errors import DownloadProblem, FileProblem

BUNDLED = Path(__file__).parent / "bundled"
"""The data that comes with goodfence."""
FOLDER_VARIABLE = "GOODFENCE_DATA"
"""The environment variable that names a folder with data sets."""
_CATALOGUE = Path(__file__).with_name("catalogue.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class TitleFile:
    """A text file of which the first field is an item's id and the second its title."""

    name: str
    """The name of the file."""
    separator: str
    """What separates its fields; a comma means csv, with quotes and a header."""
    encoding: str = "utf-8"
    """How its text is written."""

    def read(self, folder: Path, items: Collection[str | int]) -> dict[str | int, str]:
        """Return the titles of `items`; none where the file is not there."""
        path = folder / self.name
        if not path.is_file():
            return {}
        known = {str(item): item for item in items}
        try:
            with path.open(encoding=self.encoding, newline="") as lines:
                rows = csv.reader(lines) if self.separator == "," else self._split(lines)
                return {known[row[0]]: row[1] for row in rows if row and row[0] in known}
        except (UnicodeDecodeError, csv.Error, IndexError) as problem:
            raise FileProblem(
                f"{path} must be {self.encoding} text with an id and a title in each line"
            ) from problem

    def _split(self, lines: Iterator[str]) -> Iterator[list[str]]:
        return (line.rstrip("\r\n").split(self.separator) for line in lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A data set that has a name."""

    name: str
    """What to ask for."""
    about: str
    """What it is, in a sentence."""
    folder: str
    """The folder it lies in, below `GOODFENCE_DATA` or the cache."""
    files: tuple[str, ...]
    """Names its ratings may have, the first that is there is read."""
    scale: Scale
    """The ratings that could be given."""
    shape: tuple[int, int]
    """How many users and items it has."""
    n_ratings: int
    """How many ratings it has, each pair once."""
    licence: str
    """On which terms it may be used."""
    source: str
    """Who publishes it."""
    titles: TitleFile | None = None
    """What its items are called."""
    duplicates: Duplicates = "error"
    """What is done about a pair that was rated twice; the reader warns of it."""
    sha256: str | None = None
    """The checksum of the first of `files`, where the original is known."""
    archive: Archive | None = None
    """Where it can be fetched; None where it has to be put in place by hand."""
    bundled: bool = False
    """Whether it comes with goodfence."""

    def file(self, folder: Path) -> Path | None:
        """Return the file in the folder that holds its ratings; None where there is none."""
        files = (folder / name for name in self.files)
        return next((file for file in files if file.is_file()), None)

    def checked_file(self, folder: Path) -> Path:
        """Return the file in the folder that holds its ratings, after making sure that it is the original."""
        path = self.file(folder)
        if path is None:
            raise FileProblem(f"{folder} must hold {' or '.join(self.files)}")
        known = self.sha256 if path.name == self.files[0] else None
        if known is not None and sha256(path) != known:
            raise FileProblem(
                f"{path} must be the original of {self.name}, and its checksum differs; "
                "get it again, or load it by its path if that is meant"
            )
        return path


def _datasets() -> Iterator[Dataset]:
    for name, entry in tomllib.loads(_CATALOGUE.read_text(encoding="utf-8")).items():
        titles, archive = entry.pop("titles", None), entry.pop("archive", None)
        lists = {key: tuple(entry.pop(key)) for key in ("files", "shape", "scale")}
        yield Dataset(
            name=name,
            files=lists["files"],
            shape=lists["shape"],
            scale=Scale.of(lists["scale"]),
            titles=titles and TitleFile(**titles),
            archive=archive and Archive(**archive),
            **entry,
        )


DATASETS = {dataset.name: dataset for dataset in _datasets()}
"""Every data set that has a name, as `catalogue.toml` states it."""


def named_folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the folder that `GOODFENCE_DATA` names, or None where it is not set."""
    name = environment.get(FOLDER_VARIABLE)
    if not name:
        return None
    folder = Path(name).expanduser()
    if not folder.is_dir():
        raise FileProblem(f"{FOLDER_VARIABLE} must name a folder that is there, got {name!r}")
    return folder


def cache_folder(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Return where this platform keeps what can be fetched again; it may not be there yet.

    Examples
    --------
    >>> cache_folder({"XDG_CACHE_HOME": "/tmp/cache"}, "linux").as_posix()
    '/tmp/cache/goodfence'
    """
    if platform == "win32":
        local = environment.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "goodfence" / "Cache"
    if platform == "darwin":
        return Path.home() / "Library" / "Caches" / "goodfence"
    base = environment.get("XDG_CACHE_HOME", "")
    # The XDG rule: a path that is not absolute does not count.
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "goodfence"


def find_dataset(
    dataset: Dataset,
    *,
    named: Path | None = None,
    cache: Path | None = None,
    timeout: float = 30.0,
) -> Path:
    """Return the folder that holds a data set, after downloading it if need be.

    `named` and `cache` are where to look; None takes the folder `GOODFENCE_DATA` and the user's cache. A server
    counts as gone after `timeout` seconds without an answer.
    """
    if dataset.bundled:
        return BUNDLED
    cached = cache or cache_folder()
    roots = [root for root in (named or named_folder(), cached) if root is not None]
    for root in roots:
        if dataset.file(root / dataset.folder) is not None:
            return root / dataset.folder
    if dataset.archive is None:
        raise DownloadProblem(
            f"{dataset.name} is not here and cannot be fetched; put {dataset.files[0]} into "
            f"{roots[0] / dataset.folder} or name the folder above it in {FOLDER_VARIABLE} "
            f"(it comes from: {dataset.source})"
        )
    downloaded = download(dataset.archive, cached, timeout=timeout)
    extract(downloaded, dataset.archive, cached / dataset.folder)
    return cached / dataset.folder
