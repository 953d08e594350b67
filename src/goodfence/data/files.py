"""Files: which may be opened (ordinary, readable, what their names say), how large they may be, and atomic writes."""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
from pyarrow import csv, parquet

from goodfence.errors import FileProblem, GoodfenceError, SizeProblem, require

DEFAULT_MAX_BYTES = 2 * 2**30  # the largest file, counted as it lies in memory once it is inflated: 2 GiB
BYTES_OF_A_ROW = 64
"""What a rating takes in memory while a file is read, its ids apart: `max_bytes` allows so many rows."""
BYTES_OF_AN_ID = 80  # what a different id takes that was read as text, its letters apart
TIMES_HELD = 4  # how often the text of ids is held at once while it is made into ids
_STALE = 3600  # seconds after which a hidden file beside a target must be what a killed process left
_NO_FILE = "is a pipe, a socket or a device"
_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_BEGINNINGS = (
    (b"PAR1", "a parquet file", (".parquet", ".pq")),
    (b"\x1f\x8b", "a gzip file", (".gz",)),
    (b"PK\x03\x04", "a zip archive or a spreadsheet; end its name in .zip, or export it first", (".zip",)),
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
    name: str  # the name for errors: without folders, which may be somebody's
    beginning: bytes

    @property
    def suffixes(self) -> tuple[str, str]:
        """The last ending in lower case without a `.gz`, and `.gz` or nothing."""
        packed = self.path.suffix.lower() == ".gz"
        inner = Path(self.path.stem) if packed else self.path
        return inner.suffix.lower(), ".gz" if packed else ""


def find_file(path: str | os.PathLike[str], max_bytes: int, purpose: str = "hold ratings") -> RatingsFile:
    """Return the file at `path` if it is an ordinary one of 1 to `max_bytes` bytes; only its beginning is read."""
    place = Path(path)
    name = place.name or str(place)
    try:
        status = place.stat()  # before opening: to open a named pipe would wait for a writer
        if stat.S_ISDIR(status.st_mode):
            raise FileProblem(f"{name!r} is a directory; name a file in it")
        if not stat.S_ISREG(status.st_mode):
            raise FileProblem(f"{name!r} must be an ordinary file, and {_NO_FILE}")
        if status.st_size > max_bytes:
            raise too_large(name, max_bytes)
        with place.open("rb") as opened:
            beginning = opened.read(16)
    except GoodfenceError:
        raise
    except FileNotFoundError:
        raise FileProblem(f"{name!r} does not exist; check the path") from None
    except PermissionError:
        raise FileProblem(f"{name!r} must be readable, and you may not read it") from None
    except (OSError, ValueError):  # a loop of links, a name too long, a NUL in the name
        raise FileProblem(f"{name!r} must be readable, and the system could not open it") from None
    if status.st_size == 0:
        raise FileProblem(f"{name!r} is empty; it must {purpose}")
    for start, kind, endings in _BEGINNINGS:
        if beginning.startswith(start) and place.suffix.lower() not in endings:
            hint = f"; rename it to end in {endings[0]}" if endings else ""
            raise FileProblem(f"{name!r} is {kind}{hint}")
    return RatingsFile(place, name, beginning)


def check_limit(max_bytes: int) -> None:
    """Raise `SettingError` unless `max_bytes` can be a limit."""
    integer = isinstance(max_bytes, int) and not isinstance(max_bytes, bool)
    require(integer and max_bytes >= 1, "max_bytes", "a positive integer", max_bytes)


def too_large(name: str, max_bytes: int) -> SizeProblem:
    """Return the error for a file that is, or inflates to, more than `max_bytes`."""
    return SizeProblem(
        f"{name!r} must be at most {readable(max_bytes)} once inflated, and is more; "
        "raise the limit with read='max_bytes=...' (--read)"
    )


def readable(n_bytes: int) -> str:
    """Return a number of bytes in the unit that is read most easily."""
    for size, unit in _UNITS:
        if n_bytes >= size:
            return f"{n_bytes / size:.4g} {unit}"
    return f"{n_bytes} bytes"


@contextmanager
def atomic_write(target: Path, *, name: str = "path", mode: int | None = None) -> Iterator[BinaryIO]:
    """Open a file that appears at `target`, or replaces it, only when the block ends well.

    A link stays, and what it points to is written; an older file's permissions stay, and a new one has `mode`.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    place = destination(target, name)
    _sweep(place)
    beside = place.with_name(f".{place.name}.{secrets.token_hex(6)}")
    most = 0o666 if mode is None else mode
    try:
        with open(beside, "xb", opener=lambda path, flags: os.open(path, flags, most)) as file:
            if place.exists():
                beside.chmod(stat.S_IMODE(place.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)


def _sweep(place: Path) -> None:
    """Remove what killed processes left beside the place: it can hold ratings."""
    name = re.compile(rf"\.{re.escape(place.name)}\.[0-9a-f]{{12}}")
    with suppress(OSError):  # a folder that cannot be listed, a file that is another's or gone
        for path in place.parent.iterdir():
            if name.fullmatch(path.name) and path.lstat().st_mtime < time.time() - _STALE:
                path.unlink()


def write_table(path: Path, table: pa.Table, *, mode: int | None = None) -> None:
    """Write a table to a `.csv` or `.parquet` file, atomically; `mode` as in `atomic_write`."""
    with atomic_write(path, mode=mode) as file:
        if path.suffix.lower() == ".csv":
            csv.write_csv(table, file)
        else:
            parquet.write_table(table, file)


def destination(target: Path, name: str = "path") -> Path:
    """Return where a file for `target` is to be written, of a link what it points to; errors call the target `name`."""
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
