"""How many random mutations of the source the tests notice, by cosmic-ray, in a copy of the repository."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.results import write_table

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("privacy", "selection", "kernels", "neighbours", "models", "attack", "auditing", "data")
"""Folders of `src/goodfence` and of `tests`: a mutation in a folder is given to the tests of that folder."""
IN_ANNOTATIONS = "ReplaceBinaryOperator_BitOr"
"""Nearly all of these mutate `X | None` in an annotation, which nothing executes."""
SECONDS = 300.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=12, help="mutations for each part")
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "goodfence"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv*", ".mypy_cache"))
        os.chdir(copy)
        os.environ["PYTHONPATH"] = str(copy / "src")
        found = {part: tried(part, wanted.n, wanted.seed) for part in wanted.parts}
    found["all"] = [one for noticed in found.values() for one in noticed]
    rows = [
        [part, str(len(noticed)), str(sum(noticed)), f"{sum(noticed) / len(noticed):.0%}"]
        for part, noticed in found.items()
    ]
    head = ["mutated", "mutations", "noticed", "by"]
    write_table("mutations", "Random mutations noticed", head, rows, seed=wanted.seed)


def tried(part: str, n: int, seed: int) -> list[bool]:
    """Return for each of n random mutations of a part whether its tests fail; print those that survive."""
    try:
        from cosmic_ray.commands.init import init
        from cosmic_ray.mutating import mutate_and_test
        from cosmic_ray.work_db import WorkDB, use_db
        from cosmic_ray.work_item import TestOutcome
    except ImportError:
        sys.exit("cosmic-ray is missing; run .venv/bin/pip install --group mutations")

    command = f"{sys.executable} -m pytest -x -q -p no:cacheprovider tests/{part}"
    # Compiled code would not notice a change in another file: kernels run as plain Python.
    os.environ["NUMBA_DISABLE_JIT"] = "1" if part == "kernels" else "0"
    if part == "kernels":
        command += " -m kernel"
    with use_db(f"{part}.sqlite", WorkDB.Mode.create) as work:
        init(sorted(Path("src/goodfence", part).rglob("*.py")), work, {})
        mutations = [item.mutations[0] for item in work.work_items]
    mutations = [one for one in mutations if IN_ANNOTATIONS not in one.operator_name]
    mutations.sort(key=lambda one: (str(one.module_path), one.operator_name, one.occurrence))
    noticed = []
    for mutation in random.Random(seed).sample(mutations, n):
        result = mutate_and_test([mutation], command, SECONDS)
        noticed.append(result.test_outcome is not TestOutcome.SURVIVED)
        if not noticed[-1]:
            print(result.diff, file=sys.stderr)
    return noticed


if __name__ == "__main__":
    main()
