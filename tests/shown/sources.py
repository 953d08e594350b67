"""Every source that a document can show, by the name that stands in its marker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import goodfence as gf
from goodfence.auditing.witnesses import settings_witness
from goodfence.selection.mechanism import Mechanism
from tests.shown.peers import peers
from tests.shown.reproduced import claims, section
from tests.shown.tables import UNMEASURED, as_table, cell, find, measured, value, whole

MECHANISMS = ("kNN", "PPNS", "nPNS", "PNCF")
WITNESSED: dict[str, Mechanism] = {
    "KNN(k=50)": gf.KNN(k=50),
    "PPNS(k=50, beta=7, epsilon=1)": gf.PPNS(k=50, beta=7, epsilon=1.0),
    "PPNS(k=50, beta=7, epsilon=0.01)": gf.PPNS(k=50, beta=7, epsilon=0.01),
    "NPNS(k=50, within=7)": gf.NPNS(k=50, within=7),
    "NPNS(k=50)": gf.NPNS(k=50),
    "PNCF(k=50, within=7)": gf.PNCF(k=50, within=7),
}
ERRORS = {
    "kNN, k=100, no promise": ("paper's kNN, k=100, unprotected", ""),
    "PrivateCF, one rating, epsilon 1": ("PrivateCF auto", "rating 1"),
    "PrivateCF, one user, epsilon 4": ("PrivateCF auto", "user 4"),
    "PrivateMeans, one rating, epsilon 1": ("PrivateMeans", "rating 1"),
    "PrivateMeans, one user, epsilon 4": ("PrivateMeans", "user 4"),
}
PROMISED: dict[str, tuple[Any, str]] = {
    "[kNN](docs/mechanisms/knn.md)": (gf.KNN(k=50), "hands over what the one real neighbour rated"),
    "[nPNS](docs/mechanisms/npns.md)": (gf.NPNS(k=50), "drawn by chance, with no bound on its law"),
    "[PNCF](docs/mechanisms/pncf.md)": (
        gf.PNCF(k=50),
        "two data sets that differ in one rating, and an answer that only one of them can give",
    ),
    "[PPNS](docs/mechanisms/ppns.md)": (gf.PPNS(k=50, beta=7), "the same; and the attack works"),
    "[McSherry-Mironov](docs/mechanisms/mcsherry-mironov.md)": (
        gf.McSherryMironov(epsilon=1.0),
        "rests on a theorem as published",
    ),
    "[PrivateMeans](docs/mechanisms/private-means.md)": (
        gf.PrivateMeans(epsilon=1.0),
        "proof, and audits that tried to break it",
    ),
    "[PrivateCF](docs/mechanisms/private-cf.md)": (
        gf.PrivateCF(epsilon=1.0),
        "proof, and audits that tried to break it",
    ),
}


def promises() -> str:
    """Return what each way of recommending promises, as `guarantee()` states it."""
    rows = []
    for name, (way, known) in PROMISED.items():
        stated = way.guarantee()
        epsilon = "" if stated.epsilon is None else "epsilon, for any number of fakes and questions"
        if stated.status == "refuted":
            epsilon = "the epsilon that its paper claims"
        rows.append([name, f"**{stated.status}**", epsilon, known])
    return as_table(["way to recommend", "promise", "of what", "what is known"], rows)


def attackers() -> str:
    """Return the advantage of every attacker over every mechanism."""
    rows = measured("attackers")
    names = dict.fromkeys(row["attacker"] for row in rows if row["advantage"])
    found = [
        [name, *(cell("attackers", name, mechanism, "advantage") for mechanism in MECHANISMS)]
        for name in names
    ]
    return as_table(["attacker", *MECHANISMS], found)


def witnesses() -> str:
    """Return with which probability the witness against each mechanism answers, in both worlds."""
    rows = []
    for name, mechanism in WITNESSED.items():
        witness = settings_witness(mechanism)
        assert witness is not None, name
        with_it, without = witness.probabilities()
        rows.append([f"`{name}`", f"{with_it:.3f}", f"{without:.3f}"])
    return as_table(["mechanism", "probability with the rating", "without it"], rows)


def power() -> str:
    """Return how often an audit of too little noise found it."""
    rows = [row for row in measured("audits") if "noise x" in row["audited"]]
    found = [[row["audited"], row["mu, claimed"], row["verdict"]] for row in rows]
    return as_table(["audited", "mu, claimed", "found"], found)


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
    "claims": claims,
    "measured": whole,
    "peers": peers,
    "power": power,
    "private-errors": private_errors,
    "promises": promises,
    "reproduction": section,
    "value": value,
    "witnesses": witnesses,
}
