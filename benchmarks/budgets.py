"""More budget must never cost error: `PrivateCF` over epsilon from 0.1 to 64, both units, on every data set."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import goodfence as gf
from benchmarks.accuracy import delta_of, ratings_of
from benchmarks.data import CACHE
from benchmarks.private_attack import fingerprint
from benchmarks.results import write_table
from goodfence.data.files import atomic_write

EPSILONS = (0.1, 1.0, 4.0, 16.0, 64.0)
DATA = ("ml-100k", "ml-1m", "douban-movie", "netflix-tenth")
ELSEWHERE = ("goodbooks", "movietweetings", "half stars")
UNITS = ("rating", "user")
BY_NOISE = 0.001
"""A larger error than that of a smaller budget counts from here on, as a part of the scale 1 to 5's four stars: the
noise alone makes the errors of two fits differ by up to this."""


def measure(name: str, unit: str, epsilon: float, keep: Path) -> float:
    """Return the error of one fit on the first split: a kept one, or a new one, which is kept."""
    path = keep / f"{name.replace(' ', '-')}-{unit}-{epsilon:g}.json"
    if not path.is_file():
        train, test = gf.holdout(ratings_of(name), fraction=0.2, rng=0)
        settings: Any = {"epsilon": epsilon, "delta": delta_of(name), "unit": unit}
        found = gf.evaluate(gf.PrivateCF(**settings, items="from ratings").fit(train), test).mae
        print(name, unit, epsilon, f"{found:.4f}", flush=True)
        with atomic_write(path) as file:
            file.write(json.dumps(found).encode())
    return float(json.loads(path.read_text()))


def row(name: str, unit: str, keep: Path) -> list[str]:
    """Return the errors of one data set and unit, and by how much the largest rise above a smaller budget's is."""
    errors = [measure(name, unit, epsilon, keep) for epsilon in EPSILONS]
    least, worst = errors[0], 0.0
    for error in errors[1:]:
        worst, least = max(worst, error - least), min(least, error)
    scale = ratings_of(name).scale
    fine = worst <= BY_NOISE * (scale.highest - scale.lowest)
    return [name, unit, *(f"{error:.4f}" for error in errors), f"{worst:.4f}", "no" if fine else "YES"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=[*DATA, *ELSEWHERE])
    parser.add_argument("--keep", type=Path, default=None, help="folder of finished fits")
    asked = parser.parse_args()
    keep = asked.keep or CACHE / "budgets" / fingerprint("models", "privacy", "kernels")
    keep.mkdir(parents=True, exist_ok=True)
    rows = [row(name, unit, keep) for name in asked.data for unit in UNITS]
    head = ["data", "unit", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)]
    head += ["largest rise", "beyond noise"]
    title = "The error of PrivateCF over the budget"
    write_table("budgets", title, head, rows, split="80/20, the first", noise="from the operating system")


if __name__ == "__main__":
    main()
