"""Attacks per second: the fast path beside the obvious one (append the fakes, refit, predict)."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import goodfence as gf
from benchmarks.results import write_table
from goodfence.attack.knn_attack import KNNAttack
from goodfence.attack.report import AttackReport

K, BETA, KNOWN, SEED, THREADS = 50, 7, 8, 7, 2
TARGETS = {"ml-100k": (943, 10), "netflix-tenth": (2000, 1)}
"""How many targets each attacks: the fast path, and the obvious one."""
GOAL = {"ml-100k": 1000, "netflix-tenth": 100}


def timed(ratings: gf.Ratings, attacked: Any, targets: Any) -> tuple[AttackReport, float]:
    start = time.perf_counter()
    report = KNNAttack(known=KNOWN).run(ratings, attacked, targets=targets, rng=SEED, threads=THREADS)
    _ = report.estimates
    return report, time.perf_counter() - start


def same(one: AttackReport, other: AttackReport) -> bool:
    """Return whether two reports on the same targets are equal to the last bit."""
    return bool(one.table().equals(other.table())) and np.array_equal(one.rows, other.rows)


def measure(name: str, n_fast: int, n_slow: int) -> list[list[str]]:
    ratings = gf.load(name)
    rows = []
    for mechanism in (gf.KNN(k=K), gf.PPNS(k=K, beta=BETA)):
        timed(ratings, mechanism, 2)  # the compiled kernels are loaded once
        fast, seconds = timed(ratings, mechanism, n_fast)
        few = ratings.users[fast.rows[:n_slow]]
        slow, slow_seconds = timed(ratings, gf.NeighbourCF(mechanism, threads=THREADS), few)
        equal = same(timed(ratings, mechanism, few)[0], slow)
        rate, slow_rate = fast.n_targets / seconds, n_slow / slow_seconds
        kind = type(mechanism).__name__
        rows.append(
            [
                name,
                kind,
                f"{fast.n_targets:,}",
                f"{fast.n_hidden:,}",
                f"{rate:,.0f}",
                f"{GOAL.get(name, 0):,}",
                f"{n_slow} in {slow_seconds:.1f} s",
                f"{rate / slow_rate:,.0f}x",
                "yes" if equal else "NO",
            ]
        )
        print(*rows[-1], sep="  ", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=list(TARGETS))
    names = parser.parse_args().data
    head = ["data", "mechanism", "targets", "hidden ratings", "targets a second", "goal"]
    head += ["the obvious path", "speed-up", "equal"]
    rows = [row for name in names for row in measure(name, *TARGETS.get(name, (500, 2)))]
    write_table(
        "attack",
        "Attacks per second, both worlds and intervals included",
        head,
        rows,
        k=K,
        beta=BETA,
        known=KNOWN,
        threads=THREADS,
    )


if __name__ == "__main__":
    main()
