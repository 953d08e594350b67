"""Ratings from files: csv, tsv, `::` dat, gzip of these, and parquet."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from goodfence.data.columns import Columns
from goodfence.data.limits import DEFAULT_MAX_BYTES, check_limit
from goodfence.data.ratings import Ratings
from goodfence.data.readers.files import RatingsFile, find_file
from goodfence.data.readers.parquet import read_parquet
from goodfence.data.readers.text import SEPARATORS, read_text
from goodfence.data.scale import Scale
from goodfence.data.triplets import Duplicates, order_triplets
from goodfence.errors import ColumnProblem, FileProblem

PARQUET = (".parquet", ".pq")
_MOST_GRADES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Ratings, and how they were found in their file."""

    ratings: Ratings
    columns: Columns
    n_repeated: int
    """How many rows repeated a pair of person and item and were merged as the caller asked."""


def read_ratings(
    path: str | os.PathLike[str],
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    scale: Scale | tuple[float, ...] | None = None,
    duplicates: Duplicates = "error",
    separator: str | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Ratings:
    r"""Return the ratings of a file; everything in it is checked, and nothing is repaired.

    Parameters
    ----------
    path
        A csv, tsv, `::` dat or parquet file, by the ending of its name; `.gz` of the text ones.
    user, item, rating
        The columns, by name, or by position from 1 ("1") where the file has no header line. None
        finds them.
    scale
        What ratings can be given; None observes it.
    duplicates
        What to do where a person rated an item twice: "error", "last", "first" or "mean".
    separator
        What separates the fields of a text file, where the ending of its name does not say it.
    max_bytes
        How many bytes the file may inflate to.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "ratings.csv")
    >>> _ = path.write_text("userId,movieId,rating\n7,a,4\n8,a,0\n")
    >>> read_ratings(path, scale=(0, 5))
    Ratings(2 users x 1 items, 2 ratings, whole numbers 0-5)
    >>> folder.cleanup()
    """
    reading = read_reported(
        path,
        user=user,
        item=item,
        rating=rating,
        scale=scale,
        duplicates=duplicates,
        separator=separator,
        max_bytes=max_bytes,
    )
    return reading.ratings


def read_reported(
    path: str | os.PathLike[str],
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    scale: Scale | tuple[float, ...] | None = None,
    duplicates: Duplicates = "error",
    separator: str | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Reading:
    """Return the ratings of a file as `read_ratings` does, with the columns they were found in."""
    stated = None if scale is None else Scale.of(scale)
    table, columns = read_table(
        path, user=user, item=item, rating=rating, separator=separator, max_bytes=max_bytes
    )
    triplets = order_triplets(table, columns, duplicates=duplicates, scale=stated)
    del table  # no longer needed, and as large as the ratings themselves
    if columns.positional and stated is None:
        _check_grades(triplets.values, columns)
    ratings = Ratings.from_triplets(triplets, scale=stated)
    return Reading(ratings=ratings, columns=columns, n_repeated=triplets.n_repeated)


def read_table(
    path: str | os.PathLike[str],
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    separator: str | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> tuple[pa.Table, Columns]:
    """Return a file's user, item and rating as an arrow table, and what they are called in it."""
    check_limit(max_bytes)
    file = find_file(path, max_bytes)
    if file.suffixes == (file.path.suffix.lower(), "") and file.suffixes[0] in PARQUET:
        return read_parquet(file, user=user, item=item, rating=rating, max_bytes=max_bytes)
    _check_ending(file, separator)
    return read_text(
        file, user=user, item=item, rating=rating, separator=separator, max_bytes=max_bytes
    )


def _check_ending(file: RatingsFile, separator: str | None) -> None:
    ending, packed = file.suffixes
    if ending in PARQUET and packed:
        raise FileProblem(
            f"{file.name!r} must be text inside its gzip, and says it is parquet; unpack it first"
        )
    if ending not in SEPARATORS and separator is None:
        raise FileProblem(
            f"{file.name!r} must end in .csv, .tsv, .dat, .txt (each also with .gz) or .parquet; "
            "if it is text, say what separates its fields with separator= (--separator)"
        )


def _check_grades(values: npt.NDArray[np.float64], columns: Columns) -> None:
    """Refuse ids or times in the place of ratings, where no name says what the column is."""
    grades = np.unique(values)
    if len(grades) > _MOST_GRADES and bool((grades == np.floor(grades)).all()):
        raise ColumnProblem(
            f"{columns.label('rating')} must look like ratings, and holds more than "
            f"{_MOST_GRADES:,} different "
            "whole numbers; give the positions of user, item and rating, or declare the scale"
        )
