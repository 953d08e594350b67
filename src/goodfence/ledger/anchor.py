"""The anchor: a text file in another place with a line for every entry, by which an older ledger is recognised.

A line is "seq kind cost slack accounts_hash hash" and a CRC. Lines are appended in the order of entries under a lock,
and synced before noise is drawn. A power cut can leave anything of an append that was not synced: it ends the anchor,
since nothing was drawn under it, and is overwritten.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from goodfence.errors import DamagedLedger, LedgerUnavailable
from goodfence.ledger.chain import Entry

_LONGEST = 256
"""No line has so many bytes."""
_APPEND = 1 << 14
"""So many bytes, and a line, are written before they are synced; further from the end nothing can be torn."""

_FOREIGN = "the anchor holds what the ledger did not write; restore the file from a copy"


class Line(NamedTuple):
    """What the anchor knows of an entry."""

    seq: int
    kind: str
    cost: int
    slack: int
    accounts_hash: bytes | None
    hash: bytes

    @classmethod
    def of(cls, entry: Entry) -> Line:
        """Return the line of an entry."""
        return cls(entry.seq, entry.kind, entry.cost, entry.slack, entry.accounts_hash, entry.hash)

    @classmethod
    def read(cls, text: bytes) -> Line | None:
        """Return a line, or None unless the ledger wrote it."""
        try:
            seq, kind, cost, slack, accounts, digest, _ = text.decode("ascii").split(" ")
            found = None if accounts == "-" else bytes.fromhex(accounts)
            line = cls(int(seq), kind, int(cost), int(slack), found, bytes.fromhex(digest))
        except ValueError:
            return None
        return line if line.written() == text else None

    def written(self) -> bytes:
        """Return the line as it is in the file."""
        accounts = "-" if self.accounts_hash is None else self.accounts_hash.hex()
        text = f"{self.seq} {self.kind} {self.cost} {self.slack} {accounts} {self.hash.hex()}".encode("ascii")
        return b"%s %08x\n" % (text, zlib.crc32(text))


class Anchor:
    """The file, opened for each use: it may be on a medium that comes and goes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> Iterator[Line]:
        """Yield all lines."""
        with _plainly(), self._opened(os.O_RDONLY) as file, os.fdopen(os.dup(file), "rb") as text:
            left = os.fstat(file).st_size
            for content in text:
                line = Line.read(content)
                if line is None:
                    if left > _APPEND + _LONGEST:
                        raise DamagedLedger(_FOREIGN)
                    return
                left -= len(content)
                yield line

    def last(self) -> Line | None:
        """Return the last line, or None if there is none."""
        with suppress(FileNotFoundError), _plainly(), self._opened(os.O_RDONLY) as file:
            return _end(file)[1]
        return None

    def check_writable(self) -> None:
        """Raise unless lines can be appended."""
        with _plainly(), self._opened(os.O_RDWR | os.O_CREAT):
            pass

    def follow(self, entries_after: Callable[[int], Iterable[Entry]]) -> None:
        """Append a line for each entry behind the last line, and sync file and folder.

        Processes take turns; whoever comes first writes the lines of those who committed before.
        """
        with _plainly(), self._opened(os.O_RDWR | os.O_CREAT) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            end, last = _end(file)
            text = b""
            for entry in entries_after(0 if last is None else last.seq):
                text += Line.of(entry).written()
                if len(text) > _APPEND:
                    end, text = _append(file, end, text), b""
            _append(file, end, text)  # nothing too: whoever wrote the lines may have died before the sync
            sync_folder(self.path.parent)

    @contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        file = os.open(self.path, flags | os.O_CLOEXEC, 0o600)
        try:
            yield file
        finally:
            os.close(file)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


@contextmanager
def _plainly() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise LedgerUnavailable(f"the anchor could not be read or written: {problem.strerror}") from None


def _append(file: int, end: int, text: bytes) -> int:
    """Write synced lines at the end, over what was torn there; return the new end."""
    os.ftruncate(file, end)
    while text:
        n = os.pwrite(file, text, end)
        end, text = end + n, text[n:]
    os.fsync(file)
    return end


def _end(file: int) -> tuple[int, Line | None]:
    """Return where the last line ends, and that line."""
    size = os.fstat(file).st_size
    start = max(0, size - _APPEND - 2 * _LONGEST)
    lines = os.pread(file, size - start, start).splitlines(keepends=True)
    end, last = start, None
    if start and lines:  # the first is a part of one
        end += len(lines.pop(0))
    for content in lines:
        line = Line.read(content)
        if line is None:
            break
        end, last = end + len(content), line
    if last is None and start:
        raise DamagedLedger(_FOREIGN)
    return end, last
