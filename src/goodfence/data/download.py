"""Fetching a file over HTTP: resumed where that can be, checked, never half there."""

from __future__ import annotations

import hashlib
import http.client
import secrets
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from goodfence.errors import DownloadProblem, require

_CHUNK = 2**16
_PARTIAL_CONTENT = 206
_RANGE_NOT_SATISFIABLE = 416


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file that somebody publishes, and how to know it."""

    url: str
    """Its address."""
    md5: str
    """The checksum that its publisher states."""
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


def fetch(remote: RemoteFile, folder: Path, *, timeout: float = 30.0) -> Path:
    """Return the file in `folder`, downloading it if it is not there yet.

    What arrives goes to ``<name>.part`` beside it. An interrupted download keeps that part, and the
    next call goes on from there if the server can, and from the start if not. Only a file with the
    right checksum gets the right name.

    Parameters
    ----------
    remote
        What to fetch.
    folder
        Where it goes; made if it is not there.
    timeout
        Seconds without an answer after which the server counts as gone.
    """
    target = folder / remote.name
    if target.exists():
        if _md5(target) != remote.md5:
            raise DownloadProblem(
                f"{target} has a wrong checksum; remove it, then it is fetched again"
            )
        return target
    with _claimed(target) as part:
        _receive(remote, part, folder, timeout)
        if _md5(part) != remote.md5:
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
        if mine.exists():
            _rest(mine, resting)


def _rest(mine: Path, resting: Path) -> None:
    """Keep what has arrived for the next time; nothing needs no file."""
    if mine.stat().st_size:
        mine.replace(resting)
    else:
        mine.unlink()


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
    """Bring the part up to the whole: by what is missing, or else from the start."""
    have = part.stat().st_size
    if have == remote.n_bytes:
        return
    if 0 < have < remote.n_bytes and _resumed(remote, part, have, timeout):
        return
    with _answer(remote.url, {}, timeout) as answer, part.open("wb") as file:
        _copy(answer, file, 0, remote)


def _resumed(remote: RemoteFile, part: Path, have: int, timeout: float) -> bool:
    """Append what is missing, if the server sends exactly that."""
    try:
        with _answer(remote.url, {"Range": f"bytes={have}-"}, timeout) as answer:
            sent = answer.headers.get("Content-Range", "")
            if answer.status != _PARTIAL_CONTENT or not sent.startswith(f"bytes {have}-"):
                return False
            with part.open("ab") as file:
                _copy(answer, file, have, remote)
            return True
    except urllib.error.HTTPError as problem:
        problem.close()
        if problem.code == _RANGE_NOT_SATISFIABLE:
            return False
        raise


def _answer(url: str, headers: dict[str, str], timeout: float) -> http.client.HTTPResponse:
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - see RemoteFile
    opened = urllib.request.urlopen(request, timeout=timeout)  # noqa: S310 - the web only
    answer: http.client.HTTPResponse = opened
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


def _md5(file: Path) -> str:
    with file.open("rb") as opened:
        # what the publisher states; the ratings inside have checksums of their own
        return hashlib.file_digest(opened, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
