"""A standalone master with two worker processes: a task that runs twice and a worker that is killed change nothing."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import goodfence as gf
from tests.support.frames import table_of

ROOT = Path(__file__).parents[2]
FITTED = "fit PrivateCF, rating"


def checksum(model: gf.PrivateCF) -> str:
    digest = hashlib.sha256()
    for name, array in sorted(model._arrays().items()):
        digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()[:16]


@pytest.mark.spark
@pytest.mark.slow
def test_every_contribution_counts_once(tmp_path: Path) -> None:
    films = gf.load("movietweetings")
    path = tmp_path / "films.parquet"
    pq.write_table(table_of(films), path)
    command = [sys.executable, "-m", "benchmarks.spark_private_worker", "faults", os.fspath(path), "0", "10", "1"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=600, check=True)
    (found,) = json.loads(done.stdout.strip().splitlines()[-1])
    model = gf.PrivateCF(epsilon=4.0, items="from ratings", rng=1).fit(films)
    n_sums = len(model.account_.releases)
    twice, killed = found[f"{FITTED}; a task runs twice"], found[f"{FITTED}; a worker is killed"]
    assert twice["checksum"] == killed["checksum"] == checksum(model)
    assert twice["attempts"] > n_sums  # the block of the slow task was summed once more than there are releases
    assert killed["attempts"] > n_sums
    assert killed["killed"] == 1
