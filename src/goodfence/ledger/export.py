"""What may be told of a ledger: costs, caps, dates and hashes; never numbers of people, or what one of them spent."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import goodfence
from goodfence.ledger.book import Book
from goodfence.ledger.chain import Entry
from goodfence.ledger.costs import epsilon_of
from goodfence.privacy.noise import SIGMA


def told(entry: Entry) -> dict[str, Any]:
    """Return the public fields of an entry: all that the hash covers."""
    fields = {name: value.hex() if isinstance(value, bytes) else value for name, value in entry._asdict().items()}
    del fields["n_accounts"]
    return fields


def as_json(book: Book, delta: float) -> dict[str, Any]:
    """Return all entries, so that anybody can check the chain."""
    return {**status(book, delta), "entries": [told(entry) for entry in book.entries("seq > ?", 0)]}


def status(book: Book, delta: float) -> dict[str, Any]:
    """Return caps, releases, burns, head and anchor."""
    entries = book.entries("seq > ?", 0)
    ends = {entry.release_id: entry for entry in entries if entry.kind in ("release", "burn")}
    head, last = book.head(), book.anchor.last()
    caps = {
        (entry.facts["unit"], entry.facts["cap_cost"], entry.facts["cap_slack"]): entry.seq
        for entry in entries
        if entry.kind == "open" and "unit" in entry.facts
    }
    return {
        "ledger_id": book.id.hex(),
        "head": {"seq": head.seq, "hash": head.hash.hex()},
        "anchored": None if last is None else {"seq": last.seq, "hash": last.hash.hex()},
        "delta": delta,
        "caps": [
            {"unit": unit, "cost": cost, "slack": slack, "epsilon": epsilon_of(cost, slack, delta)}
            for unit, cost, slack in caps
        ],
        "raised": [entry.facts for entry in entries if entry.kind == "cap"],
        "restored": [entry.facts for entry in entries if entry.kind == "restore"],
        "releases": [
            {
                "key": entry.idem,
                "cost": entry.cost,
                "epsilon": epsilon_of(entry.cost, entry.slack, delta),
                "end": ends[entry.release_id].kind if entry.release_id in ends else "in progress",
                **entry.facts,
            }
            for entry in entries
            if entry.kind == "charge"
        ],
    }


def as_dp_event(book: Book, delta: float) -> dict[str, Any]:
    """Return, per unit, what one record may have paid, in the terms of Google's dp-accounting.

    Of ratings and events these are the releases of the batch that paid most. What a person paid is not told: of users
    it is their cap, as one release.
    """
    del delta
    units = {}
    for unit, costs in _largest(book).items():
        events = [{"class_name": "GaussianDpEvent", "noise_multiplier": SIGMA / math.sqrt(cost)} for cost in costs]
        units[unit] = {"class_name": "ComposedDpEvent", "events": events}
    return {"module_name": "dp_accounting.dp_event", "neighbouring": "add/remove", "units": units}


def as_registry(book: Book, delta: float) -> dict[str, Any]:
    """Return the columns of the Differential Privacy Deployments Registry, one row a unit; null is for the operator."""
    first = book.entries("seq = 1")[0]
    return {
        "deployments": [
            {
                "product": None,
                "description": None,
                "year": int(str(first.facts["clock"])[:4]),
                "flavor": "Gaussian DP, stated as approximate DP",
                "unit": f"{unit}-level",
                "privacy_loss": {"epsilon": epsilon_of(cost, slack, delta), "delta": delta},
                "model": "central",
                "accounting": f"{cost} ticks of 2^-49 zCDP in a ledger; head {book.head().hash.hex()}",
                "implementation": f"goodfence {goodfence.__version__}",
            }
            for unit, cost, slack in book.database.rows(
                "SELECT unit, MAX(cap_cost), MAX(cap_slack) FROM account GROUP BY unit ORDER BY unit"
            )
        ]
    }


def _largest(book: Book) -> dict[str, list[int]]:
    found = {}
    caps = "SELECT unit, MAX(cap_cost), MAX(cost) FROM account GROUP BY unit ORDER BY unit"
    for unit, cap, most in book.database.rows(caps):
        paid = (
            "SELECT cost FROM charged WHERE cost > 0 AND account = "
            "(SELECT account FROM account WHERE unit = ? AND cost = ? ORDER BY account LIMIT 1) ORDER BY seq"
        )
        found[unit] = [cap] if unit == "user" else [cost for (cost,) in book.database.rows(paid, unit, most)]
    return found


FORMATS: dict[str, Callable[[Book, float], dict[str, Any]]] = {
    "json": as_json,
    "dp-event": as_dp_event,
    "registry": as_registry,
}
