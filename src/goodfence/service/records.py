"""Users, items and what users rated or did: the rows of a service, and how they are grouped into batches."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from goodfence.arrays import Floats, Integers
from goodfence.data.scale import Scale
from goodfence.errors import BadRequest
from goodfence.service.store import Store, StoreRow, Writer

_MOST_PROFILES = 200_000
_LONGEST_ID, _LONGEST_TITLE = 200, 500
_NEVER = 0
"""The batch of a value that is served and not learnt: its cell was released before."""
_SAVE_CELL = (
    "INSERT INTO cell (user_id, item_id, value, at, batch) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (user_id, item_id) DO UPDATE SET value = excluded.value, at = excluded.at"
)
_CELLS = "SELECT item_id, value FROM cell WHERE user_id = ? ORDER BY item_id"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class StoredProfile:
    """What one user rated or did: row numbers of items, ascending, and values. Shown to nobody but that user."""

    items: Integers
    values: Floats

    def __repr__(self) -> str:
        return "StoredProfile()"


NO_PROFILE = StoredProfile(items=np.empty(0, dtype=np.int64), values=np.empty(0))


@dataclass(frozen=True, slots=True)
class Said:
    """One rating or event: what a user says of an item."""

    item: str
    value: float
    at: int | None = None

    def __repr__(self) -> str:
        return "Said()"


class Records:
    """The rows of a service behind the words of its routes.

    Parameters
    ----------
    store : Store
        Where they are.
    secret : bytes
        The key of the tags of cells that were released.
    """

    def __init__(self, store: Store, secret: bytes) -> None:
        self.store, self._secret = store, secret
        self._profiles, self._lock, self._turn = OrderedDict[int, StoredProfile](), threading.Lock(), 0
        self._users: dict[str, int] = {}
        self.read_items()

    # items

    def read_items(self) -> None:
        """Read the catalogue, which is held in memory."""
        rows = self.store.read("SELECT id, ext, title, labels, hidden FROM item ORDER BY id")
        self.item_rows = {row[1]: row[0] for row in rows}
        self.item_ids = {row[0]: row[1] for row in rows}
        self.titles = {row[0]: row[2] for row in rows}
        self.hidden = {row[0] for row in rows if row[4]}
        self.labelled: dict[str, set[int]] = {}
        for row in rows:
            for label in json.loads(row[3]):
                self.labelled.setdefault(label, set()).add(row[0])
        self.items_version = getattr(self, "items_version", 0) + 1

    def save_items(self, items: Iterable[dict[str, Any]]) -> int:
        """Declare items, or change what is said of them; return how many were given."""
        rows = [_item_row(one) for one in items]
        sql = (
            "INSERT INTO item (ext, title, labels, hidden) VALUES (?, ?, ?, ?) ON CONFLICT (ext) DO UPDATE SET "
            "title = excluded.title, labels = excluded.labels, hidden = excluded.hidden"
        )
        self.store.write(lambda writer: writer.run_many(sql, rows))
        self.read_items()
        return len(rows)

    # users

    def user_row(self, ext: str) -> int | None:
        """Return the row of a user; None if there is none."""
        known = self._users.get(ext)
        if known is None:
            rows = self.store.read("SELECT id FROM account WHERE ext = ?", ext)
            if not rows:
                return None
            known = self._users[ext] = int(rows[0][0])
        return known

    def save_users(self, users: Iterable[str]) -> list[int]:
        """Return the rows of users, made where there are none."""
        wanted = [checked_id(ext) for ext in users]
        rows = self.store.write(lambda writer: [_made_user(writer, ext)[0] for ext in wanted])
        self._users.update(zip(wanted, rows, strict=True))
        return rows

    def forget(self, user: int) -> None:
        """Destroy a user's rows, keys and random id; what was released stays, and is covered."""

        def work(writer: Writer) -> None:
            for table in ("cell", "api_key"):
                writer.run(f"DELETE FROM {table} WHERE user_id = ?", user)  # noqa: S608 - two fixed names
            writer.run("DELETE FROM account WHERE id = ?", user)

        self.store.write(work)
        with self._lock:
            self._users = {ext: row for ext, row in self._users.items() if row != user}
        self._changed(user)

    # cells

    def save(self, user: int, said: Sequence[Said], scale: Scale | None) -> None:
        """Save what a user says; one value for each item, the last. Unknown items are refused, and nothing is saved."""
        rows = [self._cell(user, one, scale) for one in said]
        uid = self.uid(user)
        if uid is None:
            return
        tagged = [(self._tag(uid, row[1]), row) for row in rows]
        self.store.write(lambda writer: _save_cells(writer, tagged))
        self._changed(user)

    def save_bulk(self, rows: Sequence[tuple[str, Said]], scale: Scale | None, users: Iterable[str] = ()) -> None:
        """Save what several users say, in one transaction; they, and other users named, are made where need be."""
        cells = [(ext, self._cell(0, one, scale)) for ext, one in rows]
        wanted = [checked_id(ext) for ext in dict.fromkeys([*users, *(ext for ext, _ in rows)])]

        def work(writer: Writer) -> dict[str, int]:
            made = {ext: _made_user(writer, ext) for ext in wanted}
            tagged = [(self._tag(made[ext][1], row[1]), (made[ext][0], *row[1:])) for ext, row in cells]
            _save_cells(writer, tagged)
            return {ext: row for ext, (row, _) in made.items()}

        of = self.store.write(work)
        self._users.update(of)
        for user in of.values():
            self._changed(user)

    def remove(self, user: int, item: int) -> None:
        """Take back what a user said of an item; what was released stays."""
        self.store.write(lambda writer: writer.run("DELETE FROM cell WHERE user_id = ? AND item_id = ?", user, item))
        self._changed(user)

    def profile(self, user: int | None) -> StoredProfile:
        """Return what a user said; nothing of somebody unknown."""
        if user is None:
            return NO_PROFILE
        found = self._profiles.get(user)
        if found is not None:
            return found
        turn = self._turn
        rows = self.store.read(_CELLS, user)
        cells = np.array(rows, dtype=np.float64).reshape(-1, 2)
        found = StoredProfile(items=cells[:, 0].astype(np.int64), values=np.ascontiguousarray(cells[:, 1]))
        with self._lock:
            if turn == self._turn:  # nobody wrote meanwhile
                self._profiles[user] = found
                while len(self._profiles) > _MOST_PROFILES:
                    self._profiles.popitem(last=False)
        return found

    def guest(self, said: Sequence[Said], scale: Scale | None) -> StoredProfile:
        """Return a profile that is not stored."""
        cells = {row[1]: row[2] for row in (self._cell(0, one, scale) for one in said)}
        items = np.array(sorted(cells), dtype=np.int64)
        return StoredProfile(items=items, values=np.array([cells[item] for item in items.tolist()], dtype=np.float64))

    def said_by(self, user: int) -> list[dict[str, Any]]:
        """Return what a user said, for that user: the current value of each item."""
        rows = self.store.read("SELECT item_id, value, at FROM cell WHERE user_id = ? ORDER BY at, item_id", user)
        return [{"item": self.item_ids[item], "value": value, "at": at} for item, value, at in rows]

    def _cell(self, user: int, said: Said, scale: Scale | None) -> StoreRow:
        row = self.item_rows.get(said.item)
        if row is None:
            raise BadRequest("every event must be of an item in the catalogue; one is not")
        value = said.value if scale is not None else 1.0
        if scale is not None and not bool(scale.holds(np.array([value])).all()):
            raise BadRequest(f"every rating must be on the scale ({scale}); one is not")
        return (user, row, value, int(time.time()) if said.at is None else said.at, None)

    def _changed(self, user: int) -> None:
        with self._lock:
            self._turn += 1
            self._profiles.pop(user, None)

    def uid(self, user: int) -> bytes | None:
        """Return a user's random id, by which models and the ledger know them."""
        rows = self.store.read("SELECT uid FROM account WHERE id = ?", user)
        return bytes(rows[0][0]) if rows else None

    def _tag(self, uid: bytes, item: int) -> bytes:
        return cell_tag(self._secret, uid, item)

    # batches

    def close_batch(self) -> int:
        """Close the open batch, which may be empty: its cells are fixed, and learnt from once. Return its number."""
        return self.store.write(lambda writer: _close_batch(writer, self._secret))


def cell_tag(secret: bytes, uid: bytes, item: int) -> bytes:
    """Return the keyed tag by which a released cell is known after its user is gone."""
    return hmac.digest(secret, uid + item.to_bytes(8, "big"), "sha256")[:16]


def checked_id(ext: str) -> str:
    """Return an id that may name a user or an item."""
    if not isinstance(ext, str) or not 0 < len(ext) <= _LONGEST_ID or not ext.isprintable() or "/" in ext:
        raise BadRequest(f"an id must be printable text of 1 to {_LONGEST_ID} letters without /")
    return ext


def secret_at(path: Path) -> bytes:
    """Return the 32 random bytes in a file, made if it is not there, readable by its owner only."""
    if not path.exists():
        from goodfence.data.files import atomic_write

        with atomic_write(path, mode=0o600) as file:
            file.write(secrets.token_bytes(32))
    return path.read_bytes()


def _item_row(one: dict[str, Any]) -> StoreRow:
    labels = one.get("labels") or []
    sound = isinstance(labels, list) and all(isinstance(label, str) for label in labels)
    title = one.get("title") or ""
    if not sound or not isinstance(title, str) or len(title) > _LONGEST_TITLE:
        raise BadRequest("an item must have text as title and a list of text as labels")
    return (checked_id(one.get("item", "")), title, json.dumps(labels), int(bool(one.get("hidden", False))))


def _made_user(writer: Writer, ext: str) -> tuple[int, bytes]:
    """Return row and random id of a user, made if there is none."""
    found = writer.run("SELECT id, uid FROM account WHERE ext = ?", ext)
    if not found:
        row = (ext, secrets.token_bytes(16), "[]", int(time.time()))
        found = writer.run("INSERT INTO account (ext, uid, labels, joined) VALUES (?, ?, ?, ?) RETURNING id, uid", *row)
    return int(found[0][0]), bytes(found[0][1])


def _save_cells(writer: Writer, tagged: Sequence[tuple[bytes, StoreRow]]) -> None:
    """Write cells; one that was released, deleted and is said again is served and not learnt."""
    rows = []
    for tag, row in tagged:
        spent = writer.run("SELECT 1 FROM spent_cell WHERE tag = ?", tag)
        rows.append((*row[:4], _NEVER if spent else None))
    writer.run_many(_SAVE_CELL, rows)


def _close_batch(writer: Writer, secret: bytes) -> int:
    number = int(writer.run("SELECT coalesce(max(id), 0) + 1 FROM batch")[0][0])
    writer.run("UPDATE cell SET batch = ?, learnt = value WHERE batch IS NULL", number)
    sql = "SELECT uid, item_id, learnt FROM cell JOIN account ON account.id = user_id WHERE batch = ? ORDER BY 1, 2"
    digest, tags = hmac.new(secret, digestmod=hashlib.sha256), []
    for uid, item, learnt in writer.run(sql, number):
        digest.update(bytes(uid) + item.to_bytes(8, "big") + np.float64(learnt).tobytes())
        tags.append((cell_tag(secret, bytes(uid), item), number))
    writer.run_many("INSERT INTO spent_cell (tag, batch) VALUES (?, ?) ON CONFLICT DO NOTHING", tags)
    row = (number, int(time.time()), digest.digest(), "closed")
    writer.run("INSERT INTO batch (id, closed, digest, state) VALUES (?, ?, ?, ?)", *row)
    return number
