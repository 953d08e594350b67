"""Ledgers in both databases that can be copied and put back, and a model of a ledger: dicts of sums."""

from __future__ import annotations

import copy
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import psycopg
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from goodfence.errors import CapExceeded, GoodfenceError, KeyReused, LedgerUnavailable, RolledBack, SettingError
from goodfence.ledger.book import OPERATORS, Book, State
from goodfence.ledger.costs import Cap, Charge
from goodfence.ledger.ledger import Ledger
from goodfence.ledger.verify import verify

TABLES = ("meta", "entry", "account", "charged")
TICKS = 20_223_402_533_771
"""An odd number of 45 bits: no float of 32 bits holds its multiples."""


class Died(BaseException):
    """The process is gone: nothing behind this runs."""


class Store:
    """Where one ledger is: a file and its folder. `backup` and `put_back` are what an operator does to the database."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.place = str(folder / "ledger.db")
        self.anchor, self.folder = folder / "elsewhere" / "anchor.log", folder / "files"
        self.anchor.parent.mkdir(exist_ok=True)

    def open(self) -> Ledger:
        return Ledger(self.place, anchor=self.anchor, folder=self.folder)

    def book(self) -> Book:
        book = Book(self.place, self.anchor, self.folder)
        book.open(new=False)
        return book

    def backup(self) -> Any:
        return Path(self.place).read_bytes()

    def put_back(self, content: Any) -> None:
        Path(self.place).write_bytes(content)

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


class PostgresStore(Store):
    """The same in the schema of a database."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self.place = url
        self.clear()

    def clear(self) -> None:
        with psycopg.connect(self.place, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS goodfence_ledger CASCADE")

    def backup(self) -> Any:
        with psycopg.connect(self.place, autocommit=True) as connection:
            return {name: connection.execute(f"SELECT * FROM goodfence_ledger.{name}").fetchall() for name in TABLES}  # noqa: S608

    def put_back(self, content: Any) -> None:
        with psycopg.connect(self.place) as connection, connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")  # no triggers
            cursor.execute("SET search_path TO goodfence_ledger")
            for name in TABLES:
                cursor.execute(f"GRANT ALL ON {name} TO CURRENT_USER")
                cursor.execute(f"DELETE FROM {name}")  # noqa: S608
                with cursor.copy(f"COPY {name} FROM STDIN") as rows:
                    for row in content[name]:
                        rows.write_row(row)

    def remove(self) -> None:
        super().remove()
        self.clear()


@contextmanager
def sqlite_store() -> Iterator[Store]:
    """Make a store on a disk of memory where there is one: a process that is killed loses nothing there either."""
    memory = Path("/dev/shm")  # noqa: S108
    store = Store(Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None)))
    try:
        yield store
    finally:
        store.remove()


@dataclass
class Expected:
    """What a ledger must say."""

    accounts: dict[str, tuple[Cap, int, int]] = field(default_factory=dict)
    keys: dict[str, tuple[bytes, bytes | None]] = field(default_factory=dict)
    """The request of each key that was charged, and its artefact unless it was burned."""
    charged: list[tuple[frozenset[str], int, int]] = field(default_factory=list)
    opened: list[tuple[str, Cap]] = field(default_factory=list)
    n_anchored: int = 0
    owed: list[tuple[int, int, set[tuple[str, Cap]]]] = field(default_factory=list)

    def open(self, name: str, cap: Cap) -> None:
        owed = [one for one in self.owed if one[2]]
        paid = min(sum(one[0] for one in owed), cap.cost), min(sum(one[1] for one in owed), cap.slack)
        for one in self.owed:
            one[2].discard((name, cap))
        self.accounts[name] = (cap, *paid)
        self.opened.append((name, cap))
        self.n_anchored += 1

    def charge(self, names: frozenset[str], cost: int, slack: int) -> None:
        for name in names:
            cap, spent, used = self.accounts[name]
            self.accounts[name] = (cap, spent + cost, used + slack)
        self.charged.append((names, cost, slack))
        self.n_anchored += 1

    def has_room(self, names: frozenset[str], cost: int, slack: int) -> bool:
        known = [self.accounts[name] for name in names]
        return all(spent + cost <= cap.cost and used + slack <= cap.slack for cap, spent, used in known)

    def restored(self, since: Expected) -> Expected:
        """Return what this older state becomes when it pays what happened `since`."""
        lost = since.charged[len(self.charged) :]
        cost, slack = sum(one[1] for one in lost), sum(one[2] for one in lost)
        new = copy.deepcopy(self)
        for name, (cap, spent, used) in self.accounts.items():
            new.accounts[name] = (cap, min(cap.cost, spent + cost), min(cap.slack, used + slack))
        new.owed.append((cost, slack, {*since.opened[len(self.opened) :]}))
        new.charged, new.opened = list(since.charged), list(since.opened)
        new.n_anchored = since.n_anchored + 1
        return new


NAMES = st.sampled_from("abcd")
KEYS = st.sampled_from(["fit/sums", "fit/covariance", "update/sums", "update/covariance", "third", "fourth"])
REQUESTS = st.sampled_from([b"these data", b"these data", b"these data", b"others"])
ENDS = st.sampled_from(["whole", "whole", "whole", "draw fails", "dies before", "dies after"])
SOME = st.frozensets(NAMES, min_size=1)


class LedgerMachine(RuleBasedStateMachine):
    """Drives a ledger and the model side by side; every step compares all that both know."""

    stores: ClassVar[Any] = staticmethod(sqlite_store)
    """Makes a store, as a context."""
    n_steps: ClassVar[int] = 0

    @initialize()
    def begin(self) -> None:
        self.made = self.stores()
        self.store: Store = self.made.__enter__()
        self.ledgers: list[Ledger] = [self.store.open(), self.store.open()]
        self.expected = Expected()
        self.n_drawn, self.restored = 0, False
        self.states: list[tuple[State, frozenset[str], int]] = []
        self.backups: list[tuple[Any, bytes, Expected]] = []
        self.opens("a", True)
        self.opens("b", False)

    def teardown(self) -> None:
        if hasattr(self, "made"):
            for ledger in self.ledgers:
                ledger.close()
            self.made.__exit__(None, None, None)

    @property
    def ledger(self) -> Ledger:
        """Two connections take turns."""
        self.ledgers.reverse()
        return self.ledgers[0]

    @rule(name=NAMES, large=st.booleans())
    def opens(self, name: str, large: bool) -> None:
        cap = Cap(40 * TICKS, 400) if large else Cap(9 * TICKS, 90)
        known = self.expected.accounts.get(name)
        if known is not None and known[0] != cap:
            self.refused(SettingError, lambda: self.ledger.open_accounts("rating", [name], cap))
            return
        self.ledger.open_accounts("rating", [name], cap)
        if known is None:
            self.expected.open(name, cap)

    @rule(key=KEYS, request=REQUESTS, names=SOME, cost=st.integers(0, 5), end=ENDS)
    def releases(self, key: str, request: bytes, names: frozenset[str], cost: int, end: str) -> None:
        names &= self.expected.accounts.keys()
        ledger = self.ledger
        charges = [Charge(ledger.account("rating", name), cost * TICKS, cost) for name in sorted(names)]
        known = self.expected.keys.get(key)

        def asked() -> bytes:
            return ledger.release(key, request=request, charges=charges, draw=lambda: self.drawn(end), facts={})

        if known is not None and known[0] != request:
            self.refused(KeyReused, asked)
        elif known is not None and known[1] is not None:
            assert asked() == known[1]
        elif not names:
            self.refused(SettingError, asked)
        elif not self.expected.has_room(names, cost * TICKS, cost):
            self.refused(CapExceeded, asked)
        else:
            content = self.asked_until(end, ledger, asked)
            self.expected.charge(names, cost * TICKS, cost)
            self.expected.keys[key] = (request, content)

    def drawn(self, end: str) -> bytes:
        self.n_drawn += 1
        if end == "draw fails":
            raise ArithmeticError
        if end == "dies before":
            raise Died
        return b"artefact %d" % self.n_drawn

    def asked_until(self, end: str, ledger: Ledger, asked: Callable[[], bytes]) -> bytes | None:
        """Ask for a release that ends this way; return the artefact that must be there afterwards."""
        if end == "whole":
            return asked()
        gone = patch.object(ledger, "_settle", side_effect=LedgerUnavailable("dead"))
        dead = patch.object(ledger, "_enter", side_effect=Died)
        died = False
        ledger.settle()  # what follows has none
        with ExitStack() as stack:
            if end.startswith("dies"):
                stack.enter_context(gone)
            if end == "dies after":
                stack.enter_context(dead)
            try:
                asked()
            except (Died, ArithmeticError):
                died = True
        assert died
        return b"artefact %d" % self.n_drawn if end == "dies after" else None

    @rule(name=NAMES, factor=st.integers(1, 3), both=st.booleans())
    def raises_cap(self, name: str, factor: int, both: bool) -> None:
        if name not in self.expected.accounts:
            return
        ledger, (cap, cost, slack) = self.ledger, self.expected.accounts[name]
        new = Cap(cap.cost * factor, cap.slack * factor)
        files = [self.store.folder / OPERATORS[0], self.store.folder / OPERATORS[both]]

        def asked() -> None:
            ledger.raise_cap([ledger.account("rating", name)], new, reason="more", operators=files)

        if not both or self.restored:
            self.refused(SettingError, asked)
            return
        asked()
        self.expected.accounts[name] = (new, cost, slack)
        self.expected.n_anchored += 1

    @rule(at=st.integers(0, 1))
    def reopens(self, at: int) -> None:
        self.ledgers[at].close()
        self.ledgers[at] = self.store.open()

    @rule(back=st.integers(0, 10**6))
    def sets_clock(self, back: int) -> None:
        with patch("goodfence.ledger.book.time.gmtime", lambda: time.localtime(back)):
            self.opens("a", True)

    @rule()
    def keeps_state(self) -> None:
        self.states.append((self.ledger.state(), frozenset(self.expected.accounts), len(self.expected.charged)))

    @rule()
    def checks_states(self) -> None:
        for state, names, n_charged in self.states:
            ledger = self.ledger
            lacks = any(one[0] - names for one in self.expected.charged[n_charged:])
            accounts = [ledger.account("rating", name) for name in names]
            if lacks:
                self.refused(RolledBack, lambda: ledger.require_state(state, accounts))  # noqa: B023 - called at once
            else:
                ledger.require_state(state, accounts)

    @rule()
    def backs_up(self) -> None:
        copied = copy.deepcopy(self.expected)
        self.backups.append((self.store.backup(), self.store.anchor.read_bytes(), copied))

    @precondition(lambda self: self.backups)
    @rule(restores=st.booleans())
    def puts_back_old_ledger(self, restores: bool) -> None:
        newest = self.store.backup()
        old, _, expected = self.backups[-1]
        self.exchange(old)
        if expected.n_anchored == self.expected.n_anchored:  # only ends are missing: they are found out again
            self.ledgers = [self.store.open(), self.store.open()]
            return
        self.refused(RolledBack, self.store.open, compare=False)
        if not restores:
            self.exchange(newest)
        else:
            book = self.store.book()
            book.restore_from_anchor()
            book.database.close()
            lost = self.states
            self.expected, self.restored, self.backups = expected.restored(self.expected), True, []
            self.states = []
        self.ledgers = [self.store.open(), self.store.open()]
        if restores:
            for state, _, n_charged in lost:
                if n_charged > len(expected.charged):
                    self.refused(RolledBack, lambda: self.ledger.require_state(state, []))  # noqa: B023

    @precondition(lambda self: self.backups)
    @rule()
    def forks(self) -> None:
        newest, anchor = self.store.backup(), self.store.anchor.read_bytes()
        old, old_anchor, expected = self.backups[-1]
        if expected.n_anchored == self.expected.n_anchored:
            return
        self.exchange(old)
        self.store.anchor.write_bytes(old_anchor)
        fork = self.store.open()  # ledger and anchor put back: nothing in them tells
        fork.open_accounts("rating", ["of the fork"], Cap(1, 1))
        fork.close()
        self.store.anchor.write_bytes(anchor)
        self.refused(RolledBack, self.store.open, compare=False)
        self.refused((RolledBack, SettingError), lambda: self.store.book().restore_from_anchor(), compare=False)
        self.exchange(newest)
        self.ledgers = [self.store.open(), self.store.open()]

    def exchange(self, content: Any) -> None:
        for ledger in self.ledgers:
            ledger.close()
        self.store.put_back(content)

    def refused(
        self,
        kind: type[GoodfenceError] | tuple[type[GoodfenceError], ...],
        asked: Callable[[], object],
        *,
        compare: bool = True,
    ) -> None:
        """Ask for what must be refused; nothing may change."""
        before = self.n_anchored() if compare else 0
        try:
            asked()
        except kind:
            pass
        else:
            raise AssertionError(f"{kind} was expected")
        assert not compare or self.n_anchored() == before

    def n_anchored(self) -> int:
        """Return how many entries there are that count; the end of a dead process's release may come at any time."""
        return len(self.ledgers[0].book.entries("kind NOT IN ('release', 'burn')"))

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "expected"):
            return
        type(self).n_steps += 1
        ledger = self.ledgers[0]
        for name, (cap, cost, slack) in self.expected.accounts.items():
            assert ledger.spent(ledger.account("rating", name)) == (cost, slack, cap)
        assert verify(ledger.book) == []
