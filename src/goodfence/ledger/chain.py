"""Entries of the ledger, and the chain of hashes through them."""

from __future__ import annotations

import hashlib
import hmac
import json
import struct
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

START = bytes(32)
"""What the first entry follows."""
_DOMAIN = b"goodfence-ledger-1\0"
_ABSENT = b"\xff" * 8
_ROW = struct.Struct(">16sQQ")


class Entry(NamedTuple):
    """One row of the table `entry`; the field `hash` covers all others but `n_accounts`."""

    seq: int
    kind: str
    idem: str | None
    request: bytes | None
    release_id: bytes | None
    cost: int
    slack: int
    n_accounts: int
    accounts_hash: bytes | None
    body: str
    prev_hash: bytes
    hash: bytes

    @property
    def facts(self) -> dict[str, Any]:
        """What the body says."""
        found: dict[str, Any] = json.loads(self.body)
        return found

    def computed_hash(self) -> bytes:
        """Return the hash of the fields: each with its length, so that no two entries read alike.

        The number of accounts is left out, so that an export can be checked without it; `accounts_hash` commits to it.
        """
        digest = hashlib.sha256(_DOMAIN)
        for field in (*self[:7], *self[8:11]):
            if field is None:
                digest.update(_ABSENT)
                continue
            content = field if isinstance(field, bytes) else str(field).encode()
            digest.update(len(content).to_bytes(8, "big") + content)
        return digest.digest()

    def sealed(self) -> Entry:
        """Return the entry with its hash."""
        return self._replace(hash=self.computed_hash())


FIELDS = ", ".join(Entry._fields)


def canonical(facts: Mapping[str, Any]) -> str:
    """Return facts as JSON, always in the same bytes."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)


def rows_digest(key: bytes, rows: Iterable[tuple[bytes, int, int]]) -> bytes:
    """Return the keyed digest of an account and two amounts a row, in the order of accounts."""
    digest = hmac.new(key, b"accounts\0", "sha256")
    digest.update(b"".join(_ROW.pack(*row) for row in sorted(rows)))
    return digest.digest()
