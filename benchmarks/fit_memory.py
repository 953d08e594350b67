"""Fits at the size of the paper's Douban data: seconds and the peak memory of the whole process, input included."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

import goodfence as gf
from benchmarks.data import matrix_file, read_matrix
from benchmarks.results import write_table

MECHANISMS = {
    "KNN(k=50)": gf.KNN(k=50),
    "PPNS(k=50, beta=7)": gf.PPNS(k=50, beta=7),
    "NPNS(k=50)": gf.NPNS(k=50),
    "PNCF(k=50)": gf.PNCF(k=50),
}


def fit_once(mechanism: str, data: str, threads: int) -> dict[str, float]:
    matrix = read_matrix(matrix_file(data))
    n_users, n_items = matrix.shape
    ratings = gf.Ratings(matrix, np.arange(n_users), np.arange(n_items))
    start = time.perf_counter()
    gf.NeighbourCF(MECHANISMS[mechanism], threads=threads).fit(ratings)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "peak_mib": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="douban-size")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", choices=list(MECHANISMS), help="fit one, print its figures")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(fit_once(options.only, options.data, options.threads)))
        return
    matrix_file(options.data)
    table = []
    for mechanism in MECHANISMS:
        words = ["--only", mechanism, "--data", options.data, "--threads", str(options.threads)]
        command = [sys.executable, "-m", "benchmarks.fit_memory", *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout)
        table.append(
            [options.data, mechanism, f"{found['seconds']:.0f}", f"{found['peak_mib']:,.0f}"]
        )
        head = ["data", "mechanism", "fit s", "peak MiB"]
        write_table("fit_memory", __doc__, head, table, threads=options.threads)


if __name__ == "__main__":
    main()
