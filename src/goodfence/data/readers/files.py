"""What may be opened: an ordinary file that may be read and is what its name says."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from goodfence.data.limits import too_large
from goodfence.errors import FileProblem, GoodfenceError

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
    size: int
    beginning: bytes

    @property
    def suffixes(self) -> tuple[str, str]:
        """The last ending in lower case without a `.gz`, and `.gz` or nothing."""
        packed = self.path.suffix.lower() == ".gz"
        inner = Path(self.path.stem) if packed else self.path
        return inner.suffix.lower(), ".gz" if packed else ""


def find_file(path: str | os.PathLike[str], max_bytes: int) -> RatingsFile:
    """Return the file at `path` if it is an ordinary one of at most `max_bytes`.

    Nothing is read but its beginning.
    """
    place = Path(path)
    name = place.name or str(place)
    with _told_plainly(name):
        status = place.stat()  # before opening: to open a named pipe would wait for a writer
        _check_ordinary(status.st_mode, name)
        if status.st_size > max_bytes:
            raise too_large(name, max_bytes)
        with place.open("rb") as opened:
            beginning = opened.read(16)
    found = RatingsFile(place, name, status.st_size, beginning)
    _check_name(found)
    return found


@contextmanager
def _told_plainly(name: str) -> Iterator[None]:
    """Turn what the system says into one sentence of ours."""
    try:
        yield
    except GoodfenceError:
        raise
    except FileNotFoundError:
        raise FileProblem(f"{name!r} must be a file, and there is none of that name") from None
    except PermissionError:
        raise FileProblem(f"{name!r} must be readable, and you may not read it") from None
    except (OSError, ValueError):  # a loop of links, a name too long, a NUL in the name
        raise FileProblem(f"{name!r} must be readable, and the system could not open it") from None


def _check_ordinary(mode: int, name: str) -> None:
    if stat.S_ISDIR(mode):
        raise FileProblem(f"{name!r} must be a file, and is a directory")
    if not stat.S_ISREG(mode):
        raise FileProblem(f"{name!r} must be an ordinary file, and is a pipe, a socket or a device")


def _check_name(file: RatingsFile) -> None:
    if file.size == 0:
        raise FileProblem(f"{file.name!r} must hold ratings, and is empty")
    for beginning, kind, endings in _BEGINNINGS:
        if file.beginning.startswith(beginning) and file.path.suffix.lower() not in endings:
            hint = f"; its name should end in {endings[0]}" if endings else ""
            raise FileProblem(f"{file.name!r} must be what its name says, and is {kind}{hint}")
