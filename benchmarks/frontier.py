"""The frontier of ml-100k: leak against error of every mechanism and the private models, table and chart."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import goodfence as gf
from benchmarks.accuracy import LENSKIT
from benchmarks.private_attack import fingerprint
from benchmarks.results import write_table
from goodfence.attack import DEFAULT_KNOWN
from goodfence.auditing.frontier import frontier
from goodfence.data.files import atomic_write
from goodfence.report.pages import save_result

DOCS = Path(__file__).resolve().parent.parent / "docs" / "frontier"
REFERENCE = "best unprotected: LensKit's item-kNN"
"""The line in the chart: what people could take instead, as the benchmark `accuracy` measured it."""
HEAD = [
    *("recommender", "settings", "guarantee", "MAE", "coverage", "recovery"),
    *("without target", "advantage", "raw advantage", "fully recovered", "targets"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="ml-100k")
    parser.add_argument("--known", type=int, default=DEFAULT_KNOWN)
    parser.add_argument("--targets", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    options, code = parser.parse_args(), fingerprint()
    ratings = gf.load(options.data)
    found = frontier(ratings, known=options.known, targets=options.targets, rng=options.seed)
    known = LENSKIT.get(options.data)
    line = {} if known is None else {"reference": {"name": REFERENCE, "mae": known}}
    found = replace(found, settings={**found.settings, "data": options.data, **line})
    print(found)
    with TemporaryDirectory() as folder:
        save_result(found, Path(folder) / "frontier")
        for name in ("chart.png", "chart.svg", "frontier.parquet", "manifest.json"):
            with atomic_write(DOCS / name) as file:
                file.write((Path(folder) / "frontier" / name).read_bytes())
    rows = []
    for point in found.points:
        gained = point.advantage
        rows.append(
            [
                point.family,
                point.label,
                point.status,
                f"{point.mae:.3f}",
                f"{point.coverage:.3f}",
                f"{point.recovery.value:.3f}",
                f"{point.recovery_without.value:.3f}",
                f"{gained.value:+.3f} ({gained.low:+.3f} to {gained.high:+.3f})",
                f"{point.raw_advantage.value:+.3f}",
                f"{point.fully_recovered.value:.3f}",
                f"{point.n_targets}",
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
        targets=f"{options.targets} at most, half to choose the attacker",
        seed=options.seed,
        guessing=f"recovers {found.guess.value:.3f} ({found.guess.low:.3f} to {found.guess.high:.3f})",
        recommended=f"{best.family} {best.label}" if best else "nothing",
        code=code,
    )


if __name__ == "__main__":
    main()
