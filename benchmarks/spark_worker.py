"""Candidate lists of a parquet file in one way, in its own process: prints its times and a checksum as JSON."""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import goodfence as gf


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
        if b"pyspark.daemon" in words:
            found.append(int(lines.get("VmHWM", "0 kB").split()[0]))
    return max(found) / 1024


def local(path, n, _threads, found):
    start = time.perf_counter()
    ratings = gf.load(path)
    found["read"] = time.perf_counter() - start
    start = time.perf_counter()
    lists = gf.candidate_lists(ratings, n=n, threads=_threads)
    found["lists"] = time.perf_counter() - start
    return lists.indices, lists.similarities


def session(threads, found):
    """Start Spark, and let its workers load what they need: that is paid once for a session."""
    from goodfence.engines import spark

    start = time.perf_counter()
    conf = {
        "spark.driver.memory": "4g",
        "spark.driver.host": "localhost",
        "spark.sql.shuffle.partitions": str(2 * threads),
    }
    log = Path(tempfile.gettempdir()) / "goodfence-spark-bench.log"
    started = spark.start(f"local[{threads}]", log=log, conf=conf)
    found["start"] = time.perf_counter() - start
    start = time.perf_counter()
    small = gf.synthetic(users=9_000, items=100, ratings=90_000, rng=1)
    spark.candidate_lists(small, n=10, spark=started)
    found["warm"] = time.perf_counter() - start
    return spark, started


def of_ratings(path, n, threads, found):
    spark, started = session(threads, found)
    ratings = gf.load(path)
    start = time.perf_counter()
    lists = spark.candidate_lists(ratings, n=n, spark=started)
    found["lists"] = time.perf_counter() - start
    return lists.indices, lists.similarities


def of_parquet(path, n, threads, found):
    spark, started = session(threads, found)
    start = time.perf_counter()
    frame = spark.candidate_lists(path, n=n, spark=started)
    found["lists"] = time.perf_counter() - start
    table = frame.orderBy("row").toArrow()
    rows = table.num_rows
    return tuple(
        np.concatenate([part.flatten().to_numpy() for part in table[name].chunks]).reshape(rows, n)
        for name in ("indices", "similarities")
    )


def main() -> None:
    way, path, n, threads = sys.argv[2:6]
    ways = {"local": local, "ratings": of_ratings, "parquet": of_parquet}
    if way == "local":  # what is loaded and compiled once is not the job's
        gf.load("movietweetings")
        gf.candidate_lists(gf.synthetic(users=9_000, items=100, ratings=90_000, rng=1), n=10)
    found = {"read": 0.0, "start": 0.0, "warm": 0.0}
    lists = ways[way](path, int(n), int(threads), found)
    print(json.dumps({**found, "checksum": checksum(*lists), "peak": peak_of_workers()}))


if __name__ == "__main__":
    main()
