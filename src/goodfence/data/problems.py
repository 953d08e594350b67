"""A file of ratings, looked at: how they are spread, and all that is wrong where reading stops at the first problem.

A problem is told with its kind, how often it occurs and the numbers of a few lines: never with what stands there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goodfence.arrays import Flags, Integers
from goodfence.data.frame import ReadOptions, find_repeats
from goodfence.data.ids import SPACE, is_text, missing_among_integers, one_dictionary, plain_type
from goodfence.data.load import PARQUET, open_ratings_file
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale, Written, drops_missing
from goodfence.data.text import Fields, read_fields
from goodfence.data.times import span
from goodfence.data.typed import is_json, read_parquet

_SHOWN = 3  # lines of a problem
_MOST_GRADES = 21


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One kind of problem: how many rows have it, and where the first of them are."""

    kind: str
    n: int
    lines: tuple[int, ...]
    """The numbers of the first lines of a text file, or rows of a parquet file, counted from 1."""

    def __str__(self) -> str:
        listed = ", ".join(map(str, self.lines))
        more = ", ..." if self.n > len(self.lines) else ""
        rows, lines = ("row", "line") if self.n == 1 else ("rows", "lines")
        return f"{self.n:,} {rows} {self.kind} ({lines} {listed}{more})"


def count_problems(path: str | os.PathLike[str], options: ReadOptions) -> list[Problem]:
    """Return what is wrong with the rows of a file, most frequent first; nothing for JSON, `where` and `layout`."""
    if options.where is not None or options.layout is not None:
        return []
    with open_ratings_file(path, options.max_bytes) as file:
        if is_json(file):
            return []
        if file.suffixes[0] in PARQUET:
            table, _ = read_parquet(file, options)
            found = [(kind, np.flatnonzero(broken) + 1) for kind, broken in _flags(table, options)]
        else:
            fields = read_fields(file, options, tolerant=True)
            ragged = np.array([row for row, _ in fields.ragged], dtype=np.int64)
            rows = np.arange(1, fields.table.num_rows + len(ragged) + 1)
            rows = rows[~np.isin(rows, ragged)]  # of the file, for each row of the table
            found = [(kind, rows[broken]) for kind, broken in _flags(fields.table, options)]
            found.append(("with another number of fields", ragged))
            found = [(kind, _lines(fields, rows)) for kind, rows in found if len(rows)]
    problems = [
        Problem(kind=kind, n=len(rows), lines=tuple(rows[:_SHOWN].tolist())) for kind, rows in found if len(rows)
    ]
    return sorted(problems, key=lambda one: -one.n)


def _lines(fields: Fields, rows: Integers) -> Integers:
    """Return the rows, the first few of them as the numbers of their lines."""
    wanted = rows[:_SHOWN].tolist()
    numbers = {
        row: line for row, line in zip(range(1, max(wanted) + 1), fields.line_numbers(), strict=False) if row in wanted
    }
    return np.concatenate([[numbers[row] for row in wanted], rows[_SHOWN:]])


def _flags(table: pa.Table, options: ReadOptions) -> Iterator[tuple[str, Flags]]:
    """Yield each kind of problem, and which rows have it."""
    users, items = _codes(table["user"]), _codes(table["item"])
    yield "without a user", users < 0
    yield "without an item", items < 0
    value = "rating" if options.rated else "weight"
    if value in table.column_names:
        written, at = _written(table[value], options.decimal)
        for kind, broken in (
            (f"without a {value}", written.missing & (value == "weight" or not drops_missing(options.unrated))),
            (f"with a {value} that is no number", written.textual),
            (f"with a {value} that is not finite", written.infinite),
            (f"with a {value} that a 64-bit float does not hold", written.inexact),
        ):
            yield kind, broken[at]
        odd = written.missing | written.textual | written.infinite | written.inexact
        if options.scale is not None:
            yield "off the scale", (~odd & ~Scale.of(options.scale).holds(written.values))[at]
        if options.weight is not None:
            yield "with a weight that is not more than 0", (~odd & ~(written.values > 0))[at]
    if options.repeated == "error":
        known = np.flatnonzero((users >= 0) & (items >= 0))
        repeated = np.zeros(len(users), dtype=np.bool_)
        if len(known):
            repeats = find_repeats(users[known], items[known], int(items.max()) + 1)
            repeated[known] = True
            repeated[known[repeats.order[repeats.starts]]] = False
        what = "has a rating already" if options.rated else "is there already"
        yield f"for a pair of user and item that {what}", repeated


def _written(column: pa.ChunkedArray, decimal: str | None) -> tuple[Written, Integers]:
    """Return what the different values are, an empty text the last of them, and which of them each row has."""
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        column = column.cast(pa.float64(), safe=False).cast(pa.string())
    elif not is_text(plain_type(column.type)):
        column = pa.chunked_array([pc.if_else(column.is_valid(), "no number", None)])
    coded = one_dictionary(column)
    written = Written.of(pa.concat_arrays([coded.dictionary, pa.array([""])]), decimal)
    return written, np.asarray(coded.indices.fill_null(len(coded.dictionary)))


def _codes(column: pa.ChunkedArray) -> Integers:
    """Return a number for each id, the same for the same one, and -1 where it is missing."""
    one = one_dictionary(column)
    codes = np.asarray(one.indices.fill_null(-1)).astype(np.int64)
    values = one.dictionary
    if len(values) == 0 or not is_text(values.type):
        return codes
    trimmed = pc.utf8_trim(values, SPACE).dictionary_encode()
    different = trimmed.dictionary
    gone = np.asarray(pc.equal(different, ""), dtype=np.bool_) | missing_among_integers(different)
    same = np.asarray(trimmed.indices).astype(np.int64)
    return np.append(np.where(gone[same], -1, same), -1)[codes]  # the last one is that of -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How ratings are spread over grades, users and items."""

    grades: tuple[tuple[str, int], ...]
    """Each rating that occurs, or each of ten ranges where they are many, and how often it was given."""
    per_user: tuple[int, int, int]
    per_item: tuple[int, int, int]  # as `per_user` the smallest, the median and the largest number of ratings
    span: tuple[str, str] | None = None  # when the first and the last were given


def measure_spread(ratings: Ratings) -> Spread:
    """Return how `ratings` are spread."""
    csr = ratings.csr
    grades, counts = np.unique(csr.data, return_counts=True)
    names = [f"{grade:g}" for grade in grades.tolist()]
    if len(grades) > _MOST_GRADES:
        counts, edges = np.histogram(csr.data, bins=10)
        names = [f"{low:.3g} to {high:.3g}" for low, high in pairwise(edges.tolist())]

    def ends(of_each: Integers) -> tuple[int, int, int]:
        ordered = np.sort(of_each)
        return int(ordered[0]), int(ordered[(len(ordered) - 1) // 2]), int(ordered[-1])

    return Spread(
        grades=tuple(zip(names, counts.tolist(), strict=True)),
        per_user=ends(np.diff(csr.indptr)),
        per_item=ends(np.bincount(csr.indices, minlength=csr.shape[1])),
        span=None if ratings.times is None else span(ratings.times),
    )


def summarise(ratings: Ratings, *, n_titles: int = 5) -> dict[str, Any]:
    """Return a few numbers about everybody together, as plain values.

    `density` is the share of all cells that are rated, `per_user` the quartiles of a user's number of ratings,
    `most_rated` the titles of the `n_titles` items that are rated most, with their numbers of ratings.
    """
    n_users, n_items = ratings.shape
    per_item = np.bincount(ratings.csr.indices, minlength=n_items)
    most = np.argsort(-per_item, kind="stable")[:n_titles].tolist()
    ids = ratings.items.tolist()
    return {
        "n_users": n_users,
        "n_items": n_items,
        "n_ratings": ratings.n_ratings,
        "scale": str(ratings.scale),
        "density": ratings.n_ratings / (n_users * n_items),
        "per_user": tuple(np.quantile(np.diff(ratings.csr.indptr), [0.25, 0.5, 0.75]).tolist()),
        "most_rated": tuple((ratings.title(ids[place]), int(per_item[place])) for place in most),
    }
