"""Parquet files: what they would take in memory is known before anything is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyarrow import parquet

from goodfence.data.columns import ROLES, Columns, find_columns
from goodfence.data.files import RatingsFile, too_large
from goodfence.data.frame import ReadOptions
from goodfence.data.ids import describe, is_text
from goodfence.data.lines import BYTES_OF_A_ROW, TIMES_HELD
from goodfence.data.parquet_pages import MAGIC, Chunks, DamagedPages, read_pages
from goodfence.errors import ColumnProblem, FileProblem, GoodfenceError

_TOGETHER = 2**16  # rows


def read_parquet(file: RatingsFile, options: ReadOptions) -> tuple[pa.Table, Columns]:
    """Return the user, item and rating of a parquet file, and what they are called in it."""
    if not file.beginning.startswith(MAGIC):
        raise FileProblem(f"{file.name!r} must be a parquet file, as its name says, and is not")
    with _reading_parquet(file):
        opened = parquet.ParquetFile(file.path)
        schema, n_rows = opened.schema_arrow, opened.metadata.num_rows
    columns = find_columns(schema.names, **options.columns)
    _check_kinds(schema, columns)
    if n_rows == 0:
        raise FileProblem(f"{file.name!r} must hold ratings, and has no rows")
    with _reading_parquet(file):
        pages = read_pages(file.path, columns.chosen)
        if any(chunks.n_values != n_rows for chunks in pages.values()):
            raise DamagedPages("the pages hold other rows than the file says")
    texts = [name for name in columns.chosen if not _is_fixed(schema.field(name).type)]
    held = n_rows * BYTES_OF_A_ROW + TIMES_HELD * sum(pages[name].n_bytes for name in texts)
    if max(held, *(2 * chunks.largest for chunks in pages.values())) > options.max_bytes:
        raise too_large(file.name, options.max_bytes)
    with _reading_parquet(file):
        if any(pages[name].deltas for name in texts):
            table = _in_batches(file, columns, pages, options.max_bytes)
        else:
            # Text stays a dictionary: one long id on every row is then stored once.
            opened = parquet.ParquetFile(file.path, read_dictionary=texts)
            table = opened.read(columns=list(columns.chosen))
        table.validate(full=True)  # a damaged page can hold indices beyond its dictionary
    return table.select(list(columns.chosen)).rename_columns(list(ROLES)), columns


def _in_batches(
    file: RatingsFile, columns: Columns, pages: dict[str, Chunks], max_bytes: int
) -> pa.Table:
    """Return the columns, a few rows at a time: text that repeats the text before it takes more than its pages say."""
    largest = max(chunks.largest for chunks in pages.values())
    n_together = max(1, min(_TOGETHER, max_bytes // (16 * max(1, largest))))
    batches, n_rows, n_bytes = [], 0, 0
    opened = parquet.ParquetFile(file.path)
    for batch in opened.iter_batches(n_together, columns=list(columns.chosen), use_threads=False):
        batch.validate(full=True)
        coded = [
            column.dictionary_encode() if is_text(column.type) else column
            for column in batch.columns
        ]
        batches.append(pa.record_batch(coded, names=batch.schema.names))
        n_rows, n_bytes = n_rows + batch.num_rows, n_bytes + batches[-1].nbytes
        if n_rows * BYTES_OF_A_ROW + TIMES_HELD * n_bytes > max_bytes:
            raise too_large(file.name, max_bytes)
    return pa.Table.from_batches(batches)


def _check_kinds(schema: pa.Schema, columns: Columns) -> None:
    for role, name in zip(ROLES, columns.chosen, strict=True):
        kind = schema.field(name).type
        if pa.types.is_nested(kind):
            raise ColumnProblem(
                f"{columns.label(role)} must hold one value in each row, it holds {describe(kind)}"
            )


def _is_fixed(kind: pa.DataType) -> bool:
    try:
        return not pa.types.is_dictionary(kind) and kind.bit_width > 0
    except ValueError:  # arrow's way to say that the width varies
        return False


@contextmanager
def _reading_parquet(file: RatingsFile) -> Iterator[None]:
    """Turn arrow's many errors into one sentence."""
    try:
        yield
    except GoodfenceError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        raise FileProblem(
            f"{file.name!r} must be a whole parquet file, and is cut short or damaged"
        ) from None
