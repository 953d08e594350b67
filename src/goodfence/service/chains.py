"""The chain of a ledger as anybody can check it: from public fields alone, without the number of accounts."""

from __future__ import annotations

from typing import Any

from goodfence.errors import BrokenPromise
from goodfence.ledger.chain import START, Entry

_BYTES = ("request", "release_id", "accounts_hash", "prev_hash", "hash")
_PUBLIC = ("seq", "kind", "idem", "cost", "slack", "body", *_BYTES)


def checked_chain(told: list[dict[str, Any]], ledger_id: str) -> list[Entry]:
    """Return the entries of a whole ledger; raise unless each follows the one before and nothing exceeds a cap."""
    entries: list[Entry] = []
    before = START
    for seq, fields in enumerate(told, start=1):
        entry = _entry(fields)
        if entry.seq != seq or entry.prev_hash != before or entry.computed_hash() != entry.hash:
            raise BrokenPromise("the chain of the ledger is broken: an entry was changed, or is missing")
        entries.append(entry)
        before = entry.hash
    if not entries or entries[0].facts.get("ledger_id") != ledger_id:
        raise BrokenPromise("the chain is not that of the ledger that the certificate names")
    for name, spent, cap in spending(entries).values():
        if spent > cap:
            raise BrokenPromise(f"the ledger charged more {name} than its cap allows")
    return entries


def spending(entries: list[Entry]) -> dict[str, tuple[str, int, int]]:
    """Return ticks and slack: what one account may have spent at most by all charges, burned ones too, and its cap."""
    charged = [entry for entry in entries if entry.kind in ("charge", "restore")]
    caps = [entry.facts for entry in entries if "cap_cost" in entry.facts]
    most = {kind: max((facts[f"cap_{kind}"] for facts in caps), default=0) for kind in ("cost", "slack")}
    return {
        "ticks": ("ticks", sum(entry.cost for entry in charged), most["cost"]),
        "slack": ("slack", sum(entry.slack for entry in charged), most["slack"]),
    }


def _entry(fields: dict[str, Any]) -> Entry:
    try:
        known = {name: fields[name] for name in _PUBLIC}
        made = {name: bytes.fromhex(known[name]) if known[name] is not None else None for name in _BYTES}
        return Entry(**{**known, **made, "n_accounts": 0})
    except (KeyError, TypeError, ValueError):
        raise BrokenPromise("the chain of the ledger cannot be read") from None
