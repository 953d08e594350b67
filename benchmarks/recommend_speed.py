"""Lists for everybody, n=20, after the fit: people a second, beside implicit's `recommend` with 64 factors.

Each recommender has a process of its own and the same number of threads. The fastest of all rounds counts: other work
on the machine only slows one down.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import goodfence as gf
from benchmarks.peers import run_worker
from benchmarks.results import write_table
from goodfence.data.splits import core

N, FEWEST, LIKED = 20, 5, 4
IMPLICIT = "implicit"
RECOMMENDERS: dict[str, dict[str, Any]] = {
    "PrivateTopN, per event, ε=1": {"mechanism": "private-top-n", "epsilon": 1.0},
    "PrivateTopN, per user, ε=4": {"mechanism": "private-top-n", "epsilon": 4.0, "unit": "user"},
    "Popularity": {"mechanism": "popularity"},
    "kNN, user-based, k=50": {"mechanism": "knn", "k": 50},
    "kNN, item-based, k=50": {"mechanism": "knn", "k": 50, "axis": "item"},
    "EASE, 5,000 items": {"mechanism": "ease", "items": 5000},
}
MUST, GOAL = 10, 30
"""How many times as many people a second as implicit `PrivateTopN` must list for, and the goal."""
HEAD = ["data", "recommender", "people a second", "of implicit", "seconds", "fit, s", "must", "goal"]


def measure(data: str, rounds: int, threads: int, only: str) -> list[list[str]]:
    """Return a row of the table for each recommender with `only` in its name, and one for implicit."""
    events = core(gf.load(data).likes(LIKED), per_user=FEWEST, per_item=FEWEST)
    asked = {IMPLICIT: {}, **{name: s for name, s in RECOMMENDERS.items() if only in name}}
    best: dict[str, tuple[float, float]] = {}
    with TemporaryDirectory() as folder:
        file, csr = Path(folder) / "events.npz", events.csr
        np.savez(file, data=csr.data, indices=csr.indices, indptr=csr.indptr, shape=csr.shape)
        for name, settings in asked.items():
            peer = IMPLICIT if name == IMPLICIT else "goodfence"
            words = (str(file), str(N), str(rounds), json.dumps(settings), str(threads))
            line = run_worker(peer, "recommend_speed_worker.py", *words, threads=threads, timeout=3000)
            if line is None:
                continue
            found = json.loads(line)
            best[name] = found["users"] / found["seconds"], found["made"]
            print(f"{data} {name}: {found}", file=sys.stderr)
    return [row(data, name, *one, best[IMPLICIT][0], csr.shape[0]) for name, one in best.items()]


def row(data: str, name: str, speed: float, fit: float, peers: float, n_users: int) -> list[str]:
    ratio = speed / peers
    wanted = ["", ""]
    if name.startswith("PrivateTopN"):
        wanted = [f"{least}x: {'met' if ratio >= least else 'not met'}" for least in (MUST, GOAL)]
    label = "implicit, 64 factors" if name == IMPLICIT else name
    seconds = f"{n_users / speed:.2f}", "" if name == IMPLICIT else f"{fit:.1f}"
    return [data, label, f"{speed:,.0f}", f"{ratio:.1f}x", *seconds, *wanted]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=["netflix-tenth"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="what has this in its name, beside implicit")
    options = parser.parse_args()
    table: list[list[str]] = []
    for data in options.data:
        table += measure(data, options.rounds, options.threads, options.only)
    title = (__doc__ or "").splitlines()[0]
    how = {"likes": f">= {LIKED}", "rounds": options.rounds, "threads": options.threads}
    write_table("recommend_speed", title, HEAD, table, **how)


if __name__ == "__main__":
    main()
