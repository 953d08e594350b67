"""Check a whole ledger: chain, sums, caps, anchor and artefacts, from the first entry on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from goodfence.errors import DamagedLedger
from goodfence.ledger.anchor import Line
from goodfence.ledger.book import Book, Row
from goodfence.ledger.chain import START, Entry, rows_digest

T = TypeVar("T", bound=tuple[Any, ...])


def verify(book: Book) -> list[str]:
    """Return what is wrong with a ledger; an empty list if nothing is."""
    anchored = book.anchor.last()  # before the database: what is anchored later may be entered later
    with book.database.reading():
        faults = [*_chain(book, 0 if anchored is None else anchored.seq), *_sums(book), *_caps(book)]
    return [*faults, *_artefacts(book)]


def _chain(book: Book, anchored: int) -> Iterator[str]:
    """Follow the chain, with the rows and the anchor's lines, up to `anchored`, beside it."""
    lines = _Beside(line for line in _lines(book) if line.seq <= anchored)
    rows = _Beside(_charged(book))
    before, last = START, 0
    for entry in book.stream_entries("seq > ?", 0):
        if entry.prev_hash != before or entry.computed_hash() != entry.hash:
            yield f"entry {entry.seq} does not follow from the one before, or was changed"
        if entry.seq != last + 1 and entry.kind != "restore":
            yield f"before entry {entry.seq} an entry is missing"
        if any(line != Line.of(entry) for line in lines.of(entry.seq)):
            yield f"entry {entry.seq} is not the one that was anchored"
        yield from _rows(book, entry, [row for _, row in rows.of(entry.seq)])
        before, last = entry.hash, entry.seq
    head = book.head()
    if (head.seq, head.hash) != (last, before):
        yield "the head is not the last entry"
    if lines.ahead is not None:
        yield "the anchor has later entries than the ledger"


class _Beside(Generic[T]):
    """What belongs to entries, in their order: its first field is the entry's number."""

    def __init__(self, items: Iterator[T]) -> None:
        self.items = items
        self.ahead = next(items, None)

    def of(self, seq: int) -> list[T]:
        """Return what belongs to this entry; what a restore stands for is left out."""
        found = []
        while self.ahead is not None and self.ahead[0] <= seq:
            if self.ahead[0] == seq:
                found.append(self.ahead)
            self.ahead = next(self.items, None)
        return found


def _rows(book: Book, entry: Entry, rows: list[Row]) -> Iterator[str]:
    """Compare what accounts were charged with what the entry says."""
    if entry.kind in ("charge", "restore"):
        same = len(rows) == entry.n_accounts and rows_digest(book.key, rows) == entry.accounts_hash
        same &= all(cost <= entry.cost and slack <= entry.slack for _, cost, slack in rows)
    else:
        same = all(row[1:] == (entry.cost, entry.slack) for row in rows)
        same &= len(rows) == (entry.n_accounts if entry.cost or entry.slack else 0)
    if not same:
        yield f"the charges of entry {entry.seq} are not those that were entered"


def _charged(book: Book) -> Iterator[tuple[int, Row]]:
    for seq, account, cost, slack in book.database.stream(
        "SELECT seq, account, cost, slack FROM charged ORDER BY seq, account"
    ):
        yield seq, (bytes(account), cost, slack)


def _lines(book: Book) -> Iterator[Line]:
    try:
        yield from book.anchor.lines()
    except FileNotFoundError:
        return


def _sums(book: Book) -> Iterator[str]:
    """Compare what each account has spent with the sum of its charges."""
    wrong = book.database.rows(
        "SELECT 1 FROM account LEFT JOIN (SELECT account, SUM(cost) AS cost, SUM(slack) AS slack FROM charged "
        "GROUP BY account) AS paid USING (account) WHERE account.cost <> COALESCE(paid.cost, 0) "
        "OR account.slack <> COALESCE(paid.slack, 0) OR account.cost > cap_cost OR account.slack > cap_slack LIMIT 1"
    )
    if wrong:
        yield "an account has not spent the sum of its charges, or more than its cap"


def _caps(book: Book) -> Iterator[str]:
    """Compare the accounts' caps with the entries that set them."""
    caps = "SELECT capped, cap_cost, cap_slack, COUNT(*) FROM account GROUP BY capped, cap_cost, cap_slack"
    for seq, cost, slack, n_accounts in book.database.rows(caps):
        entry = book.entry(seq)
        facts = {} if entry is None else entry.facts
        if entry is None or (facts.get("cap_cost"), facts.get("cap_slack")) != (cost, slack):
            yield "an account has a cap that no entry set"
        elif n_accounts > entry.n_accounts:
            yield f"more accounts are open than entry {seq} opened"


def _artefacts(book: Book) -> Iterator[str]:
    """Read every artefact that was released."""
    for entry in book.entries("kind = 'release'"):
        try:
            book.journal.released(entry.release_id or b"", entry.facts["sha256"])
        except DamagedLedger:
            yield f"the artefact of entry {entry.seq} is missing or not the one that was released"
