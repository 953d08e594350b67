"""Everything that is wrong with a file of ratings, counted, where reading would stop at the first problem.

A problem is told with its kind, how often it occurs and the numbers of a few lines: never with what stands there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from goodfence.arrays import Flags, Integers
from goodfence.data.columns import section_lines
from goodfence.data.files import RatingsFile
from goodfence.data.frame import ReadOptions, find_repeats
from goodfence.data.ids import is_text
from goodfence.data.lines import Lines, Written, blank_lines
from goodfence.data.load import PARQUET, opened
from goodfence.data.read_parquet import read_parquet
from goodfence.data.read_text import Fields, is_json, missing_among_integers, read_fields
from goodfence.data.scale import Scale

_SHOWN = 3


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
        return f"{self.n:,} {self.kind} ({'line' if self.n == 1 else 'lines'} {listed}{more})"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """What is known of each row: the position of its ids among all, -1 where missing, and its rating."""

    users: npt.NDArray[np.int64]
    items: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    missing: Flags
    textual: Flags
    infinite: Flags
    inexact: Flags


def count_problems(path: str | os.PathLike[str], options: ReadOptions) -> list[Problem]:
    """Return what is wrong with the rows of a file, most frequent first; nothing for a file of JSON.

    What is wrong with the file as a whole is raised, as by `read_ratings`.
    """
    with opened(path, options.max_bytes) as file:
        if is_json(file):
            return []
        if file.suffixes[0] in PARQUET:
            table, _ = read_parquet(file, options)
            found = [
                (kind, np.flatnonzero(flags) + 1) for kind, flags in _flags(_typed(table), options)
            ]
            return _sorted(found)
        fields = read_fields(file, options, tolerant=True)
        own = _own_rows(fields)
        found = [
            (kind, own[flags]) for kind, flags in _flags(_texts(fields.table, options), options)
        ]
        found.append(("with another number of fields", np.array([row for row, _ in fields.ragged])))
        return _sorted([(kind, _lines(file, fields, rows)) for kind, rows in found if len(rows)])


def _sorted(found: list[tuple[str, Integers]]) -> list[Problem]:
    problems = [
        Problem(kind=kind, n=len(rows), lines=tuple(rows[:_SHOWN].tolist()))
        for kind, rows in found
        if len(rows)
    ]
    return sorted(problems, key=lambda one: -one.n)


def _own_rows(fields: Fields) -> Integers:
    """Return the row of the file, counted from 1, of each row of the table: ragged ones are not in it."""
    ragged = np.array([row for row, _ in fields.ragged], dtype=np.int64)
    rows = np.arange(1, fields.table.num_rows + len(ragged) + 1)
    return rows[~np.isin(rows, ragged)]


def _lines(file: RatingsFile, fields: Fields, rows: Integers) -> Integers:
    """Return the lines of these rows: the header and blank lines are none."""
    header = int(not fields.dialect.columns.positional)
    if fields.n_blank == 0 and not fields.sectioned:
        return rows + header
    wanted, found, n_rows, n_lines = rows[:_SHOWN] + header, [], 0, 0
    for chunk in Lines(file, 2**62, fields.encoding).chunks(without_first=False):
        n_ends = chunk.count(b"\n")
        full = np.setdiff1d(np.arange(n_ends), blank_lines(chunk))
        if fields.sectioned:
            full = np.setdiff1d(full, section_lines(chunk))
        here = wanted[(wanted > n_rows) & (wanted <= n_rows + len(full))]
        found += (full[here - n_rows - 1] + n_lines + 1).tolist()
        n_rows, n_lines = n_rows + len(full), n_lines + n_ends
    return np.concatenate([np.array(found, dtype=np.int64), rows[_SHOWN:]])


def _flags(rows: _Rows, options: ReadOptions) -> Iterator[tuple[str, Flags]]:
    """Yield each kind of problem, and which rows have it."""
    yield "without a user", rows.users < 0
    yield "without an item", rows.items < 0
    yield "without a rating", rows.missing
    yield "with a rating that is no number", rows.textual
    yield "with a rating that is not finite", rows.infinite
    yield "with a rating that a 64-bit float does not hold", rows.inexact
    good = ~(rows.missing | rows.textual | rows.infinite | rows.inexact)
    if options.scale is not None:
        yield "off the scale", good & ~Scale.of(options.scale).holds(rows.values)
    if options.duplicates == "error":
        yield "for a pair of user and item that has a rating already", _repeated(rows)


def _repeated(rows: _Rows) -> Flags:
    known = np.flatnonzero((rows.users >= 0) & (rows.items >= 0))
    repeated = np.zeros(len(rows.users), dtype=np.bool_)
    if len(known):
        n_items = int(rows.items.max()) + 1
        repeats = find_repeats(rows.users[known], rows.items[known], n_items)
        later = np.ones(len(known), dtype=np.bool_)
        later[repeats.order[repeats.starts]] = False
        repeated[known[later]] = True
    return repeated


def _texts(table: pa.Table, options: ReadOptions) -> _Rows:
    """Return what is known of rows that are text."""
    coded = table["rating"].unify_dictionaries().combine_chunks()
    written = Written.of(coded.dictionary, options.decimal)
    absent = np.asarray(pc.is_null(coded.indices).to_numpy(zero_copy_only=False))
    at = np.asarray(coded.indices.fill_null(0).to_numpy(zero_copy_only=False))
    if len(written.values) == 0:
        nothing = np.zeros(len(at), dtype=np.bool_)
        parts = dict.fromkeys(("textual", "infinite", "inexact"), nothing)
        values = np.zeros(len(at))
    else:
        names = ("textual", "infinite", "inexact")
        parts = {name: getattr(written, name)[at] & ~absent for name in names}
        absent, values = absent | written.missing[at], written.values[at]
    return _Rows(
        users=_codes(table["user"]),
        items=_codes(table["item"]),
        values=values,
        missing=absent,
        **parts,
    )


def _typed(table: pa.Table) -> _Rows:
    """Return what is known of rows whose columns have a type."""
    column = table["rating"]
    numeric = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    missing = np.asarray(column.is_null().to_numpy())
    nothing = np.zeros(len(missing), dtype=np.bool_)
    if not numeric:
        values, textual = np.zeros(len(missing)), ~missing
    else:
        values = np.asarray(column.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy())
        textual = nothing
    return _Rows(
        users=_codes(table["user"]),
        items=_codes(table["item"]),
        values=values,
        missing=missing,
        textual=textual,
        infinite=~np.isfinite(values),
        inexact=nothing,
    )


def _codes(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return a number for each id, the same for the same one, and -1 where it is missing."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    one = coded.unify_dictionaries().combine_chunks()
    codes = np.asarray(one.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    values = one.dictionary
    if len(values) == 0 or not is_text(values.type):
        return codes
    trimmed = pc.utf8_trim(values, " \t").dictionary_encode()
    same = np.asarray(trimmed.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
    empty = np.asarray(
        pc.equal(trimmed.dictionary, "").to_numpy(zero_copy_only=False), dtype=np.bool_
    )
    gone = empty | missing_among_integers(trimmed.dictionary)
    named = np.where(gone[same], -1, same)
    return np.where(codes < 0, -1, named[np.maximum(codes, 0)])
