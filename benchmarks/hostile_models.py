"""Saved models in hostile hands: what becomes of mutated ones, of interrupted saves, and of the memory limit."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.results import write_table
from documents.tables import measured as table
from tests.support.hostile_models import GOOD, in_process
from tests.support.model_memory import KINDS, largest, peak_share

MUTATIONS, BATCH, PROCESSES = 31_500, 1_500, 2
"""Some mutations cannot be written at all; 30,000 must be."""
SAVES, SEED = 500, 11
LIMIT = 2**26


def mutated(n: int, only: tuple[str, ...]) -> None:
    """Mutate models of every class, or of some, in processes of their own, and write what came of it."""
    found: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    with ThreadPoolExecutor(PROCESSES) as pool:
        firsts = range(0, n, BATCH)
        for outcomes, said in pool.map(lambda first: in_process(first, BATCH, only=only), firsts):
            wrong += said
            for model, counts in outcomes.items():
                found.setdefault(model, Counter()).update(counts)
            print(sum(counter.total() for counter in found.values()), *said, sep="\n", flush=True)
    rows = [_row(model, counts) for model, counts in found.items() if model]
    if only:  # the others are as they were
        rows = [[*row.values()] for row in table("hostile_models") if row["model"] != "all"] + rows
    numbers = [[int(cell.replace(",", "")) for cell in row[1:]] for row in rows]
    rows.append(["all", *(f"{sum(column):,}" for column in zip(*numbers, strict=True))])
    head = ["model", "mutations", "refused", "answers as before, or as less", "signals"]
    head += ["raw errors", "wrong guarantees"]
    title = "Mutated models, checksums recomputed"
    write_table("hostile_models", title, head, rows, batches=f"of {BATCH:,}, one process each")


def _row(model: str, counts: Counter[str]) -> list[str]:
    raw = sum(n for outcome, n in counts.items() if outcome not in (*GOOD, "signal", "wrong guarantee"))
    total = counts.total() - counts["not written"]
    told = (counts["refused"], counts["answers"], counts["signal"], raw, counts["wrong guarantee"])
    return [model, f"{total:,}", *(f"{n:,}" for n in told)]


def interrupted() -> None:
    """Interrupt saves, and write how often there was a whole model afterwards."""
    program = [sys.executable, "-m", "tests.support.interrupted_saves"]
    done = subprocess.run([*program, str(SAVES), str(SEED), "mount"], capture_output=True, text=True, check=True)
    rows = [[kind, f"{n:,}", f"{whole:,}"] for kind, (n, whole) in json.loads(done.stdout).items()]
    head = ["saving", "times", "a whole model at the path afterwards"]
    write_table("interrupted_saves", "Interrupted saves", head, rows, command="hostile_models", seed=SEED)


def memory() -> None:
    """Measure what the largest models take that pass a limit, and write it over the limit."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for kind in KINDS:
            place = Path(name) / "model.gf"
            largest(kind, place, LIMIT)
            size = place.stat().st_size
            rows.append([kind, f"{size / 2**20:.1f}", f"{peak_share(place, LIMIT):.2f}"])
    head = ["the largest model that passes, of", "MiB of files", "memory over the limit"]
    title = "The memory limit of a model"
    limit = f"{LIMIT // 2**20} MiB"
    write_table("model_memory", title, head, rows, command="hostile_models", limit=limit)


PARTS = ("memory", "interrupted", "mutated")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--models", nargs="+", default=[], help="mutate these, beside the table")
    parser.add_argument("--mutations", type=int, default=MUTATIONS)
    asked = parser.parse_args()
    if "memory" in asked.only:
        memory()
    if "interrupted" in asked.only:
        interrupted()
    if "mutated" in asked.only:
        mutated(asked.mutations, tuple(asked.models))


if __name__ == "__main__":
    main()
