"""Predictions in bulk on Spark: those of `goodfence.engines.local.predictions`, to the last bit."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from goodfence.data.ratings import Ratings
from goodfence.engines.local.candidates import Axis
from goodfence.engines.local.draws import Chosen
from goodfence.engines.local.predictions import Over
from goodfence.engines.spark import parcels
from goodfence.engines.spark.answering import Answering
from goodfence.engines.spark.asking import (
    cells_here,
    cells_there,
    chosen_there,
    numbered_cells,
)
from goodfence.engines.spark.parcels import frame_of
from goodfence.engines.spark.running import Running
from goodfence.engines.spark.session import session_of
from goodfence.engines.spark.source import Rated, Source, opened
from goodfence.engines.spark.tables import cells_of, held
from goodfence.engines.spark.watching import watched
from goodfence.errors import DataError, require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Cells: TypeAlias = tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]
Floats: TypeAlias = npt.NDArray[np.float64]


@overload
def predict(
    ratings: Ratings,
    chosen: Chosen,
    cells: Cells,
    *,
    axis: Axis = ...,
    over: Over = ...,
    spark: SparkSession | None = ...,
    running: Running | None = ...,
) -> Floats: ...
@overload
def predict(
    ratings: DataFrame | str | os.PathLike[str],
    chosen: DataFrame,
    cells: DataFrame,
    *,
    axis: Axis = ...,
    over: Over = ...,
    spark: SparkSession | None = ...,
    running: Running | None = ...,
) -> DataFrame: ...
def predict(
    ratings: Rated,
    chosen: Chosen | DataFrame,
    cells: Cells | DataFrame,
    *,
    axis: Axis = "user",
    over: Over = "raters",
    spark: SparkSession | None = None,
    running: Running | None = None,
) -> Floats | DataFrame:
    """Return predictions [PRED] for many cells, NaN where no neighbour rated the item.

    Parameters
    ----------
    ratings
        What `chosen` was chosen from.
    chosen
        What `choose_neighbours` returned for these ratings and this axis.
    cells
        For `Ratings` the user rows and the item columns; otherwise a data frame with `user` and `item`.
    axis, over
        As in `NeighbourCF`.
    spark, running
        As in `candidate_lists`.

    Returns
    -------
    array or DataFrame
        For `Ratings` one prediction for each cell. Otherwise `user`, `item` and `prediction`, held by Spark.
    """
    require(over in ("raters", "neighbours"), "over", "'raters' or 'neighbours'", over)
    how = running or Running(spark=session_of(spark))
    with opened(ratings, axis, lambda _: 1, how) as source:
        if isinstance(chosen, Chosen) and isinstance(cells, tuple):
            return _predict_here(source, chosen, cells, axis, over, how)
        if isinstance(chosen, Chosen) or isinstance(cells, tuple) or source.ids is None:
            raise DataError(
                "ratings, chosen and cells must all be of this machine, or all of Spark"
            )
        return _predict_there(source, chosen, cells, axis, over, how)


def _predict_here(
    source: Source, chosen: Chosen, cells: Cells, axis: Axis, over: Over, how: Running
) -> Floats:
    rows, columns = (np.asarray(one, dtype=np.int64) for one in cells)
    if axis == "item":
        rows, columns = columns, rows
    group_rows = group_size(source, chosen.neighbours.shape[1], how)
    asked = frame_of(how.spark, cells_here(chosen, rows, columns, group_rows))
    predictions = np.full(len(rows), np.nan)
    with watched(how, "predicting", n_tasks(source, group_rows)):
        answers = _answers(source, asked, asked, over, group_rows)
        for parcel in parcels.collected(answers):
            predictions[parcel.arrays["cell_numbers"]] = parcel.arrays["predictions"]
    return predictions


def _predict_there(
    source: Source, chosen: DataFrame, cells: DataFrame, axis: Axis, over: Over, how: Running
) -> DataFrame:
    assert source.ids is not None  # noqa: S101 - of a data frame
    assert source.columns is not None  # noqa: S101 - of a data frame
    with watched(how, "predicting", 2 * source.n_blocks):
        k = len(first_of(chosen)["neighbours"])
        group_rows = group_size(source, k, how)
        numbered = numbered_cells(cells, source.ids.frame, source.columns.frame, axis)
        asking = chosen.join(numbered.select("row").distinct(), "row", "left_semi")
        askers, asked = chosen_there(asking, group_rows), cells_there(numbered, group_rows)
        answers = cells_of(_answers(source, askers, asked.union(askers), over, group_rows))
        together = numbered.join(answers, ["row", "column"])
        return held(together.select("user", "item", "prediction"))


def _answers(
    source: Source, askers: DataFrame, asked: DataFrame, over: Over, group_rows: int
) -> DataFrame:
    """Return what is predicted, group by group."""
    answering = Answering(over_raters=over == "raters", block_rows=source.block_rows)
    n_groups = -(-source.n_rows // group_rows)
    given = given_to(askers, source, answering)
    return parcels.exchange(asked.union(given), n_groups, answering.predict)


def given_to(askers: DataFrame, source: Source, answering: Answering) -> DataFrame:
    """Return the ratings that the groups ask for, on their way to them."""
    wanted = parcels.each(askers, answering.ask)
    return parcels.exchange(source.blocks.union(wanted), source.n_blocks, answering.give)


def group_size(source: Source, k: int, running: Running) -> int:
    """Return how many rows ask together."""
    return running.rows_of_a_group(source.n_rows, source.n_ratings, k)


def n_tasks(source: Source, group_rows: int) -> int:
    """Return about how many tasks it takes to answer."""
    return source.n_blocks + 2 * -(-source.n_rows // group_rows)


def first_of(chosen: DataFrame) -> Any:
    """Return one row of what was chosen."""
    found = chosen.first()
    if found is None:
        raise DataError("chosen must have a row for each row of the ratings, and it has none")
    return found
