"""Candidate lists of a parquet file in one way, in its own process: prints its times and a checksum as JSON.

A small job comes first, then the job twice: a session pays for what is loaded and compiled once.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import goodfence as gf
from goodfence import spark


def checksum(indices, similarities):
    digest = hashlib.sha256(np.ascontiguousarray(indices).tobytes())
    digest.update(np.ascontiguousarray(similarities).tobytes())
    return digest.hexdigest()[:16]


def peak_of_workers():
    """Return the most MiB that a Python worker of Spark has taken, the modules and kernels included."""
    found = [0]
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
            words = status.with_name("cmdline").read_bytes()
        except OSError:  # a process that has ended meanwhile
            continue
        if b"goodfence.spark.shuffle" in words:
            found.append(int(lines.get("VmHWM", "0 kB").split()[0]))
    return max(found) / 1024


def local(path, n, threads):
    start = time.perf_counter()
    ratings = gf.load(path)
    read = time.perf_counter() - start
    start = time.perf_counter()
    lists = gf.candidate_lists(ratings, n=n, threads=threads)
    return read, time.perf_counter() - start, (lists.indices, lists.similarities)


def of_ratings(path, n, started):
    ratings = gf.load(path)
    start = time.perf_counter()
    lists = spark.candidate_lists(ratings, n=n, spark=started)
    return 0.0, time.perf_counter() - start, (lists.indices, lists.similarities)


def of_parquet(path, n, started):
    start = time.perf_counter()
    frame = spark.candidate_lists(path, n=n, spark=started)
    seconds = time.perf_counter() - start
    table = frame.orderBy("row").toArrow()
    frame.unpersist()
    rows = table.num_rows
    lists = (
        np.concatenate([part.flatten().to_numpy() for part in table[name].chunks]).reshape(rows, n)
        for name in ("indices", "similarities")
    )
    return 0.0, seconds, tuple(lists)


def session(threads, found):
    """Start Spark."""
    start = time.perf_counter()
    conf = {
        "spark.driver.memory": "4g",
        "spark.driver.host": "localhost",
        "spark.sql.shuffle.partitions": str(2 * threads),
    }
    log = Path(tempfile.gettempdir()) / "goodfence-spark-bench.log"
    started = spark.start(f"local[{threads}]", log=log, conf=conf)
    found["start"] = time.perf_counter() - start
    return started


def main() -> None:
    way, small, path, n, threads = *sys.argv[2:5], int(sys.argv[5]), int(sys.argv[6])
    ways = {"local": local, "ratings": of_ratings, "parquet": of_parquet}
    found = {"start": 0.0}
    with_what = threads if way == "local" else session(threads, found)
    start = time.perf_counter()
    ways[way](small, 10, with_what)
    found["warm"] = time.perf_counter() - start
    found["first read"], found["first"], _ = ways[way](path, n, with_what)
    found["read"], found["second"], lists = ways[way](path, n, with_what)
    print(json.dumps({**found, "checksum": checksum(*lists), "peak": peak_of_workers()}))


if __name__ == "__main__":
    main()
