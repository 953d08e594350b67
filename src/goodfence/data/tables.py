"""Tables that are written: csv or parquet by the ending of the name, atomically."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow import csv, parquet

from goodfence.data.files import atomic_write
from goodfence.data.ratings import Ratings


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table to a `.csv` or `.parquet` file, atomically."""
    with atomic_write(path) as file:
        if path.suffix.lower() == ".csv":
            csv.write_csv(table, file)
        else:
            parquet.write_table(table, file)


def ratings_table(ratings: Ratings) -> pa.Table:
    """Return ratings as a table of userId, movieId and rating, the names that most readers know.

    Examples
    --------
    >>> from goodfence.data.load import load
    >>> ratings_table(load("movietweetings")).num_rows
    45027
    """
    cells = ratings.csr.tocoo()
    values = cells.data.astype(int) if (cells.data % 1 == 0).all() else cells.data
    columns = {"userId": ratings.users[cells.row], "movieId": ratings.items[cells.col]}
    return pa.table({**columns, "rating": values})
