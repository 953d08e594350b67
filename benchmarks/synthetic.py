"""Made-up ratings at the paper's Douban size: time, memory, and how much work its pairs are.

The work of all similarities is the sum over items of (users who rated it)^2, so made-up ratings stand
beside real ones of the same size (where GOODFENCE_DATA has them) in that measure.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time

import numpy as np
import numpy.typing as npt

import goodfence as gf
from benchmarks.data import DOUBAN_SIZE
from benchmarks.results import write_table
from goodfence.data.catalogue import named_folder

REAL = ("douban-movie", "netflix-tenth")
POPULAR = 0.1
HEAD = [
    "ratings",
    "users x items",
    "n",
    "most rated item",
    "Gini of items",
    "Gini of users",
    "sum of squares",
    "of it by items above 10% of users",
]


def measure() -> str:
    """Return seconds and peak GiB of making the ratings once, the kernels compiled before."""
    gf.synthetic(users=50, items=50, ratings=500, rng=1)
    before = time.perf_counter()
    gf.synthetic(**DOUBAN_SIZE, rng=7)
    seconds = time.perf_counter() - before
    unit = 2**30 if sys.platform == "darwin" else 2**20
    return f"{seconds:.1f} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit:.2f}"


def gini(counts: npt.NDArray[np.float64]) -> float:
    """Return how unequal the counts are: 0 all equal, 1 one has all."""
    ordered = np.sort(counts)
    n = len(ordered)
    return float((2 * np.arange(1, n + 1) - n - 1) @ ordered / (n * ordered.sum()))


def line_of(name: str, ratings: gf.Ratings) -> list[str]:
    n_users, n_items = ratings.shape
    by_item = np.bincount(ratings.csr.indices, minlength=n_items).astype(np.float64)
    popular = by_item > POPULAR * n_users
    work = (by_item**2).sum()
    return [
        name,
        f"{n_users:,} x {n_items:,}",
        f"{ratings.n_ratings:,}",
        f"{by_item.max() / n_users:.0%} of users",
        f"{gini(by_item):.2f}",
        f"{gini(np.diff(ratings.csr.indptr).astype(np.float64)):.2f}",
        f"{work:.2e}",
        f"{(by_item[popular] ** 2).sum() / work:.0%} ({popular.sum():,} items)",
    ]


def lines() -> list[list[str]]:
    folder = named_folder()
    rows = []
    for name in REAL:
        if folder is None or not (folder / name).is_dir():
            continue
        real = gf.load(name)
        rows.append(line_of(name, real))
        (users, items), ratings = real.shape, real.n_ratings
        made = gf.synthetic(users=users, items=items, ratings=ratings, rng=7)
        rows.append(line_of(f"made up, size of {name}", made))
    return [*rows, line_of("made up, the paper's Douban size", gf.synthetic(**DOUBAN_SIZE, rng=7))]


def main() -> None:
    command = [sys.executable, "-m", "benchmarks.synthetic", "--measure"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, peak = answer.split()
    size = {
        "the paper's Douban size in": f"{seconds} s, peak {peak} GiB (wanted: 60 s, 3 GiB)",
        "cores": os.cpu_count(),
    }
    write_table("synthetic", "Made-up ratings beside real ones", HEAD, lines(), **size)
    print(", ".join(f"{key} {value}" for key, value in size.items()))


if __name__ == "__main__":
    if sys.argv[1:] == ["--measure"]:
        print(measure())
    else:
        main()
