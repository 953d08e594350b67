"""How the time of candidate lists grows with the pair work, and how far it is from what cannot be avoided."""

from __future__ import annotations

import argparse
import time

import numpy as np

import goodfence as gf
from benchmarks.peers import ROOT
from benchmarks.results import write_table
from goodfence.neighbours.all_pairs import ItemNumbers
from goodfence.neighbours.similarity import Profiles

# Users, items, ratings: each about four times the pair work of the one before.
SIZES = [
    (6_000, 6_000, 600_000),
    (12_000, 10_000, 1_500_000),
    (26_000, 18_000, 3_400_000),
    (60_000, 32_000, 7_800_000),
    (129_490, 58_541, 16_830_839),
]
BANDWIDTH = 20e9
"""Bytes a second that two cores of such a machine read from memory, for the limit below."""
BYTES_A_CYCLE = 64
"""Bytes that one core adds in a cycle: two vector additions of 32 bytes, fed from the first-level cache."""
CYCLES = 3e9


def unavoidable(ratings: gf.Ratings, n: int) -> tuple[float, float]:
    """Return seconds of the operations and of the bytes that this algorithm cannot do without, on two cores.

    Operations: each popular rating of a row is added, one byte a column, to half of all columns; each tail pair
    is one update, a load and a store, at one a cycle. Bytes: the result is written once.
    """
    profiles = Profiles.of(ratings.csr)
    items = ItemNumbers.of(profiles)
    counts = np.bincount(ratings.csr.indices, minlength=ratings.shape[1]).astype(np.float64)
    popular = counts[items.numbers >= 0].sum() * ratings.shape[0] / 2
    tail = (counts[items.numbers < 0] ** 2).sum() / 2
    operations = (popular / BYTES_A_CYCLE + tail) / CYCLES / 2
    return operations, ratings.shape[0] * n * 12 / BANDWIDTH


def measure(size: tuple[int, int, int], n: int, rounds: int, threads: int) -> dict[str, float]:
    users, items, count = size
    ratings = gf.synthetic(users=users, items=items, ratings=count, rng=7)
    counts = np.bincount(ratings.csr.indices, minlength=items).astype(np.float64)
    best = np.inf
    for _ in range(rounds):
        start = time.perf_counter()
        gf.candidate_lists(ratings, n=n, threads=threads)
        best = min(best, time.perf_counter() - start)
    operations, moved = unavoidable(ratings, n)
    return {"work": float((counts**2).sum()), "seconds": best, "operations": operations, "bytes": moved}


def chart(rows: list[dict[str, float]], exponent: float) -> None:
    import altair as alt
    import pyarrow as pa

    table = pa.Table.from_pylist([{"pairs": row["work"], "seconds": row["seconds"]} for row in rows])
    x = alt.X("pairs:Q", title="pair work: sum of squared item counts").scale(type="log")
    y = alt.Y("seconds:Q", title="seconds, two threads").scale(type="log")
    title = f"Candidate lists, n = 350: time grows as (pair work)^{exponent:.2f}"
    picture = alt.Chart(table, title=title, width=520, height=320).mark_line(point=True).encode(x=x, y=y)
    picture.save(ROOT / "docs" / "growth.png", scale_factor=2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=350)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    gf.candidate_lists(gf.synthetic(users=20_000, items=500, ratings=60_000, rng=1), n=options.n)
    rows = [measure(size, options.n, options.rounds, options.threads) for size in SIZES]
    logs = np.log([[row["work"], row["seconds"]] for row in rows])
    exponent = float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
    head = ["users", "items", "ratings", "pair work", "seconds", "ns a pair", "limit: operations s", "limit: bytes s"]
    table = [
        [
            f"{users:,}",
            f"{items:,}",
            f"{count:,}",
            f"{row['work']:.2e}",
            f"{row['seconds']:.2f}",
            f"{row['seconds'] / row['work'] * 1e9:.3f}",
            f"{row['operations']:.2f}",
            f"{row['bytes']:.2f}",
        ]
        for (users, items, count), row in zip(SIZES, rows, strict=True)
    ]
    settings = {"n": options.n, "rounds": options.rounds, "threads": options.threads}
    write_table("growth", __doc__, head, table, **settings, exponent=f"{exponent:.2f}")
    chart(rows, exponent)


if __name__ == "__main__":
    main()
