"""Candidate lists on Spark: the same lists as `goodfence.engines.local.candidates`, to the last bit."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, overload

import numpy as np

from goodfence.data.ratings import Ratings
from goodfence.engines.local.candidates import Axis, CandidateLists, ShortLists, list_length
from goodfence.engines.spark import parcels
from goodfence.engines.spark.comparing import Comparison
from goodfence.engines.spark.kept import kept_by
from goodfence.engines.spark.plan import lists_of
from goodfence.engines.spark.running import Running
from goodfence.engines.spark.session import session_of
from goodfence.engines.spark.source import Rated, Source, opened
from goodfence.engines.spark.tables import spread
from goodfence.engines.spark.watching import watched
from goodfence.similarity.measure import Similarity

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = {"indices": "int", "similarities": "double"}


@overload
def candidate_lists(
    ratings: Ratings,
    *,
    n: int,
    axis: Axis = ...,
    similarity: Similarity | str = ...,
    short_lists: ShortLists = ...,
    spark: SparkSession | None = ...,
    running: Running | None = ...,
) -> CandidateLists: ...
@overload
def candidate_lists(
    ratings: DataFrame | str | os.PathLike[str],
    *,
    n: int,
    axis: Axis = ...,
    similarity: Similarity | str = ...,
    short_lists: ShortLists = ...,
    spark: SparkSession | None = ...,
    running: Running | None = ...,
) -> DataFrame: ...
def candidate_lists(
    ratings: Rated,
    *,
    n: int,
    axis: Axis = "user",
    similarity: Similarity | str = "cosine",
    short_lists: ShortLists = "error",
    spark: SparkSession | None = None,
    running: Running | None = None,
) -> CandidateLists | DataFrame:
    """Return for every row the n most similar other rows, exactly.

    Parameters
    ----------
    ratings
        Who rated what how: `Ratings`, a data frame of Spark, or the path of a parquet file or folder. Of a data
        frame no rating comes to this machine.
    n
        The length of each list.
    axis, similarity, short_lists
        As in `goodfence.candidate_lists`.
    spark
        The session; None for the one that runs, or a new one on this machine.
    running
        How the job runs: memory, blocks, a work folder. It changes nothing in the lists.

    Returns
    -------
    CandidateLists or DataFrame
        For `Ratings` the arrays of the local engine. Otherwise a data frame with `id`, `row`, `indices` and
        `similarities`, complete; after its `unpersist` ask again.
    """
    how = running or Running(spark=session_of(spark))
    measure = Similarity.of(similarity)
    with opened(ratings, axis, lambda rows: list_length(n, rows - 1, short_lists), how) as source:
        length = list_length(n, source.n_rows - 1, short_lists)
        comparison = comparison_of(source, length, measure)
        n_tasks = source.n_tiles + 2 * source.n_blocks
        terms = terms_of(source, comparison)
        with kept_by(how, terms) as kept, watched(how, "candidate lists", n_tasks):
            lists = lists_of(source, comparison, kept)
            if source.ids is not None:
                return spread(lists, source.ids, source.block_rows, _COLUMNS)
            found = [one.arrays for one in parcels.collected(lists)]
    return CandidateLists(
        np.concatenate([one["indices"] for one in found]),
        np.concatenate([one["similarities"] for one in found]),
    )


def comparison_of(source: Source, n: int, similarity: Similarity) -> Comparison:
    """Return how the rows of `source` are compared."""
    return Comparison(
        n=n,
        n_rows=source.n_rows,
        similarity=similarity,
        factor=source.factor,
        by_kernel=source.by_kernel(similarity),
    )


def terms_of(source: Source, comparison: Comparison) -> dict[str, object]:
    """Return what the written parts of a job depend on."""
    return {
        "ratings": source.checksum,
        "rows": source.n_rows,
        "block_rows": source.block_rows,
        **asdict(comparison),
    }
