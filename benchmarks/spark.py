"""The Spark engine on one machine beside the local engine: what a cluster's machinery costs before it pays."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import goodfence as gf
from benchmarks.peers import ROOT, run_worker
from benchmarks.results import write_table
from goodfence.arrays import row_numbers

WAYS = {"local": "local engine", "ratings": "Spark, given `Ratings`", "parquet": "Spark, given the parquet path"}
LIMIT = 2.0
FAILING = "ml-1m"
"""The data with which private models are fitted on a cluster that fails."""


READ = {"first": "first read", "second": "read"}
Found = dict[str, Any]


def write_parquet(ratings: gf.Ratings, path: Path) -> None:
    rows = row_numbers(ratings.csr.indptr)
    columns = {"user": ratings.users[rows], "item": ratings.items[ratings.csr.indices], "rating": ratings.csr.data}
    pq.write_table(pa.table(columns), path, row_group_size=1 << 20)


def measure(options: argparse.Namespace) -> dict[str, Found]:
    """Run all ways in turn; return the best of each, number by number."""
    best: dict[str, Found] = {}
    with tempfile.TemporaryDirectory() as folder:
        small, path = (Path(folder) / f"{name}.parquet" for name in ("small", "ratings"))
        write_parquet(gf.synthetic(users=9_000, items=100, ratings=90_000, rng=1), small)
        write_parquet(gf.load(options.data), path)
        words = (str(small), str(path), str(options.n), str(options.threads))
        for turn in range(options.rounds):
            for way in WAYS:
                line = run_worker("goodfence", "spark_worker.py", way, *words, threads=options.threads, timeout=3000)
                if line is None:
                    continue
                found = json.loads(line)
                print(f"round {turn + 1}: {way} {found}", file=sys.stderr)
                known = best.setdefault(way, found)
                for job in ("first", "second"):
                    if seconds(found, job) < seconds(known, job):
                        known |= {name: found[name] for name in (job, READ[job])}
                known |= {name: min(known[name], found[name]) for name in ("start", "warm")}
    return best


def seconds(found: Found, job: str) -> float:
    return float(found[job]) + float(found[READ[job]])


def ratio(found: Found, local: Found, way: str, job: str) -> float:
    """Return how much longer it takes than on one machine, where that also reads the file if this does."""
    base = float(local[job]) if way == "ratings" else seconds(local, job)
    return seconds(found, job) / base


def row(way: str, found: Found, local: Found) -> list[str]:
    return [
        WAYS[way],
        f"{float(found['start']):.1f}" if found["start"] else "",
        f"{float(found['warm']):.1f}",
        f"{seconds(found, 'first'):.1f}",
        f"{ratio(found, local, way, 'first'):.2f}x",
        f"{seconds(found, 'second'):.1f}" + (f" ({found['read']:.1f} to read)" * (way == "local")),
        f"{ratio(found, local, way, 'second'):.2f}x",
        f"{float(found['peak']):,.0f}" if found["peak"] else "",
        "yes" if found["checksum"] == local["checksum"] else "NO",
    ]


def measure_private(data: str) -> dict[str, list[dict[str, Found]]]:
    """Fit private models in each way; return what each said of every round."""
    found = {}
    ways = ("local", "spark", "cluster") if data == FAILING else ("local", "spark")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.parquet"
        ratings = gf.load(data)
        write_parquet(ratings, path)
        scale = [f"{one:g}" for one in (ratings.scale.lowest, ratings.scale.highest, ratings.scale.step)]
        for way in ways:
            command = [sys.executable, "-m", "benchmarks.spark_private_worker", way, str(path), *scale]
            command += [] if data == FAILING else ["short"]
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=6000, check=True)
            found[way] = json.loads(done.stdout.strip().splitlines()[-1])
            print(f"{data}: {way} {found[way]}", file=sys.stderr)
    return found


def fastest(rounds: list[dict[str, Found]]) -> dict[str, Found]:
    """Return of each job the round that took least."""
    return {job: min((one[job] for one in rounds), key=lambda one: float(one["seconds"])) for job in rounds[0]}


def private_rows(data: str, found: dict[str, list[dict[str, Found]]]) -> tuple[list[list[str]], list[str]]:
    """Return the rows of the table, and what took too long or is not the same."""
    rows, wrong = [], []
    local, spark = (fastest(found[way]) for way in ("local", "spark"))
    cluster = {**fastest(found["cluster"][:-1]), **found["cluster"][-1]} if "cluster" in found else spark
    for job, there in cluster.items():
        plain = job.partition(";")[0]
        here = local[plain]
        seconds, on_spark = float(here["seconds"]), spark.get(job, {"checksum": here["checksum"]})
        ratio = float(on_spark.get("seconds", 0.0)) / seconds
        same = on_spark["checksum"] == there["checksum"] == here["checksum"]
        wrong += [f"{data}, {job}, {ratio:.2f}x"] * (ratio > LIMIT) + [f"{data}, {job}: another result"] * (not same)
        measured = [f"{seconds:.1f}", f"{on_spark['seconds']:.1f}", f"{ratio:.2f}x"] if job in spark else [""] * 3
        on_cluster = f"{float(there['seconds']):.1f}" if "cluster" in found else ""
        rows.append([data, job, *measured, on_cluster, "yes" if same else "NO"])
    return rows, wrong


def bench_private(options: argparse.Namespace) -> None:
    """Measure the private models, and write their table."""
    told = [private_rows(data, measure_private(data)) for data in options.private]
    rows, wrong = ([one for each in part for one in each] for part in zip(*told, strict=True))
    head = [
        "data",
        "job, ratings from a parquet file",
        "local s",
        "Spark s",
        "ratio",
        "cluster of two workers s",
        "same result",
    ]
    title = (
        "Private models on Spark beside the local engine, and on a cluster of two worker processes while these fail."
    )
    how = {"master": "local[2]", "rounds": "the fastest of 2, netflix-tenth of 4"}
    write_table("spark_private", title, head, rows, command="spark --only private", **how)
    if wrong:
        print(f"above {LIMIT:g}x or not the same: {'; '.join(wrong)}", file=sys.stderr)
        sys.exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="netflix-tenth")
    parser.add_argument(
        "--private", nargs="+", default=[FAILING, "netflix-tenth"], help="the data of the private models"
    )
    parser.add_argument("--only", choices=["lists", "private"])
    parser.add_argument("--n", type=int, default=350)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.only != "lists":
        bench_private(options)
    if options.only != "private":
        bench_lists(options)


def bench_lists(options: argparse.Namespace) -> None:
    """Measure candidate lists, and write their table."""
    best = measure(options)
    head = ["way", "session s", "small job s", "first job s", "ratio", "second job s", "ratio"]
    head += ["peak MiB of a worker", "same lists"]
    rows = [row(way, found, best["local"]) for way, found in best.items()]
    write_table(
        "spark",
        __doc__,
        head,
        rows,
        data=options.data,
        n=options.n,
        master=f"local[{options.threads}]",
        rounds=options.rounds,
    )
    above = [
        f"{WAYS[way]}, {job} job, {times:.2f}x"
        for way in ("ratings", "parquet")
        for job in READ
        if (times := ratio(best[way], best["local"], way, job)) > LIMIT
    ]
    if above:
        print(f"above {LIMIT:g}x: {'; '.join(above)}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
