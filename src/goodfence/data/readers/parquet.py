"""Parquet files: what they would take in memory is known before anything is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyarrow import parquet

from goodfence.data.coding import describe
from goodfence.data.columns import ROLES, Columns, find_columns
from goodfence.data.limits import too_large
from goodfence.data.readers.files import RatingsFile
from goodfence.errors import ColumnProblem, FileProblem

_INDEX_BYTES = 4


def read_parquet(
    file: RatingsFile,
    *,
    user: str | None,
    item: str | None,
    rating: str | None,
    max_bytes: int,
) -> tuple[pa.Table, Columns]:
    """Return the user, item and rating of a parquet file, and what they are called in it."""
    if not file.beginning.startswith(b"PAR1"):
        raise FileProblem(f"{file.name!r} must be a parquet file, as its name says, and is not")
    with _told_plainly(file):
        opened = parquet.ParquetFile(file.path)
        schema, metadata = opened.schema_arrow, opened.metadata
    columns = find_columns(schema.names, user=user, item=item, rating=rating)
    _check_kinds(schema, columns)
    if metadata.num_rows == 0:
        raise FileProblem(f"{file.name!r} must hold ratings, and has no rows")
    with _told_plainly(file):
        n_bytes = _bytes_in_memory(metadata, schema, columns)
    if n_bytes > max_bytes:
        raise too_large(file.name, max_bytes)
    texts = [name for name in columns.chosen if _is_text(schema.field(name).type)]
    with _told_plainly(file):
        # Text stays a dictionary: one long id on every row is then stored once.
        opened = parquet.ParquetFile(file.path, read_dictionary=texts)
        table = opened.read(columns=list(columns.chosen))
        table.validate(full=True)  # a damaged page can hold indices beyond its dictionary
    return table.select(list(columns.chosen)).rename_columns(list(ROLES)), columns


def _check_kinds(schema: pa.Schema, columns: Columns) -> None:
    for role, name in zip(ROLES, columns.chosen, strict=True):
        kind = schema.field(name).type
        if pa.types.is_nested(kind):
            raise ColumnProblem(
                f"{columns.label(role)} must hold one value in each row, it holds {describe(kind)}"
            )


def _bytes_in_memory(metadata: parquet.FileMetaData, schema: pa.Schema, columns: Columns) -> int:
    """Return rows x width of what would be read.

    For text that is an index for each row, and the text itself.
    """
    kinds = {name: schema.field(name).type for name in columns.chosen}
    total = sum(metadata.num_rows * _width(kind) for kind in kinds.values())
    texts = {name for name, kind in kinds.items() if not _is_fixed(kind)}
    for group in range(metadata.num_row_groups if texts else 0):
        chunks = metadata.row_group(group)
        for place in range(chunks.num_columns):
            chunk = chunks.column(place)
            if chunk.path_in_schema in texts:
                total += chunk.total_uncompressed_size
    return int(total)


def _width(kind: pa.DataType) -> int:
    return max(1, kind.bit_width // 8) if _is_fixed(kind) else _INDEX_BYTES


def _is_fixed(kind: pa.DataType) -> bool:
    try:
        return not pa.types.is_dictionary(kind) and kind.bit_width > 0
    except ValueError:  # arrow's way to say that the width varies
        return False


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


@contextmanager
def _told_plainly(file: RatingsFile) -> Iterator[None]:
    """Turn arrow's many errors into one sentence."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        raise FileProblem(
            f"{file.name!r} must be a whole parquet file, and is cut short or damaged"
        ) from None
