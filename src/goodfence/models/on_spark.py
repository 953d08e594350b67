"""A `NeighbourCF` whose neighbours are chosen on Spark: the same model as on one machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goodfence.data.ratings import Ratings
from goodfence.engines.local.draws import Chosen
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.rng import Streams

if TYPE_CHECKING:
    from goodfence.engines.spark.running import Running


def fit_on_spark(model: NeighbourCF, ratings: Ratings, running: Running) -> NeighbourCF:
    """Choose the neighbours of every row on a cluster, once; then the model answers here."""
    from goodfence.engines.spark.draws import choose_by_key

    key = Streams(model.rng).key()
    chosen = choose_by_key(
        ratings, model.mechanism, model.similarity, key, axis=model.axis, running=running
    )
    assert isinstance(chosen, Chosen)  # noqa: S101 - of ratings of this machine
    return model.restore(ratings, key, chosen.neighbours, chosen.similarities, chosen.weights)
