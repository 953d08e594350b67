"""Recommendations in bulk on Spark: for everybody the best items they have not rated."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, overload

import numpy as np

from goodfence.data.ratings import Ratings
from goodfence.engines.local.candidates import Axis
from goodfence.engines.local.draws import Chosen
from goodfence.engines.local.predictions import Over
from goodfence.engines.local.recommendations import Recommended
from goodfence.engines.spark import parcels
from goodfence.engines.spark.answering import Answering, ItemAnswering
from goodfence.engines.spark.asking import chosen_here, chosen_there
from goodfence.engines.spark.parcels import frame_of
from goodfence.engines.spark.predictions import first_of, given_to, group_size, n_tasks
from goodfence.engines.spark.running import Running
from goodfence.engines.spark.session import session_of
from goodfence.engines.spark.source import Rated, Source, opened
from goodfence.engines.spark.tables import held, ranked_of
from goodfence.engines.spark.watching import watched
from goodfence.errors import DataError, require

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@overload
def recommend(
    ratings: Ratings,
    chosen: Chosen,
    *,
    n: int = ...,
    axis: Axis = ...,
    over: Over = ...,
    spark: SparkSession | None = ...,
    running: Running | None = ...,
) -> Recommended: ...
@overload
def recommend(
    ratings: DataFrame | str | os.PathLike[str],
    chosen: DataFrame,
    *,
    n: int = ...,
    axis: Axis = ...,
    over: Over = ...,
    spark: SparkSession | None = ...,
    running: Running | None = ...,
) -> DataFrame: ...
def recommend(
    ratings: Rated,
    chosen: Chosen | DataFrame,
    *,
    n: int = 10,
    axis: Axis = "user",
    over: Over = "raters",
    spark: SparkSession | None = None,
    running: Running | None = None,
) -> Recommended | DataFrame:
    """Return for every user at most n items she has not rated, best first.

    Parameters
    ----------
    ratings, chosen, over, spark, running
        As in `predict`.
    n
        How many items for each user.
    axis
        Whose neighbours were chosen: users', or items'.

    Returns
    -------
    Recommended or DataFrame
        For `Ratings` the arrays of the local engine. Otherwise `user`, `rank` (from 1), `item` and `score`, which
        Spark holds.
    """
    require(n >= 1, "n", "at least 1", n)
    require(over in ("raters", "neighbours"), "over", "'raters' or 'neighbours'", over)
    require(axis in ("user", "item"), "axis", "'user' or 'item'", axis)
    how = running or Running(spark=session_of(spark))
    with opened(ratings, "user", lambda _: n, how) as source:
        if isinstance(chosen, Chosen) != (source.ids is None):
            raise DataError("ratings and chosen must both be of this machine, or both of Spark")
        k = chosen.neighbours.shape[1] if isinstance(chosen, Chosen) else _k(chosen)
        ranking = _from_people if axis == "user" else _from_items
        with watched(how, "recommending", n_tasks(source, source.block_rows)):
            answers = ranking(source, chosen, k, n, over, how)
            if source.ids is not None:
                return held(_with_ids(answers, source))
            found = [parcel.arrays for parcel in parcels.collected(answers)]
    columns = np.full((source.n_rows, n), -1, dtype=np.int32)
    scores = np.full((source.n_rows, n), np.nan)
    for one in found:
        owners, ranks = np.nonzero(np.arange(n) < one["lengths"][:, np.newaxis])
        columns[one["rows"][owners], ranks] = one["columns"]
        scores[one["rows"][owners], ranks] = one["scores"]
    return Recommended(columns, scores)


def _from_people(
    source: Source, chosen: Chosen | DataFrame, k: int, n: int, over: Over, how: Running
) -> DataFrame:
    """Rank from the ratings of the users' neighbours."""
    group_rows = group_size(source, k, how)
    askers = _in_groups(chosen, group_rows, how)
    raters = over == "raters"
    answering = Answering(over_raters=raters, block_rows=source.block_rows, n=n)
    given = given_to(askers, source, answering)
    n_groups = -(-source.n_rows // group_rows)
    return parcels.exchange(askers.union(given), n_groups, answering.recommend)


def _from_items(
    source: Source, chosen: Chosen | DataFrame, k: int, n: int, over: Over, how: Running
) -> DataFrame:
    """Rank from the neighbours of the items: each block of users against each block of items."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    group_rows = how.rows_of_a_group(source.n_columns, source.n_columns * k, k)
    items = _in_groups(chosen, group_rows, how)
    n_items, n_people = -(-source.n_columns // group_rows), source.n_blocks
    at = F.col("place")
    rows = F.transform(_numbers(n_items), lambda item: at * n_items + item)
    columns = F.transform(_numbers(n_people), lambda people: people * n_items + at)
    sent = source.blocks.select(F.explode(rows).alias("place"), "part", "payload")
    sent = sent.union(items.select(F.explode(columns).alias("place"), "part", "payload"))
    answering = ItemAnswering(over_raters=over == "raters", n=n)
    found = parcels.exchange(sent, n_people * n_items, answering.rank)
    return parcels.exchange(found, n_people, answering.merge)


def _numbers(n: int) -> Column:
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    return F.sequence(F.lit(0), F.lit(n - 1))


def _in_groups(chosen: Chosen | DataFrame, group_rows: int, how: Running) -> DataFrame:
    if isinstance(chosen, Chosen):
        return frame_of(how.spark, chosen_here(chosen, group_rows))
    return chosen_there(chosen, group_rows)


def _k(chosen: DataFrame) -> int:
    return len(first_of(chosen)["neighbours"])


def _with_ids(answers: DataFrame, source: Source) -> DataFrame:
    """Return recommendations by the caller's own ids."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    assert source.ids is not None  # noqa: S101 - of a data frame
    assert source.columns is not None  # noqa: S101 - of a data frame
    users = source.ids.frame.select(F.col("id").alias("user"), F.col("number").alias("row"))
    items = source.columns.frame.select(F.col("id").alias("item"), F.col("number").alias("column"))
    found = ranked_of(answers).join(users, "row").join(items, "column")
    return found.select("user", "rank", "item", "score")
