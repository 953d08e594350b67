"""The frontier of ml-100k: leak against error of every mechanism and the private models, table and chart."""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import goodfence as gf
from benchmarks.private_attack import fingerprint
from benchmarks.results import write_table
from goodfence.auditing.frontier import frontier
from goodfence.auditing.frontier_saving import save_frontier
from goodfence.data.whole import written_whole

DOCS = Path(__file__).resolve().parent.parent / "docs" / "frontier"
HEAD = ["way", "settings", "promise", "MAE", "coverage", "recovery", "without her", "advantage"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="ml-100k")
    parser.add_argument("--known", type=int, default=16)
    parser.add_argument("--targets", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    options, code = parser.parse_args(), fingerprint()
    ratings = gf.load(options.data)
    found = frontier(ratings, known=options.known, targets=options.targets, rng=options.seed)
    print(found)
    with TemporaryDirectory() as folder:
        save_frontier(found, Path(folder) / "frontier")
        for name in ("chart.png", "chart.svg", "frontier.parquet", "manifest.json"):
            with written_whole(DOCS / name) as file:
                file.write((Path(folder) / "frontier" / name).read_bytes())
    rows = []
    for point in found.points:
        gained = point.advantage
        rows.append(
            [
                point.family,
                point.label,
                point.promise,
                f"{point.mae:.3f}",
                f"{point.coverage:.3f}",
                f"{point.recovery.value:.3f}",
                f"{point.recovery_without.value:.3f}",
                f"{gained.value:+.3f} ({gained.low:+.3f} to {gained.high:+.3f})",
            ]
        )
    best = found.recommended()
    write_table(
        "frontier",
        "The frontier: leak against error",
        HEAD,
        rows,
        data=options.data,
        known=options.known,
        targets=options.targets,
        seed=options.seed,
        guessing=f"recovers {found.guess.value:.3f} ({found.guess.low:.3f} to {found.guess.high:.3f})",
        recommended=f"{best.family} {best.label}" if best else "nothing",
        code=code,
    )


if __name__ == "__main__":
    main()
