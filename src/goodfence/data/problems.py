"""A file of ratings, looked at: how they are spread, and all that is wrong where reading stops at the first problem.

A problem is told with its kind, how often it occurs and the numbers of a few lines: never with what stands there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goodfence.arrays import Flags, Floats, Integers
from goodfence.data.frame import ReadOptions, find_repeats
from goodfence.data.ids import SPACE, is_text, missing_among_integers, one_dictionary
from goodfence.data.json_lines import is_json
from goodfence.data.load import PARQUET, open_ratings_file
from goodfence.data.parquet import read_parquet
from goodfence.data.rating_values import Written
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale
from goodfence.data.text import Fields, read_fields
from goodfence.data.times import span

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """What is known of each row: the position of its ids among all, -1 where missing, and its rating."""

    users: Integers
    items: Integers
    values: Floats
    missing: Flags
    textual: Flags
    infinite: Flags
    inexact: Flags


def count_problems(path: str | os.PathLike[str], options: ReadOptions) -> list[Problem]:
    """Return what is wrong with the rows of a file, most frequent first; nothing for a file of JSON.

    What is wrong with the file as a whole is raised, as by `read_ratings`.
    """
    with open_ratings_file(path, options.max_bytes) as file:
        if is_json(file):
            return []
        if file.suffixes[0] in PARQUET:
            table, _ = read_parquet(file, options)
            flags = _flags(_typed(table), options)
            found = [(kind, np.flatnonzero(broken) + 1) for kind, broken in flags]
        else:
            fields = read_fields(file, options, tolerant=True)
            ragged = np.array([row for row, _ in fields.ragged], dtype=np.int64)
            rows = np.arange(1, fields.table.num_rows + len(ragged) + 1)
            rows = rows[~np.isin(rows, ragged)]  # of the file, for each row of the table
            flags = _flags(_texts(fields.table, options), options)
            found = [(kind, rows[broken]) for kind, broken in flags]
            found.append(("with another number of fields", ragged))
            found = [(kind, _lines(fields, rows)) for kind, rows in found if len(rows)]
    problems = [
        Problem(kind=kind, n=len(rows), lines=tuple(rows[:_SHOWN].tolist()))
        for kind, rows in found
        if len(rows)
    ]
    return sorted(problems, key=lambda one: -one.n)


def _lines(fields: Fields, rows: Integers) -> Integers:
    """Return the rows, the first few of them as the numbers of their lines."""
    wanted = rows[:_SHOWN].tolist()
    numbers = {
        row: line
        for row, line in zip(range(1, max(wanted) + 1), fields.line_numbers(), strict=False)
        if row in wanted
    }
    return np.concatenate([[numbers[row] for row in wanted], rows[_SHOWN:]])


def _flags(rows: _Rows, options: ReadOptions) -> Iterator[tuple[str, Flags]]:
    """Yield each kind of problem, and which rows have it."""
    yield "without a user", rows.users < 0
    yield "without an item", rows.items < 0
    value = "rating" if options.rated else "weight"
    yield f"without a {value}", rows.missing
    yield f"with a {value} that is no number", rows.textual
    yield f"with a {value} that is not finite", rows.infinite
    yield f"with a {value} that a 64-bit float does not hold", rows.inexact
    good = ~(rows.missing | rows.textual | rows.infinite | rows.inexact)
    if options.scale is not None:
        yield "off the scale", good & ~Scale.of(options.scale).holds(rows.values)
    if options.weight is not None:
        yield "with a weight that is not more than 0", good & ~(rows.values > 0)
    if options.repeated == "error":
        known = np.flatnonzero((rows.users >= 0) & (rows.items >= 0))
        repeated = np.zeros(len(rows.users), dtype=np.bool_)
        if len(known):
            n_items = int(rows.items.max()) + 1
            repeats = find_repeats(rows.users[known], rows.items[known], n_items)
            repeated[known] = True
            repeated[known[repeats.order[repeats.starts]]] = False
        what = "has a rating already" if options.rated else "is there already"
        yield f"for a pair of user and item that {what}", repeated


def _texts(table: pa.Table, options: ReadOptions) -> _Rows:
    """Return what is known of rows that are text."""
    if not {"rating", "weight"} & set(table.column_names):
        return _unvalued(table)
    coded = one_dictionary(table["rating" if options.rated else "weight"])
    # One more text, an empty one, is what the rows without a rating say.
    written = Written.of(pa.concat_arrays([coded.dictionary, pa.array([""])]), options.decimal)
    at = np.asarray(coded.indices.fill_null(len(coded.dictionary)))
    flags = ("missing", "textual", "infinite", "inexact")
    return _Rows(
        users=_codes(table["user"]),
        items=_codes(table["item"]),
        values=written.values[at],
        **{name: getattr(written, name)[at] for name in flags},
    )


def _typed(table: pa.Table) -> _Rows:
    """Return what is known of rows whose columns have a type."""
    if not {"rating", "weight"} & set(table.column_names):
        return _unvalued(table)
    column = table["rating" if "rating" in table.column_names else "weight"]
    missing = np.asarray(column.is_null())
    nothing = np.zeros(len(missing), dtype=np.bool_)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        values = np.asarray(column.cast(pa.float64(), safe=False).fill_null(0.0))
        textual = nothing
    else:
        values, textual = np.zeros(len(missing)), ~missing
    return _Rows(
        users=_codes(table["user"]),
        items=_codes(table["item"]),
        values=values,
        missing=missing,
        textual=textual,
        infinite=~np.isfinite(values),
        inexact=nothing,
    )


def _unvalued(table: pa.Table) -> _Rows:
    """Return what is known of events, which have nothing but their ids."""
    nothing = np.zeros(table.num_rows, dtype=np.bool_)
    return _Rows(
        users=_codes(table["user"]),
        items=_codes(table["item"]),
        values=np.ones(table.num_rows),
        missing=nothing,
        textual=nothing,
        infinite=nothing,
        inexact=nothing,
    )


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
    """The smallest, the median and the largest number of ratings of a user."""
    per_item: tuple[int, int, int]
    """The same of an item."""
    span: tuple[str, str] | None = None
    """When the first and the last were given, where that is known."""


def measure_spread(ratings: Ratings) -> Spread:
    """Return how `ratings` are spread.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"user": [1, 1, 2], "item": ["a", "b", "b"], "rating": [1, 2, 2]})
    >>> measure_spread(Ratings.from_frame(table))
    Spread(grades=(('1', 1), ('2', 2)), per_user=(1, 1, 2), per_item=(1, 1, 2), span=None)
    """
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
