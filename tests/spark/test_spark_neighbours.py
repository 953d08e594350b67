"""The same seed chooses the same neighbours on Spark as on one machine."""

from __future__ import annotations

from typing import Any

import pytest

import goodfence as gf
from goodfence import spark as engine
from goodfence.selection.mechanism import Mechanism

pytestmark = pytest.mark.spark

MECHANISMS: dict[str, Mechanism] = {
    "KNN": gf.KNN(k=10),
    "PPNS": gf.PPNS(k=10, beta=5),
    "NPNS": gf.NPNS(k=10),
    "PNCF": gf.PNCF(k=10, epsilon=2.0),
    "pair": gf.PPNS(k=10, beta=3, sensitivity=gf.Sensitivity(scope="pair")),
    "derived": gf.PPNS(k=10, beta=3, sensitivity=gf.Sensitivity(reading="derived")),
}
FILMS = gf.synthetic(users=300, items=120, ratings=5_000, rng=1)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_same_seed_chooses_the_same_neighbours(spark: Any, name: str) -> None:
    same_neighbours(spark, name)


def test_the_same_seed_while_tasks_fail(spark: Any, failing: None) -> None:
    same_neighbours(spark, "pair")


def same_neighbours(spark: Any, name: str) -> None:
    config = engine.SparkConfig(spark=spark, block_rows=120)
    found = engine.choose_neighbours(FILMS, MECHANISMS[name], rng=7, config=config)
    local = gf.NeighbourCF(MECHANISMS[name], rng=7).fit(FILMS)
    assert (found.neighbours == local.neighbours_).all()
    assert (found.similarities == local.similarities_).all()
    assert (found.weights == local.weights_).all()
