"""Fits at the size of the paper's Douban data: the peak memory of the whole process, input included."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys

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


def fit_once(mechanism: str, data: str, threads: int) -> float:
    """Fit, and return the peak in MiB."""
    matrix = read_matrix(matrix_file(data))
    n_users, n_items = matrix.shape
    ratings = gf.Ratings(matrix, np.arange(n_users), np.arange(n_items))
    gf.NeighbourCF(MECHANISMS[mechanism], threads=threads).fit(ratings)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="douban-size")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", choices=list(MECHANISMS), help="fit one, print its figures")
    options = parser.parse_args()
    if options.only:
        print(fit_once(options.only, options.data, options.threads))
        return
    matrix_file(options.data)
    table = []
    for mechanism in MECHANISMS:
        words = ["--only", mechanism, "--data", options.data, "--threads", str(options.threads)]
        command = [sys.executable, "-m", "benchmarks.fit_memory", *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        table.append([options.data, mechanism, f"{float(done.stdout):,.0f}"])
        head = ["data", "mechanism", "peak MiB"]
        write_table("fit_memory", __doc__, head, table, threads=options.threads)


if __name__ == "__main__":
    main()
