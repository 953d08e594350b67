"""The data sets that have a name: what they are, who publishes them, on which terms, and where they lie."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from goodfence.data.download import RemoteFile, download, extract, sha256
from goodfence.data.frame import Duplicates
from goodfence.data.scale import Scale
from goodfence.errors import DownloadProblem, FileProblem

BUNDLED = Path(__file__).parent / "bundled"
"""The data that comes with goodfence."""
FOLDER_VARIABLE = "GOODFENCE_DATA"
"""The environment variable that names a folder with data sets."""
GROUPLENS = "https://files.grouplens.org/datasets/movielens"
_GROUPLENS_TERMS = "GroupLens: research use, no redistribution without permission"
_ML_100K_PARTS = tuple(f"u{part}.{kind}" for part in "12345ab" for kind in ("base", "test"))


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
class Archive:
    """The original archive of a data set."""

    remote: RemoteFile
    """Where it is published."""
    wanted: tuple[str, ...]
    """The files to take out of it, the ratings last."""
    others: tuple[str, ...]
    """What else it holds."""
    folder: str
    """The folder in the archive that holds them all."""


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


_STARS = Scale(1, 5)
_TEN = Scale(0, 10)

_ALL = (
    Dataset(
        name="movietweetings",
        about="Film ratings tweeted in 2013: 20 a user and 10 a film at least",
        folder="movietweetings",
        files=("movietweetings.parquet",),
        scale=_TEN,
        shape=(1_238, 1_191),
        n_ratings=45_027,
        licence="MIT (Simon Dooms), shipped with goodfence",
        source="https://github.com/sidooms/MovieTweetings",
        titles=TitleFile(name="movietweetings-titles.csv", separator=","),
        bundled=True,
    ),
    Dataset(
        name="movietweetings-full",
        about="Film ratings tweeted in 2013, as of 6 November",
        folder="movietweetings",
        files=("ratings.dat",),
        scale=_TEN,
        shape=(21_081, 12_611),
        n_ratings=141_695,
        licence="MIT (Simon Dooms)",
        source="https://github.com/sidooms/MovieTweetings",
        titles=TitleFile(name="movies.dat", separator="::"),
        sha256="38677e4a858d3356326dfe0db73cc381c29043a9da4ade8c00a45486e2488c37",
    ),
    Dataset(
        name="ml-100k",
        about="MovieLens 100K: film ratings of 1997 and 1998",
        folder="ml-100k",
        files=("u.data",),
        scale=_STARS,
        shape=(943, 1_682),
        n_ratings=100_000,
        licence=_GROUPLENS_TERMS,
        source="https://grouplens.org/datasets/movielens/100k/",
        titles=TitleFile(name="u.item", separator="|", encoding="latin-1"),
        sha256="06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
        archive=Archive(
            remote=RemoteFile(
                url=f"{GROUPLENS}/ml-100k.zip",
                sha256="50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
                n_bytes=4_924_029,
            ),
            folder="ml-100k",
            wanted=("README", "u.item", "u.data"),
            others=(
                *("allbut.pl", "mku.sh", "u.genre", "u.info", "u.occupation", "u.user"),
                *_ML_100K_PARTS,
            ),
        ),
    ),
    Dataset(
        name="ml-1m",
        about="MovieLens 1M: film ratings of 2000 to 2003",
        folder="ml-1m",
        files=("ratings.dat", "ratings.parquet"),
        scale=_STARS,
        shape=(6_040, 3_706),
        n_ratings=1_000_209,
        licence=_GROUPLENS_TERMS,
        source="https://grouplens.org/datasets/movielens/1m/",
        titles=TitleFile(name="movies.dat", separator="::", encoding="latin-1"),
        archive=Archive(
            remote=RemoteFile(
                url=f"{GROUPLENS}/ml-1m.zip",
                sha256="a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
                n_bytes=5_917_549,
            ),
            folder="ml-1m",
            wanted=("README", "movies.dat", "ratings.dat"),
            others=("users.dat",),
        ),
    ),
    Dataset(
        name="douban-movie",
        about="Film ratings of Douban; the Douban set of the paper is no longer to be had",
        folder="douban-movie",
        files=("ratings.parquet",),
        scale=_STARS,
        shape=(13_367, 12_677),
        n_ratings=1_068_278,
        licence="not stated; not to be shipped",
        source="the published studies that use it",
    ),
    Dataset(
        name="netflix-tenth",
        about="Netflix Prize, the users whose id ends in 0",
        folder="netflix-tenth",
        files=("ratings.parquet",),
        scale=_STARS,
        shape=(47_730, 17_760),
        n_ratings=10_097_437,
        licence="Netflix Prize rules: research use, not to be shipped",
        source="the Netflix Prize files, which Netflix itself no longer offers",
    ),
    Dataset(
        name="goodbooks",
        about="Book ratings, first edition of goodbooks-10k: each book cut at 100 ratings",
        folder="goodbooks",
        files=("ratings.parquet", "ratings.csv"),
        scale=_STARS,
        shape=(53_424, 10_000),
        n_ratings=979_478,
        licence="CC BY-SA 4.0 (Zygmunt Zając)",
        source="https://github.com/zygmuntz/goodbooks-10k",
        titles=TitleFile(name="titles.csv", separator=","),
        duplicates="last",
    ),
)

DATASETS = {dataset.name: dataset for dataset in _ALL}
"""Every data set that has a name."""


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
    return _fetched(dataset.archive, cached, cached / dataset.folder, timeout)


def _fetched(archive: Archive, cache: Path, folder: Path, timeout: float) -> Path:
    """Download an archive into the cache and unpack what is wanted; the ratings come last."""
    downloaded = download(archive.remote, cache, timeout=timeout)
    wanted, others = (
        [f"{archive.folder}/{file}" for file in files] for files in (archive.wanted, archive.others)
    )
    known = {f"{archive.folder}/", *wanted, *others}
    extract(downloaded, folder=folder, wanted=wanted, expected=known)
    return folder
