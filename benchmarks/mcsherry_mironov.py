"""McSherry and Mironov, with Gaussian noise and as published: the error, and what a fit costs."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import goodfence as gf
from benchmarks.results import write_table

SEED = 7
MUST = 60
"""Seconds of processor that a fit may take, over all threads: what others run beside it does not count."""
MODELS: dict[str, Callable[[float], Any]] = {
    "Gaussian noise, regression on factors": lambda epsilon: gf.papers.McSherryMironov(
        epsilon=epsilon, items="from ratings"
    ),
    "Laplace noise, nearest items": lambda epsilon: gf.papers.McSherryMironovKNN(epsilon=epsilon),
}
EPSILONS = {"ml-100k": (1.0, 4.0, 1000.0), "ml-1m": (1.0,), "douban-movie": (1.0,)}
HEAD = ["data", "form", "epsilon", "MAE", "fit, s of processor", "s", "peak GiB", f"within {MUST} s"]


def measured(name: str, form: str, epsilon: float) -> dict[str, float]:
    """Fit once on four fifths, with noise from the operating system, and ask about the fifth."""
    small = gf.synthetic(users=200, items=100, ratings=4_000, rng=1)
    MODELS[form](epsilon).fit(small).predict(small.users[:2], small.items[:2])  # compiled before
    train, test = gf.holdout(gf.load(name), fraction=0.2, rng=SEED)
    start, spent = time.perf_counter(), time.process_time()
    model = MODELS[form](epsilon).fit(train)
    seconds, processor = time.perf_counter() - start, time.process_time() - spent
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    error = gf.evaluate(model, test).mae
    return {"seconds": seconds, "processor": processor, "gib": peak, "mae": error}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(EPSILONS), choices=list(EPSILONS))
    parser.add_argument("--only", nargs=3, metavar=("DATA", "FORM", "EPSILON"), help="as JSON")
    options = parser.parse_args()
    if options.only:
        name, form, epsilon = options.only
        print(json.dumps(measured(name, form, float(epsilon))))
        return
    table = []
    for name in options.data:
        for form in MODELS:
            for epsilon in EPSILONS[name]:
                command = [sys.executable, "-m", "benchmarks.mcsherry_mironov"]
                done = subprocess.run(
                    [*command, "--only", name, form, str(epsilon)], stdout=subprocess.PIPE, text=True, check=True
                )
                found = json.loads(done.stdout)
                cells = [f"{found[key]:.1f}" for key in ("processor", "seconds")]
                met = "yes" if found["processor"] <= MUST else "NO"
                row = [name, form, f"{epsilon:g}", f"{found['mae']:.3f}", *cells]
                table.append([*row, f"{found['gib']:.2f}", met])
                print(*table[-1], file=sys.stderr, flush=True)
    noise = "from the operating system"
    write_table("mcsherry_mironov", __doc__, HEAD, table, noise=noise, seed=SEED)
    sys.exit(any(row[-1] == "NO" for row in table))


if __name__ == "__main__":
    main()
