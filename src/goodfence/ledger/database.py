"""The two databases a ledger can be in: SQLite by default, PostgreSQL by its URL. Both must survive a power cut.

Statements are written with `?`. A connection is dropped after a failure and opened again by the next statement, so that
nothing is inferred from a broken one.
"""

from __future__ import annotations

import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar

from goodfence.errors import DamagedLedger, GoodfenceError, LedgerUnavailable, MissingExtra, UnsafeDatabase
from goodfence.ledger.anchor import sync_folder

PATIENCE = 60
"""Seconds to wait for other processes that write."""
_REMOTE = {
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "gfs2",
    "glusterfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "ocfs2",
    "smb3",
}
_REMOTE |= {"smbfs", "fuse.ceph", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs", "fuse.rclone", "vboxsf", "virtiofs"}
"""File systems whose locks do not reliably reach other machines."""


class Refused(Exception):
    """The schema refused a row; the text is that of its rule."""


class Database(ABC):
    """One connection, used by one thread at a time."""

    begin: ClassVar[Sequence[str]]
    """Opens a transaction that no other writer shares."""
    begin_reading: ClassVar[str]
    """Opens a transaction that sees one state."""
    tables: ClassVar[str]
    """Asks whether the tables are there."""

    def __init__(self) -> None:
        self._opened: Any = None
        self.failures: tuple[type[Exception], ...] = ()
        self.refusals: tuple[type[Exception], ...] = ()

    @abstractmethod
    def connect(self) -> Any:
        """Open a connection."""

    @abstractmethod
    def check(self, connection: Any) -> None:
        """Raise `UnsafeDatabase` unless what is committed survives a crash."""

    @abstractmethod
    def create(self) -> None:
        """Make the tables, in the transaction that is open."""

    @abstractmethod
    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Insert rows."""

    @property
    def connection(self) -> Any:
        """The connection, opened and checked when it is needed."""
        if self._opened is None:
            with self._plainly():
                self._opened = self.connect()
                self.check(self._opened)
        return self._opened

    def exists(self) -> bool:
        """Return whether the tables are there."""
        return bool(self.rows(self.tables))

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        return list(self.stream(statement, *values))

    def stream(self, statement: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query, without holding them all where the driver can."""
        connection = self.connection
        with self._plainly():
            yield from connection.execute(statement, values)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Open a transaction that no other writer shares; commit it, synced, if the block ends well."""
        for statement in self.begin:
            self.rows(statement)
        with self._transaction():
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Open a transaction that sees one state."""
        self.rows(self.begin_reading)
        with self._transaction():
            yield

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        opened = self._opened
        try:
            yield
            if self._opened is not opened:
                raise LedgerUnavailable("the connection to the ledger's database was lost; nothing was entered")
        except BaseException:
            if self._opened is opened:
                with suppress(LedgerUnavailable):
                    self.rows("ROLLBACK")
            raise
        self.rows("COMMIT")

    def close(self) -> None:
        """Close the connection."""
        opened, self._opened = self._opened, None
        if opened is not None:
            with suppress(Exception):  # it is broken, or closed by the other side
                opened.close()

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        """Turn errors of the driver into ours; drop a connection that failed."""
        try:
            yield
        except GoodfenceError:
            self.close()
            raise
        except self.failures as problem:
            if isinstance(problem, self.refusals):
                raise Refused(str(problem)) from None
            self.close()
            raise LedgerUnavailable(f"the ledger's database could not be used: {problem}") from None


class Sqlite(Database):
    """A file on a local disk."""

    begin = ("BEGIN IMMEDIATE",)
    begin_reading = "BEGIN"
    tables = "SELECT 1 FROM sqlite_master WHERE name = 'meta'"
    settings: ClassVar[dict[str, object]] = {
        "synchronous": 3,  # EXTRA, before the journal mode: a new connection is in DELETE mode, which needs it
        "journal_mode": "truncate",
        "foreign_keys": 1,
        "recursive_triggers": 1,
        "mmap_size": 0,
        "fullfsync": 1,
    }
    """Read back after they are set. With Python's defaults a power cut can undo a commit."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.failures, self.refusals = (sqlite3.Error, OSError), (sqlite3.IntegrityError,)

    def connect(self) -> Any:
        """Open the file; make it if it is not there, readable by its owner only."""
        if sqlite3.sqlite_version_info < (3, 37):
            raise UnsafeDatabase(f"SQLite must be 3.37 or later, got {sqlite3.sqlite_version}")
        _refuse_network(self.path.parent)
        if not self.path.exists():
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            sync_folder(self.path.parent)
        return self.driver()

    def driver(self) -> Any:
        """Open the file with the driver."""
        name = self.path.absolute().as_uri() + "?mode=rw"
        return sqlite3.connect(name, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False)

    def check(self, connection: Any) -> None:
        """Raise `UnsafeDatabase` unless what is committed survives a crash."""
        for name, wanted in self.settings.items():
            connection.execute(f"PRAGMA {name} = {wanted}").fetchall()
        for name, wanted in self.settings.items():
            found = connection.execute(f"PRAGMA {name}").fetchall()
            if found and tuple(found[0]) != (wanted,):  # a SQLite without mmap says nothing of it
                raise UnsafeDatabase(f"SQLite must use {name} = {wanted}, and does not take it")
        if [tuple(row) for row in connection.execute("PRAGMA integrity_check")] != [("ok",)]:
            raise DamagedLedger("the database file is damaged; restore a copy, and then what the anchor has beyond it")

    def create(self) -> None:
        """Make the tables, in the transaction that is open."""
        statement = ""
        for line in _schema("sqlite.sql").splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                self.rows(statement)
                statement = ""

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Insert rows."""
        marks = ", ".join("?" * len(columns))
        connection = self.connection
        with self._plainly():
            connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)  # noqa: S608


class Postgres(Database):
    """A schema `goodfence_ledger` of a PostgreSQL database."""

    begin = (
        "BEGIN ISOLATION LEVEL READ COMMITTED",
        "SELECT pg_advisory_xact_lock(hashtext('goodfence_ledger')::bigint) IS NULL",
    )
    begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    tables = "SELECT 1 WHERE to_regclass('goodfence_ledger.meta') IS NOT NULL"
    settings: ClassVar[dict[str, tuple[str, ...]]] = {
        "fsync": ("on",),
        "full_page_writes": ("on",),
        "synchronous_commit": ("on", "remote_apply"),
        "data_sync_retry": ("off",),
        "pg_is_in_recovery": ("f",),
    }

    def __init__(self, url: str, schema: str = "goodfence_ledger") -> None:
        super().__init__()
        try:
            import psycopg
        except ImportError:
            raise MissingExtra("PostgreSQL needs: pip install 'goodfence[postgres]'") from None
        self.url, self.schema, self._driver = url, schema, psycopg
        self.failures, self.refusals = (psycopg.Error, OSError), (psycopg.IntegrityError,)

    def connect(self) -> Any:
        """Open a connection."""
        options = f"-c search_path={self.schema} -c lock_timeout={PATIENCE}s"
        return self._driver.connect(self.url, autocommit=True, options=options, connect_timeout=PATIENCE)

    def check(self, connection: Any) -> None:
        """Raise `UnsafeDatabase` unless what is committed survives a crash."""
        for name, allowed in self.settings.items():
            asked = "SELECT pg_is_in_recovery()::text::char" if name == "pg_is_in_recovery" else f"SHOW {name}"
            [(found,)] = connection.execute(asked).fetchall()
            if found not in allowed:
                raise UnsafeDatabase(f"PostgreSQL must have {name} {' or '.join(allowed)}, and it is {found}")

    def create(self) -> None:
        """Make the tables, in the transaction that is open."""
        with self._plainly():
            self.connection.execute(_schema("postgres.sql"))

    def stream(self, statement: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query; where a transaction reads, they come in parts."""
        connection = self.connection
        with self._plainly():
            cursor = connection.execute(statement.replace("?", "%s"), values or None)
            if cursor.description is not None:
                yield from cursor

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Insert rows."""
        connection = self.connection
        with (
            self._plainly(),
            connection.cursor() as cursor,
            cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy,
        ):
            for row in rows:
                copy.write_row(row)


def open_database(place: str) -> Database:
    """Return the database at a path or a postgresql:// URL."""
    return Postgres(place) if place.startswith(("postgresql://", "postgres://")) else Sqlite(Path(place))


def _schema(name: str) -> str:
    return (resources.files("goodfence.ledger") / name).read_text(encoding="utf-8")


def _refuse_network(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> None:
    """Raise if the folder is on a file system of another machine, where the system tells."""
    try:
        lines = [line.split() for line in mounts.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return
    kinds = {line[4]: line[line.index("-") + 1] for line in lines}
    there = folder.resolve()
    nearest = next((str(one) for one in (there, *there.parents) if str(one) in kinds), "")
    if kinds.get(nearest) in _REMOTE:
        raise UnsafeDatabase(
            "the ledger must be on a local disk: locks of network file systems fail; or use PostgreSQL"
        )
