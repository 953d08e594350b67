"""What a ledger promises to its callers, in both databases."""

from __future__ import annotations

import itertools
import os
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodfence.errors import (
    CapExceeded,
    DamagedLedger,
    LedgerUnavailable,
    ReleaseInProgress,
    RolledBack,
    SettingError,
    UnsafeDatabase,
)
from goodfence.ledger import database
from goodfence.ledger.book import OPERATORS
from goodfence.ledger.chain import START, Entry
from goodfence.ledger.costs import MOST_COST, Cap, Charge, epsilon_of, slack_of
from goodfence.ledger.export import told
from goodfence.ledger.ledger import Ledger
from goodfence.ledger.verify import verify
from goodfence.privacy.accounting import lattice_distance, total_mu
from goodfence.privacy.noise import SIGMA
from tests.support.ledgers import PostgresStore, Store, sqlite_store
from tests.support.postgres import Cluster, cluster

CAP = Cap(100, 100)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    if request.param == "sqlite":
        with sqlite_store() as made:
            yield made
        return
    running: Cluster = request.getfixturevalue("postgres")
    other = PostgresStore(Path(tempfile.mkdtemp()), running.url())
    yield other
    other.remove()


def pay(
    ledger: Ledger, key: str, cost: int = 10, names: tuple[str, ...] = ("batch",), content: bytes = b"noisy"
) -> bytes:
    charges = [Charge(ledger.account("rating", name), cost, 1) for name in names]
    return ledger.release(key, request=b"data", charges=charges, draw=lambda: content, facts={"name": key})


def run(store: Store, statement: str, *values: Any) -> None:
    """Run a statement as somebody who has the database, and wants to change the past."""
    if isinstance(store, PostgresStore):
        with psycopg.connect(store.place, options="-c search_path=goodfence_ledger") as connection:
            for name in ("meta", "entry", "account", "charged"):
                connection.execute(f"GRANT ALL ON {name} TO CURRENT_USER")
            connection.execute(statement.replace("?", "%s"), values)
        return
    with closing(sqlite3.connect(store.place)) as opened, opened:
        opened.execute("PRAGMA recursive_triggers = ON")
        opened.execute("PRAGMA foreign_keys = ON")
        opened.execute(statement, values)


REFUSED = (sqlite3.IntegrityError, psycopg.Error)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET cost = 0 WHERE kind = 'charge'",
        "DELETE FROM entry WHERE kind = 'charge'",
        "UPDATE charged SET cost = 0",
        "DELETE FROM charged",
        "UPDATE account SET cost = 0",
        "UPDATE account SET slack = 0",
        "DELETE FROM account",
        "UPDATE account SET cap_cost = 1000",
        "UPDATE account SET cap_cost = 50",
        "UPDATE account SET unit = 'user'",
        "UPDATE meta SET head_seq = 1",
        "UPDATE meta SET head_hash = (SELECT hash FROM entry WHERE seq = 2), head_seq = 9",
        "DELETE FROM meta",
        "INSERT INTO charged SELECT seq, account, 10, 1 FROM account, entry WHERE kind = 'open' AND n_accounts > 0",
        "INSERT INTO charged SELECT head_seq, account, -10, 1 FROM account, meta",
        "INSERT INTO account SELECT account, unit, cap_cost, cap_slack, capped, 0, 0 FROM account",
    ],
)
def test_the_schema_refuses_to_change_the_past(store: Store, statement: str) -> None:
    with store.open() as ledger:
        ledger.open_accounts("rating", ["batch"], CAP)
        pay(ledger, "fit")
        with pytest.raises(REFUSED):
            run(store, statement)
        assert verify(ledger.book) == []
        assert ledger.spent(ledger.account("rating", "batch")).cost == 10


@pytest.mark.parametrize("way", ["REPLACE", "IGNORE"])
@pytest.mark.parametrize("table", ["meta", "entry", "account", "charged"])
def test_no_row_of_sqlite_is_replaced_or_ignored(table: str, way: str) -> None:
    with sqlite_store() as store, store.open() as ledger:
        ledger.open_accounts("rating", ["batch"], CAP)
        pay(ledger, "fit")
        with pytest.raises(sqlite3.IntegrityError):
            run(store, f"INSERT OR {way} INTO {table} SELECT * FROM {table}")  # noqa: S608
        assert verify(ledger.book) == []


@pytest.mark.parametrize("statement", ["TRUNCATE {} CASCADE", "DELETE FROM {}"])
@pytest.mark.parametrize("table", ["meta", "entry", "account", "charged"])
def test_no_table_of_postgres_is_emptied(postgres: Cluster, table: str, statement: str) -> None:
    store = PostgresStore(Path(tempfile.mkdtemp()), postgres.url())
    with store.open() as ledger:
        ledger.open_accounts("rating", ["batch"], CAP)
        with pytest.raises(psycopg.errors.IntegrityError):
            run(store, statement.format(table))
    store.remove()


def row_after(head: Entry, **changes: Any) -> tuple[Any, ...]:
    body = '{"clock":""}'
    known: dict[str, Any] = {**head._asdict(), "seq": head.seq + 1, "prev_hash": head.hash, "body": body, **changes}
    return Entry(**known).sealed()


def test_one_charge_a_key_one_end_a_release_one_chain(store: Store) -> None:
    with store.open() as ledger:
        ledger.open_accounts("rating", ["batch"], CAP)
        pay(ledger, "fit")
        charge, end = ledger.book.entries("kind IN ('charge', 'release')")
    marks = f"INSERT INTO entry VALUES ({', '.join('?' * len(Entry._fields))})"  # noqa: S608
    wrong = [
        row_after(end, kind="charge", idem=charge.idem, request=b"x", release_id=os.urandom(16)),
        row_after(end, kind="charge", idem="new#1", request=b"x", release_id=charge.release_id),
        row_after(end, kind="charge", idem=None, request=b"x", release_id=os.urandom(16)),
        row_after(end, kind="burn"),
        row_after(end, kind="release", release_id=os.urandom(16)),
        row_after(end, kind="charge", idem="new#1", request=b"x", release_id=os.urandom(16), cost=-1),
        row_after(end, kind="open", prev_hash=START),
        row_after(end, kind="open", seq=end.seq + 2),
        row_after(end, kind="gift"),
    ]
    for row in wrong:
        with pytest.raises(REFUSED):
            run(store, marks, *row)
    run(store, marks, *row_after(end, kind="open", release_id=None))


def test_a_cap_holds_to_the_last_tick(store: Store) -> None:
    with store.open() as ledger:
        cap = Cap(20_223_402_533_771, 100)
        ledger.open_accounts("rating", ["batch"], cap)
        pay(ledger, "fit", cap.cost - 1)
        with pytest.raises(
            CapExceeded, match=f"{cap.cost - 1} of {cap.cost} ticks and 1 of 100 slack are spent, 2 and 1"
        ):
            pay(ledger, "update", 2)
        pay(ledger, "update", 1)
        assert ledger.spent(ledger.account("rating", "batch")) == (cap.cost, 2, cap)


def test_what_a_person_spent_is_not_told(store: Store) -> None:
    with store.open() as ledger:
        people = ledger.open_accounts("user", ["a", "b"], CAP)
        ledger.release("fit", request=b"", charges=[Charge(people[0], 95, 1)], draw=bytes, facts={})
        assert ledger.with_room(people, 10, 1) == people[1:]
        with pytest.raises(CapExceeded) as told:
            ledger.release("next", request=b"", charges=[Charge(one, 10, 1) for one in people], draw=bytes, facts={})
        assert "95" not in str(told.value)
        assert ledger.spent(people[1]).cost == 0


@pytest.mark.parametrize(
    "charges", [[], [(b"x" * 16, 1, 1)], [(b"", 1, 1)], [(None, -1, 1)], [(None, 1, -1)], [(None, 1, 1)] * 2]
)
def test_charges_that_make_no_sense_are_refused(store: Store, charges: list[tuple[bytes | None, int, int]]) -> None:
    with store.open() as ledger:
        [batch] = ledger.open_accounts("rating", ["batch"], CAP)
        asked = [Charge(account if account is not None else batch, *amounts) for account, *amounts in charges]
        drawn: list[int] = []

        def draw() -> bytes:
            drawn.append(1)
            return b""

        with pytest.raises((SettingError, LedgerUnavailable)):
            ledger.release("fit", request=b"", charges=asked, draw=draw, facts={})
        assert drawn == []
        assert ledger.spent(batch).cost == 0


def test_a_batch_without_people_looks_like_any_other(store: Store) -> None:
    with store.open() as ledger:
        for names in (["a", "b"], []):
            people = ledger.open_accounts("user", names, CAP)
            charges = [Charge(one, 10, 1) for one in people]
            ledger.release(f"{len(names)}", request=b"", charges=charges, draw=bytes, facts={}, stated=(10, 1))
        shown = [
            ([name for name, value in told(entry).items() if value is None], entry.cost, entry.slack, {*entry.facts})
            for entry in ledger.book.entries("kind IN ('open', 'charge') AND seq > 1")
        ]
        assert shown[:2] == shown[2:]
        charges = [Charge(ledger.account("user", "a"), 11, 1)]
        with pytest.raises(LedgerUnavailable, match="refused"):
            ledger.release("more", request=b"", charges=charges, draw=bytes, facts={}, stated=(10, 1))
        assert verify(ledger.book) == []


def test_a_release_in_progress_is_not_settled_by_others(store: Store) -> None:
    with store.open() as ledger:
        ledger.open_accounts("rating", ["batch"], CAP)

        def draw() -> bytes:
            with store.open() as other, pytest.raises(ReleaseInProgress):
                pay(other, "fit")
            return b"noisy"

        charges = [Charge(ledger.account("rating", "batch"), 10, 1)]
        assert ledger.release("fit", request=b"data", charges=charges, draw=draw, facts={}) == b"noisy"


def test_a_burned_release_is_discarded(store: Store) -> None:
    with store.open() as ledger:
        ledger.open_accounts("rating", ["batch"], CAP)

        def draw() -> bytes:  # recovery on a machine that does not see the lock
            [entry] = ledger.book.entries("kind = 'charge'")
            assert entry.release_id is not None
            with store.open() as other:
                other._settle(entry.release_id)
            return b"noisy"

        charges = [Charge(ledger.account("rating", "batch"), 10, 1)]
        with pytest.raises(LedgerUnavailable, match="burned"):
            ledger.release("fit", request=b"data", charges=charges, draw=draw, facts={})
        assert [path for path in store.folder.iterdir() if len(path.name) >= 32] == []
        assert pay(ledger, "fit") == b"noisy"
        assert ledger.spent(ledger.account("rating", "batch")).cost == 20


def test_caps_rise_by_two_keys_and_a_reason(store: Store) -> None:
    with store.open() as ledger:
        accounts = ledger.open_accounts("rating", ["batch"], CAP)
        files = [store.folder / name for name in OPERATORS]
        for operators, reason, cap in [(files[:1] * 2, "r", Cap(200, 200)), (files, " ", Cap(200, 200))]:
            with pytest.raises(SettingError):
                ledger.raise_cap(accounts, cap, reason=reason, operators=operators)
        with pytest.raises(LedgerUnavailable, match="refused"):
            ledger.raise_cap(accounts, Cap(50, 200), reason="lower", operators=files)
        ledger.raise_cap(accounts, Cap(200, 200), reason="a new law", operators=files)
        pay(ledger, "fit", 150)
        assert verify(ledger.book) == []


def test_files_are_readable_by_their_owner_only() -> None:
    with sqlite_store() as store, store.open() as ledger:
        ledger.open_accounts("rating", ["batch"], CAP)
        pay(ledger, "fit")
        files = [Path(store.place), store.anchor, *store.folder.iterdir()]
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_database_that_may_lose_a_charge_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with sqlite_store() as store:
        in_memory = sqlite3.connect(":memory:", isolation_level=None)  # it has no journal that could be a file
        monkeypatch.setattr(database.Sqlite, "driver", lambda _: in_memory)
        with pytest.raises(UnsafeDatabase, match="journal_mode"):
            store.open()


def test_a_network_file_system_is_refused(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"36 35 98:0 / / rw - ext4 /dev/a rw\n37 36 0:4 / {tmp_path} rw shared:1 - nfs4 server:/ rw\n")
    with pytest.raises(UnsafeDatabase, match="local disk"):
        database._refuse_network(tmp_path / "deep", mounts)
    database._refuse_network(Path("/"), mounts)


def test_a_postgres_without_fsync_is_refused(postgres: Cluster) -> None:
    with cluster(fsync="off") as unsafe, sqlite_store() as folder, pytest.raises(UnsafeDatabase, match="fsync"):
        Ledger(unsafe.url(), anchor=folder.anchor, folder=folder.folder)
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("ALTER ROLE ledger SET synchronous_commit = off")
        try:
            with sqlite_store() as folder, pytest.raises(UnsafeDatabase, match="synchronous_commit"):
                Ledger(postgres.url(), anchor=folder.anchor, folder=folder.folder)
        finally:
            connection.execute("ALTER ROLE ledger RESET synchronous_commit")


def test_a_crash_of_postgres_loses_no_charge(postgres: Cluster) -> None:
    store = PostgresStore(Path(tempfile.mkdtemp()), postgres.url())
    ledger = store.open()
    ledger.open_accounts("rating", ["batch"], CAP)

    def draw() -> bytes:
        postgres.stop("immediate")
        return b"noisy"

    charges = [Charge(ledger.account("rating", "batch"), 10, 1)]
    with pytest.raises(LedgerUnavailable):
        ledger.release("fit", request=b"data", charges=charges, draw=draw, facts={})
    postgres.start()
    with store.open() as again:
        assert pay(again, "fit", content=b"another") == b"noisy"  # it was published: recovery adopts it
        assert again.spent(again.account("rating", "batch")).cost == 10
        assert verify(again.book) == []
    store.remove()


@pytest.mark.parametrize("what", ["artefact", "key", "anchor gone", "entry"])
def test_damage_is_found(what: str) -> None:
    with sqlite_store() as store:
        with store.open() as ledger:
            ledger.open_accounts("rating", ["batch"], CAP)
            pay(ledger, "fit")
        artefact = next(path for path in store.folder.iterdir() if len(path.name) == 32)
        if what == "artefact":
            artefact.write_bytes(artefact.read_bytes()[:-1] + b"?")
            with store.open() as ledger:
                assert verify(ledger.book) == ["the artefact of entry 4 is missing or not the one that was released"]
                with pytest.raises(DamagedLedger):
                    pay(ledger, "fit")
        elif what == "entry":
            connection = sqlite3.connect(store.place)
            connection.executescript("DROP TRIGGER entry_is_final; UPDATE entry SET cost = 5 WHERE seq = 3")
            connection.close()
            with store.open() as ledger:
                assert len(verify(ledger.book)) == 3
        else:
            if what == "key":
                (store.folder / "key").write_bytes(bytes(32))
            else:
                store.anchor.unlink()
            with pytest.raises((RolledBack, DamagedLedger)):
                store.open()


TORN = [b"3 charge 10 1 00", b"\0" * 300 + b"\n", b"3 charge 10 1 - " + b"00" * 32 + b" 00000000\n", b"\n\n"]


@pytest.mark.parametrize("torn", TORN)
def test_what_a_power_cut_left_of_an_append_is_overwritten(torn: bytes) -> None:
    with sqlite_store() as store:
        with store.open() as ledger:
            ledger.open_accounts("rating", ["batch"], CAP)
        with store.anchor.open("ab") as file:
            file.write(torn)
        with store.open() as ledger:
            assert len(list(ledger.book.anchor.lines())) == 2
            pay(ledger, "fit")
            assert verify(ledger.book) == []
            assert len(store.anchor.read_bytes().splitlines()) == 3


def test_an_anchor_that_is_damaged_before_its_end_is_refused() -> None:
    with sqlite_store() as store, store.open() as ledger:
        [batch] = ledger.open_accounts("rating", ["batch"], Cap(10**6, 10**6))
        for at in range(120):
            ledger.release(f"{at}", request=b"", charges=[Charge(batch, 10, 1)], draw=bytes, facts={})
        assert verify(ledger.book) == []
        whole = store.anchor.read_bytes()
        store.anchor.write_bytes(whole[:300] + b"?" + whole[301:])
        with pytest.raises(DamagedLedger):
            verify(ledger.book)
        store.anchor.write_bytes(whole + b"?" * len(whole))
        with pytest.raises(DamagedLedger):
            store.open()


@given(st.integers(0, 10**12))
def test_slack_covers_the_distance(dimension: int) -> None:
    exact = Fraction(101**2 * dimension, 32 * 100**2)
    slack = slack_of(dimension)
    assert slack**2 >= exact
    assert slack == 0 or (slack - 1) ** 2 < exact
    assert slack / 2**48 >= lattice_distance(dimension, SIGMA) * (1 - 1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [*itertools.product([0.1, 1, 4, 8], [1e-5, 1e-8])])
def test_a_cap_is_the_whole_budget_and_no_more(epsilon: float, delta: float) -> None:
    cap = Cap.of(epsilon=epsilon, delta=delta, slack=404)
    mu_squared = Fraction(total_mu(epsilon, delta, 404 / 2**48)) ** 2
    assert Fraction(cap.cost, 2**48) <= mu_squared < Fraction(cap.cost + 1, 2**48)
    assert epsilon * (1 - 1e-6) < epsilon_of(cap.cost, cap.slack, delta) <= epsilon


@pytest.mark.parametrize("cap", [Cap(0, 1), Cap(1, 0), Cap(MOST_COST + 1, 1)])
def test_caps_outside_64_bits_are_refused(cap: Cap) -> None:
    with sqlite_store() as store, store.open() as ledger, pytest.raises(SettingError):
        ledger.open_accounts("rating", ["batch"], cap)
