"""Where an item is popular: the time of whole candidate lists as that border moves."""

from __future__ import annotations

import argparse
import sys
import time
from unittest import mock

import numpy as np

import goodfence as gf
from benchmarks.results import write_table
from goodfence.neighbours import all_pairs as layout
from goodfence.neighbours.similarity import Profiles

DATA = ("ml-1m", "netflix-tenth")
BORDERS = (0.0047, 0.0082, 0.0118, layout.POPULAR, 0.0235, 0.0353, 0.0529)
"""Shares of the rows that make an item popular: the one in use, and some on both sides of it."""


def n_popular(ratings: gf.Ratings) -> int:
    """Return how many items are laid out dense."""
    return layout.Items.of(Profiles.of(ratings.csr), int(ratings.scale.highest)).n_popular


def measure(ratings: gf.Ratings, n: int, rounds: int, threads: int) -> dict[float, float]:
    """Return the best time of each border; they take turns, so that a slow minute is not one border's alone."""
    best = dict.fromkeys(BORDERS, np.inf)
    gf.candidate_lists(ratings, n=n, threads=threads)  # compiles, and touches the memory
    for turn in range(rounds):
        for border in BORDERS:
            with mock.patch.object(layout, "POPULAR", border):
                start = time.perf_counter()
                gf.candidate_lists(ratings, n=n, threads=threads)
                seconds = time.perf_counter() - start
            print(f"round {turn + 1}: border {border} {seconds:.2f} s", file=sys.stderr)
            best[border] = min(best[border], seconds)
    return best


def rows_of(name: str, ratings: gf.Ratings, best: dict[float, float]) -> list[list[str]]:
    rows = []
    for border, seconds in best.items():
        with mock.patch.object(layout, "POPULAR", border):
            popular = n_popular(ratings)
        ratio = seconds / best[layout.POPULAR]
        rows.append([name, f"{border:.4f}", f"{popular:,}", f"{seconds:.2f}", f"{ratio:.2f}"])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--n", type=int, default=350)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    table: list[list[str]] = []
    for name in options.data:
        ratings = gf.load(name)
        best = measure(ratings, options.n, options.rounds, options.threads)
        table += rows_of(name, ratings, best)
    head = ["data", "border: share of rows", "popular items", "seconds", "to the one in use"]
    write_table(
        "border", __doc__, head, table, n=options.n, rounds=options.rounds, threads=options.threads, used=layout.POPULAR
    )


if __name__ == "__main__":
    main()
