"""The data of a service in PostgreSQL: the statements of SQLite, one writer, a schema of its own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

from goodfence.errors import BadRequest, GoodfenceError, StoreProblem
from goodfence.ledger.database import Postgres
from goodfence.service.store import QueuedStore, StoreRow, Writer, migrate

_PAGE = 5_000
_READERS = 16
"""At most so many questions are asked at once; a server has 100 connections for everybody."""
_PATIENCE = 10
"""Seconds for which the server may take a service that was killed for alive."""


class _DataServer(Postgres):
    """How to connect: the rules about crashes are those of the ledger."""

    schema = "goodfence_service"


class _PostgresWriter:
    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def run(self, sql: str, *values: Any) -> list[StoreRow]:
        if _cannot_hold(values):
            raise BadRequest("a text has the character U+0000, which PostgreSQL cannot hold")
        cursor = self.connection.execute(translated(sql), values)
        return list(cursor.fetchall()) if cursor.description is not None else []

    def run_many(self, sql: str, rows: list[StoreRow]) -> None:
        if any(map(_cannot_hold, rows)):
            raise BadRequest("a text has the character U+0000, which PostgreSQL cannot hold")
        with self.connection.cursor() as cursor:
            cursor.executemany(translated(sql), rows)


class PostgresStore(QueuedStore):
    """A schema `goodfence_service` of a PostgreSQL database, which one service at a time writes to.

    Parameters
    ----------
    url : str
        As in postgresql://user@host/database; the schema is made and brought up to date.
    read_only : bool, default False
        Whether nothing is written, as in the process that trains.
    """

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        super().__init__()
        self._server = _DataServer(url)
        self.failures = self._server.failures
        self._idle, self._readers = deque[Any](), threading.BoundedSemaphore(_READERS)
        self._writing: _PostgresWriter | None = None
        if read_only:
            return
        with self._plainly():
            migrate(self.writer(), "postgres")
        self.start()

    def writer(self) -> Writer:
        """Return the connection that writes, opened anew after it was lost; it keeps every other service out."""
        if self._writing is None or self._writing.connection.closed:
            connection = self._connected()
            try:
                connection.execute(f"SET lock_timeout = '{_PATIENCE}s'")
                connection.execute("SELECT pg_advisory_lock(hashtext('goodfence_service')::bigint)")
                connection.execute("CREATE SCHEMA IF NOT EXISTS goodfence_service")
            except self.failures as problem:
                connection.close()
                if getattr(problem, "sqlstate", "") == "55P03":
                    raise StoreProblem("another service writes to this database; stop it first") from None
                raise
            self._writing = _PostgresWriter(connection)
        return self._writing

    def read(self, sql: str, *values: Any) -> list[StoreRow]:
        """Return the rows of a query; of text that no row can hold there are none."""
        if _cannot_hold(values):
            return []
        with self._readers, self._plainly():
            try:
                connection = self._idle.pop()
            except IndexError:
                return self._rows(self._connected(), sql, values)
            try:
                return self._rows(connection, sql, values)
            except self.failures:  # the server may have been restarted: all are opened anew
                self._drop_idle()
                return self._rows(self._connected(), sql, values)

    def _rows(self, connection: Any, sql: str, values: tuple[Any, ...]) -> list[StoreRow]:
        try:
            rows = list(connection.execute(translated(sql), values).fetchall())
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return rows

    def stream(self, sql: str, *values: Any) -> Iterator[StoreRow]:
        """Yield rows on a connection of its own: a long export holds one snapshot."""
        with self._plainly(), closing(self._connected()) as connection:
            connection.execute("BEGIN READ ONLY")
            with connection.cursor(name="rows") as cursor:
                cursor.itersize = _PAGE
                yield from cursor.execute(translated(sql), values)

    def disconnect(self) -> None:
        """Close every connection."""
        self._drop_idle()
        if self._writing is not None:
            self._writing.connection.close()

    def _drop_idle(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _connected(self) -> Any:
        connection = self._server.connect()
        self._server.check(connection)
        return connection

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        """Turn errors of the driver, which may quote what was asked, into ours."""
        try:
            yield
        except GoodfenceError:
            raise
        except self.failures as problem:
            raise StoreProblem(f"the database cannot be used ({type(problem).__name__})") from None


def translated(sql: str) -> str:
    """Return a statement as psycopg takes it: `?` marks a value."""
    return sql.replace("%", "%%").replace("?", "%s")


def _cannot_hold(values: tuple[Any, ...]) -> bool:
    return any(isinstance(value, str) and "\0" in value for value in values)
