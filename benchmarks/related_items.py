"""What related-items lists give away over time, by refresh interval, on ml-100k."""

from __future__ import annotations

import argparse
import time

import numpy as np

import goodfence as gf
from benchmarks.results import write_table
from goodfence.attack.related_items import RelatedItemsReport
from goodfence.attack.scoring import Estimate

DATA, KNOWN, SEED, LEVEL = "ml-100k", 16, 7, 0.1
EVERY = (1, 20, 100, 500, 2_000, 10_000)
LENGTHS = (10, 50, 100)
HEAD = ["order", "list", "every", "yield", "precision", "without", "gain", "false alarms"]


def shown(one: Estimate) -> str:
    return "" if np.isnan(one.value) else f"{one.value:.3f} ({one.low:.3f} to {one.high:.3f})"


def lines(order: str, n: int, found: RelatedItemsReport) -> list[list[str]]:
    return [
        [
            order,
            f"{n}",
            f"{one.every:,}",
            shown(one.found),
            shown(one.precision),
            shown(one.precision_without),
            shown(one.gain),
            shown(one.false_alarms),
        ]
        for one in found.refreshes
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=60)
    options = parser.parse_args()
    ratings = gf.load(DATA)
    shuffled = np.random.default_rng(SEED).permutation(ratings.n_ratings)
    orders = {"as it was": ratings, "shuffled": ratings.replaced(ratings.csr, times=shuffled)}
    rows, seconds = [], {}
    for order, played in orders.items():
        for n in LENGTHS:
            began = time.monotonic()
            attack = gf.RelatedItemsAttack(known=KNOWN, n=n, every=EVERY)
            found = attack.run(played, targets=options.targets, rng=SEED)
            seconds[order, n] = time.monotonic() - began
            rows += lines(order, n, found)
            print(order, n, f"{seconds[order, n]:.1f} s", found.refresh_after(LEVEL), flush=True)
    write_table(
        "related_items",
        "What related-items lists give away over time",
        HEAD,
        rows,
        data=DATA,
        known=KNOWN,
        targets=options.targets,
        lists="by the cosine of the sets of raters",
        seed=SEED,
        new_ratings=f"{int(found.refreshes[0].new.sum()):,}",
        seconds=f"{max(seconds.values()):.0f} for the slowest six intervals",
    )


if __name__ == "__main__":
    main()
