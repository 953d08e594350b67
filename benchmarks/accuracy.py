"""The error of the private models beside the paper's unprotected kNN, on the same splits.

80/20 hold-out, three seeds (of the split: the noise is never seeded), predictions not rounded, clipped to the scale.
delta is 1e-5, 1e-6 for netflix-tenth. The constants of the private models were chosen on parts of the training parts.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import goodfence as gf
from benchmarks.data import known_only, write_csv
from benchmarks.peers import run_worker
from benchmarks.results import write_table
from goodfence.evaluation.holdout_scores import evaluate
from goodfence.models.mcsherry_mironov import McSherryMironov
from goodfence.models.private_cf import PrivateCF
from goodfence.models.private_means import PrivateMeans

DATA = ("ml-100k", "ml-1m", "douban-movie", "netflix-tenth")
MUST = {
    ("ml-100k", "rating"): (0.745, 0.735),
    ("ml-100k", "user"): (0.757, 0.745),
    ("ml-1m", "rating"): (0.697, 0.685),
    ("ml-1m", "user"): (0.706, 0.695),
    ("douban-movie", "rating"): (0.556, 0.550),
    ("douban-movie", "user"): (0.562, 0.557),
    ("netflix-tenth", "rating"): (0.664, 0.657),
    ("netflix-tenth", "user"): (0.677, 0.668),
}
"""What `PrivateCF` must reach, and the goal."""
EPSILON = {"rating": 1.0, "user": 4.0}
KNN_USERS = 4000
"""The unprotected kNN is asked about the held-out ratings of at most this many users."""


@dataclass
class Line:
    """What several splits gave for one model."""

    errors: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    spent: float = math.nan
    plan: str = ""


def delta_of(name: str) -> float:
    return 1e-6 if name == "netflix-tenth" else 1e-5


def models(name: str) -> dict[tuple[str, str], Callable[[], Any]]:
    """Return how each private model is made, by its name and unit."""
    delta = delta_of(name)
    made: dict[tuple[str, str], Callable[[], Any]] = {}
    for unit, epsilon in EPSILON.items():
        budget: Any = {"epsilon": epsilon, "delta": delta, "unit": unit}
        made["PrivateCF auto", unit] = lambda budget=budget: PrivateCF(**budget)
        made["PrivateCF means", unit] = lambda budget=budget: PrivateCF(**budget, plan="means")
        made["PrivateMeans", unit] = lambda budget=budget: PrivateMeans(**budget)
    made["McSherryMironov", "rating"] = lambda: McSherryMironov(epsilon=1.0, delta=delta)
    return made


def measure(line: Line, model: Any, train: gf.Ratings, test: gf.Ratings) -> None:
    start = time.perf_counter()
    model.fit(train)
    line.seconds.append(time.perf_counter() - start)
    line.errors.append(evaluate(model, test).mae)
    line.spent = model.guarantee().epsilon
    line.plan = _plan(getattr(model, "stages_", None))


def _plan(stages: Any) -> str:
    if stages is None:
        return ""
    parts = [f"covariance of {stages.n_chosen:,}"] if stages.covariance else []
    parts += [f"{len(stages.half_steps)} half steps"] if stages.half_steps else []
    return ", ".join(parts) or "means"


def unprotected(train: gf.Ratings, test: gf.Ratings) -> float:
    """Return the error of the paper's kNN, k = 100, over the cells that it predicts."""
    few = gf.sample_targets(test, KNN_USERS, rng=0)
    rows = np.sort(test.rows(few))
    kept = np.isin(np.repeat(np.arange(test.shape[0]), np.diff(test.csr.indptr)), rows)
    csr = test.csr.tocoo()
    users, items = test.users[csr.coords[0][kept]], test.items[csr.coords[1][kept]]
    predictions = gf.NeighbourCF(gf.KNN(k=100)).fit(train).predict(users, items)
    return float(np.nanmean(np.abs(predictions - csr.data[kept])))


def peers(train: gf.Ratings, test: gf.Ratings) -> dict[str, float]:
    """Return the errors of LensKit's item-kNN and matrix factorisation on the same split, unprotected."""
    asked = np.isin(test.users, gf.sample_targets(test, KNN_USERS, rng=0))
    rows = np.repeat(np.arange(test.shape[0]), np.diff(test.csr.indptr))
    kept = asked[rows]
    cells = (test.csr.data[kept], (rows[kept], test.csr.indices[kept]))
    part = sparse.csr_array(cells, shape=test.shape)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("train.csv", "test.csv")]
        write_csv(train, files[0])
        write_csv(known_only(train, test.replaced(part)), files[1])
        ends = (str(test.scale.lowest), str(test.scale.highest))
        words = (str(files[0]), str(files[1]), *ends)
        line = run_worker("lenskit", "accuracy_worker.py", *words, threads=2, timeout=1500)
    return json.loads(line) if line else {}


def compare(name: str, seeds: int, with_knn: bool) -> list[list[str]]:
    ratings = gf.load(name)
    lines = {key: Line() for key in models(name)}
    knn = Line()
    others: dict[str, Line] = {}
    for seed in range(seeds):
        train, test = gf.holdout(ratings, fraction=0.2, rng=seed)
        if with_knn:
            knn.errors.append(unprotected(train, test))
            for peer, error in peers(train, test).items():
                others.setdefault(peer, Line()).errors.append(error)
                print(name, peer, f"{error:.4f}", flush=True)
        for key, make in models(name).items():
            measure(lines[key], make(), train, test)
            print(
                name,
                *key,
                f"{lines[key].errors[-1]:.4f}",
                f"{lines[key].seconds[-1]:.1f} s",
                flush=True,
            )
    rows = [row(name, "paper's kNN, k=100, unprotected", "", knn)] if with_knn else []
    rows += [row(name, f"{peer}, unprotected", "", line) for peer, line in others.items()]
    return rows + [row(name, *key, line) for key, line in lines.items()]


def row(name: str, model: str, unit: str, line: Line) -> list[str]:
    error = float(np.mean(line.errors))
    deviation = float(np.std(line.errors, ddof=1)) if len(line.errors) > 1 else 0.0
    wanted = MUST.get((name, unit)) if model == "PrivateCF auto" else None
    verdict = ""
    if wanted:
        verdict = "goal" if error <= wanted[1] else "must" if error <= wanted[0] else "MISSED"
    return [
        name,
        model,
        f"{unit} {EPSILON[unit]:g}" if unit else "",
        f"{error:.4f}",
        f"{deviation / math.sqrt(len(line.errors)):.4f}",
        f"{wanted[0]:.3f} / {wanted[1]:.3f}" if wanted else "",
        verdict,
        line.plan,
        "" if math.isnan(line.spent) else f"{line.spent:.4f}",
        f"{max(line.seconds):.1f}" if line.seconds else "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=list(DATA))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--without-knn", action="store_true")
    asked = parser.parse_args()
    head = ["data", "model", "unit, epsilon", "MAE", "s.e.", "must / goal", "reached", "plan"]
    head += ["epsilon spent", "slowest fit, s"]
    rows = [r for name in asked.data for r in compare(name, asked.seeds, not asked.without_knn)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    write_table(
        "accuracy",
        "The error of private models",
        head,
        rows,
        splits=f"80/20, {asked.seeds} seeds",
        noise="from the operating system",
        peak_memory=f"{peak:.1f} GiB for everything",
    )


if __name__ == "__main__":
    main()
