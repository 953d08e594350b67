"""Make the ratings that come with goodfence from the whole of MovieTweetings.

The core: users with at least 20 and films with at least 10 ratings, repeated until stable.
Needs `movietweetings` in the folder GOODFENCE_DATA, writes src/goodfence/data/bundled/.
The same input gives the same tables; only Parquet's own header names its writer.

    .venv/bin/python scripts/bundle.py
"""

from __future__ import annotations

import csv
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from goodfence.arrays import row_numbers
from goodfence.data.catalogue import BUNDLED, DATASETS
from goodfence.data.files import atomic_write
from goodfence.data.load import load
from goodfence.data.ratings import Ratings
from goodfence.data.splits import core

PER_USER, PER_ITEM = 20, 10
TITLES = "movietweetings-titles.csv"


def table_of(ratings: Ratings) -> pa.Table:
    """Return the ratings by user and film, in the order of their ids."""
    rows = row_numbers(ratings.csr.indptr)
    columns = {
        "user": ratings.users[rows].astype(np.int32),
        "item": ratings.items[ratings.csr.indices].astype(str),
        "rating": ratings.csr.data.astype(np.int8),
    }
    return pa.table(columns)


def titles_of(ratings: Ratings) -> str:
    """Return the titles as csv, in the order of the films' ids."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("item", "title"))
    writer.writerows((item, ratings.title(item)) for item in ratings.items.tolist())
    return text.getvalue()


def main() -> None:
    dataset = DATASETS["movietweetings"]
    ratings = core(load("movietweetings-full"), per_user=PER_USER, per_item=PER_ITEM)
    with atomic_write(BUNDLED / dataset.files[0]) as file:
        pq.write_table(table_of(ratings), file, compression="zstd", compression_level=19)
    with atomic_write(BUNDLED / TITLES) as file:
        file.write(titles_of(ratings).encode())
    print(ratings)


if __name__ == "__main__":
    main()
