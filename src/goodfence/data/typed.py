"""Files whose values have types: parquet, and JSON lines (one object a line, also packed with gzip)."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyarrow import json as arrow_json
from pyarrow import parquet

from goodfence.data.columns import Columns, find_columns
from goodfence.data.files import BYTES_OF_A_ROW, TIMES_HELD, RatingsFile, too_large
from goodfence.data.frame import ReadOptions, filtered, require_rows
from goodfence.data.ids import is_text, plain_type, type_in_words
from goodfence.data.scale import changes
from goodfence.data.text import BYTE_ORDER_MARK, CHUNK, Feed, Lines
from goodfence.data.times import (
    BYTES_OF_A_TIME,
    TOO_MANY_TIMES,
    affordable,
    found_among,
    keep_times,
    named_times,
    without_times,
)
from goodfence.errors import ColumnProblem, FileProblem, GoodfenceError, SizeProblem, ValueProblem, warn

_ROWS = 2**16
_FEW = 64  # rows of delta-encoded text, each of which may be as long as its whole page
_BYTES_OF_A_DATE = 80  # a time that is text, with the dictionary that holds it
_LONG = re.compile(rb"[0-9.]{16}|[0-9.][eE][+-]?[0-9]{3}")
"""What is in every number that a 64-bit float may not hold."""
_INEXACT = "must be a number that a 64-bit float holds"


def read_parquet(file: RatingsFile, options: ReadOptions) -> tuple[pa.Table, Columns]:
    """Return the user, item and rating of a parquet file, its times, and what they are called in it."""
    if not file.beginning.startswith(b"PAR1"):
        raise FileProblem(f"{file.name!r} is not a parquet file, though its name says so")
    with _undamaged(file):
        reader = parquet.ParquetFile(file.path)
        schema, n_rows = reader.schema_arrow, reader.metadata.num_rows
    columns = _columns_of(schema, options)
    if n_rows == 0:
        raise FileProblem(f"{file.name!r} has no rows")
    named, max_bytes = options.time is not None, options.max_bytes
    dated = columns.time is not None and is_text(plain_type(schema.field(columns.time).type))
    n_timed = n_rows * (_BYTES_OF_A_DATE if dated else BYTES_OF_A_TIME)
    columns = affordable(columns, n_rows * BYTES_OF_A_ROW, n_timed, max_bytes, named=named)
    try:
        table = _read(file, columns, n_rows, options)
    except SizeProblem:
        if columns.time is None or named:
            raise
        columns = columns.without_time()
        table = _read(file, columns, n_rows, options)
        warn(TOO_MANY_TIMES)
    table, chunks = without_times(table)
    times, columns = keep_times(chunks, columns, named=named, dates=options.dates)
    for role, column in times.items():
        table = table.append_column(role, column)
    return table, columns


def _columns_of(schema: pa.Schema, options: ReadOptions) -> Columns:
    columns = find_columns(schema.names, options.columns)
    if columns.time is None:
        alone = {name for name in columns.unused if schema.names.count(name) == 1}
        columns = named_times(columns, {name: schema.field(name).type for name in alone})
    for role, name in columns.by_role.items():
        kind = schema.field(name).type
        if pa.types.is_nested(kind):
            raise ColumnProblem(
                f"{columns.label(role)} must hold one value in each row, it holds {type_in_words(kind)}"
            )
    return columns


def _read(file: RatingsFile, columns: Columns, n_rows: int, options: ReadOptions) -> pa.Table:
    """Return the columns by their roles; `n_rows` is what the footer states."""
    max_bytes = options.max_bytes
    if n_rows * (BYTES_OF_A_ROW + (columns.time is not None) * BYTES_OF_A_TIME) > max_bytes:
        raise too_large(file.name, max_bytes)
    pieces, n_read, n_bytes = [], 0, 0
    with _undamaged(file):
        for piece in _pieces(file, list(columns.by_role.values()), max_bytes):
            piece.validate(full=True)  # a damaged page can hold indices beyond its dictionary
            n_read += piece.num_rows
            pieces.append(filtered(piece.rename_columns(list(columns.by_role)), options))
            for role, column in zip(pieces[-1].column_names, pieces[-1].columns, strict=True):
                if pa.types.is_dictionary(column.type):
                    texts = sum(one.dictionary.nbytes for one in column.chunks)
                    n_bytes += texts * (1 if role == "time" else TIMES_HELD)
            if n_read * BYTES_OF_A_ROW + n_bytes > max_bytes:
                raise too_large(file.name, max_bytes)
        if n_read != n_rows:
            raise ValueError("other rows than the footer states")
        found = pa.concat_tables(pieces)
    require_rows(found.num_rows)
    return found


def _pieces(file: RatingsFile, names: list[str], max_bytes: int) -> Iterator[pa.Table]:
    """Yield the rows a group at a time. Text stays a dictionary: an id that is on many rows is stored once."""
    reader = parquet.ParquetFile(file.path, read_dictionary=names)
    left = list(range(reader.num_row_groups))
    largest = max(reader.metadata.row_group(at).total_byte_size for at in left)
    if largest > max_bytes:
        raise too_large(file.name, max_bytes)
    try:
        for at in range(reader.num_row_groups):
            left = list(range(at, reader.num_row_groups))
            yield reader.read_row_group(at, names, use_threads=False).select(names)
    except OSError as problem:
        if "Not yet implemented" not in str(problem):
            raise
        # A text stored as its difference from the one before may be as long as all that is stored.
        stored = max(largest, file.path.stat().st_size)
        reader = parquet.ParquetFile(file.path)
        n_together = max(1, min(_FEW, max_bytes // (16 * stored)))
        held, n_bytes = [], 0
        for batch in reader.iter_batches(n_together, left, columns=names, use_threads=False):
            held.append(batch.select(names))
            n_bytes += held[-1].nbytes  # the footer may understate it
            if n_bytes > max_bytes // 16 or len(held) * n_together >= _ROWS:
                yield _with_dictionaries(held)
                held, n_bytes = [], 0
        if held:
            yield _with_dictionaries(held)


def _with_dictionaries(batches: list[pa.RecordBatch]) -> pa.Table:
    table = pa.Table.from_batches(batches).combine_chunks()
    coded = [one.dictionary_encode() if is_text(one.type) else one for one in table.columns]
    return pa.table(coded, names=table.column_names)


@contextmanager
def _undamaged(file: RatingsFile) -> Iterator[None]:
    """Turn arrow's many errors into one sentence."""
    try:
        yield
    except GoodfenceError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        raise FileProblem(f"{file.name!r} is a parquet file that is cut short or damaged") from None


def is_json(file: RatingsFile) -> bool:
    """Return whether a text file is JSON, by its ending, or by how its first line begins."""
    if file.suffixes[0] in (".json", ".jsonl", ".ndjson"):
        return True
    beginning = file.beginning
    if file.suffixes[1]:
        try:
            with gzip.open(file.path) as inner:
                beginning = inner.read(len(beginning))
        except (OSError, EOFError, zlib.error):  # which is said where all of it is read
            return False
    start = beginning.removeprefix(BYTE_ORDER_MARK).lstrip()
    return start.startswith((b'{"', b'{ "', b"{'"))


def read_json(file: RatingsFile, options: ReadOptions, *, timed: bool = True) -> tuple[pa.Table, Columns]:
    """Return as `read_parquet`; times that the caller did not name are looked for only if `timed`."""
    lines = Lines(file, options.max_bytes, options.encoding)
    first = lines.head()[0]
    if first.lstrip().startswith(b"["):
        raise FileProblem(
            f"{file.name!r} must be JSON lines, one object a line, and is an array; write it again as lines "
            "(pandas: orient='records', lines=True)"
        )
    members = _object(first, 1, file)
    columns = find_columns(list(members), options.columns)
    if columns.time is None and timed:
        columns = found_among(columns, {name: [str(members[name])] for name in columns.unused})
    try:
        table = _parsed_lines(lines, members, columns, file, options)
    except pa.ArrowException:  # which quotes the line
        role, problem = _first_problem(file, options, columns, members)
        if role != "time" or options.time is not None:
            raise problem from None
        warn(f"times are left out: {problem}")
        return read_json(file, options, timed=False)
    table, chunks = without_times(table)
    times, columns = keep_times(chunks, columns, named=options.time is not None, dates=options.dates)
    parts = {}
    for role in table.column_names:  # one chunk: many dictionaries would each repeat the ones before
        whole = table[role].combine_chunks()
        parts[role] = pa.chunked_array([whole.dictionary_encode() if is_text(whole.type) else whole])
    return pa.table({**parts, **times}), columns


def _parsed_lines(
    lines: Lines, members: dict[str, Any], columns: Columns, file: RatingsFile, options: ReadOptions
) -> pa.Table:
    """Return the columns by role: integers or text as in the first line, floats for ratings."""
    known = {str: pa.string(), bool: pa.bool_()}
    texts = {name: known.get(type(one), pa.int64()) for name, one in members.items()}
    schema = pa.schema(
        (name, pa.float64() if role in ("rating", "weight") else texts[name]) for role, name in columns.by_role.items()
    )
    reader = arrow_json.open_json(
        pa.PythonFile(Feed(_exact(lines, columns)), mode="r"),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=2 * CHUNK),
        parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
    batches, n_rows, n_bytes = [], 0, 0
    for batch in reader:
        n_rows += batch.num_rows
        batches.append(filtered(batch.select(schema.names).rename_columns(list(columns.by_role)), options))
        n_bytes += batches[-1].nbytes - 8 * len(schema) * batches[-1].num_rows
        if n_rows * BYTES_OF_A_ROW + TIMES_HELD * n_bytes > options.max_bytes:
            raise too_large(file.name, options.max_bytes)
    if n_rows != lines.n_lines:
        raise pa.ArrowInvalid("an object is on several lines, or several are on one")
    found = pa.Table.from_batches(batches)
    require_rows(found.num_rows)
    return found


def _exact(lines: Lines, columns: Columns) -> Iterator[bytes]:
    """Yield the lines, after making sure that a float holds each rating: arrow would round it."""
    names = {role: name for role, name in columns.by_role.items() if role in ("rating", "weight")}
    n_before = 0
    for chunk in lines.chunks():
        if names and _LONG.search(chunk):
            for number, line in enumerate(chunk.split(b"\n"), n_before + 1):
                if _LONG.search(line):
                    _check_exact(line, number, names, columns)
        n_before += chunk.count(b"\n")
        yield chunk


def _check_exact(line: bytes, number: int, names: dict[str, str], columns: Columns) -> None:
    try:
        found = json.loads(line, parse_float=_Spelled, parse_int=_Spelled)
    except (ValueError, RecursionError):
        return  # arrow refuses it, or the number of rows does
    for role, name in names.items():
        value = found.get(name) if isinstance(found, dict) else None
        if isinstance(value, _Spelled) and changes(value, float(value)):
            raise ValueProblem(f"{columns.label(role)} {_INEXACT}, line {number} is not")


class _Spelled(str):
    """A number as it is written."""

    __slots__ = ()


def _first_problem(
    file: RatingsFile, options: ReadOptions, columns: Columns, members: dict[str, Any]
) -> tuple[str, ValueProblem | FileProblem]:
    """Return what is wrong with the first line that arrow cannot read, and in which role."""
    kinds = {role: type(members[name]) for role, name in columns.by_role.items()}
    for number, line in Lines(file, options.max_bytes, options.encoding).numbered():
        found = _object(line, number, file) if line.strip() else {}
        for role, name in columns.by_role.items():
            value, label = found.get(name), columns.label(role)
            numeric = role in ("rating", "weight")
            if value is None or role == "where":
                continue
            if numeric and (type(value) not in (int, float) or abs(value) == float("inf")):
                return role, ValueProblem(f"{label} {_INEXACT}, line {number} is not")
            if not numeric and not _is_id(value):
                rule = "must be an integer or text"
                return role, ValueProblem(f"{label} {rule}, line {number} is not")
            if not numeric and kinds[role] in (int, str) and type(value) is not kinds[role]:
                rule = "must hold integers or text, and holds both"
                return role, ValueProblem(f"{label} {rule}, line {number} differs from the first")
    return "", FileProblem(f"{file.name!r} must hold one JSON object a line, and does not")


def _is_id(value: Any) -> bool:
    if type(value) is str:  # JSON's escapes can spell half of a character
        return not any("\ud800" <= letter <= "\udfff" for letter in value)
    return type(value) is int and -(2**63) <= value < 2**63


def _object(line: bytes, number: int, file: RatingsFile) -> dict[str, Any]:
    try:
        found = json.loads(line, object_pairs_hook=each_once, parse_constant=str)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise FileProblem(
            f"{file.name!r} must hold one JSON object a line, line {number} is none, or names a member twice"
        ) from None
    return found


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of a JSON object; raise where one is named twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a member is named twice")
    return found
