"""Where a service keeps its data: plain SQL behind a protocol, one writer, numbered migrations."""

from __future__ import annotations

import hashlib
import queue
import re
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, suppress
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

from goodfence.errors import StoreProblem

T = TypeVar("T")
StoreRow: TypeAlias = tuple[Any, ...]
_TOGETHER = 256
"""How many writes may share a transaction: each is acknowledged after the commit of all."""
_WAIT = 30.0
_PAGE = 5_000


class Writer(Protocol):
    """A transaction."""

    def run(self, sql: str, *values: Any) -> list[StoreRow]:
        """Run a statement and return its rows."""
        ...

    def run_many(self, sql: str, rows: list[StoreRow]) -> None:
        """Run a statement for each row."""
        ...


class Store(Protocol):
    """A database: any number of readers, and one writer whose work is synced when its future is done."""

    def read(self, sql: str, *values: Any) -> list[StoreRow]:
        """Return the rows of a query, of what is committed."""
        ...

    def stream(self, sql: str, *values: Any) -> Iterator[StoreRow]:
        """Yield the rows of a query, of one snapshot, without holding them all."""
        ...

    def write(self, work: Callable[[Writer], T]) -> T:
        """Do work in a transaction of its own and return its result once that is committed."""
        ...

    def close(self) -> None:
        """Finish what was accepted, and close."""
        ...


class SQLiteWriter:
    """A transaction of SQLite."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, sql: str, *values: Any) -> list[StoreRow]:
        """Run a statement and return its rows."""
        return self._connection.execute(sql, values).fetchall()

    def run_many(self, sql: str, rows: list[StoreRow]) -> None:
        """Run a statement for each row."""
        self._connection.executemany(sql, rows)


class QueuedStore(ABC):
    """A database with one writer thread, which commits what is asked for, many together."""

    begin: ClassVar[str] = "BEGIN"
    failures: tuple[type[Exception], ...]
    """What the driver raises."""

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[tuple[Callable[[Writer], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._closed = False
        self._thread: threading.Thread | None = None

    @abstractmethod
    def read(self, sql: str, *values: Any) -> list[StoreRow]:
        """Return the rows of a query."""

    @abstractmethod
    def stream(self, sql: str, *values: Any) -> Iterator[StoreRow]:
        """Yield the rows of a query, of one snapshot."""

    @abstractmethod
    def writer(self) -> Writer:
        """Return the connection that writes; only the writer thread uses it."""

    @abstractmethod
    def disconnect(self) -> None:
        """Close every connection."""

    def write(self, work: Callable[[Writer], T]) -> T:
        """Do work in a transaction and return its result once that is synced."""
        if self._closed:
            raise StoreProblem("the service is stopping; try again later")
        future: Future[T] = Future()
        self._asked.put((work, future))
        return future.result()

    def close(self) -> None:
        """Finish what was accepted, and close every connection."""
        self._closed = True
        if self._thread is not None:
            self._asked.put(None)
            self._thread.join()
        self.disconnect()

    def start(self) -> None:
        """Begin to write."""
        self._thread = threading.Thread(target=self._write_all, name="goodfence-writer", daemon=True)
        self._thread.start()

    def _write_all(self) -> None:
        """Commit what is asked for, many together; what fails is undone alone."""
        while (first := self._asked.get()) is not None:
            together, stop = [first], False
            while len(together) < _TOGETHER and not self._asked.empty():
                more = self._asked.get()
                if more is None:
                    stop = True
                    break
                together.append(more)
            self._commit(together)
            if stop:
                return

    def _commit(self, together: list[tuple[Callable[[Writer], Any], Future[Any]]]) -> None:
        outcomes: list[tuple[Future[Any], Any, BaseException | None]] = []
        writer, then = None, "nothing was changed"
        try:
            writer = self.writer()
            writer.run(self.begin)
            for work, future in together:
                writer.run("SAVEPOINT one")
                try:
                    outcomes.append((future, work(writer), None))
                except BaseException as problem:  # it belongs to whoever asked
                    writer.run("ROLLBACK TO one")
                    outcomes.append((future, None, problem))
                writer.run("RELEASE one")
            then = "repeat the request"
            writer.run("COMMIT")
        except (*self.failures, StoreProblem) as problem:
            if writer is not None:
                with suppress(*self.failures):
                    writer.run("ROLLBACK")
            failed = StoreProblem(f"the data could not be written ({type(problem).__name__}); {then}")
            outcomes = [(future, None, failed) for _, future in together]
        for future, result, error in outcomes:
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)


class SQLiteStore(QueuedStore):
    """The embedded database: one file, write-ahead log, synced at each commit, one writer thread.

    Parameters
    ----------
    path : Path
        The file; its schema is brought up to date.
    read_only : bool, default False
        Whether nothing is written, as in the process that trains.
    """

    begin = "BEGIN IMMEDIATE"
    failures = (sqlite3.Error,)

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        super().__init__()
        self._path, self._own = path, threading.local()
        self._open: list[sqlite3.Connection] = []
        if read_only:
            return
        path.touch(mode=0o600)
        self._open.append(self._connected())
        self._writing = SQLiteWriter(self._open[0])
        migrate(self._writing, "sqlite")
        self.start()

    def writer(self) -> Writer:
        """Return the connection that writes."""
        return self._writing

    def read(self, sql: str, *values: Any) -> list[StoreRow]:
        """Return the rows of a query."""
        return self._reader().execute(sql, values).fetchall()

    def stream(self, sql: str, *values: Any) -> Iterator[StoreRow]:
        """Yield rows on a connection of its own: a long export holds one snapshot."""
        with closing(self._connected()) as connection:
            cursor = connection.execute(sql, values)
            while rows := cursor.fetchmany(_PAGE):
                yield from rows

    def disconnect(self) -> None:
        """Close every connection."""
        for connection in self._open:
            with suppress(sqlite3.Error):
                connection.close()

    def _reader(self) -> sqlite3.Connection:
        found: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if found is None:
            found = self._own.connection = self._connected()
            found.execute("PRAGMA query_only = ON")
            self._open.append(found)
        return found

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
        wanted = {"synchronous": ("FULL", 2), "journal_mode": ("WAL", "wal"), "foreign_keys": ("ON", 1)}
        wanted["mmap_size"] = ("0", 0)
        for name, (value, read_back) in wanted.items():
            connection.execute(f"PRAGMA {name} = {value}")
            found = connection.execute(f"PRAGMA {name}").fetchone()
            if found is not None and found[0] != read_back:
                raise StoreProblem(f"the database does not keep {name}={value}; use another disk")
        return connection


def migrations(dialect: str) -> list[tuple[int, str, str]]:
    """Return number, text and checksum of each migration of `sqlite` or `postgres`, in order."""
    folder = resources.files("goodfence.service") / "migrations" / dialect
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    texts = [(int(file.name[:4]), file.read_text(encoding="utf-8")) for file in files]
    return [(number, text, hashlib.sha256(text.encode()).hexdigest()) for number, text in texts]


def migrate(writer: Writer, dialect: str) -> None:
    """Bring the schema up to date, each step in one transaction; refuse one that is newer or was changed."""
    writer.run("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, sha256 TEXT NOT NULL)")
    done: dict[int, str] = dict(writer.run("SELECT version, sha256 FROM schema_version"))
    known = migrations(dialect)
    unknown = done.keys() - {number for number, _, _ in known}
    if unknown or any(done.get(number, digest) != digest for number, _, digest in known):
        raise StoreProblem("the database was made by another version of goodfence; use that one, or a newer one")
    for number, text, digest in known:
        if number in done:
            continue
        writer.run(SQLiteStore.begin if dialect == "sqlite" else QueuedStore.begin)
        try:
            for statement in filter(None, map(str.strip, re.split(r";\n", text))):
                writer.run(statement)
            writer.run("INSERT INTO schema_version VALUES (?, ?)", number, digest)
            writer.run("COMMIT")
        except BaseException:
            writer.run("ROLLBACK")
            raise


def open_store(place: str, *, read_only: bool = False) -> QueuedStore:
    """Return the data at a path or a postgresql:// URL."""
    if place.startswith(("postgresql://", "postgres://")):
        from goodfence.service.postgres_store import PostgresStore

        return PostgresStore(place, read_only=read_only)
    return SQLiteStore(Path(place), read_only=read_only)
