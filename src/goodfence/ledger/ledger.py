"""The ledger: accounts with caps, and releases that are charged before they are drawn."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from goodfence.errors import (
    CapExceeded,
    GoodfenceError,
    KeyReused,
    LedgerUnavailable,
    ReleaseInProgress,
    RolledBack,
    SettingError,
    require,
)
from goodfence.ledger.book import Book, Row, State, fingerprint
from goodfence.ledger.chain import Entry
from goodfence.ledger.costs import Cap, Charge, Spent
from goodfence.ledger.journal import BURNED
from goodfence.privacy.guarantee import Unit
from goodfence.settings import checked

KEY = re.compile(r"[^#\x00-\x1f\x7f]{1,200}")


class Ledger:
    """A privacy ledger, opened or made. `goodfence.ledger` says what it does.

    Parameters
    ----------
    place
        A file for SQLite, or a postgresql:// URL.
    anchor
        A file in another place (another disk or machine), by which an older copy of the ledger is recognised.
    folder
        Where the key and the released artefacts are; `<place>.files` unless given. All processes share it.
    """

    @checked
    def __init__(
        self,
        place: str | os.PathLike[str],
        *,
        anchor: str | os.PathLike[str],
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self._lock = threading.RLock()
        self.book = Book(os.fspath(place), Path(anchor), None if folder is None else Path(folder))
        self.book.open(new=True)
        self.book.require_unrolled()
        self.settle()

    def __repr__(self) -> str:
        return f"Ledger({self.book.id.hex()})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection to the database."""
        self.book.database.close()

    # Accounts

    def account(self, unit: Unit, name: str | bytes) -> bytes:
        """Return the account of a batch (units rating and event) or a person (unit user)."""
        group = b"user\0" if unit == "user" else b"batch\0"
        content = name if isinstance(name, bytes) else name.encode()
        return hmac.digest(self.book.key, group + content, "sha256")[:16]

    def open_accounts(self, unit: Unit, names: Iterable[str | bytes], cap: Cap) -> list[bytes]:
        """Open an account for each name, unless it is open with this cap, and return them in this order.

        Of users, each call is an entry, so that none tells whether somebody new was there: call it once an update.
        """
        cap.checked()
        accounts = [self.account(unit, name) for name in names]
        with self._lock, self.book.writing():
            known = dict(self._known(accounts))
            new = sorted({*accounts} - known.keys())
            if any(found != (unit, cap) for found in known.values()):
                raise SettingError("cap must be that of the open account; `raise_cap` raises it")
            if new or unit == "user":
                cost, slack = map(min, self.book.owed(), cap)
                facts = {"unit": unit, "cap_cost": cap.cost, "cap_slack": cap.slack}
                rows = [(account, *cap) for account in new]
                entry = self.book.append("open", facts=facts, rows=rows, cost=cost, slack=slack)
                columns = ("account", "unit", "cap_cost", "cap_slack", "capped")
                self.book.database.insert("account", columns, [(account, unit, *cap, entry.seq) for account in new])
                if cost or slack:
                    self.book.book(entry.seq, [(account, cost, slack) for account in new])
        return accounts

    def spent(self, account: bytes) -> Spent:
        """Return what an account spent. Of a person, show it to that person only."""
        columns = "cost, slack, cap_cost, cap_slack"
        with self._lock:
            found = self.book.database.rows(f"SELECT {columns} FROM account WHERE account = ?", account)  # noqa: S608
        if not found:
            raise SettingError("account must be open; `open_accounts` opens it")
        cost, slack, *cap = found[0]
        return Spent(cost, slack, Cap(*cap))

    def with_room(self, accounts: Collection[bytes], cost: int, slack: int) -> list[bytes]:
        """Return the accounts that can pay this; who is left out, and how many, must not be shown."""
        asked = "SELECT account FROM account WHERE cost > cap_cost - ? OR slack > cap_slack - ?"
        with self._lock:
            full = {bytes(account) for (account,) in self.book.database.stream(asked, cost, slack)}
        return [account for account in accounts if account not in full]

    def raise_cap(self, accounts: Collection[bytes], cap: Cap, *, reason: str, operators: Sequence[Path]) -> None:
        """Raise the cap of accounts, by the two operators' key files and for a reason that stays in every export."""
        cap.checked()
        keys = sorted({fingerprint(Path(file).read_bytes()) for file in operators})
        first = self.book.entry(1)
        if first is None or keys != first.facts["operators"]:
            raise SettingError("operators must be the two key files that were made with the ledger")
        require(bool(reason.strip()), "reason", "given", reason)
        with self._lock, self.book.writing():
            if self.book.entries("kind = 'restore'"):
                raise SettingError(
                    "a ledger that was restored does not know what was spent beyond its caps; none rises"
                )
            facts = {"reason": reason, "operators": keys, "cap_cost": cap.cost, "cap_slack": cap.slack}
            entry = self.book.append("cap", facts=facts, rows=[(account, *cap) for account in accounts])
            change = "UPDATE account SET cap_cost = ?, cap_slack = ?, capped = ? WHERE account = ? RETURNING 1"
            for account in accounts:
                if not self.book.database.rows(change, *cap, entry.seq, account):
                    raise SettingError("account must be open; `open_accounts` opens it")

    # Releases

    def release(
        self,
        key: str,
        *,
        request: bytes,
        charges: Sequence[Charge],
        draw: Callable[[], bytes],
        facts: Mapping[str, Any],
        stated: tuple[int, int] | None = None,
    ) -> bytes:
        """Charge, anchor, draw and publish an artefact, once; return its bytes, the stored ones if it was released.

        `draw` must use fresh noise. `facts` are public: names and sizes, nothing that depends on a person's data. So
        is the `stated` cost and slack, at least the largest charge, which is stated unless given. For the unit user
        give what the plan allows: there may be nobody to charge, and nobody may learn that.
        """
        found = self.released(key, request=request)
        if found is not None:
            return found
        rows = [(bytes(account), int(cost), int(slack)) for account, cost, slack in charges]
        require(min((min(row[1:]) for row in rows), default=0) >= 0, "charges", "of costs of at least 0", "less")
        require(bool(rows) or stated is not None, "stated", "given where nobody is charged", stated)
        amounts = {} if stated is None else {"cost": stated[0], "slack": stated[1]}
        release_id = os.urandom(16)
        with self.book.journal.artefact(release_id) as file:
            self.book.anchor.check_writable()
            try:
                self._charge(key, self._digest(request), release_id, rows, {"facts": facts, **amounts})
                content = draw()
                digest = self.book.journal.publish(file, release_id, content)
                self._enter(release_id, digest)
            except BaseException:
                with suppress(GoodfenceError):  # if the database is gone, recovery does it later
                    self._settle(release_id)
                raise
        return content

    def released(self, key: str, *, request: bytes) -> bytes | None:
        """Return the artefact of a key, or None if the key may be charged."""
        with self._lock:
            release_id, end = self._attempt(key, self._digest(request))[1:]
            if release_id is not None and end is None:
                if self.book.journal.in_the_making(release_id):
                    raise ReleaseInProgress(f"another process is releasing {key!r}; wait until it is done")
                self._settle(release_id)
                end = self._end(release_id)
        if release_id is None or end is None or end.kind == "burn":
            return None
        return self.book.journal.released(release_id, end.facts["sha256"])

    def burned(self, key: str, *, request: bytes) -> bool:
        """Return whether a key was charged last time, and its draw lost: asked again, it pays again."""
        lacks = self.released(key, request=request) is None  # settles what a dead process left
        return lacks and self._attempt(key, self._digest(request))[0] > 0

    def settle(self) -> None:
        """Adopt or burn the releases of processes that died."""
        ended = "SELECT release_id FROM entry WHERE kind IN ('release', 'burn')"
        asked = f"SELECT release_id FROM entry WHERE kind = 'charge' AND release_id NOT IN ({ended}) ORDER BY seq"  # noqa: S608
        with self._lock:
            for (release_id,) in self.book.database.rows(asked):
                if not self.book.journal.in_the_making(release_id):
                    self._settle(release_id)

    # The data's side

    def state(self) -> State:
        """Return the head, for the data to keep."""
        with self._lock:
            return self.book.head()

    def require_state(self, state: State, accounts: Collection[bytes], keys: str = "") -> None:
        """Refuse data whose `state` is of another ledger or ahead of this one, or that lack an account charged since.

        `accounts` are those of all batches, or of all people, that the data know. Where others share the ledger, only
        charges whose key begins with `keys` count.
        """
        with self._lock:
            if state.ledger_id != self.book.id:
                raise RolledBack("the data belong to another ledger; their releases are not counted in this one")
            found = self.book.entry(state.seq)
            if found is None or found.hash != state.hash:
                raise RolledBack("the data have seen entries that the ledger lacks: it was put back, or is a fork")
            asked = (
                "SELECT DISTINCT account FROM charged JOIN entry USING (seq) "
                "WHERE seq > ? AND kind = 'charge' AND substr(idem, 1, ?) = ?"
            )
            later = {bytes(account) for (account,) in self.book.database.stream(asked, state.seq, len(keys), keys)}
            if later - {*accounts}:
                raise RolledBack("the data are older than the ledger: something that was charged since is not in them")

    # Inside

    def _charge(self, key: str, digest: bytes, release_id: bytes, rows: Sequence[Row], said: dict[str, Any]) -> None:
        try:
            with self._lock, self.book.writing():
                number, _, end = self._attempt(key, digest)
                if number and (end is None or end.kind != "burn"):
                    raise ReleaseInProgress(f"another process is releasing {key!r}; wait until it is done")
                named: dict[str, Any] = {"idem": f"{key}#{number + 1}", "request": digest, "release_id": release_id}
                self.book.charge("charge", rows, **named, **said)
        except CapExceeded:
            self._tell_excess(rows)
            raise

    def _tell_excess(self, rows: Iterable[Row]) -> None:
        """Raise the error about the first batch without room; what a person spent stays untold."""
        for account, cost, slack in rows:
            spent = self.spent(account)
            over = cost + spent.cost > spent.cap.cost or slack + spent.slack > spent.cap.slack
            if over and dict(self._known([account]))[account][0] == "user":
                return
            if over:
                told = f"{spent.cost} of {spent.cap.cost} ticks and {spent.slack} of {spent.cap.slack} slack are spent"
                raise CapExceeded(f"the release would exceed a cap: {told}, {cost} and {slack} are asked") from None

    def _enter(self, release_id: bytes, digest: bytes) -> None:
        """Append the release, unless recovery burned it."""
        with self._lock, self.book.writing():
            end = self._end(release_id)
            if end is None:
                self.book.append("release", release_id=release_id, facts={"sha256": digest.hex()})
        if end is not None and end.kind == "burn":
            self.book.journal.discard(release_id)
            raise LedgerUnavailable(BURNED)

    def _settle(self, release_id: bytes) -> None:
        """End a release whose process died: adopt a whole artefact, else burn the charge."""
        with self._lock, self.book.writing():
            charged = self.book.entries("kind = 'charge' AND release_id = ?", release_id)
            if not charged or self._end(release_id) is not None:
                return
            content = self.book.journal.adopted(release_id)
            if content is None:
                self.book.append("burn", release_id=release_id, facts={})
            else:
                facts = {"sha256": hashlib.sha256(content).hexdigest()}
                self.book.append("release", release_id=release_id, facts=facts)
        if content is None:
            self.book.journal.discard(release_id)

    def _attempt(self, key: str, digest: bytes) -> tuple[int, bytes | None, Entry | None]:
        """Return how often a key was charged, and of the last time the release id and the end."""
        require(KEY.fullmatch(key) is not None, "key", "1 to 200 characters without #", key)
        number, release_id = 0, None
        while found := self.book.entries("kind = 'charge' AND idem = ?", f"{key}#{number + 1}"):
            number, release_id = number + 1, found[0].release_id
            if found[0].request != digest:
                raise KeyReused(f"{key!r} is the key of another release; take a new key for other data or settings")
        return number, release_id, None if release_id is None else self._end(release_id)

    def _digest(self, request: bytes) -> bytes:
        return hmac.digest(self.book.key, b"request\0" + request, "sha256")

    def _end(self, release_id: bytes) -> Entry | None:
        found = self.book.entries("kind IN ('release', 'burn') AND release_id = ?", release_id)
        return found[0] if found else None

    def _known(self, accounts: Collection[bytes]) -> Iterator[tuple[bytes, tuple[str, Cap]]]:
        """Yield which of the accounts are open, with unit and cap."""
        distinct = [*{*accounts}]
        for start in range(0, len(distinct), 500):
            some = distinct[start : start + 500]
            within = f"account IN ({', '.join('?' * len(some))})"
            columns = "account, unit, cap_cost, cap_slack"
            for account, unit, *cap in self.book.database.rows(f"SELECT {columns} FROM account WHERE {within}", *some):  # noqa: S608
                yield bytes(account), (unit, Cap(*cap))
