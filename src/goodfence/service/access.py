"""Who may ask: keys, scopes and rate limits."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from goodfence.errors import NotAllowed, TooManyRequests
from goodfence.service.store import Store

Scope: TypeAlias = Literal["public", "user", "backend", "operator", "auditor", "metrics"]
SCOPES: tuple[Scope, ...] = ("user", "backend", "operator", "auditor", "metrics")
"""What a key may have; `public` needs none."""
OPERATOR: tuple[Scope, ...] = ("operator", "auditor", "backend", "metrics")
"""What the first key has."""
_KEY = re.compile(r"gfk_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_FEW, _MANY = (20.0, 200), (20_000.0, 20_000)
RATES = {"public": _FEW, "user": _FEW, "metrics": _FEW, "backend": _MANY, "operator": _MANY, "auditor": _MANY}
"""Requests a second and at once, of one address or key."""
_MOST_HELD = 100_000


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks; never shown, because it holds ids."""

    key: str = ""
    scopes: frozenset[str] = frozenset()
    user: int | None = None
    """Whose key this is, by row."""

    def __repr__(self) -> str:
        return f"Caller({', '.join(sorted(self.scopes))})"


ANYBODY = Caller()


@dataclass(frozen=True, slots=True, repr=False)
class _Kept:
    digest: bytes
    caller: Caller
    expires: int | None


class Keys:
    """The keys of a service: only their SHA-256 is stored."""

    def __init__(self, store: Store) -> None:
        self._store = store
        rows = store.read("SELECT id, hash, scopes, user_id, expires FROM api_key WHERE revoked IS NULL")
        self._kept = {row[0]: self._known(*row) for row in rows}

    def __len__(self) -> int:
        return len(self._kept)

    def make(self, scopes: Iterable[str], *, user: int | None = None, seconds: int | None = None) -> str:
        """Return a new key; it is shown here and never again."""
        name, secret, now = secrets.token_hex(8), secrets.token_urlsafe(32), int(time.time())
        token = f"gfk_{name}_{secret}"
        digest, expires = hashlib.sha256(token.encode()).digest(), None if seconds is None else now + seconds
        told = " ".join(sorted(scopes))
        row = (name, digest, told, user, now, expires)
        sql = "INSERT INTO api_key (id, hash, scopes, user_id, created, expires) VALUES (?, ?, ?, ?, ?, ?)"
        self._store.write(lambda writer: writer.run(sql, *row))
        self._kept[name] = self._known(name, digest, told, user, expires)
        return token

    def revoke(self, name: str) -> None:
        """Make a key worthless at once."""
        sql = "UPDATE api_key SET revoked = ? WHERE id = ? AND revoked IS NULL"
        self._store.write(lambda writer: writer.run(sql, int(time.time()), name))
        self._kept.pop(name, None)

    def drop_user(self, user: int) -> None:
        """Forget all keys of a user whose rows are gone."""
        for name in [name for name, kept in self._kept.items() if kept.caller.user == user]:
            self._kept.pop(name, None)

    def caller(self, token: str | None) -> Caller:
        """Return whose key this is; anybody without one, and an error for one that is not known."""
        if not token:
            return ANYBODY
        found = _KEY.fullmatch(token)
        kept = self._kept.get(found[1]) if found else None
        digest = hashlib.sha256(token.encode()).digest()
        if kept is None or not hmac.compare_digest(kept.digest, digest):
            raise unknown_key()
        if kept.expires is not None and kept.expires <= time.time():
            raise unknown_key()
        return kept.caller

    @staticmethod
    def _known(name: str, digest: bytes, scopes: str, user: int | None, expires: int | None) -> _Kept:
        return _Kept(bytes(digest), Caller(name, frozenset(scopes.split()), user), expires)


def unknown_key() -> NotAllowed:
    """Return the error for a request without a key that is known."""
    problem = NotAllowed("a valid key is needed: Authorization: Bearer gfk_...")
    problem.status = 401
    return problem


class RateLimiter:
    """The generic cell rate algorithm: one number for each key or address.

    Parameters
    ----------
    clock : function, default time.monotonic
        Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._due = clock, OrderedDict[str, float]()
        self._lock = threading.Lock()

    def admit(self, who: str, rate: float, burst: int) -> None:
        """Raise `TooManyRequests` if `who` asks more than `rate` times a second and `burst` times at once."""
        now, step = self._clock(), 1.0 / rate
        with self._lock:
            due = max(self._due.get(who, now), now)
            ahead = due + step - now
            if ahead > burst * step + 1e-9:
                raise TooManyRequests(ahead - burst * step)
            self._due[who] = due + step
            self._due.move_to_end(who)
            while len(self._due) > _MOST_HELD:
                self._due.popitem(last=False)
