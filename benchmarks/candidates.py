"""Candidate lists beside implicit, sparse-dot-topn, scikit-learn and Surprise: time, ratio, memory, agreement."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.data import matrix_file, read_matrix
from benchmarks.peers import run_worker
from benchmarks.results import write_table

PEERS = ("goodfence", "sparse-dot-topn", "implicit", "scikit-learn", "surprise")
DATA = ("ml-100k", "ml-1m", "douban-movie", "netflix-tenth", "douban-size")

# What a peer cannot do in reasonable time or memory on two cores is not tried, and the table says so.
TOO_LARGE = {
    "scikit-learn": {"netflix-tenth", "douban-size"},
    "surprise": {"douban-movie", "netflix-tenth", "douban-size"},
}


@dataclass
class Measured:
    """The best run of one library."""

    seconds: float
    extra_mib: float
    agrees: str


def measure(
    peer: str, case: tuple[str, str, int], threads: int, out: Path
) -> dict[str, float] | None:
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


def compare(
    case: tuple[str, str, int], peers: list[str], rounds: int, threads: int
) -> dict[str, Measured]:
    best: dict[str, Measured] = {}
    with tempfile.TemporaryDirectory() as folder:
        lists = {peer: Path(folder) / f"{peer}.npz" for peer in peers}
        for turn in range(rounds):
            for peer in peers:
                if turn and peer not in best:
                    continue
                first = Path("-") if turn else lists[peer]
                result = measure(peer, case, threads, first)
                if result is None:
                    continue
                print(f"{case} round {turn + 1}: {peer} {result['seconds']:.2f} s", file=sys.stderr)
                known = best.get(peer)
                if known is None or result["seconds"] < known.seconds:
                    agrees = known.agrees if known else ""
                    best[peer] = Measured(result["seconds"], result["extra_mib"], agrees)
        for peer, measured in best.items():
            measured.agrees = (
                agreement(lists["goodfence"], lists[peer]) if peer != "goodfence" else ""
            )
    return best


def rows_of(
    case: tuple[str, str, int], best: dict[str, Measured], peers: list[str]
) -> list[list[str]]:
    data, axis, n = case
    ours = best["goodfence"].seconds
    rows = []
    for peer in peers:
        if peer in best:
            found = best[peer]
            ratio = f"{found.seconds / ours:.1f}x"
            numbers = [f"{found.seconds:.2f}", ratio, f"{found.extra_mib:,.0f}", found.agrees]
        else:
            numbers = ["not run: too large", "", "", ""]
        rows.append([data, axis, str(n), peer, *numbers])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--axis", nargs="+", default=["user", "item"], choices=["user", "item"])
    parser.add_argument("--n", nargs="+", type=int, default=[350, 1000])
    parser.add_argument("--peers", nargs="+", default=list(PEERS[1:]), choices=PEERS[1:])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--name", default="candidates", help="the table's file name")
    options = parser.parse_args()
    table: list[list[str]] = []
    for data in options.data:
        for axis in options.axis:
            for n in options.n:
                case = (data, axis, n)
                if n >= read_matrix(matrix_file(data)).shape[axis == "item"]:
                    continue  # fewer rows than that
                peers = [p for p in options.peers if data not in TOO_LARGE.get(p, ())]
                best = compare(case, ["goodfence", *peers], options.rounds, options.threads)
                table += rows_of(case, best, ["goodfence", *options.peers])
                head = [
                    "data",
                    "axis",
                    "n",
                    "library",
                    "seconds",
                    "ratio",
                    "extra MiB",
                    "same lists",
                ]
                write_table(
                    options.name,
                    __doc__,
                    head,
                    table,
                    rounds=options.rounds,
                    threads=options.threads,
                )


if __name__ == "__main__":
    main()
