"""Parquet files, read in batches with a running count of the bytes they take."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyarrow import parquet

from goodfence.data.columns import Columns, find_columns
from goodfence.data.files import BYTES_OF_A_ROW, TIMES_HELD, RatingsFile, too_large
from goodfence.data.frame import ReadOptions
from goodfence.data.ids import is_text, plain_type, type_in_words
from goodfence.data.times import (
    BYTES_OF_A_TIME,
    TOO_MANY_TIMES,
    affordable,
    keep_times,
    named_times,
    without_times,
)
from goodfence.errors import (
    ColumnProblem,
    FileProblem,
    GoodfenceError,
    GoodfenceWarning,
    SizeProblem,
)

_ROWS = 2**16
_FEW = 64  # rows of delta-encoded text, each of which may be as long as its whole page
_BYTES_OF_A_DATE = 80  # a time that is text, with the dictionary that holds it


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
        table = _read(file, columns, n_rows, max_bytes)
    except SizeProblem:
        if columns.time is None or named:
            raise
        columns = columns.without_time()
        table = _read(file, columns, n_rows, max_bytes)
        warnings.warn(TOO_MANY_TIMES, GoodfenceWarning, stacklevel=2)
    table, chunks = without_times(table)
    times, columns = keep_times(chunks, columns, named=named)
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


def _read(file: RatingsFile, columns: Columns, n_rows: int, max_bytes: int) -> pa.Table:
    """Return the columns by their roles; `n_rows` is what the footer states."""
    if n_rows * (BYTES_OF_A_ROW + (columns.time is not None) * BYTES_OF_A_TIME) > max_bytes:
        raise too_large(file.name, max_bytes)
    pieces, n_read, n_bytes = [], 0, 0
    with _undamaged(file):
        for piece in _pieces(file, list(columns.by_role.values()), max_bytes):
            piece.validate(full=True)  # a damaged page can hold indices beyond its dictionary
            pieces.append(piece.rename_columns(list(columns.by_role)))
            n_read += piece.num_rows
            for role in columns.by_role:
                texts = sum(one.dictionary.nbytes for one in _dictionaries(pieces[-1][role]))
                n_bytes += texts * (1 if role == "time" else TIMES_HELD)
            if n_read * BYTES_OF_A_ROW + n_bytes > max_bytes:
                raise too_large(file.name, max_bytes)
        if n_read != n_rows:
            raise ValueError("other rows than the footer states")
        return pa.concat_tables(pieces)


def _dictionaries(column: pa.ChunkedArray) -> list[pa.DictionaryArray]:
    return column.chunks if pa.types.is_dictionary(column.type) else []


def _pieces(file: RatingsFile, names: list[str], max_bytes: int) -> Iterator[pa.Table]:
    """Yield the rows a group at a time. Text stays a dictionary: an id that is on many rows is stored once."""
    reader = parquet.ParquetFile(file.path, read_dictionary=names)
    groups = [reader.metadata.row_group(at) for at in range(reader.num_row_groups)]
    largest = max(group.total_byte_size for group in groups)
    if largest > max_bytes:
        raise too_large(file.name, max_bytes)
    try:
        for at in range(len(groups)):
            yield reader.read_row_group(at, names, use_threads=False).select(names)
    except OSError as problem:
        if "Not yet implemented" not in str(problem):
            raise
        # A text stored as its difference from the one before may be as long as all that is stored.
        stored = max(largest, file.path.stat().st_size)
        reader = parquet.ParquetFile(file.path)
        n_together = max(1, min(_FEW, max_bytes // (16 * stored)))
        held, n_bytes = [], 0
        for batch in reader.iter_batches(n_together, columns=names, use_threads=False):
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
