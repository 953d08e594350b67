"""Files: which may be opened (ordinary, readable, what their names say), how large they may be, and atomic writes."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
from pyarrow import csv, parquet

from goodfence.errors import FileProblem, GoodfenceError, SizeProblem, require

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # Windows
    _flock: Callable[[int, int], None] | None = None
else:
    _flock = flock

DEFAULT_MAX_BYTES = 2 * 2**30
"""The largest file, counted as it lies in memory once it is inflated: 2 GiB."""
LONGEST_LINE = 2**20
"""The longest line of a text file, in bytes: 1 MiB. A rating needs a hundred."""
_HERE = -100
"""What the system call takes for "relative to where we are"."""
_OLD = ".old"
_TRIES = 100
_NO_FILE = "is a pipe, a socket or a device"
_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_BEGINNINGS = (
    (b"PAR1", "a parquet file", (".parquet", ".pq")),
    (b"\x1f\x8b", "a gzip file", (".gz",)),
    (b"PK\x03\x04", "a zip archive or a spreadsheet; unpack or export it first", ()),
    (b"BZh", "a bzip2 file; unpack it first", ()),
    (b"\xfd7zXZ\x00", "an xz file; unpack it first", ()),
    (b"\x28\xb5\x2f\xfd", "a zstandard file; unpack it first", ()),
    (b"SQLite format 3\x00", "a database; export it as csv first", ()),
    (b"\x89HDF\r\n", "an HDF5 file; export it as csv or parquet first", ()),
    (b"ARROW1", "an arrow file; read it into a table and use Ratings.from_frame", ()),
    (b"%PDF", "a PDF document", ()),
)


@dataclass(frozen=True, slots=True)
class RatingsFile:
    """An ordinary file that can be opened."""

    path: Path
    name: str
    """The name for errors: without folders, which may be somebody's."""
    beginning: bytes

    @property
    def suffixes(self) -> tuple[str, str]:
        """The last ending in lower case without a `.gz`, and `.gz` or nothing."""
        packed = self.path.suffix.lower() == ".gz"
        inner = Path(self.path.stem) if packed else self.path
        return inner.suffix.lower(), ".gz" if packed else ""


def find_file(
    path: str | os.PathLike[str], max_bytes: int, purpose: str = "hold ratings"
) -> RatingsFile:
    """Return the file at `path` if it is an ordinary one of 1 to `max_bytes` bytes; only its beginning is read."""
    place = Path(path)
    name = place.name or str(place)
    try:
        status = place.stat()  # before opening: to open a named pipe would wait for a writer
        if stat.S_ISDIR(status.st_mode):
            raise FileProblem(f"{name!r} must be a file, and is a directory")
        if not stat.S_ISREG(status.st_mode):
            raise FileProblem(f"{name!r} must be an ordinary file, and {_NO_FILE}")
        if status.st_size > max_bytes:
            raise too_large(name, max_bytes)
        with place.open("rb") as opened:
            beginning = opened.read(16)
    except GoodfenceError:
        raise
    except FileNotFoundError:
        raise FileProblem(f"{name!r} must be a file, and there is none of that name") from None
    except PermissionError:
        raise FileProblem(f"{name!r} must be readable, and you may not read it") from None
    except (OSError, ValueError):  # a loop of links, a name too long, a NUL in the name
        raise FileProblem(f"{name!r} must be readable, and the system could not open it") from None
    if status.st_size == 0:
        raise FileProblem(f"{name!r} must {purpose}, and is empty")
    for start, kind, endings in _BEGINNINGS:
        if beginning.startswith(start) and place.suffix.lower() not in endings:
            hint = f"; its name should end in {endings[0]}" if endings else ""
            raise FileProblem(f"{name!r} must be what its name says, and is {kind}{hint}")
    return RatingsFile(place, name, beginning)


def check_limit(max_bytes: int) -> None:
    """Raise `SettingError` unless `max_bytes` can be a limit."""
    integer = isinstance(max_bytes, int) and not isinstance(max_bytes, bool)
    require(integer and max_bytes >= 1, "max_bytes", "a positive integer", max_bytes)


def too_large(name: str, max_bytes: int) -> SizeProblem:
    """Return the error for a file that is, or inflates to, more than `max_bytes`."""
    return SizeProblem(
        f"{name!r} must be at most {readable(max_bytes)} once inflated, and is more; "
        "raise the limit with max_bytes (--max-bytes)"
    )


def readable(n_bytes: int) -> str:
    """Return a number of bytes in the unit that is read most easily.

    Examples
    --------
    >>> readable(3 * 2**29), readable(800)
    ('1.5 GiB', '800 bytes')
    """
    for size, unit in _UNITS:
        if n_bytes >= size:
            return f"{n_bytes / size:.4g} {unit}"
    return f"{n_bytes} bytes"


@contextmanager
def atomic_write(
    target: Path, *, name: str = "path", mode: int | None = None
) -> Iterator[BinaryIO]:
    """Open a file that appears at `target`, or replaces it, only when the block ends well.

    Until then it is a hidden file beside it, which is removed when the block fails. A link stays, and what it points to
    is written; an older file's permissions stay, and a new one has `mode` where that is given; what is no file is not
    replaced (`destination`).

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     target = Path(folder) / "a" / "data.bin"
    ...     with atomic_write(target) as file:
    ...         _ = file.write(b"all of it")
    ...     target.read_bytes()
    b'all of it'
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    place = destination(target, name)
    beside = place.with_name(f".{place.name}.{secrets.token_hex(6)}")
    try:
        with beside.open("xb") as file:
            if place.exists():
                beside.chmod(stat.S_IMODE(place.stat().st_mode))
            elif mode is not None:
                beside.chmod(mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)


def write_table(path: Path, table: pa.Table, *, mode: int | None = None) -> None:
    """Write a table to a `.csv` or `.parquet` file, atomically; `mode` as in `atomic_write`."""
    with atomic_write(path, mode=mode) as file:
        if path.suffix.lower() == ".csv":
            csv.write_csv(table, file)
        else:
            parquet.write_table(table, file)


def destination(target: Path, name: str = "path") -> Path:
    """Return where a file for `target` is to be written: of a link, what it points to, whether it is there or not.

    A folder, a pipe, a socket, a device or a link to itself is a `FileProblem`, which calls the target `name`.
    """
    place = Path(os.path.realpath(target)) if target.is_symlink() else target
    try:
        there = target.stat()
    except FileNotFoundError:
        return place
    except OSError:
        raise FileProblem(f"{name} must be a file, and is a link that leads nowhere") from None
    if stat.S_ISDIR(there.st_mode):
        raise FileProblem(f"{name} must be a file, and a folder of that name is there")
    # What a process holds open can be a file without a name, as /dev/stdout sometimes is.
    if not stat.S_ISREG(there.st_mode) or not place.exists():
        raise FileProblem(f"{name} must be an ordinary file, and {_NO_FILE}")
    return place


@contextmanager
def atomic_folder(
    target: Path, *, ours: Callable[[Path], bool], mode: int = 0o777
) -> Iterator[Path]:
    """Make a folder that appears at `target`, or replaces it, only when the block ends well.

    Until then it is a hidden folder beside it, which is removed when the block fails; what a process left that was
    killed is removed by the next one. Where the system can exchange two folders there is a whole one at `target` at
    every moment; elsewhere there is none for the time between two renames, and what was there is put back if the second
    one fails.

    Of a link, what it points to is written. `ours` says whether the folder that is there may be replaced: it is called
    while no other writer can touch it. `mode` are the permissions, less those that the process leaves out.
    """
    place = target.resolve() if target.is_symlink() else target
    place.parent.mkdir(parents=True, exist_ok=True)
    _sweep(place)
    beside, lock = _make_beside(place, mode)
    try:
        yield beside
        _sync(beside)
        _put(beside, place, ours)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        lock.close()


def _put(beside: Path, place: Path, ours: Callable[[Path], bool]) -> None:
    """Move the finished folder to its place."""
    for _ in range(_TRIES):
        with _locked(place) as there:
            if there and not ours(place):
                raise FileProblem(f"{place.name!r} is not ours to replace; choose another name")
            if there:
                _exchange(beside, place)
            else:
                try:
                    beside.rename(place)
                except OSError as problem:
                    if problem.errno in (errno.EEXIST, errno.ENOTEMPTY):
                        continue  # another writer was faster
                    raise
            _sync_entry(place.parent)
            return
    raise FileProblem(f"{place.name!r} could not be written: others write it all the time")


def _exchange(beside: Path, place: Path) -> None:
    """Put the folder in the place of the one that is there, which is then beside it, and will be removed."""
    if exchange_names(beside, place):
        return
    old = beside.with_name(f"{beside.name}{_OLD}")
    place.rename(old)
    try:
        beside.rename(place)
    except BaseException:
        old.rename(place)
        raise
    shutil.rmtree(old, ignore_errors=True)


def exchange_names(one: Path, two: Path) -> bool:
    """Exchange what two names stand for, in one step; return whether system and file system can."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        names = os.fsencode(one), os.fsencode(two)
        # The same call under two names: Linux and macOS.
        failed = (
            libc.renamex_np(*names, 2)
            if platform.system() == "Darwin"
            else libc.renameat2(_HERE, names[0], _HERE, names[1], 2)
        )
    except (AttributeError, OSError, TypeError):  # a system without the call
        return False
    if not failed:
        return True
    problem = ctypes.get_errno()
    if problem in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EXDEV):
        return False
    raise OSError(problem, os.strerror(problem))


@contextmanager
def _locked(place: Path) -> Iterator[bool]:
    """Hold what is at the place against other writers; whether there is anything."""
    while True:
        try:
            lock = _Lock(place)
        except FileNotFoundError:
            yield False
            return
        try:
            if lock.is_at(place):
                yield True
                return
        finally:
            lock.close()


def _make_beside(place: Path, mode: int) -> tuple[Path, _Lock]:
    """Return a new hidden folder beside the place, and the lock that says that its writer is alive."""
    while True:
        beside = place.with_name(f".{place.name}.{secrets.token_hex(6)}")
        beside.mkdir(mode=mode)
        try:
            lock = _Lock(beside)
        except FileNotFoundError:
            continue
        if lock.is_at(beside):
            return beside, lock
        lock.close()  # another writer took it for a stale one


def _sweep(place: Path) -> None:
    """Remove what killed writers left beside the place: it can hold ratings."""
    name = re.compile(rf"\.{re.escape(place.name)}\.[0-9a-f]{{12}}({re.escape(_OLD)})?")
    for path in sorted(place.parent.iterdir()):
        found = name.fullmatch(path.name)
        if not found or path.is_symlink() or not path.is_dir():
            continue
        try:
            lock = _Lock(path, wait=False)
        except OSError:  # its writer is alive, or it is gone
            continue
        try:
            if found[1] and not place.exists():
                path.rename(place)  # a writer was killed between two renames
            else:
                shutil.rmtree(path, ignore_errors=True)
        finally:
            lock.close()


class _Lock:
    """A lock on a folder, which the system takes away from a process that dies."""

    def __init__(self, path: Path, *, wait: bool = True) -> None:
        self._opened: int | None = None
        if _flock is None:  # a system without such locks: nothing is ever taken for stale
            if not wait:
                raise BlockingIOError
            path.stat()
            return
        self._opened = os.open(path, os.O_RDONLY)
        try:
            _flock(self._opened, LOCK_EX if wait else LOCK_EX | LOCK_NB)
        except OSError:
            self.close()
            if not wait:
                raise

    def is_at(self, path: Path) -> bool:
        """Return whether what is locked is still what the path stands for."""
        if self._opened is None:
            return True
        try:
            return os.path.samestat(os.fstat(self._opened), path.stat())
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Let others have it."""
        if self._opened is not None:
            os.close(self._opened)
            self._opened = None


def _sync(folder: Path) -> None:
    """Make sure that the files of a folder are on the disk, before its name says so."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())
    _sync_entry(folder)


def _sync_entry(folder: Path) -> None:
    if os.name == "nt":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
