"""The data sets that have a name: what they are, who publishes them, where they lie, and how they are fetched."""

from __future__ import annotations

import csv
import hashlib
import http.client
import os
import re
import stat
import sys
import tomllib
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from goodfence.data.files import atomic_write
from goodfence.data.frame import Duplicates
from goodfence.data.scale import Scale
from goodfence.errors import DownloadProblem, FileProblem, SizeProblem, require
from goodfence.parallel import bar
from goodfence.settings import positive

BUNDLED = Path(__file__).parent / "bundled"  # the data that comes with goodfence
FOLDER_VARIABLE = "GOODFENCE_DATA"  # the environment variable that names a folder with data sets
_CATALOGUE = Path(__file__).with_name("catalogue.toml")
_CHUNK = 2**16
MAX_FILE_BYTES = 256 * 2**20  # no file in an archive of the catalogue is larger than this when unpacked
_ENCRYPTED = 0x1


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A zip archive that somebody publishes, how to know it, and what it holds."""

    url: str
    sha256: str
    n_bytes: int  # its size; more than that is never written
    folder: str = ""  # the folder in the archive that holds all files
    wanted: Sequence[str] = ()  # the files to take out of it, the ratings last
    others: Sequence[str] = ()  # what else it holds

    def __post_init__(self) -> None:
        web = self.url.startswith(("https://", "http://"))
        require(web, "url", "an address of the web", self.url)
        require(self.n_bytes >= 1, "n_bytes", "a positive integer", self.n_bytes)

    @property
    def name(self) -> str:
        """The last part of its address."""
        return self.url.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class TitleFile:
    """A text file of which the first field is an item's id and the second its title."""

    name: str
    separator: str  # a comma means csv, with quotes and a header
    encoding: str = "utf-8"

    def read(self, folder: Path, items: Collection[str | int]) -> dict[str | int, str]:
        """Return the titles of `items`; none where the file is not there."""
        path = folder / self.name
        if not path.is_file():
            return {}
        known = {str(item): item for item in items}
        try:
            with path.open(encoding=self.encoding, newline="") as lines:
                rows: Iterable[list[str]] = csv.reader(lines)
                if self.separator != ",":
                    rows = (line.rstrip("\r\n").split(self.separator) for line in lines)
                return {known[row[0]]: row[1] for row in rows if row and row[0] in known}
        except (UnicodeDecodeError, csv.Error, IndexError) as problem:
            raise FileProblem(f"{path} must be {self.encoding} text with an id and a title in each line") from problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A data set that has a name."""

    name: str
    about: str
    folder: str  # the folder it lies in, below `GOODFENCE_DATA` or the cache
    files: tuple[str, ...]  # names its ratings may have; the first that exists is read
    scale: Scale
    shape: tuple[int, int]
    n_ratings: int
    licence: str
    source: str  # who publishes it
    titles: TitleFile | None = None
    duplicates: Duplicates = "error"
    sha256: str | None = None  # the checksum of the first of `files`, where the original is known
    archive: Archive | None = None  # where it can be fetched; None where it has to be put in place by hand
    bundled: bool = False  # whether it comes with goodfence

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
        entry |= {key: tuple(entry[key]) for key in ("files", "shape")}
        entry |= {"scale": Scale.of(entry["scale"]), "titles": titles and TitleFile(**titles)}
        yield Dataset(name=name, archive=archive and Archive(**archive), **entry)


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
    """Return where this platform keeps what can be fetched again; it may not be there yet."""
    if platform == "win32":
        local = environment.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "goodfence" / "Cache"
    if platform == "darwin":
        return Path.home() / "Library" / "Caches" / "goodfence"
    base = environment.get("XDG_CACHE_HOME", "")
    # The XDG rule: a path that is not absolute does not count.
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "goodfence"


def find_dataset(
    dataset: Dataset, *, named: Path | None = None, cache: Path | None = None, timeout: float = 30.0
) -> Path:
    """Return the folder that holds a data set, after downloading it if need be.

    `named` and `cache` are where to look; None takes the folder `GOODFENCE_DATA` and the user's cache.
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


def download(archive: Archive, folder: Path, *, timeout: float = 30.0) -> Path:
    """Return the file in `folder`, downloading it if it is not there; a wrong checksum never gets the right name."""
    target = folder / archive.name
    positive(timeout, "timeout")
    if target.exists() and not target.is_file():
        raise DownloadProblem(f"{target} is a folder or a device, not a file; remove it")
    if target.exists():
        if sha256(target) != archive.sha256:
            raise DownloadProblem(f"{target} has a wrong checksum; remove it, then try again")
        return target
    try:
        with atomic_write(target) as file:
            _receive(archive, file, folder, timeout)
    except OSError as problem:
        raise DownloadProblem(f"{folder} must be a folder that can be written to") from problem
    return target


def _receive(archive: Archive, file: BinaryIO, folder: Path, timeout: float) -> None:
    """Write what arrives, and not a byte more than the file is known to have; raise unless it is the archive."""
    advice = f"with no network, get {archive.name} elsewhere and put it into {folder}"
    left, arrived = archive.n_bytes, hashlib.sha256()
    try:
        with (
            urllib.request.urlopen(archive.url, timeout=timeout) as answer,  # noqa: S310 - see Archive
            bar(archive.name, archive.n_bytes) as advance,
        ):
            while left and (chunk := answer.read(min(_CHUNK, left))):
                file.write(chunk)
                arrived.update(chunk)
                left -= len(chunk)
                advance(len(chunk))
    except urllib.error.HTTPError as problem:
        problem.close()
        raise DownloadProblem(
            f"{archive.url} could not be fetched: the server answered {problem.code}; {advice}"
        ) from None
    except (OSError, http.client.HTTPException) as problem:  # refused, unknown host, timed out
        kind = type(getattr(problem, "reason", problem)).__name__
        raise DownloadProblem(f"{archive.url} could not be fetched ({kind}); {advice}") from problem
    if left:
        raise DownloadProblem(
            f"{archive.name} was interrupted after {archive.n_bytes - left:,} of {archive.n_bytes:,} bytes; "
            f"try again; {advice}"
        )
    if arrived.hexdigest() != archive.sha256:
        raise DownloadProblem(
            f"{archive.name} arrived with a wrong checksum and was removed; try again, "
            f"or get it elsewhere and put it into {folder}"
        )


def sha256(file: Path) -> str:
    """Return the checksum of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def extract(path: Path, archive: Archive, folder: Path, max_bytes: int = MAX_FILE_BYTES) -> list[Path]:
    """Write the wanted files of an archive into `folder`, in order, atomically, after checking all of the archive."""
    inside = f"{archive.folder}/" if archive.folder else ""
    wanted = [f"{inside}{name}" for name in archive.wanted]
    expected = {inside, *wanted, *(f"{inside}{name}" for name in archive.others)}
    with _opened(path, folder) as opened:
        names = [member.orig_filename for member in opened.infolist()]
        for member in opened.infolist():
            if member.orig_filename not in expected or member.filename != member.orig_filename:
                rule = "must hold nothing but the files of the data set, and one is none of them"
                raise FileProblem(f"{path.name} {rule}; not unpacked")
            _check_member(member, path.name, max_bytes)
        if len(set(names)) != len(names):
            raise FileProblem(f"{path.name} must hold each file once, and one is there twice; not unpacked")
        if not set(wanted) <= set(names):
            raise FileProblem(f"{path.name} must hold {', '.join(wanted)}; not unpacked")
        return [_write(opened, member, folder / member.rsplit("/", 1)[-1], max_bytes) for member in wanted]


def extract_only(path: Path, folder: Path, max_bytes: int) -> Path:
    """Write the only file of an archive into `folder`; of its name no more than a plain ending is used."""
    with _opened(path, folder) as opened:
        ours = [one for one in opened.infolist() if not (one.is_dir() or one.filename.startswith("__MACOSX/"))]
        if len(ours) != 1:
            raise FileProblem(
                f"{path.name!r} must hold one file, and holds {len(ours):,}; unpack it, and name one of them"
            )
        _check_member(ours[0], repr(path.name), max_bytes)
        ending = re.search(r"((\.[A-Za-z0-9]{1,9}){0,2})$", ours[0].filename, re.ASCII)
        return _write(opened, ours[0], folder / f"the file in {path.stem}{ending[0] if ending else ''}", max_bytes)


@contextmanager
def _opened(path: Path, folder: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive whose files go to `folder`, and turn the many errors of damaged ones into one sentence."""
    try:
        with zipfile.ZipFile(path) as opened:
            yield opened
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise FileProblem(f"{folder} could not be written to: {reason}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as problem:
        raise FileProblem(
            f"{path.name} must be a whole zip archive, and is damaged or none; remove it and try again"
        ) from problem


def _check_member(member: zipfile.ZipInfo, archive: str, max_bytes: int) -> None:
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFDIR if member.is_dir() else stat.S_IFREG):
        raise FileProblem(f"{archive} must hold plain files only; not unpacked")
    if member.flag_bits & _ENCRYPTED:
        raise FileProblem(f"{archive} must not be encrypted; not unpacked")
    if member.file_size > max_bytes:
        raise SizeProblem(
            f"a file in {archive} must have at most {max_bytes:,} bytes when unpacked, "
            f"got {member.file_size:,}; not unpacked"
        )


def _write(opened: zipfile.ZipFile, member: str | zipfile.ZipInfo, target: Path, max_bytes: int) -> Path:
    n_bytes = 0
    with opened.open(member) as source, atomic_write(target) as file:
        while chunk := source.read(_CHUNK):
            n_bytes += len(chunk)
            if n_bytes > max_bytes:  # the size a member states may be a lie
                raise SizeProblem(f"a file in an archive must have at most {max_bytes:,} bytes when unpacked")
            file.write(chunk)
    return target
