"""The chosen neighbours of every row on Spark: those of `goodfence.engines.local.draws` for the same seed."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, overload

import numpy as np

from goodfence.data.ratings import Ratings
from goodfence.engines.local.candidates import Axis
from goodfence.engines.local.draws import Chosen, check_similarity
from goodfence.engines.spark import parcels
from goodfence.engines.spark.candidates import comparison_of, terms_of
from goodfence.engines.spark.drawing import Drawing, PairBounds
from goodfence.engines.spark.kept import kept_by
from goodfence.engines.spark.plan import lists_of, sent_to_tiles
from goodfence.engines.spark.running import Running
from goodfence.engines.spark.session import session_of
from goodfence.engines.spark.source import Rated, Source, opened
from goodfence.engines.spark.tables import spread
from goodfence.engines.spark.watching import watched
from goodfence.errors import DataError
from goodfence.rng import RNG, Streams
from goodfence.selection.mechanism import Mechanism
from goodfence.selection.sensitivity import Sensitivity
from goodfence.similarity.measure import Similarity

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = {"neighbours": "int", "similarities": "double", "weights": "double"}


@overload
def choose_neighbours(
    ratings: Ratings,
    mechanism: Mechanism,
    *,
    axis: Axis = ...,
    similarity: Similarity | str = ...,
    rng: RNG = ...,
    spark: SparkSession | None = ...,
    running: Running | None = ...,
) -> Chosen: ...
@overload
def choose_neighbours(
    ratings: DataFrame | str | os.PathLike[str],
    mechanism: Mechanism,
    *,
    axis: Axis = ...,
    similarity: Similarity | str = ...,
    rng: RNG = ...,
    spark: SparkSession | None = ...,
    running: Running | None = ...,
) -> DataFrame: ...
def choose_neighbours(
    ratings: Rated,
    mechanism: Mechanism,
    *,
    axis: Axis = "user",
    similarity: Similarity | str = "cosine",
    rng: RNG = None,
    spark: SparkSession | None = None,
    running: Running | None = None,
) -> Chosen | DataFrame:
    """Return the chosen neighbours of every row: the same for the same seed as on one machine.

    Parameters
    ----------
    ratings
        `Ratings`, a data frame of Spark, or the path of a parquet file or folder.
    mechanism
        Who becomes a neighbour: `KNN`, `NPNS`, `PNCF`, `PPNS`, or your own, if the workers can import it.
    axis, similarity, rng
        As in `NeighbourCF`.
    spark, running
        As in `candidate_lists`.

    Returns
    -------
    Chosen or DataFrame
        For `Ratings` the arrays of the local engine. Otherwise a data frame with `id`, `row`, `neighbours`,
        `similarities` and `weights`, complete; after its `unpersist` ask again.
    """
    how = running or Running(spark=session_of(spark))
    return choose_by_key(
        ratings, mechanism, Similarity.of(similarity), Streams(rng).key(), axis=axis, running=how
    )


def choose_by_key(
    ratings: Rated,
    mechanism: Mechanism,
    measure: Similarity,
    key: int,
    *,
    axis: Axis,
    running: Running,
) -> Chosen | DataFrame:
    """Return the chosen neighbours of every row, drawn with the key of a random stream."""
    check_similarity(mechanism, measure)
    with opened(ratings, axis, lambda rows: mechanism.reach(rows - 1), running) as source:
        options = mechanism.sensitivity
        if options is not None and source.lowest < 0:
            raise DataError(
                "ratings must not be negative: RS bounds a cosine of non-negative vectors"
            )
        comparison = comparison_of(source, mechanism.reach(source.n_rows - 1), measure)
        if options is not None and options.scope == "target":
            comparison = replace(comparison, bounds=options)
        n_tasks = source.n_tiles + 3 * source.n_blocks
        terms = terms_of(source, comparison)
        with kept_by(running, terms) as kept, watched(running, "choosing neighbours", n_tasks):
            lists = lists_of(source, comparison, kept)
            if options is not None and options.scope == "pair":
                lists = _with_pair_bounds(lists, source, options)
            chosen = parcels.each(lists, Drawing(mechanism=mechanism, key=key).draw)
            if source.ids is not None:
                return spread(chosen, source.ids, source.block_rows, _COLUMNS)
            found = [one.arrays for one in parcels.collected(chosen)]
    return Chosen(*(np.concatenate([one[name] for one in found]) for name in _COLUMNS))


def _with_pair_bounds(lists: DataFrame, source: Source, options: Sensitivity) -> DataFrame:
    """Return the lists with RS of every entry, computed where both rows are."""
    bounds = PairBounds(
        options=options,
        factor=source.factor,
        block_rows=source.block_rows,
        n_blocks=source.n_blocks,
    )
    asked = parcels.each(lists, bounds.ask)
    blocks = sent_to_tiles(source.blocks, source.n_blocks, 0, source.n_tiles)
    answers = parcels.exchange(blocks.union(asked), source.n_tiles, bounds.answer)
    return parcels.exchange(lists.union(answers), source.n_blocks, bounds.settle)
