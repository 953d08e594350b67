"""Candidate lists beside similaripy, sparse-dot-topn, implicit, scikit-learn, Surprise: time, memory, agreement."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.data import matrix_file, read_matrix
from benchmarks.peers import run_worker
from benchmarks.results import FOLDER, write_table

PEERS = ("goodfence", "similaripy", "sparse-dot-topn", "implicit", "scikit-learn", "surprise")
DATA = ("ml-100k", "goodbooks", "ml-1m", "douban-movie", "netflix-tenth", "douban-size")
LENGTHS = (50, 350, 1000)

# What a peer cannot do in reasonable time or memory on two cores is not tried, and the table says so.
TOO_LARGE = {
    "scikit-learn": {"netflix-tenth", "douban-size"},
    "surprise": {"goodbooks", "ml-1m", "douban-movie", "netflix-tenth", "douban-size"},
}

LONG = 100.0
"""Seconds: a peer that takes longer is run once, everybody else in every round."""
KEPT = FOLDER / "candidates.json"
"""Every measured cell: a run measures some of them again, and the table shows them all."""

Case = tuple[str, str, int]
Found = dict[str, float | str]


def measure(peer: str, case: Case, threads: int, out: Path) -> dict[str, float] | None:
    data, axis, n = case
    arguments = (str(matrix_file(data)), axis, str(n), str(threads), str(out))
    line = run_worker(peer, "candidates_worker.py", *arguments, threads=threads, timeout=1500)
    return json.loads(line) if line else None


def agreement(ours: Path, theirs: Path) -> str:
    """Compare sorted similarities: equal up to ties and to the peer's own precision."""
    if not theirs.is_file():
        return "another similarity"
    with np.load(ours) as first, np.load(theirs) as second:
        width = min(first["values"].shape[1], second["values"].shape[1])
        difference = np.abs(first["values"][:, :width] - second["values"][:, :width])
        # A peer that keeps positive similarities only has shorter lists.
        listed = second["indices"][:, :width] >= 0
        worst = float(difference[listed].max(initial=0.0))
        missing = float(first["values"][:, :width][~listed].max(initial=0.0))
    return f"yes (within {max(worst, missing):.0e})" if max(worst, missing) < 1e-5 else "NO"


def compare(case: Case, peers: list[str], rounds: int, threads: int) -> dict[str, Found]:
    """Run the libraries in turn, `rounds` times; return the best run of each."""
    best: dict[str, Found] = {}
    with tempfile.TemporaryDirectory() as folder:
        lists = {peer: Path(folder) / f"{peer}.npz" for peer in peers}
        for turn in range(rounds):
            for peer in peers:
                if turn and (peer not in best or float(best[peer]["seconds"]) > LONG):
                    continue
                found = measure(peer, case, threads, Path("-") if turn else lists[peer])
                if found is None:
                    continue
                print(f"{case} round {turn + 1}: {peer} {found['seconds']:.2f} s", file=sys.stderr)
                if peer not in best or found["seconds"] < float(best[peer]["seconds"]):
                    best[peer] = dict(found)
                best[peer]["rounds"] = turn + 1
        for peer, found_best in best.items():
            if peer != "goodfence":
                found_best["same"] = agreement(lists["goodfence"], lists[peer])
    return best


def rows_of(case: Case, best: dict[str, Found]) -> list[list[str]]:
    data, axis, n = case
    ours = float(best["goodfence"]["seconds"])
    rows = []
    for peer in PEERS:
        if peer in best:
            found = best[peer]
            seconds = float(found["seconds"])
            numbers = [
                f"{seconds:.2f}",
                f"{seconds / ours:.1f}x",
                f"{max(0.0, float(found['beyond_mib'])):,.0f}",
                str(found["rounds"]),
                str(found.get("same", "")),
            ]
        else:
            large = data in TOO_LARGE.get(peer, ())
            numbers = ["not run: too large" if large else "not measured", "", "", "", ""]
        rows.append([data, axis, str(n), peer, *numbers])
    return rows


def write_all(kept: dict[str, dict[str, Found]], threads: int) -> None:
    """Write the kept cells, and the table of all of them."""
    KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    head = ["data", "axis", "n", "library", "seconds", "ratio", "MiB beyond the result", "best of"]
    table: list[list[str]] = []
    for data in DATA:
        for axis in ("user", "item"):
            for n in LENGTHS:
                if best := kept.get(f"{data} {axis} {n}"):
                    table += rows_of((data, axis, n), best)
    write_table(
        "candidates",
        __doc__,
        [*head, "same lists"],
        table,
        threads=threads,
        older="rows that were not measured again are of earlier dates and versions",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--axis", nargs="+", default=["user", "item"], choices=["user", "item"])
    parser.add_argument("--n", nargs="+", type=int, default=list(LENGTHS), choices=LENGTHS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    kept: dict[str, dict[str, Found]] = json.loads(KEPT.read_text()) if KEPT.is_file() else {}
    for data in options.data:
        for axis in options.axis:
            for n in options.n:
                if n >= read_matrix(matrix_file(data)).shape[axis == "item"]:
                    continue  # fewer rows than that
                peers = [peer for peer in PEERS if data not in TOO_LARGE.get(peer, ())]
                best = compare((data, axis, n), peers, options.rounds, options.threads)
                kept[f"{data} {axis} {n}"] = best
                write_all(kept, options.threads)


if __name__ == "__main__":
    main()
