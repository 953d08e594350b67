"""The journal: a folder with the key of the ledger and one file for each artefact that was released.

An artefact is written to `<release id>.tmp`, synced, renamed to `<release id>`, and the folder is synced. The temporary
file is made and locked before the charge, and stays locked until the release ended: so another process can tell a
release that is being made from one whose process died, and a full disk is noticed before anything is paid.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from goodfence.errors import DamagedLedger, LedgerUnavailable, RolledBack
from goodfence.ledger.anchor import sync_folder

_MAGIC = b"goodfence-artefact-1\n"
_HEAD = len(_MAGIC) + 16 + 32
KEY_BYTES = 32
BURNED = "the release was burned by a recovery before it was finished; ask again"


class Journal:
    """The folder of artefacts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def key(self) -> bytes:
        """Return the key of the ledger."""
        with _plainly():
            found = self._content("key")
        if found is None or len(found) != KEY_BYTES:
            raise RolledBack("the folder of the ledger does not hold its key; restore the folder from a copy")
        return found

    def secret(self, name: str) -> bytes:
        """Return a key in the folder, readable by its owner only; make it if it is not there."""
        with _plainly():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_folder(self.folder.parent)
            beside = self.folder / f".{name}.{os.urandom(6).hex()}"
            file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                _write(file, os.urandom(KEY_BYTES))
            finally:
                os.close(file)
            with suppress(FileExistsError):
                os.link(beside, self.folder / name)  # unlike a rename it never replaces
            os.unlink(beside)  # noqa: PTH108 - tests replace functions of `os`
            sync_folder(self.folder)
            found = self._content(name)
        if found is None:
            raise LedgerUnavailable(f"{name!r} vanished from the folder of the ledger")
        return found

    @contextmanager
    def artefact(self, release_id: bytes) -> Iterator[int]:
        """Make and lock the temporary file of an artefact; remove it in the end if it is still there."""
        beside = self.folder / f"{release_id.hex()}.tmp"
        with _plainly():
            file = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with _plainly():
                fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            with suppress(OSError):  # it has its name by now
                os.unlink(beside)  # noqa: PTH108
            os.close(file)

    def publish(self, file: int, release_id: bytes, content: bytes) -> bytes:
        """Write an artefact to its locked file, make it appear atomically, and return its SHA-256."""
        digest = hashlib.sha256(content).digest()
        with _plainly():
            _write(file, _MAGIC + release_id + digest + content)
            try:
                os.rename(self._at(release_id, ".tmp"), self._at(release_id))  # noqa: PTH104
            except FileNotFoundError:
                raise LedgerUnavailable(BURNED) from None
            sync_folder(self.folder)
        return digest

    def read(self, release_id: bytes) -> bytes | None:
        """Return an artefact, or None unless it is there and whole."""
        with _plainly():
            found = self._content(release_id.hex())
        if found is None or found[: _HEAD - 32] != _MAGIC + release_id:
            return None
        content = found[_HEAD:]
        return content if hashlib.sha256(content).digest() == found[_HEAD - 32 : _HEAD] else None

    def adopted(self, release_id: bytes) -> bytes | None:
        """Return the whole artefact of a dead process, or None, after its name is synced."""
        with _plainly():
            sync_folder(self.folder)
        return self.read(release_id)

    def released(self, release_id: bytes, digest: str) -> bytes:
        """Return the artefact of a release that the ledger has entered."""
        content = self.read(release_id)
        if content is None or hashlib.sha256(content).hexdigest() != digest:
            raise DamagedLedger("an artefact is missing or not the one that was released; restore it from a copy")
        return content

    def in_the_making(self, release_id: bytes) -> bool:
        """Return whether a living process works on this release."""
        for ending in (".tmp", ""):
            with suppress(FileNotFoundError), _plainly():
                file = os.open(self._at(release_id, ending), os.O_RDONLY | os.O_CLOEXEC)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return True
                finally:
                    os.close(file)
        return False

    def discard(self, release_id: bytes) -> None:
        """Remove what a burned release left."""
        for ending in (".tmp", ""):
            with suppress(FileNotFoundError), _plainly():
                os.unlink(self._at(release_id, ending))  # noqa: PTH108

    def _at(self, release_id: bytes, ending: str = "") -> Path:
        return self.folder / f"{release_id.hex()}{ending}"

    def _content(self, name: str) -> bytes | None:
        try:
            file = os.open(self.folder / name, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        with os.fdopen(file, "rb") as opened:
            return opened.read()


def _write(file: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]
    os.fsync(file)


@contextmanager
def _plainly() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise LedgerUnavailable(f"the folder of the ledger could not be read or written: {problem.strerror}") from None
