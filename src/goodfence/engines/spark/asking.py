"""Those who ask, as parcels: the neighbours of groups of rows, and the cells to be predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from goodfence.engines.local.draws import Chosen
from goodfence.engines.local.threads import ranges
from goodfence.engines.spark.parcels import SCHEMA, Arrays, Parcel, closed, without_advice
from goodfence.errors import DataError, UnknownId

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Numbers = npt.NDArray[np.int64]
Gather: TypeAlias = Callable[[pa.Table], Arrays]


def chosen_here(chosen: Chosen, group_rows: int) -> list[Parcel]:
    """Return the neighbours of this machine's rows in groups."""
    return [
        Parcel(number, -1, _neighbours(np.arange(first, last), chosen, slice(first, last)))
        for number, (first, last) in enumerate(ranges(len(chosen.neighbours), group_rows))
    ]


def cells_here(chosen: Chosen, rows: Numbers, columns: Numbers, group_rows: int) -> list[Parcel]:
    """Return the cells of this machine, with the neighbours of the rows that have one, in groups."""
    order = np.argsort(rows, kind="stable")
    groups = rows[order] // group_rows
    parcels = []
    for group in np.unique(groups).tolist():
        cells = order[groups == group]
        own = np.unique(rows[cells])
        asked = {
            "cell_rows": rows[cells],
            "cell_columns": columns[cells],
            "cell_numbers": cells,
        }
        parcels.append(Parcel(group, -1, {**_neighbours(own, chosen, own), **asked}))
    return parcels


def chosen_there(chosen: DataFrame, group_rows: int) -> DataFrame:
    """Return the neighbours of a data frame (`row`, `neighbours`, `weights`) in groups."""
    columns = chosen.select(_group("row", group_rows), "row", "neighbours", "weights")
    return _gathered(columns, _gather_neighbours)


def cells_there(cells: DataFrame, group_rows: int) -> DataFrame:
    """Return the cells of a data frame (`row`, `column`) in groups."""
    return _gathered(cells.select(_group("row", group_rows), "row", "column"), _gather_cells)


def numbered_cells(cells: DataFrame, rows: DataFrame, columns: DataFrame, axis: str) -> DataFrame:
    """Return cells (`user`, `item`) with their row and column numbers; an id that nobody knows is an error."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    row_name, column_name = ("user", "item") if axis == "user" else ("item", "user")
    if not {"user", "item"} <= set(cells.columns):
        raise DataError("cells must be a data frame with the columns user and item")
    own = rows.select(F.col("id").alias(row_name), F.col("number").alias("row"))
    other = columns.select(F.col("id").alias(column_name), F.col("number").alias("column"))
    found = cells.select("user", "item").join(own, row_name, "left")
    found = found.join(other, column_name, "left")
    if found.where(F.col("row").isNull() | F.col("column").isNull()).limit(1).count():
        raise UnknownId("at least one of the users or items asked for is not in the ratings")
    return found


def _neighbours(rows: Numbers, chosen: Chosen, part: slice | Numbers) -> Arrays:
    return {
        "rows": rows,
        "neighbours": chosen.neighbours[part],
        "weights": chosen.weights[part],
    }


def _group(name: str, group_rows: int) -> Column:
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    return F.expr(f"cast({name} div {group_rows} as int)").alias("place")


def _gathered(frame: DataFrame, gather: Gather) -> DataFrame:
    """Return rows of a data frame as one parcel for each place, whatever partitions they come from."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrived = [batch for batch in batches if batch.num_rows]
        if arrived:
            table = pa.Table.from_batches(arrived)
            for place in sorted(set(table.column("place").to_pylist())):
                part = table.filter(pc.equal(table.column("place"), place))
                yield closed([Parcel(place, -1, gather(part))])

    with without_advice():
        return frame.repartition(F.col("place")).mapInArrow(task, SCHEMA)


def _gather_neighbours(table: pa.Table) -> Arrays:
    table = table.sort_by("row")
    matrices = {
        name: table.column(name).combine_chunks().flatten().to_numpy().reshape(len(table), -1)
        for name in ("neighbours", "weights")
    }
    return {"rows": table.column("row").to_numpy().astype(np.int64), **matrices}


def _gather_cells(table: pa.Table) -> Arrays:
    names = {"cell_rows": "row", "cell_columns": "column"}
    return {key: table.column(name).to_numpy().astype(np.int64) for key, name in names.items()}
