"""Ratings from files: time and peak memory of a process of its own, netflix-tenth (10 million) and ml-1m."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from benchmarks.results import write_table

WORKER = """
import json, pathlib, sys, time
start = time.perf_counter()
from goodfence.data.load import read_ratings
imported = time.perf_counter()
ratings = read_ratings(sys.argv[1])
done = time.perf_counter()
status = pathlib.Path("/proc/self/status").read_text().split()
peak = int(status[status.index("VmHWM:") + 1]) / 1024
print(json.dumps([imported - start, done - imported, peak, ratings.n_ratings]))
"""
TIMES = 3


def shuffled(source: Path, target: Path) -> Path:
    """Write the same ratings in a random order: the rows as no exporter would leave them."""
    table = parquet.read_table(source)
    order = np.random.default_rng(7).permutation(table.num_rows)
    parquet.write_table(table.take(pa.array(order)), target)
    return target


def as_text(source: Path, target: Path) -> Path:
    """Write the same ratings as text, gzip if the name says so, or with `::` and no header."""
    table = parquet.read_table(source)
    if target.suffix == ".dat":
        columns = (column.to_pylist() for column in table.columns)
        target.write_text("".join(f"{u}::{i}::{r}\n" for u, i, r in zip(*columns, strict=True)))
        return target
    with pa.output_stream(target) as stream:  # which packs what ends in .gz
        csv.write_csv(table, stream)
    return target


def cases(data: Path, folder: Path) -> dict[str, Path]:
    large, million = (data / name / "ratings.parquet" for name in ("netflix-tenth", "ml-1m"))
    return {
        "netflix-tenth, parquet": large,
        "netflix-tenth, parquet, rows shuffled": shuffled(large, folder / "shuffled.parquet"),
        "netflix-tenth, csv": as_text(large, folder / "large.csv"),
        "ml-1m, parquet": million,
        "ml-1m, csv": as_text(million, folder / "million.csv"),
        "ml-1m, csv.gz": as_text(million, folder / "million.csv.gz"),
        "ml-1m, dat": as_text(million, folder / "million.dat"),
    }


def measure(path: Path) -> tuple[float, float, float, int]:
    """Return the seconds to import and to read, the peak in MiB and the ratings, of the fastest run."""
    runs = []
    for _ in range(TIMES):
        done = subprocess.run([sys.executable, "-c", WORKER, str(path)], capture_output=True, text=True, check=True)
        runs.append(tuple(json.loads(done.stdout)))
    return min(runs, key=lambda run: run[1])


def main() -> None:
    data = os.environ.get("GOODFENCE_DATA")
    if data is None:
        sys.exit("set GOODFENCE_DATA to a folder with netflix-tenth and ml-1m")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, path in cases(Path(data), Path(folder)).items():
            imported, seconds, peak, n_ratings = measure(path)
            size = f"{path.stat().st_size / 2**20:.0f}"
            rows.append([name, f"{n_ratings:,}", size, f"{imported:.2f}", f"{seconds:.2f}", f"{peak:.0f}"])
    head = ["file", "ratings", "MiB on disk", "import, s", "read, s", "peak, MiB"]
    write_table("reading", "Ratings from files", head, rows, cores=os.cpu_count(), best_of=TIMES)


if __name__ == "__main__":
    main()
