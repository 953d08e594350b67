"""What a process pays for its first candidate lists: with nothing compiled yet, and with the compiled code cached."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile

from benchmarks.results import write_table

# Reading the ratings is not counted; importing the engine and the compiler is.
PROGRAM = """
import json, time
import goodfence as gf
ratings = gf.load("ml-100k")
times = []
for _ in range(3):
    start = time.perf_counter()
    gf.candidate_lists(ratings, n=350, threads=2)
    times.append(time.perf_counter() - start)
print(json.dumps(times))
"""


def first_and_later(cache: str) -> tuple[float, float]:
    """Return the seconds of the first call and of the best later one, in a process of its own."""
    command = [sys.executable, "-c", PROGRAM]
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    first, *later = json.loads(done.stdout)
    return first, min(later)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        compiling, _ = first_and_later(cache)
        runs = [first_and_later(cache) for _ in range(options.processes)]
    firsts = sorted(first for first, _ in runs)
    row = [compiling, firsts[0], firsts[len(firsts) // 2], firsts[-1], min(late for _, late in runs)]
    head = ["nothing compiled s", "first call, best s", "first call, median s", "first call, worst s", "later calls s"]
    cells = [f"{seconds:.2f}" for seconds in row]
    write_table("first_call", __doc__, head, [cells], processes=options.processes)


if __name__ == "__main__":
    main()
