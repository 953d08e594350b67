"""Every source that a document can show, by the name in its marker."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from functools import cache

import goodfence as gf
from documents.tables import ROOT, UNMEASURED, Row, as_table, cell, find, measured, rows_of, shown_table, value
from goodfence.selection.counterexample import settings_counterexample
from goodfence.selection.mechanism import Mechanism

REFUTED: dict[str, Mechanism] = {
    "KNN(k=50)": gf.KNN(k=50),
    "PPNS(k=50, beta=7, epsilon=1)": gf.PPNS(k=50, beta=7, epsilon=1.0),
    "PPNS(k=50, beta=7, epsilon=0.01)": gf.PPNS(k=50, beta=7, epsilon=0.01),
    "NPNS(k=50)": gf.NPNS(k=50),
    "PNCF(k=50, within=7)": gf.PNCF(k=50, within=7),
}
MECHANISMS = ("kNN", "PPNS", "nPNS", "PNCF")
DATA_SETS = ("ml-100k", "ml-1m", "douban-movie", "netflix-tenth", "movietweetings")
ERRORS = {
    "kNN of the paper, k=100, no guarantee": ("paper's kNN, k=100, unprotected", ""),
    "LensKit item-kNN, best without a guarantee": ("item-kNN, LensKit (k=20), unprotected", ""),
    "PrivateCF, one rating, epsilon 1": ("PrivateCF auto", "rating 1"),
    "PrivateCF, one user, epsilon 4": ("PrivateCF auto", "user 4"),
    "PrivateMeans, one rating, epsilon 1": ("PrivateMeans", "rating 1"),
    "PrivateMeans, one user, epsilon 4": ("PrivateMeans", "user 4"),
}
MATTERS = 0.05
"""A method stops an attack if the whole interval of the advantage is below this, and does not if it is all above."""
_SECTION = re.compile(r"^## (.*?)$", re.MULTILINE)


def counterexamples() -> str:
    """Return the probability of the counterexample's answer in both worlds, for each mechanism."""
    rows = []
    for name, mechanism in REFUTED.items():
        found = settings_counterexample(mechanism)
        assert found is not None, name
        with_it, without = found.probabilities()
        rows.append([f"`{name}`", f"{with_it:.3f}", f"{without:.3f}"])
    return as_table(["mechanism", "probability with the rating", "without it"], rows)


def attackers(*names: str) -> str:
    """Return the advantage of some attackers over each mechanism."""
    found = [[name, *(cell("attackers", name, mechanism, "advantage") for mechanism in MECHANISMS)] for name in names]
    return as_table(["attacker", *MECHANISMS], found)


def chart_caption() -> str:
    """Return the data of the frontier's chart and how much its attackers know."""
    stated = json.loads((ROOT / "docs" / "frontier" / "manifest.json").read_text(encoding="utf-8"))
    known = min(stated["known"])
    return f"Data: {stated.get('data', UNMEASURED)}; the attacker knows {known} ratings of a user"


LEAKS = {
    "[kNN](docs/mechanisms/knn.md)": ("kNN", "k=50"),
    "[PPNS](docs/mechanisms/ppns.md)": ("PPNS", "k=50, β=7"),
    "[PNCF](docs/mechanisms/pncf.md)": ("PNCF", "k=50, β=7, ε=1"),
    "[nPNS](docs/mechanisms/npns.md)": ("nPNS", "k=50, whole list"),
    "[PrivateCF](docs/mechanisms/private-cf.md), one rating": ("PrivateCF, per rating", "ε=1"),
    "[PrivateCF](docs/mechanisms/private-cf.md), one user": ("PrivateCF, per user", "ε=4"),
}


def leaks() -> str:
    """Return what each recommender leaks, costs and guarantees."""
    names = ("settings", "advantage", "MAE", "guarantee")
    rows = [[title, *(cell("frontier", *row, name) for name in names)] for title, row in LEAKS.items()]
    return as_table(["recommender", *names], rows)


def private_errors() -> str:
    """Return the error of the private models and of kNN on five data sets."""
    rows = measured("accuracy")
    found = []
    for title, (model, budget) in ERRORS.items():
        lines = [find(rows, name, model, budget) for name in DATA_SETS]
        found.append([title, *(line["MAE"] if line else UNMEASURED for line in lines)])
    return as_table(["MAE on held-out ratings", *DATA_SETS], found)


def interval(row: Row) -> tuple[float, float, float]:
    """Return the advantage of a row, and both ends of its interval.

    >>> interval({"advantage": "+0.058 (+0.001 to +0.114)"})
    (0.058, 0.001, 0.114)
    """
    value, low, _, high = row["advantage"].replace("(", "").replace(")", "").split()
    return float(value), float(low), float(high)


def stops(row: Row) -> str:
    """Return whether the interval lies below what matters (yes), above it (no), or contains it (open)."""
    _, low, high = interval(row)
    if high <= MATTERS:
        return "yes"
    return "**no**" if low > MATTERS else "open"


def published(data: str, *ideas: str) -> str:
    """Return the strongest attack on each published system whose name begins with one of these."""
    rows, found = measured(f"published-{data}"), []
    for start in ideas:
        names = dict.fromkeys(row["idea"] for row in rows if row["idea"].startswith(start))
        if not names:
            raise LookupError(f"the table published-{data} has no {start!r}")
        for name in names:
            worst = max((row for row in rows if row["idea"] == name), key=interval)
            cells = [worst[one] for one in ("idea", "guarantee", "MAE", "advantage", "attacker")]
            found.append([*cells, worst["targets"], stops(worst)])
    head = ["method", "guarantee", "MAE", "advantage", "strongest attack", "users", "stops it?"]
    return as_table(head, found)


@cache
def sections() -> dict[str, str]:
    """Return the sections of REPRODUCTION.md by their titles."""
    text = (ROOT / "REPRODUCTION.md").read_text(encoding="utf-8")
    _, *parts = _SECTION.split(text)
    return {title: body.strip() for title, body in zip(parts[::2], parts[1::2], strict=True)}


def verdict_rows() -> tuple[Row, ...]:
    """Return the table of claims and verdicts."""
    return rows_of(sections()["Verdicts"])


def verdicts() -> str:
    """Return the paper's claims and their verdicts as a table."""
    rows = [[row[""], row["the paper says"], row["verdict"]] for row in verdict_rows()]
    return as_table(["claim", "the paper says", "verdict"], rows)


def claims() -> str:
    """Return the count of verdicts for a sentence: "10 of 18 hold and 8 fail"."""
    counts = Counter(row["verdict"].strip("*") for row in verdict_rows())
    return f"{counts['holds']} of {counts.total()} hold and {counts['fails']} fail"


SOURCES: dict[str, Callable[..., str]] = {
    "attackers": attackers,
    "cell": cell,
    "chart-caption": chart_caption,
    "claims": claims,
    "counterexamples": counterexamples,
    "leaks": leaks,
    "private-errors": private_errors,
    "published": published,
    "reproduction": lambda title: sections()[title],
    "table": shown_table,
    "value": value,
    "verdicts": verdicts,
}
