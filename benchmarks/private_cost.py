"""What a private fit costs: seconds, and the peak memory of the whole process, input included."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

import goodfence as gf
from benchmarks.results import write_table

MUST = {"ml-100k": (5, None), "netflix-tenth": (120, 4)}
"""Seconds and GiB that a fit may take on two cores."""
WIDE = "100,000 items"
UNITS: dict[str, Any] = {"rating": {"epsilon": 1.0, "unit": "rating"}, "user": {"epsilon": 4.0, "unit": "user"}}


def ratings_of(name: str) -> gf.Ratings:
    if name == WIDE:
        return gf.synthetic(users=20_000, items=100_000, ratings=2_000_000, rng=7)
    return gf.load(name)


def fit_once(name: str, unit: str) -> dict[str, float]:
    ratings = ratings_of(name)
    # What is compiled is compiled before: it is kept on disk.
    small = gf.synthetic(users=200, items=100, ratings=4_000, rng=1)
    gf.PrivateCF(**UNITS[unit], delta=1e-6, items="from ratings").fit(small)
    start = time.perf_counter()
    gf.PrivateCF(**UNITS[unit], delta=1e-6, items="from ratings").fit(ratings)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"seconds": seconds, "gib": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=["ml-100k", "netflix-tenth", WIDE])
    parser.add_argument("--only", nargs=2, metavar=("DATA", "UNIT"), help="one fit, as JSON")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(fit_once(*options.only)))
        return
    table = []
    for name in options.data:
        for unit, settings in UNITS.items():
            command = [sys.executable, "-m", "benchmarks.private_cost", "--only", name, unit]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            found = json.loads(done.stdout)
            seconds, gib = MUST.get(name, (None, None))
            most = ", ".join(f"{limit} {word}" for limit, word in ((seconds, "s"), (gib, "GiB")) if limit)
            cells = [f"{found['seconds']:.1f}", f"{found['gib']:.2f}", most]
            table.append([name, f"{unit} {settings['epsilon']:g}", *cells])
    head = ["data", "unit, epsilon", "PrivateCF fit s", "peak GiB", "at most"]
    write_table("private_cost", __doc__, head, table, noise="from the operating system")


if __name__ == "__main__":
    main()
