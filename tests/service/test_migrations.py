"""From every earlier schema a service comes up to date, whole or not at all, and refuses what it does not know."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from benchmarks.service_faults import later_schema
from goodfence.errors import StoreProblem
from goodfence.service.state import Service
from goodfence.service.store import SQLiteStore, Writer, migrate, migrations
from tests.support.service_shop import SETTINGS, Shop, fill, opened

NEWEST = len(migrations("sqlite"))


def at_version(path: Path, version: int) -> None:
    """Make the database that an earlier goodfence left: the first migrations, and rows where there are tables."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE schema_version (version INTEGER PRIMARY KEY, sha256 TEXT NOT NULL)")
        for number, text, digest in migrations("sqlite")[:version]:
            for statement in filter(None, map(str.strip, re.split(r";\n", text))):
                connection.execute(statement)
            connection.execute("INSERT INTO schema_version VALUES (?, ?)", (number, digest))
        if version:
            connection.execute("INSERT INTO account VALUES (1, 'ann', x'0102', '[]', 0)")
            connection.execute("INSERT INTO item VALUES (1, 'film', 'A film', '[]', 0)")
            connection.execute("INSERT INTO cell (user_id, item_id, value, at) VALUES (1, 1, 4, 0)")


def schema(path: Path) -> list[tuple[str, str]]:
    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()


@pytest.mark.parametrize("version", range(NEWEST + 1))
def test_every_earlier_schema_comes_up_to_date(version: int, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    at_version(tmp_path / "shop" / "data.db", version)
    SQLiteStore(tmp_path / "new.db").close()
    service = Service(tmp_path / "shop", SETTINGS)
    row = service.records.user_row("ann")
    assert (row is not None) == (version > 0)
    assert service.records.profile(row).values.tolist() == [4.0] * (version > 0)
    service.close()
    kept = [(name, re.sub(r"\s+", " ", sql or "")) for name, sql in schema(tmp_path / "shop" / "data.db")]
    new = [(name, re.sub(r"\s+", " ", sql or "")) for name, sql in schema(tmp_path / "new.db")]
    assert [one for one in kept if one[0] != "schema_version"] == [one for one in new if one[0] != "schema_version"]


def test_a_filled_service_is_migrated_with_its_rows(tmp_path: Path) -> None:
    with opened(tmp_path / "shop") as shop:
        fill(shop)
        before = cells(shop)
    with later_schema(), opened(tmp_path / "shop") as shop:
        assert cells(shop) == before
        assert shop.service.store.read("SELECT count(*) FROM cell WHERE twice IS NOT 2 * value") == [(0,)]
    with pytest.raises(StoreProblem, match="another version"):  # the older program on the newer schema
        SQLiteStore(tmp_path / "shop" / "data.db")


def cells(shop: Shop) -> object:
    return shop.service.store.read("SELECT user_id, item_id, value FROM cell ORDER BY 1, 2")


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.db"
    SQLiteStore(path).close()
    before, known = schema(path), migrations("sqlite")
    broken = "CREATE TABLE more (one INTEGER);\nINSERT INTO nothing VALUES (1);\n"
    monkeypatch.setattr("goodfence.service.store.migrations", lambda _: [*known, (NEWEST + 1, broken, "later")])
    with sqlite3.connect(path, isolation_level=None) as connection, pytest.raises(sqlite3.OperationalError):
        migrate(Writer(connection), "sqlite")
    assert schema(path) == before


def test_a_migration_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    SQLiteStore(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE schema_version SET sha256 = 'another'")
    with pytest.raises(StoreProblem, match="another version"):
        SQLiteStore(path)
