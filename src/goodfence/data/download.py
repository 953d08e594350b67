"""Fetching an archive over HTTP (resumed where that can be, checked, never half there), and unpacking it."""

from __future__ import annotations

import hashlib
import http.client
import secrets
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
from typing import BinaryIO

from goodfence.data.files import atomic_write
from goodfence.errors import DownloadProblem, FileProblem, SizeProblem, require
from goodfence.settings import positive

_CHUNK = 2**16
_PARTIAL_CONTENT = 206
_RANGE_NOT_SATISFIABLE = 416
MAX_FILE_BYTES = 256 * 2**20
"""No file in an archive of the catalogue is larger than this when unpacked."""
_UNPACK_CHUNK = 2**20
_ENCRYPTED = 0x1


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file that somebody publishes, and how to know it."""

    url: str
    """Its address."""
    sha256: str
    """Its checksum."""
    n_bytes: int
    """Its size; more than that is never written."""

    def __post_init__(self) -> None:
        web = self.url.startswith(("https://", "http://"))
        require(web, "url", "an address of the web", self.url)
        require(self.n_bytes >= 1, "n_bytes", "a positive integer", self.n_bytes)

    @property
    def name(self) -> str:
        """The last part of its address."""
        return self.url.rsplit("/", 1)[-1]


def download(remote: RemoteFile, folder: Path, *, timeout: float = 30.0) -> Path:
    """Return the file in `folder`, downloading it if it is not there yet.

    What arrives goes to ``<name>.part`` beside it. An interrupted download keeps that part, and the next call goes on
    from there if the server can, and from the start if not. Only a file with the right checksum gets the right name.
    The server counts as gone after `timeout` seconds without an answer.
    """
    target = folder / remote.name
    positive(timeout, "timeout")
    for taken in (target, target.with_name(f"{target.name}.part")):
        if taken.exists() and not taken.is_file():
            raise DownloadProblem(
                f"{taken} must be a file, and is a folder or a device; remove it, then it is fetched again"
            )
    if target.exists():
        if sha256(target) != remote.sha256:
            raise DownloadProblem(
                f"{target} has a wrong checksum; remove it, then it is fetched again"
            )
        return target
    with _claimed(target) as part:
        _receive(remote, part, folder, timeout)
        if sha256(part) != remote.sha256:
            part.unlink()
            raise DownloadProblem(
                f"{remote.name} arrived with a wrong checksum and was removed; try again, "
                f"or get it elsewhere and put it into {folder}"
            )
        part.replace(target)
    return target


@contextmanager
def _claimed(target: Path) -> Iterator[Path]:
    """Take the part file over by renaming it: two downloads never write to one file."""
    resting = target.with_name(f"{target.name}.part")
    mine = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            resting.rename(mine)
        except FileNotFoundError:
            mine.touch()
    except OSError as problem:
        raise DownloadProblem(
            f"{target.parent} must be a folder that can be written to"
        ) from problem
    try:
        yield mine
    finally:
        if mine.exists() and mine.stat().st_size:
            mine.replace(resting)  # what has arrived is there for the next time
        mine.unlink(missing_ok=True)


def _receive(remote: RemoteFile, part: Path, folder: Path, timeout: float) -> None:
    advice = f"with no network, get {remote.name} elsewhere and put it into {folder}"
    try:
        _transfer(remote, part, timeout)
    except urllib.error.HTTPError as problem:
        problem.close()
        raise DownloadProblem(
            f"{remote.url} could not be fetched: the server answered {problem.code}; {advice}"
        ) from None
    except (OSError, http.client.HTTPException) as problem:  # refused, unknown host, timed out
        reason = getattr(problem, "reason", problem)
        kind = type(reason).__name__
        raise DownloadProblem(f"{remote.url} could not be fetched ({kind}); {advice}") from problem
    n_bytes = part.stat().st_size
    if n_bytes < remote.n_bytes:
        raise DownloadProblem(
            f"{remote.name} was interrupted after {n_bytes:,} of {remote.n_bytes:,} bytes; "
            f"call again to go on; {advice}"
        )


def _transfer(remote: RemoteFile, part: Path, timeout: float) -> None:
    """Bring the part to its full size: by what is missing, if the server sends exactly that, or else from the start."""
    have = part.stat().st_size
    if have == remote.n_bytes:
        return
    if 0 < have < remote.n_bytes:
        try:
            with _answer(remote, timeout, {"Range": f"bytes={have}-"}) as answer:
                sent = answer.headers.get("Content-Range", "")
                if answer.status == _PARTIAL_CONTENT and sent.startswith(f"bytes {have}-"):
                    with part.open("ab") as file:
                        _copy(answer, file, have, remote)
                    return
        except urllib.error.HTTPError as problem:
            problem.close()
            if problem.code != _RANGE_NOT_SATISFIABLE:
                raise
    with _answer(remote, timeout, {}) as answer, part.open("wb") as file:
        _copy(answer, file, 0, remote)


def _answer(
    remote: RemoteFile, timeout: float, headers: dict[str, str]
) -> http.client.HTTPResponse:
    request = urllib.request.Request(remote.url, headers=headers)  # noqa: S310 - see RemoteFile
    answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=timeout)  # noqa: S310
    return answer


def _copy(answer: http.client.HTTPResponse, file: BinaryIO, have: int, remote: RemoteFile) -> None:
    """Write what arrives, and not a byte more than the file is known to have."""
    left = remote.n_bytes - have
    with _progress(remote, have) as advance:
        while left and (chunk := answer.read(min(_CHUNK, left))):
            file.write(chunk)
            left -= len(chunk)
            advance(len(chunk))


@contextmanager
def _progress(remote: RemoteFile, have: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr, if somebody is there to see it."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(remote.name, total=remote.n_bytes, completed=have)
        yield lambda n_bytes: bar.advance(task, n_bytes)


def sha256(file: Path) -> str:
    """Return the checksum of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def extract(
    archive: Path,
    *,
    folder: Path,
    wanted: Sequence[str],
    expected: Collection[str],
    max_bytes: int = MAX_FILE_BYTES,
) -> list[Path]:
    """Write the `wanted` members of a zip archive into `folder`, in order, each by an atomic write.

    All of the archive is checked before anything is written: it holds nothing but `expected` members, no path that
    leads elsewhere, no link, nothing encrypted, nothing larger than `max_bytes` when unpacked. `wanted` are among
    `expected`, where a name ending in "/" is a folder; each is written under the last part of its name, and returned.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            names = [member.orig_filename for member in opened.infolist()]
            for member in opened.infolist():
                _check_member(member, archive.name, expected, max_bytes)
            if len(set(names)) != len(names):
                raise FileProblem(
                    f"{archive.name} must hold each file once, and one is there twice; not unpacked"
                )
            if not set(wanted) <= set(names):
                raise FileProblem(f"{archive.name} must hold {', '.join(wanted)}; not unpacked")
            return [_write(opened, member, folder, max_bytes) for member in wanted]
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise FileProblem(f"{folder} must be written to, and could not be: {reason}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as problem:
        raise FileProblem(
            f"{archive.name} must be a whole zip archive, and is damaged or none; "
            "remove it and try again"
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
