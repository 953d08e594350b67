"""Download an archive over HTTP, check it, and unpack it."""

from __future__ import annotations

import hashlib
import http.client
import stat
import sys
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from goodfence.data.files import atomic_write
from goodfence.errors import DownloadProblem, FileProblem, SizeProblem, require
from goodfence.settings import positive

_CHUNK = 2**16
MAX_FILE_BYTES = 256 * 2**20
"""No file in an archive of the catalogue is larger than this when unpacked."""
_UNPACK_CHUNK = 2**20
_ENCRYPTED = 0x1


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A zip archive that somebody publishes, how to know it, and what it holds."""

    url: str
    """Its address."""
    sha256: str
    """Its checksum."""
    n_bytes: int
    """Its size; more than that is never written."""
    folder: str = ""
    """The folder in the archive that holds all files."""
    wanted: Sequence[str] = ()
    """The files to take out of it, the ratings last."""
    others: Sequence[str] = ()
    """What else it holds."""

    def __post_init__(self) -> None:
        web = self.url.startswith(("https://", "http://"))
        require(web, "url", "an address of the web", self.url)
        require(self.n_bytes >= 1, "n_bytes", "a positive integer", self.n_bytes)

    @property
    def name(self) -> str:
        """The last part of its address."""
        return self.url.rsplit("/", 1)[-1]


def download(archive: Archive, folder: Path, *, timeout: float = 30.0) -> Path:
    """Return the file in `folder`, downloading it if it is not there yet.

    Only a file with the right checksum gets the right name. The server counts as gone after `timeout` seconds without
    an answer.
    """
    target = folder / archive.name
    positive(timeout, "timeout")
    if target.exists() and not target.is_file():
        raise DownloadProblem(f"{target} is a folder or a device, not a file; remove it")
    if target.exists():
        if sha256(target) != archive.sha256:
            raise DownloadProblem(f"{target} has a wrong checksum; remove it, then try again")
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=folder, prefix=f".{archive.name}.", delete=False) as file:
            part = Path(file.name)
    except OSError as problem:
        raise DownloadProblem(f"{folder} must be a folder that can be written to") from problem
    try:
        _receive(archive, part, timeout)
        if sha256(part) != archive.sha256:
            raise DownloadProblem(
                f"{archive.name} arrived with a wrong checksum and was removed; try again, "
                f"or get it elsewhere and put it into {folder}"
            )
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return target


def _receive(archive: Archive, part: Path, timeout: float) -> None:
    """Write what arrives, and not a byte more than the file is known to have."""
    advice = f"with no network, get {archive.name} elsewhere and put it into {part.parent}"
    left = archive.n_bytes
    try:
        with (
            urllib.request.urlopen(archive.url, timeout=timeout) as answer,  # noqa: S310 - see Archive
            part.open("wb") as file,
            _progress(archive) as advance,
        ):
            while left and (chunk := answer.read(min(_CHUNK, left))):
                file.write(chunk)
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


@contextmanager
def _progress(archive: Archive) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr, if somebody is there to see it."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(archive.name, total=archive.n_bytes)
        yield lambda n_bytes: bar.advance(task, n_bytes)


def sha256(file: Path) -> str:
    """Return the checksum of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def extract(
    path: Path, archive: Archive, folder: Path, max_bytes: int = MAX_FILE_BYTES
) -> list[Path]:
    """Write the wanted files of an archive into `folder`, in order, each by an atomic write, and return them.

    All of the archive is checked before anything is written: it holds nothing but what it is known to hold, no path
    that leads elsewhere, no link, nothing encrypted, nothing larger than `max_bytes` when unpacked.
    """
    inside = f"{archive.folder}/" if archive.folder else ""
    wanted = [f"{inside}{name}" for name in archive.wanted]
    expected = {inside, *wanted, *(f"{inside}{name}" for name in archive.others)}
    try:
        with zipfile.ZipFile(path) as opened:
            names = [member.orig_filename for member in opened.infolist()]
            for member in opened.infolist():
                _check_member(member, path.name, expected, max_bytes)
            if len(set(names)) != len(names):
                raise FileProblem(
                    f"{path.name} must hold each file once, and one is there twice; not unpacked"
                )
            if not set(wanted) <= set(names):
                raise FileProblem(f"{path.name} must hold {', '.join(wanted)}; not unpacked")
            return [_write(opened, member, folder, max_bytes) for member in wanted]
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise FileProblem(f"{folder} could not be written to: {reason}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as problem:
        raise FileProblem(
            f"{path.name} must be a whole zip archive, and is damaged or none; remove it and try again"
        ) from problem


def _check_member(
    member: zipfile.ZipInfo, archive: str, expected: Collection[str], max_bytes: int
) -> None:
    if member.orig_filename not in expected or member.filename != member.orig_filename:
        raise FileProblem(
            f"{archive} must hold nothing but the files of the data set, and one is none of them; "
            "not unpacked"
        )
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


def _write(opened: zipfile.ZipFile, member: str, folder: Path, max_bytes: int) -> Path:
    target = folder / member.rsplit("/", 1)[-1]
    n_bytes = 0
    with opened.open(member) as source, atomic_write(target) as file:
        while chunk := source.read(_UNPACK_CHUNK):
            n_bytes += len(chunk)
            if n_bytes > max_bytes:  # the size a member states may be a lie
                raise SizeProblem(
                    f"a file in an archive must have at most {max_bytes:,} bytes when unpacked"
                )
            file.write(chunk)
    return target
