"""Where a service keeps its data: plain SQL behind a protocol, one writer, numbered migrations."""

from __future__ import annotations

import hashlib
import queue
import re
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypeVar

from goodfence.errors import BadRequest, GoodfenceError, StoreProblem
from goodfence.ledger.database import Postgres

T = TypeVar("T")
StoreRow: TypeAlias = tuple[Any, ...]
_TOGETHER = 256
"""How many writes may share a transaction: each is acknowledged after the commit of all."""
_WAIT = 30.0
_PAGE = 5_000
_READERS, _PATIENCE = 16, 10
"""Questions at once to PostgreSQL, and seconds for which it may take a service that was killed for alive."""


class Writer:
    """A transaction on a connection: that of SQLite, which others adapt."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def run(self, sql: str, *values: Any) -> list[StoreRow]:
        """Run a statement and return its rows."""
        return list(self.connection.execute(sql, values).fetchall())

    def run_many(self, sql: str, rows: list[StoreRow]) -> None:
        """Run a statement for each row."""
        self.connection.executemany(sql, rows)


class Store(ABC):
    """A database: any number of readers, and one writer thread, which commits what is asked for, many together."""

    begin: ClassVar[str] = "BEGIN"
    failures: tuple[type[Exception], ...]  # of the driver

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[tuple[Callable[[Writer], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._closed, self._thread = False, threading.Thread(target=self._write_all, daemon=True)

    @abstractmethod
    def read(self, sql: str, *values: Any) -> list[StoreRow]:
        """Return the rows of a query, of what is committed."""

    @abstractmethod
    def stream(self, sql: str, *values: Any) -> Iterator[StoreRow]:
        """Yield the rows of a query, of one snapshot, on a connection of its own, without holding them all."""

    @abstractmethod
    def writer(self) -> Writer:
        """Return the connection that writes; only the writer thread uses it."""

    @abstractmethod
    def disconnect(self) -> None:
        """Close every connection."""

    def write(self, work: Callable[[Writer], T]) -> T:
        """Do work in a transaction of its own and return its result once that is committed and synced."""
        if self._closed:
            raise StoreProblem("the service is stopping; try again later")
        future: Future[T] = Future()
        self._asked.put((work, future))
        return future.result()

    def close(self) -> None:
        """Finish what was accepted, and close every connection."""
        self._closed = True
        if self._thread.is_alive():
            self._asked.put(None)
            self._thread.join()
        self.disconnect()

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
        except (GoodfenceError, *self.failures) as problem:  # type: ignore[misc]
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


class SQLiteStore(Store):
    """The embedded database: one file, write-ahead log, synced at each commit; its schema is brought up to date."""

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
        self._writing = Writer(self._open[0])
        migrate(self._writing, "sqlite")
        self._thread.start()

    def writer(self) -> Writer:  # noqa: D102 - as in `Store`, like those below
        return self._writing

    def read(self, sql: str, *values: Any) -> list[StoreRow]:  # noqa: D102
        return self._reader().execute(sql, values).fetchall()

    def stream(self, sql: str, *values: Any) -> Iterator[StoreRow]:  # noqa: D102
        with closing(self._connected()) as connection:
            cursor = connection.execute(sql, values)
            while rows := cursor.fetchmany(_PAGE):
                yield from rows

    def disconnect(self) -> None:  # noqa: D102
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


class _PostgresWriter(Writer):
    def run(self, sql: str, *values: Any) -> list[StoreRow]:
        cursor = self.connection.execute(_translated(sql, [values]), values)
        return list(cursor.fetchall()) if cursor.description is not None else []

    def run_many(self, sql: str, rows: list[StoreRow]) -> None:
        with self.connection.cursor() as cursor:
            cursor.executemany(_translated(sql, rows), rows)


def _translated(sql: str, rows: list[StoreRow]) -> str:
    """Return a statement as psycopg takes it: `?` marks a value."""
    if any(isinstance(value, str) and "\0" in value for row in rows for value in row):
        raise BadRequest("a text has the character U+0000, which PostgreSQL cannot hold")
    return sql.replace("%", "%%").replace("?", "%s")


class PostgresStore(Store):
    """A schema `goodfence_service` of the database at a URL; one service at a time writes to it."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        super().__init__()
        self._server = Postgres(url, "goodfence_service")
        self.failures = self._server.failures
        self._idle, self._readers = deque[_PostgresWriter](), threading.BoundedSemaphore(_READERS)
        self._writing: _PostgresWriter | None = None
        if not read_only:
            with ExitStack() as undo, self._plainly():
                undo.callback(self.disconnect)
                migrate(self.writer(), "postgres")
                undo.pop_all()
            self._thread.start()

    def writer(self) -> Writer:
        """Return the connection that writes, opened anew after it was lost; it keeps every other service out."""
        if self._writing is None or self._writing.connection.closed:
            connection = self._server.connect()
            try:
                self._server.check(connection)
                connection.execute(f"SET lock_timeout = '{_PATIENCE}s'")
                connection.execute("SELECT pg_advisory_lock(hashtext('goodfence_service')::bigint)")
                connection.execute("CREATE SCHEMA IF NOT EXISTS goodfence_service")
            except BaseException as problem:
                connection.close()
                if getattr(problem, "sqlstate", "") == "55P03":
                    raise StoreProblem("another service writes to this database; stop it first") from None
                raise
            self._writing = _PostgresWriter(connection)
        return self._writing

    def read(self, sql: str, *values: Any) -> list[StoreRow]:  # noqa: D102
        with self._readers, self._plainly(), suppress(BadRequest):  # text that no row can hold is in none
            while self._idle:
                with suppress(IndexError, *self.failures):  # after a restart of the server they all fail
                    return self._rows(self._idle.pop(), sql, values)
            return self._rows(_PostgresWriter(self._server.connect()), sql, values)
        return []

    def _rows(self, reader: _PostgresWriter, sql: str, values: StoreRow) -> list[StoreRow]:
        try:
            rows = reader.run(sql, *values)
        except BaseException:
            reader.connection.close()
            raise
        self._idle.append(reader)
        return rows

    def stream(self, sql: str, *values: Any) -> Iterator[StoreRow]:  # noqa: D102
        with self._plainly(), closing(self._server.connect()) as connection:
            connection.execute("BEGIN READ ONLY")
            with connection.cursor(name="rows") as cursor:
                cursor.itersize = _PAGE
                yield from cursor.execute(_translated(sql, [values]), values)

    def disconnect(self) -> None:  # noqa: D102
        for one in filter(None, (*self._idle, self._writing)):
            one.connection.close()

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        """Turn errors of the driver, which may quote what was asked, into ours."""
        try:
            yield
        except self.failures as problem:
            raise StoreProblem(f"the database cannot be used ({type(problem).__name__})") from None


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
        writer.run(SQLiteStore.begin if dialect == "sqlite" else Store.begin)
        try:
            for statement in filter(None, map(str.strip, re.split(r";\n", text))):
                writer.run(statement)
            writer.run("INSERT INTO schema_version VALUES (?, ?)", number, digest)
            writer.run("COMMIT")
        except BaseException:
            writer.run("ROLLBACK")
            raise


def open_store(place: str, *, read_only: bool = False) -> Store:
    """Return the data at a path or a postgresql:// URL."""
    if place.startswith(("postgresql://", "postgres://")):
        return PostgresStore(place, read_only=read_only)
    return SQLiteStore(Path(place), read_only=read_only)
