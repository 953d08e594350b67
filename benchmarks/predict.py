"""Predictions in bulk and one recommendation, beside LensKit and Surprise; and what a fit costs beyond its lists.

`predictions/s` is the first pass after `fit`, with all that it computes for the first time; `again/s` the second.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import goodfence as gf
from benchmarks.data import known_only, write_csv
from benchmarks.peers import run_worker
from benchmarks.results import write_table

PEERS = ("goodfence", "raters", "lenskit", "surprise")
LONG = 60.0
"""Seconds: a library whose predictions take longer is run once, the others in every round."""


RATERS = "goodfence, among raters"
"""With LensKit's settings, so that both predict the same."""


def compare(data: str, axis: str, k: int, rounds: int, threads: int) -> list[list[str]]:
    train, test = gf.holdout(gf.load(data), fraction=0.2, rng=7)
    test = known_only(train, test)
    best: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("train.csv", "test.csv")]
        write_csv(train, files[0])
        write_csv(test, files[1])
        for _ in range(rounds):
            for peer in PEERS:
                if best.get(peer, {}).get("predict", 0.0) > LONG:
                    continue
                words = (str(files[0]), str(files[1]), axis, str(k), str(threads))
                line = run_worker(peer, "predict_worker.py", *words, threads=threads, timeout=1500)
                if line:
                    found = json.loads(line)
                    known = best.setdefault(peer, found)
                    best[peer] = {key: min(known[key], value) for key, value in found.items()}
                    print(f"{data} {axis} {peer}: {found}", file=sys.stderr)
    ours, raters = (speed(best[name]) for name in ("goodfence", "raters"))
    return [row(data, axis, k, peer, best[peer], (ours, raters)) for peer in PEERS if peer in best]


def speed(found: dict[str, float], which: str = "predict") -> float:
    return found["n"] / found[which]


def row(data: str, axis: str, k: int, peer: str, found: dict[str, float], ours: tuple[float, float]) -> list[str]:
    single = f"{found['recommend_ms']:.2f}" if "recommend_ms" in found else ""
    return [
        data,
        axis,
        str(k),
        RATERS if peer == "raters" else peer,
        f"{found['fit']:.2f}",
        f"{speed(found):,.0f}",
        f"{speed(found, 'again'):,.0f}",
        *(f"{own / speed(found):.1f}x" for own in ours),
        single,
    ]


def fit_against_lists(rounds: int, threads: int) -> list[list[str]]:
    """Time PPNS on netflix-tenth, and the candidate lists it needs, alternating."""
    ratings = gf.load("netflix-tenth")
    best = {"lists": np.inf, "fit": np.inf}
    for _ in range(rounds):
        start = time.perf_counter()
        gf.candidate_lists(ratings, n=350, threads=threads)
        best["lists"] = min(best["lists"], time.perf_counter() - start)
        start = time.perf_counter()
        gf.NeighbourCF(gf.PPNS(k=50, beta=7), threads=threads).fit(ratings)
        best["fit"] = min(best["fit"], time.perf_counter() - start)
    ratio = f"{best['fit'] / best['lists']:.2f}x"
    return [["netflix-tenth", f"{best['lists']:.1f}", f"{best['fit']:.1f}", ratio]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=["ml-100k", "ml-1m"], help="none: only the fit")
    parser.add_argument("--k", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--no-fit", action="store_true", help="leave out the fit on netflix-tenth")
    options = parser.parse_args()
    head = ["data", "axis", "k", "library", "fit s", "predictions/s", "again/s", "ours is"]
    head += ["among raters is", "recommend ms"]
    table: list[list[str]] = []
    title = __doc__.splitlines()[0]
    clock = "processor's" if options.threads == 1 else "wall"
    settings = {"rounds": options.rounds, "threads": options.threads, "times": clock}
    for data in options.data:
        for axis in ("user", "item"):
            table += compare(data, axis, options.k, options.rounds, options.threads)
            write_table("predict", title, head, table, **settings)
    if not options.no_fit:
        head = ["data", "candidate lists s", "PPNS(k=50, beta=7) fit s", "ratio"]
        write_table(
            "fit",
            "What a fit costs beyond its candidate lists",
            head,
            fit_against_lists(3, 2),
            command="predict",
            threads=2,
        )


if __name__ == "__main__":
    main()
