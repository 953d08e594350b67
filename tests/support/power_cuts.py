"""A disk that loses what was not synced: it logs what SQLite (by an apsw VFS) and the ledger's own files do to it.

`Disk.cut` is the call before which the power is cut, `Disk.failing` a call that fails, and its error. `survive` writes
what a cut left into a new folder: what was synced, and of the rest nothing, everything, or a random part in which
writes are torn at 512 bytes and neither writes nor changes of names keep their order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import apsw
import numpy as np

from goodfence.ledger import anchor, database, journal

SECTOR = 512
LOSSES = ("drop", "keep", "mix")
"""What happens to what was not synced."""


class PowerCut(BaseException):
    """The machine is off; no code that runs afterwards does anything."""


@dataclass
class Inode:
    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Writes at an offset; None is a truncation to it."""

    def sync(self) -> None:
        for change in self.pending:
            apply(self.durable, change)
        self.pending.clear()

    def left(self, loss: str, rng: np.random.Generator) -> bytes:
        content = bytearray(self.durable)
        changes = [piece for change in self.pending for piece in sectors(change)]
        if loss == "mix":
            changes = [changes[at] for at in rng.permutation(len(changes)) if rng.random() < 0.5]
        for change in changes if loss != "drop" else []:
            apply(content, change)
        return bytes(content)


def sectors(change: tuple[int, bytes | None]) -> Iterator[tuple[int, bytes | None]]:
    """Yield a write in pieces that end where a sector does."""
    start, data = change
    if data is None:
        yield change
        return
    at = 0
    while at < len(data):
        n = SECTOR - (start + at) % SECTOR
        yield start + at, data[at : at + n]
        at += n


def apply(content: bytearray, change: tuple[int, bytes | None]) -> None:
    start, data = change
    if data is None:
        del content[start:]
    if len(content) < start:
        content.extend(bytes(start - len(content)))
    if data is not None:
        content[start : start + len(data)] = data


class Disk:
    """The folder `root` and its log."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls: list[str] = []
        self.cut: int | None = None
        self.failing: tuple[int, int] | None = None
        self.off = False
        self.names: dict[str, Inode] = {}
        self.durable: dict[str, Inode] = {}
        self.moves: list[tuple[str, str, Inode | None]] = []
        """Changes of names that no folder sync has made durable: what is there now, what no longer is."""
        for path in root.rglob("*"):
            if path.is_file():
                self.names[str(path)] = Inode(bytearray(path.read_bytes()))
        self.durable = dict(self.names)

    def call(self, name: str) -> None:
        """Count a call; cut the power or fail if it is its turn."""
        if self.off:
            raise PowerCut
        self.calls.append(name)
        if self.cut == len(self.calls):
            self.off = True
            raise PowerCut
        if self.failing is not None and self.failing[0] == len(self.calls):
            raise OSError(self.failing[1], os.strerror(self.failing[1]))

    def created(self, path: str) -> None:
        if path not in self.names:
            self.names[path] = Inode()
            self.moves.append((path, "", self.names[path]))

    def renamed(self, source: str, target: str) -> None:
        self.names[target] = self.names.pop(source)
        self.moves.append((target, source, self.names[target]))

    def linked(self, source: str, target: str) -> None:
        self.names[target] = self.names[source]
        self.moves.append((target, "", self.names[target]))

    def unlinked(self, path: str) -> None:
        if self.names.pop(path, None) is not None:
            self.moves.append(("", path, None))

    def wrote(self, path: str, change: tuple[int, bytes | None]) -> None:
        if path in self.names:
            self.names[path].pending.append(change)

    def synced(self, path: str) -> None:
        if path in self.names:
            self.names[path].sync()

    def synced_folder(self, folder: str) -> None:
        inside = [one for one in self.moves if os.path.dirname(one[0] or one[1]) == folder]  # noqa: PTH120
        for one in inside:
            self.moved(self.durable, one)
            self.moves.remove(one)

    @staticmethod
    def moved(names: dict[str, Inode], move: tuple[str, str, Inode | None]) -> None:
        there, gone, inode = move
        if gone:
            names.pop(gone, None)
        if there and inode is not None:
            names[there] = inode

    def survive(self, folder: Path, loss: str, rng: np.random.Generator) -> None:
        """Write what is left after the cut to another folder."""
        names = dict(self.durable)
        moves = self.moves
        if loss == "mix":
            moves = [one for one in moves if rng.random() < 0.5]
        for move in moves if loss != "drop" else []:
            self.moved(names, move)
        for path, inode in names.items():
            target = folder / Path(path).relative_to(self.root)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(inode.left(loss, rng))


class CutFile(apsw.VFSFile):
    """A file of SQLite, with a log; locks are those of the system."""

    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self.disk, self.path = disk, str(name.filename() if isinstance(name, apsw.URIFilename) else name)
        disk.call("open")
        super().__init__("unix", name, flags)
        disk.created(self.path)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self.disk.call("write")
        super().xWrite(data, offset)
        self.disk.wrote(self.path, (offset, bytes(data)))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self.disk.call("truncate")
        super().xTruncate(size)
        self.disk.wrote(self.path, (size, None))

    def xSync(self, flags: int) -> None:  # noqa: N802, ARG002
        self.disk.call("sync")
        self.disk.synced(self.path)
        # As SQLite does for a new journal: the file is synced, then the folder with its name.
        for move in [one for one in self.disk.moves if one[0] == self.path]:
            self.disk.moved(self.disk.durable, move)
            self.disk.moves.remove(move)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self.disk.call("read")
        found: bytes = super().xRead(amount, offset)
        return found


class CutVFS(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self.disk, self.vfs_name = disk, f"cut-{id(disk)}"
        super().__init__(self.vfs_name, "unix")

    def xOpen(self, name: Any, flags: list[int]) -> CutFile:  # noqa: N802
        return CutFile(self.disk, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        self.disk.call("delete")
        super().xDelete(filename, False)
        self.disk.unlinked(filename)
        if syncdir:
            self.disk.synced_folder(os.path.dirname(filename))  # noqa: PTH120


class Driver:
    """An apsw connection that looks like one of sqlite3."""

    def __init__(self, path: Path, vfs: str) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE
        self.opened = apsw.Connection(str(path), flags=flags, vfs=vfs)
        self.opened.set_busy_timeout(5000)

    def execute(self, statement: str, values: Any = ()) -> Any:
        return self.opened.execute(statement, values)

    def executemany(self, statement: str, rows: Any) -> None:
        self.opened.executemany(statement, rows)

    def close(self) -> None:
        self.opened.close(True)


def os_on(disk: Disk) -> SimpleNamespace:
    """Return the functions of `os` that the ledger uses, with a log."""
    paths: dict[int, str] = {}

    def opened(path: Any, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            disk.call("os.open")
        file = os.open(path, flags, mode)
        paths[file] = str(path)
        if flags & os.O_CREAT:
            disk.created(str(path))
        return file

    def logged(name: str, log: Callable[..., None]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            disk.call(f"os.{name}")
            result = getattr(os, name)(*arguments)
            log(*arguments)
            return result

        return run

    def write(file: int, data: bytes) -> int:
        disk.call("os.write")
        start = os.lseek(file, 0, os.SEEK_CUR)
        n = os.write(file, data[:1000])  # as a system may: less than asked
        disk.wrote(paths[file], (start, bytes(data[:n])))
        return n

    def fsync(file: int) -> None:
        disk.call("os.fsync")
        path = paths[file]
        (disk.synced_folder if os.path.isdir(path) else disk.synced)(path)  # noqa: PTH112

    changed = {
        "open": opened,
        "write": write,
        "fsync": fsync,
        "pwrite": logged("pwrite", lambda file, data, start: disk.wrote(paths[file], (start, bytes(data)))),
        "ftruncate": logged("ftruncate", lambda file, size: disk.wrote(paths[file], (size, None))),
        "rename": logged("rename", lambda source, target: disk.renamed(str(source), str(target))),
        "link": logged("link", lambda source, target: disk.linked(str(source), str(target))),
        "unlink": logged("unlink", lambda path: disk.unlinked(str(path))),
    }
    return SimpleNamespace(**{**vars(os), **changed})


@contextmanager
def running_on(disk: Disk) -> Iterator[None]:
    """Let ledgers that are opened in the block use the disk."""
    vfs = CutVFS(disk)

    def driver(self: database.Sqlite) -> Driver:
        self.failures, self.refusals = (apsw.Error, OSError), (apsw.ConstraintError,)
        return Driver(self.path, vfs.vfs_name)

    shim = os_on(disk)
    with (
        patch.object(database.Sqlite, "driver", driver),
        patch.object(database, "os", shim),
        patch.object(anchor, "os", shim),
        patch.object(journal, "os", shim),
    ):
        yield
