"""Every source that a document can show, by the name in its marker."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import goodfence as gf
from documents.peers import peers
from documents.published_overview import overview
from documents.reproduced import claims, section
from documents.tables import ROOT, UNMEASURED, as_table, cell, find, measured, value, whole_table
from goodfence.auditing.audit import settings_counterexample
from goodfence.selection.mechanism import Mechanism

MECHANISMS = ("kNN", "PPNS", "nPNS", "PNCF")
REFUTED: dict[str, Mechanism] = {
    "KNN(k=50)": gf.KNN(k=50),
    "PPNS(k=50, beta=7, epsilon=1)": gf.PPNS(k=50, beta=7, epsilon=1.0),
    "PPNS(k=50, beta=7, epsilon=0.01)": gf.PPNS(k=50, beta=7, epsilon=0.01),
    "NPNS(k=50, within=7)": gf.NPNS(k=50, within=7),
    "NPNS(k=50)": gf.NPNS(k=50),
    "PNCF(k=50, within=7)": gf.PNCF(k=50, within=7),
}
ERRORS = {
    "the paper's kNN, k=100, no guarantee": ("paper's kNN, k=100, unprotected", ""),
    "the best unprotected: item-kNN of LensKit, no guarantee": (
        "item-kNN, LensKit (k=20), unprotected",
        "",
    ),
    "PrivateCF, one rating, epsilon 1": ("PrivateCF auto", "rating 1"),
    "PrivateCF, one user, epsilon 4": ("PrivateCF auto", "user 4"),
    "PrivateMeans, one rating, epsilon 1": ("PrivateMeans", "rating 1"),
    "PrivateMeans, one user, epsilon 4": ("PrivateMeans", "user 4"),
}
GUARANTEED: dict[str, tuple[Any, str]] = {
    "[kNN](docs/mechanisms/knn.md)": (gf.KNN(k=50), "hands over what the one real neighbour rated"),
    "[nPNS](docs/mechanisms/npns.md)": (
        gf.NPNS(k=50),
        "drawn by chance, with no bound on its distribution",
    ),
    "[PNCF](docs/mechanisms/pncf.md)": (
        gf.PNCF(k=50),
        "two data sets that differ in one rating, and an answer that only one of them can give",
    ),
    "[PPNS](docs/mechanisms/ppns.md)": (gf.PPNS(k=50, beta=7), "the same; and the attack works"),
    "[McSherry-Mironov](docs/mechanisms/mcsherry-mironov.md)": (
        gf.papers.McSherryMironov(epsilon=1.0, items="from ratings"),
        "rests on a theorem as published",
    ),
    "[PrivateMeans](docs/mechanisms/private-means.md)": (
        gf.PrivateMeans(epsilon=1.0, items="from ratings"),
        "proof, and audits that tried to break it",
    ),
    "[PrivateCF](docs/mechanisms/private-cf.md)": (
        gf.PrivateCF(epsilon=1.0, items="from ratings"),
        "proof, and audits that tried to break it",
    ),
    "[PrivateTopN](docs/mechanisms/private-top-n.md), lists": (
        gf.PrivateTopN(epsilon=1.0, items="from ratings"),
        "proof, and audits that tried to break it",
    ),
}


def guarantees() -> str:
    """Return what each recommender guarantees, as `guarantee()` states it."""
    rows = []
    for name, (recommender, known) in GUARANTEED.items():
        stated = recommender.guarantee()
        epsilon = "" if stated.epsilon is None else "epsilon, for any number of fakes and questions"
        if stated.status == "refuted":
            epsilon = "the epsilon that its paper claims"
        rows.append([name, f"**{stated.status}**", epsilon, known])
    return as_table(["recommender", "guarantee", "of what", "what is known"], rows)


def attackers() -> str:
    """Return the advantage of every attacker over every mechanism."""
    rows = measured("attackers")
    names = dict.fromkeys(row["attacker"] for row in rows if row["advantage"])
    found = [
        [name, *(cell("attackers", name, mechanism, "advantage") for mechanism in MECHANISMS)]
        for name in names
    ]
    return as_table(["attacker", *MECHANISMS], found)


def counterexamples() -> str:
    """Return the probability of the answer of the counterexample to each mechanism, in both worlds."""
    rows = []
    for name, mechanism in REFUTED.items():
        found = settings_counterexample(mechanism)
        assert found is not None, name
        with_it, without = found.probabilities()
        rows.append([f"`{name}`", f"{with_it:.3f}", f"{without:.3f}"])
    return as_table(["mechanism", "probability with the rating", "without it"], rows)


def power() -> str:
    """Return how often an audit of too little noise found it."""
    rows = [row for row in measured("audits") if "noise x" in row["audited"]]
    found = [[row["audited"], row["mu, claimed"], row["verdict"]] for row in rows]
    return as_table(["audited", "mu, claimed", "found"], found)


def chart_caption() -> str:
    """Return which data the chart of the frontier is about, and how much its attackers know, as it says itself."""
    stated = json.loads((ROOT / "docs" / "frontier" / "manifest.json").read_text(encoding="utf-8"))
    known = sorted(set(stated["known"]))
    return (
        f"Data: {stated.get('data', UNMEASURED)}; attackers who know {known[0]} ratings of a person"
    )


def published(data: str, *ideas: str) -> str:
    """Return the measured rows of published systems whose names begin with one of these."""
    rows = [row for row in measured(f"published-{data}") if row["idea"].startswith(ideas)]
    columns = ["idea", "attacker", "MAE", "answers recover", "without target", "advantage"]
    columns += ["certain", "certain and right", "targets"]
    found = [[row[name] for name in columns] for row in rows]
    return as_table(columns, found) if rows else UNMEASURED


def private_errors() -> str:
    """Return the error of the private models beside kNN's, on every data set."""
    rows = measured("accuracy")
    sets = list(dict.fromkeys(row["data"] for row in rows))
    if not sets:
        return UNMEASURED
    found = []
    for title, (model, budget) in ERRORS.items():
        lines = [find(rows, name, model, budget) for name in sets]
        found.append([title, *(line["MAE"] if line else UNMEASURED for line in lines)])
    return as_table(["mean absolute error, held out", *sets], found)


SOURCES: dict[str, Callable[..., str]] = {
    "attackers": attackers,
    "cell": cell,
    "chart-caption": chart_caption,
    "claims": claims,
    "measured": whole_table,
    "peers": peers,
    "power": power,
    "private-errors": private_errors,
    "published": published,
    "published-overview": overview,
    "guarantees": guarantees,
    "reproduction": section,
    "value": value,
    "counterexamples": counterexamples,
}
