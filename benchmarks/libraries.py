"""What practice leaks: LensKit, Surprise and goodfence's own kNN with their default settings, under a plain audit.

The libraries are in an environment of their own, which this makes if need be (`./scripts/adapters-test --set-up`). The
audit knows neither the library nor its k. Every row is kept when it is done: run again, and the rest is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import goodfence as gf
from benchmarks.data import CACHE
from benchmarks.library_defaults import LIBRARIES
from benchmarks.results import write_table
from goodfence.attack.attack import Subject
from goodfence.attack.strongest import strongest
from goodfence.data.files import atomic_write

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv-adapters" / "bin" / "python"
SEED, KNOWN, SETS, TARGETS = 7, 16, ("ml-100k", "ml-1m"), 60
THREADED = ("OPENBLAS", "OMP", "MKL", "NUMBA", "RAYON", "LK")
HEAD = [
    *("data", "known", "recommender", "its defaults", "targets", "recovery", "without target", "advantage"),
    *("fully recovered", "verdict", "accounts found by probing", "strongest attacker", "seconds"),
]


def measured(data: str, name: str, targets: int) -> list[str]:
    """Audit one library on one data set; return its line of the table."""
    began = time.process_time()
    subject = Subject(gf.load(data), LIBRARIES[name].made(), threads=1)
    report = strongest(subject, known=KNOWN, targets=targets, rng=SEED, progress=False)
    gained, found = report.estimates["advantage"], report.probe
    return [
        *(data, f"{KNOWN}", name, LIBRARIES[name].settings, f"{report.n_targets}"),
        f"{report.found.value:.3f}",
        f"{report.found_without.value:.3f}",
        f"{gained.value:+.3f} ({gained.low:+.3f} to {gained.high:+.3f})",
        f"{int(report.fully.sum())}",
        report.finding.verdict,
        "not probed" if found is None else found.found,
        report.attacker.describe(report.n_fakes),
        f"{time.process_time() - began:.0f}",
    ]


def kept_rows(keep: Path, options: argparse.Namespace) -> list[list[str]]:
    """Measure what is missing until the time is over, and return all rows that were measured."""
    began, rows = time.monotonic(), []
    for data in SETS:
        for name in LIBRARIES:
            path = keep / f"{data} {name}.json".lower().replace(" ", "-").replace(",", "")
            wanted = options.only in f"{data} {name}"
            if not path.is_file() and wanted and time.monotonic() - began < 60 * options.minutes:
                row = measured(data, name, options.targets)
                with atomic_write(path) as file:
                    file.write(json.dumps(row).encode())
                print(*row, sep=" | ", flush=True)
            if path.is_file():
                rows.append(json.loads(path.read_text(encoding="utf-8")))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60, help="no further row is begun after so long")
    parser.add_argument("--only", default="", help="rows whose data and name contain this")
    parser.add_argument("--targets", type=int, default=TARGETS)
    parser.add_argument("--keep", type=Path, default=CACHE / "libraries-audited")
    options = parser.parse_args()
    if find_spec("surprise") is None:
        subprocess.run([ROOT / "scripts" / "adapters-test", "--set-up"], check=True)
        one: dict[str, str] = {f"{name}_NUM_THREADS": "1" for name in THREADED}
        command: list[Any] = [PYTHON, "-m", "benchmarks.libraries", *sys.argv[1:]]
        sys.exit(subprocess.run(command, cwd=ROOT, env={**os.environ, **one}, check=False).returncode)
    rows = kept_rows(options.keep, options)
    write_table("libraries", "What libraries leak by default", HEAD, rows, known=KNOWN, seed=SEED)


if __name__ == "__main__":
    main()
