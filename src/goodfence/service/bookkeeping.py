"""The seam between a service and the ledger: what was spent, where the head is, and whether data and ledger agree."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from goodfence.errors import Conflict, LedgerProblem
from goodfence.ledger.book import State
from goodfence.ledger.chain import Entry
from goodfence.ledger.costs import epsilon_of
from goodfence.ledger.export import status, told
from goodfence.ledger.ledger import Ledger
from goodfence.ledger.verify import verify
from goodfence.service.learning import cap_of, terms
from goodfence.service.store import Store


class Books:
    """The ledger as the service reads it; only the child process that trains charges.

    Parameters
    ----------
    place : str
        The file of the ledger, or a postgresql:// URL.
    anchor : Path
        Its anchor, which should be on another disk or machine.
    folder : Path
        Where its key and artefacts are.
    store : Store
        The data, which keep what they have seen of the ledger.
    """

    def __init__(self, place: str, anchor: Path, folder: Path, store: Store) -> None:
        self.place, self.anchor, self.folder, self._store = place, anchor, folder, store
        self._lock, self.fault = threading.Lock(), ""
        self.entries: list[Entry] = []
        self.ledger_id = ""
        self.refresh()
        if not store.read("SELECT 1 FROM state") and not self.fault:
            self.remember()

    @contextmanager
    def _opened(self) -> Iterator[Ledger]:
        with self._lock, Ledger(self.place, anchor=self.anchor, folder=self.folder) as ledger:
            yield ledger

    @property
    def head_text(self) -> str:
        """The head, short, as every answer states it."""
        return f"{self.entries[-1].seq}:{self.entries[-1].hash.hex()[:16]}" if self.entries else "0:"

    def refresh(self) -> None:
        """Read the entries anew; a ledger that cannot be used is a fault, and the service stays up without training."""
        try:
            with self._opened() as ledger:
                self.entries, self.ledger_id = ledger.book.entries_after(0), ledger.book.id.hex()
            self.fault = ""
        except LedgerProblem as problem:
            self.fault = str(problem)

    def remember(self) -> None:
        """Let the data remember the head that they have seen."""
        with self._opened() as ledger:
            state = ledger.state()
        row = (1, state.ledger_id.hex(), state.seq, state.hash.hex())
        sql = (
            "INSERT INTO state (one, ledger_id, ledger_seq, ledger_hash) VALUES (?, ?, ?, ?) ON CONFLICT (one) DO "
            "UPDATE SET ledger_id = excluded.ledger_id, ledger_seq = excluded.ledger_seq, "
            "ledger_hash = excluded.ledger_hash"
        )
        self._store.write(lambda writer: writer.run(sql, *row))
        self.refresh()

    def require_state(self, unit: str) -> None:
        """Refuse to train if the ledger or the data were put back to an older state."""
        if self.fault:
            raise Conflict(self.fault)
        rows = self._store.read("SELECT ledger_id, ledger_seq, ledger_hash FROM state")
        if not rows:
            raise Conflict("the data do not say which ledger they belong to; restore them from a copy")
        state = State(bytes.fromhex(rows[0][0]), rows[0][1], bytes.fromhex(rows[0][2]))
        if unit == "user":
            names = [bytes(row[0]).hex() for row in self._store.read("SELECT uid FROM account")]
        else:
            names = [f"batch {row[0]}" for row in self._store.read("SELECT id FROM batch")]
        with self._opened() as ledger:
            kind: Any = unit
            ledger.require_state(state, [ledger.account(kind, name) for name in names])

    def require_released(self, sha256: str) -> None:
        """Refuse a model whose file the ledger has not released: charged, anchored and entered."""
        if self.fault:
            raise Conflict(self.fault)
        if not any(entry.kind == "release" and entry.facts.get("sha256") == sha256 for entry in self.entries):
            raise Conflict("the ledger has not released this model; it is not served")

    def cost(self, recommender: Any, n_items: int, cap: tuple[float, float]) -> dict[str, Any]:
        """Return as epsilon what the oldest data have spent, what a fit asks, and the cap."""
        cost, slack = terms(recommender, n_items)
        allowed, delta = cap_of(recommender, n_items, cap), cap[1]
        paid, paid_slack = self._spent(recommender.unit)
        after = epsilon_of(paid + cost, paid_slack + slack, delta)
        return {
            "unit": recommender.unit,
            "delta": delta,
            "spent": epsilon_of(paid, paid_slack, delta),
            "after": after,
            "cap": cap[0],
            "fits": paid + cost <= allowed.cost and paid_slack + slack <= allowed.slack,
        }

    def _spent(self, unit: str) -> tuple[int, int]:
        """Return what the oldest batch has spent, which no account exceeds; of single users nothing is shown."""
        charged = [entry for entry in self.entries if entry.kind == "charge"]
        if unit == "user":  # the sum over all charges bounds what any user spent
            return sum(entry.cost for entry in charged), sum(entry.slack for entry in charged)
        if not charged:
            return 0, 0
        with self._opened() as ledger:
            kind: Any = unit
            first = ledger.spent(ledger.account(kind, "batch 1"))
        return first.cost, first.slack

    def public_entries(self, after: int = 0, most: int = 1000) -> list[dict[str, Any]]:
        """Return the public fields of entries; the number of accounts stays secret."""
        found = [entry for entry in self.entries if entry.seq > after][:most]
        return [told(entry) for entry in found]

    def verify(self) -> list[str]:
        """Return what is wrong with the ledger; nothing where all holds."""
        try:
            with self._opened() as ledger:
                return verify(ledger.book)
        except LedgerProblem as problem:
            return [str(problem)]

    def status(self, delta: float) -> dict[str, Any]:
        """Return caps, releases, burns, head and anchor."""
        with self._opened() as ledger:
            return status(ledger.book, delta)

    def anchored(self) -> dict[str, Any]:
        """Append what the anchor lacks, and return the head."""
        with self._opened() as ledger:
            ledger.book.follow()
        self.refresh()
        return {"head": self.head_text}
