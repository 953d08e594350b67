"""goodfence beside its peers, in the few lines that README.md has room for; docs/performance.md has all."""

from __future__ import annotations

import json
from typing import Any

from documents.tables import RESULTS, UNMEASURED, as_table, find, measured

LISTS = ("goodfence", "sparse-dot-topn", "implicit")
PREDICTIONS = {"goodfence": "ours is", "goodfence, among raters": "among raters is"}
"""Ours, and the column that says how many times a peer's predictions a second it makes."""
CASES = {
    "netflix-tenth user 350": "netflix-tenth: 47,730 users, 10.1 million ratings",
    "douban-size user 350": "the paper's Douban size: 129,490 users, 16.8 million ratings",
}
PREDICTED = {
    ("ml-100k", "user", "50"): "MovieLens 100K, 50 nearest users",
    ("ml-100k", "item", "50"): "MovieLens 100K, 50 nearest films",
    ("ml-1m", "user", "50"): "MovieLens 1M, 50 nearest users",
    ("ml-1m", "item", "50"): "MovieLens 1M, 50 nearest films",
}


def candidate_lists() -> str:
    """Return the table of candidate lists: seconds, the ratio to ours, and memory beyond the result."""
    path = RESULTS / "candidates.json"
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    head = ["the 350 most similar users of every user, two cores", *LISTS]
    rows = [[title, *_times(kept.get(case, {}))] for case, title in CASES.items()]
    return as_table(head, rows)


def _times(found: dict[str, Any]) -> list[str]:
    return [
        _time(found[library], found["goodfence"]) if library in found else UNMEASURED
        for library in LISTS
    ]


def _time(theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    memory = f"{max(0.0, theirs['beyond_mib']):,.0f} MiB"
    if theirs is ours:
        return f"**{ours['seconds']:.1f} s**, {memory}"
    ratio = theirs["seconds"] / ours["seconds"]
    return f"{theirs['seconds']:.1f} s (**{ratio:.1f}x**), {memory}"


def predictions() -> str:
    """Return the table of predictions a second, and how many times a peer's ours are."""
    rows = []
    for case, title in PREDICTED.items():
        theirs = [find(measured("predict"), *case, library) for library in ("lenskit", "surprise")]
        for library, ratio in PREDICTIONS.items():
            ours = find(measured("predict"), *case, library)
            if ours is not None:
                among = ", among the raters of each item" if ratio != "ours is" else ""
                found = [_speed(row, ratio) for row in theirs]
                rows.append([f"{title}{among}", f"**{ours['predictions/s']}**", *found])
    return as_table(["predictions a second, one core", "goodfence", "LensKit", "Surprise"], rows)


def _speed(row: dict[str, str] | None, ratio: str) -> str:
    return UNMEASURED if row is None else f"{row['predictions/s']} (**{row[ratio]}**)"


def peers() -> str:
    """Return both tables."""
    return f"{candidate_lists()}\n\n{predictions()}"
