"""The book: the chain of entries in the database, and its anchor. Entries are only ever appended."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from goodfence.errors import CapExceeded, DamagedLedger, LedgerUnavailable, RolledBack, SettingError, require
from goodfence.ledger.anchor import Anchor
from goodfence.ledger.chain import FIELDS, START, Entry, canonical, rows_digest
from goodfence.ledger.costs import MOST_COST
from goodfence.ledger.database import Refused, open_database
from goodfence.ledger.journal import Journal
from goodfence.privacy.noise import BITS

FORMAT = 1
OPERATORS = ("operator-1.key", "operator-2.key")
"""Keys for two people to take away: raising a cap needs both."""
Row: TypeAlias = tuple[bytes, int, int]
"""An account and two amounts, of cost and of slack."""
_ANCHORED = ("open", "charge", "cap", "restore")
"""The end of a release can be found out again, so it waits for the next line."""


class State(NamedTuple):
    """The head of a ledger: data keep it, so that older data or another ledger are noticed."""

    ledger_id: bytes
    seq: int
    hash: bytes


class Book:
    """The chain in a database, its anchor, and the journal with its key."""

    def __init__(self, place: str, anchor: Path, folder: Path | None) -> None:
        url = "://" in place
        require(folder is not None or not url, "folder", "given with the URL of a database", folder)
        self.file = None if url else Path(place)
        self.database = open_database(place)
        self.anchor = Anchor(anchor)
        self.journal = Journal(Path(f"{place}.files") if folder is None else folder)
        self.id = b""
        self.key = b""

    def open(self, *, new: bool) -> None:
        """Read what identifies the ledger; make the ledger if it is not there and may be `new`."""
        there = (self.file is None or self.file.exists()) and self.database.exists()
        if not there:
            if self.anchor.last() is not None:
                raise RolledBack("the anchor belongs to a ledger that is not there; restore it from a copy")
            if not new:
                raise SettingError("there is no ledger at this place")
            self._make()
        found = self.database.rows("SELECT ledger_id, format FROM meta")
        if len(found) != 1 or found[0][1] != FORMAT:
            raise DamagedLedger("this is no ledger in a format that this version of goodfence knows")
        self.id, self.key = bytes(found[0][0]), self.journal.key()
        first = self.entry(1)
        if first is None or first.facts.get("key") != fingerprint(self.key):
            raise RolledBack("the folder holds the key of another ledger")

    def _make(self) -> None:
        self.anchor.check_writable()
        operators = [fingerprint(self.journal.secret(name)) for name in OPERATORS]
        self.key = self.journal.secret("key")
        ledger_id = os.urandom(16)
        with self.database.writing():
            if self.database.exists():  # another process was faster
                return
            self.database.create()
            columns = ("one", "ledger_id", "format", "sigma_bits", "head_seq", "head_hash")
            self.database.insert("meta", columns, [(1, ledger_id, FORMAT, BITS, 0, START)])
            facts = {"ledger_id": ledger_id.hex(), "format": FORMAT, "key": fingerprint(self.key)}
            self.append("open", facts={**facts, "operators": sorted(operators)})
        self.follow()

    @contextmanager
    def writing(self, *, behind: bool = False) -> Iterator[None]:
        """Open a transaction on a ledger that is not `behind` its anchor; anchor what it appended before returning."""
        try:
            with self.database.writing():
                if not behind:
                    self.require_unrolled()
                before = self.head()
                yield
                appended = self.entries_after(before.seq)
        except Refused as refusal:
            if "GF601" in str(refusal):
                raise CapExceeded("the release would exceed a cap; leave out who has no room (`with_room`)") from None
            raise LedgerUnavailable(f"the ledger's schema refused this: {refusal}") from None
        if any(entry.kind in _ANCHORED for entry in appended):
            self.follow()

    def follow(self) -> None:
        """Write all entries to the anchor, and sync it."""
        self.anchor.follow(self.entries_after)

    def require_unrolled(self) -> None:
        """Raise if the ledger is older than its anchor, or of another history."""
        last = self.anchor.last()
        if last is None:
            if self.head().seq > 1:
                raise RolledBack("the anchor is missing; restore it, or begin a new one with `goodfence ledger anchor`")
            return
        found = self.entry(last.seq)
        if found is None:
            raise RolledBack(
                "the ledger is older than its anchor: it was put back. Use the newest copy, or enter what was lost "
                "with `goodfence ledger restore --from-anchor`"
            )
        if found.hash != last.hash:
            raise RolledBack("the ledger and its anchor have different histories; use the ledger that was anchored")

    def head(self) -> State:
        """Return the last entry's place in the chain."""
        [(seq, digest)] = self.database.rows("SELECT head_seq, head_hash FROM meta")
        return State(self.id, seq, bytes(digest))

    def entry(self, seq: int) -> Entry | None:
        """Return the entry with this number."""
        found = self.entries("seq = ?", seq)
        return found[0] if found else None

    def entries(self, condition: str, *values: object) -> list[Entry]:
        """Return the entries that meet a condition, in order."""
        return list(self.stream_entries(condition, *values))

    def stream_entries(self, condition: str, *values: object) -> Iterator[Entry]:
        """Yield the entries that meet a condition, in order."""
        for row in self.database.stream(f"SELECT {FIELDS} FROM entry WHERE {condition} ORDER BY seq", *values):  # noqa: S608
            yield Entry(*row)

    def entries_after(self, seq: int) -> list[Entry]:
        """Return the entries behind this number."""
        return self.entries("seq > ?", seq)

    def append(
        self,
        kind: str,
        *,
        facts: Mapping[str, Any],
        rows: Sequence[Row] | None = None,
        seq: int | None = None,
        **fields: Any,
    ) -> Entry:
        """Insert the next entry, in the transaction that is open; `rows` are the accounts it concerns, if any can."""
        before = self.head()
        clock = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        known = {
            **dict.fromkeys(Entry._fields),
            "seq": before.seq + 1 if seq is None else seq,
            "kind": kind,
            "cost": 0,
            "slack": 0,
            "n_accounts": len(rows or ()),
            "accounts_hash": None if rows is None else rows_digest(self.key, rows),
            "body": canonical({**facts, "clock": clock}),
            "prev_hash": before.hash,
            **fields,
        }
        entry = Entry(**known).sealed()
        self.database.insert("entry", Entry._fields, [entry])
        return entry

    def charge(self, kind: str, rows: Sequence[Row], *, facts: Mapping[str, Any], **fields: Any) -> None:
        """Append an entry that charges accounts: the schema books the rows, or refuses them all."""
        cost, slack = (max((row[at] for row in rows), default=0) for at in (1, 2))
        entry = self.append(kind, facts=facts, rows=rows, **{"cost": cost, "slack": slack, **fields})
        self.book(entry.seq, rows)

    def book(self, seq: int, rows: Sequence[Row]) -> None:
        """Insert what an entry costs each account."""
        self.database.insert("charged", ("seq", "account", "cost", "slack"), [(seq, *row) for row in rows])

    def restore_from_anchor(self) -> int:
        """Append what only the anchor has as one entry that charges every account; return how many lines were lost.

        Every account pays the sum of what was lost, at most up to its cap. Accounts that were opened in lost lines pay
        when they open again (`Ledger.open_accounts`). No cap can be raised afterwards: spending beyond it is unknown.
        """
        with self.writing(behind=True):
            head, lost = self.head(), []
            for line in self.anchor.lines():
                if line.seq > head.seq:
                    lost.append(line)
                elif line.seq == head.seq and line.hash != head.hash:
                    raise RolledBack("the ledger and its anchor have different histories; nothing can be restored")
            if not lost:
                raise SettingError("the ledger is not behind its anchor; there is nothing to restore")
            # A lost `restore`, or what was owed at an `open`, stands for charges that are lost lines too.
            charges = [line for line in lost if line.kind == "charge"]
            cost = min(MOST_COST, sum(line.cost for line in charges))
            slack = min(MOST_COST, sum(line.slack for line in charges))
            columns = "account, cap_cost - cost, cap_slack - slack"
            room = self.database.rows(f"SELECT {columns} FROM account")  # noqa: S608
            rows = [(bytes(account), min(cost, free), min(slack, loose)) for account, free, loose in room]
            opened = [line.accounts_hash.hex() for line in lost if line.kind == "open" and line.accounts_hash]
            facts = {"lost": [lost[0].seq, lost[-1].seq], "lost_hash": lost[-1].hash.hex(), "opened": opened}
            self.charge("restore", rows, facts=facts, seq=lost[-1].seq + 1, cost=cost, slack=slack)
        return len(lost)

    def owed(self) -> tuple[int, int]:
        """Return the cost and slack that a new account may owe, because it may have been opened in a lost entry."""
        restored = self.entries("kind = 'restore'")
        opened = {entry.accounts_hash.hex() for entry in self.entries("kind = 'open'") if entry.accounts_hash}
        open_still = [entry for entry in restored if {*entry.facts["opened"]} - opened]
        return sum(entry.cost for entry in open_still), sum(entry.slack for entry in open_still)


def fingerprint(key: bytes) -> str:
    """Return what shows which key this is, and nothing of it."""
    return hashlib.sha256(b"goodfence-ledger-key\0" + key).hexdigest()
