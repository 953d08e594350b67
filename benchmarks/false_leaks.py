"""How often the audit calls a private model leaky: many seeds, each with other targets, knowledge and noise.

The advantage that a guarantee allows is not zero, so the table shows the largest advantage beside the verdicts.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import Any

import goodfence as gf
from benchmarks.results import write_table
from goodfence.attack.attack import Subject
from goodfence.attack.strongest import strongest

DATA, LIKES, SEEDS = "ml-100k", 4, 40
HEAD = ["model", "seeds", "users", "leaks", "none found", "cannot tell", "advantage", "largest", "seconds of one audit"]
PUBLIC: dict[str, Any] = {"items": "from ratings"}
MODELS: dict[str, Any] = {
    "PrivateMeans, rating, epsilon 1": gf.PrivateMeans(epsilon=1.0, **PUBLIC),
    "PrivateCF, rating, epsilon 1": gf.PrivateCF(epsilon=1.0, **PUBLIC),
    "PrivateCF, user, epsilon 4": gf.PrivateCF(epsilon=4.0, unit="user", **PUBLIC),
    "PrivateTopN, event, epsilon 1": gf.PrivateTopN(epsilon=1.0, **PUBLIC),
    "PrivateTopN, user, epsilon 4": gf.PrivateTopN(epsilon=4.0, unit="user", **PUBLIC),
}


def row(name: str, ratings: gf.Ratings, n_seeds: int, targets: int | None) -> list[Any]:
    """Audit one model under many seeds; return its line of the table."""
    verdicts: Counter[str] = Counter()
    advantages, users, began = [], set(), time.process_time()
    for seed in range(n_seeds):
        report = strongest(Subject(ratings, MODELS[name]), targets=targets, rng=seed, progress=False)
        verdicts[report.finding.verdict] += 1
        advantages.append(report.estimates["advantage"].value)
        users.add(report.n_targets)
    took = (time.process_time() - began) / n_seeds
    counts = [verdicts[one] for one in ("leaks", "none found", "cannot tell")]
    told = f"{min(users)}-{max(users)}" if len(users) > 1 else str(users.pop())
    mean = sum(advantages) / n_seeds
    return [name, n_seeds, told, *counts, f"{mean:+.4f}", f"{max(advantages):+.4f}", f"{took:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--targets", type=int, default=None, help="users attacked; everybody in the data by 10000")
    options = parser.parse_args()
    ratings = gf.load(DATA)
    rows = []
    for name in MODELS:
        data = ratings.likes(LIKES) if "TopN" in name else ratings
        rows.append(row(name, data, options.seeds, options.targets))
        print(*rows[-1], sep=" | ", flush=True)
    write_table("false_leaks", "Private models under audit, seed by seed", HEAD, rows, data=DATA, known=8)


if __name__ == "__main__":
    main()
