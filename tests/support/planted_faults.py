"""Ten faults planted into the ledger's own code, each with the check that must find it."""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from goodfence.errors import GoodfenceError
from goodfence.ledger import book, chain, database
from goodfence.ledger import ledger as ledgers
from goodfence.ledger.chain import Entry
from goodfence.ledger.costs import Cap, Charge
from goodfence.ledger.database import Sqlite
from goodfence.ledger.ledger import Ledger
from goodfence.privacy import noise
from tests.support import ledger_faults
from tests.support.ledgers import LedgerMachine, sqlite_store

_TRUE_SCHEMA = database._schema


def schema_without(*changes: tuple[str, str]) -> Any:
    """Replace parts of the schema."""

    def changed(name: str) -> str:
        text = _TRUE_SCHEMA(name)
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        return text

    return patch.object(database, "_schema", changed)


def without_trigger(name: str, event: str) -> tuple[str, str]:
    """Return the change that makes a trigger never fire."""
    line = f"CREATE TRIGGER {name} {event}"
    never = line.replace("WHEN ", "WHEN 0 AND (") + ")" if "WHEN" in line else line.replace(" BEGIN", " WHEN 0 BEGIN")
    return line, never


def model_check() -> None:
    """Compare a ledger with the model, for some hundred steps."""
    how = settings(max_examples=25, stateful_step_count=30, deadline=None, database=None, phases=[Phase.generate])
    run_state_machine_as_test(LedgerMachine, settings=how)


def power_check() -> None:
    """Cut the power before every call of a release."""
    ledger_faults.power_cuts(np.random.default_rng(7), 120, ("release",))


def race_check() -> None:
    """Let processes race to a cap, until they meet."""
    for _ in range(30):
        with sqlite_store() as store:
            ledger_faults.race(store)


def schema_check() -> None:
    """Insert a second charge under a key, past the ledger's own code."""
    with sqlite_store() as store:
        with store.open() as ledger:
            ledger.open_accounts("rating", ["batch"], Cap(100, 100))
            paid(ledger, 10)
            [charge] = ledger.book.entries("kind = 'charge'")
            head = ledger.book.head()
        row = charge._replace(seq=head.seq + 1, prev_hash=head.hash, release_id=os.urandom(16)).sealed()
        with sqlite3.connect(store.place) as connection, suppress(sqlite3.IntegrityError):
            connection.execute(f"INSERT INTO entry VALUES ({', '.join('?' * len(Entry._fields))})", row)  # noqa: S608
            raise AssertionError("a key was charged twice")


def negative_check() -> None:
    """Charge less than nothing."""
    with sqlite_store() as store, store.open() as ledger:
        ledger.open_accounts("rating", ["batch"], Cap(100, 100))
        paid(ledger, 10)
        with suppress(GoodfenceError):
            paid(ledger, -5, "next")
            raise AssertionError("a charge was negative")


def paid(ledger: Ledger, cost: int, key: str = "fit") -> None:
    charges = [Charge(ledger.account("rating", "batch"), cost, 1)]
    ledger.release(key, request=b"", charges=charges, draw=lambda: b"x", facts={})


def draws_first(true: Callable[..., bytes]) -> Callable[..., bytes]:
    def release(self: Ledger, key: str, *, draw: Callable[[], bytes], **asked: Any) -> bytes:
        found = self.released(key, request=asked["request"])
        if found is not None:
            return found
        content = draw()
        return true(self, key, draw=lambda: content, **asked)

    return release


def refunds(true: Callable[[Ledger, bytes], None]) -> Callable[[Ledger, bytes], None]:
    def settle(self: Ledger, release_id: bytes) -> None:
        true(self, release_id)
        end = self._end(release_id)
        if end is not None and end.kind == "burn":
            rows = "SELECT account, charged.cost FROM charged JOIN entry USING (seq) WHERE release_id = ?"
            for account, cost in self.book.database.rows(rows, release_id):
                self.book.database.rows("UPDATE account SET cost = cost - ? WHERE account = ?", cost, account)

    return settle


def replaces(true: Callable[..., None]) -> Callable[..., None]:
    def insert(self: Sqlite, table: str, columns: Any, rows: Any) -> None:
        if table != "account":
            true(self, table, columns, rows)
            return
        marks = ", ".join("?" * len(columns))
        self.connection.executemany(f"INSERT OR REPLACE INTO account ({', '.join(columns)}) VALUES ({marks})", rows)  # noqa: S608

    return insert


def seeded_words(n: int) -> Any:
    return np.random.default_rng(7).integers(0, 2**64, n, dtype=np.uint64)


_SPENT_FALLS = without_trigger(
    "account_is_charged",
    "BEFORE UPDATE ON account\nWHEN NEW.account <> OLD.account OR NEW.unit <> OLD.unit "
    "OR NEW.cost < OLD.cost OR NEW.slack < OLD.slack",
)
_ONCE = "AND idem = NEW.idem)"
_ADDED = "cost = cost + NEW.cost, slack"
_FLOAT4 = "cost = ((cost + NEW.cost) >> 21) << 21, slack"

FAULTS: dict[str, tuple[list[Any], Callable[[], None]]] = {
    "journal mode DELETE with synchronous=FULL": (
        [patch.dict(Sqlite.settings, {"synchronous": 2, "journal_mode": "delete"})],
        power_check,
    ),
    "charge after the draw": ([patch.object(Ledger, "release", draws_first(Ledger.release))], power_check),
    "no lock before reading": ([patch.object(Sqlite, "begin", ("BEGIN",))], race_check),
    "sums with the 24 bits of a float4": ([schema_without((_ADDED, _FLOAT4))], model_check),
    "no unique key": (
        [schema_without(("CREATE UNIQUE INDEX one_charge_a_key", "CREATE INDEX one_charge_a_key"), (_ONCE, "AND 0)"))],
        schema_check,
    ),
    "a burn that refunds": (
        [schema_without(_SPENT_FALLS), patch.object(Ledger, "_settle", refunds(Ledger._settle))],
        model_check,
    ),
    "anchor after the release": ([patch.object(book, "_ANCHORED", ("open", "cap", "restore", "release"))], power_check),
    "negative cost": (
        [
            schema_without(
                _SPENT_FALLS,
                ("CHECK (cost BETWEEN 0 AND", "CHECK (cost BETWEEN -9 AND"),
                ("cost INTEGER NOT NULL CHECK (cost >= 0),", "cost INTEGER NOT NULL,"),
            ),
            patch.object(ledgers, "require"),
            patch.object(chain, "_ROW", struct.Struct(">16sqq")),
        ],
        negative_check,
    ),
    "a kept seed": ([patch.object(noise, "system_words", seeded_words)], power_check),
    "a batch opened again": (
        [
            schema_without(
                ("OR EXISTS (SELECT 1 FROM account WHERE account = NEW.account)\n", "\n"),
                without_trigger("account_remains", "BEFORE DELETE ON account BEGIN"),
            ),
            patch.object(Sqlite, "insert", replaces(Sqlite.insert)),
            patch.object(Ledger, "_known", lambda *_: iter(())),
        ],
        model_check,
    ),
}


@contextmanager
def planted(name: str) -> Iterator[Callable[[], None]]:
    """Plant a fault; yield its check."""
    patches, check = FAULTS[name]
    with ExitStack() as stack:
        for one in patches:
            stack.enter_context(one)
        yield check


def caught(name: str) -> bool:
    """Return whether the check finds the planted fault."""
    with planted(name) as check:
        try:
            check()
        except Exception:  # whatever differs from the model raises: a draw, say, that should have been refused
            return True
    return False
