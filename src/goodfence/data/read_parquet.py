"""Parquet files: what they would take in memory is known before anything is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import parquet

from goodfence.data.columns import Columns, find_columns
from goodfence.data.files import RatingsFile, too_large
from goodfence.data.frame import ReadOptions
from goodfence.data.ids import describe, is_text
from goodfence.data.lines import BYTES_OF_A_ROW, TIMES_HELD
from goodfence.data.times import (
    BYTES_OF_A_TIME,
    affordable,
    keep_times,
    named_times,
    without_times,
)
from goodfence.errors import ColumnProblem, FileProblem, GoodfenceError

MAGIC = b"PAR1"
_LARGEST_FOOTER = 8 * 2**20
_HEADERS = (2**12, 2**20)  # how many bytes are looked at for a header; few have long statistics
_DEEPEST = 16
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_INTEGERS = (4, 5, 6)
_DELTAS = {
    6,
    7,
}  # DELTA_LENGTH_BYTE_ARRAY, and DELTA_BYTE_ARRAY: a text may repeat any part of the one before it
_TOGETHER = 2**16  # rows

Struct = dict[int, Any]


def read_parquet(file: RatingsFile, options: ReadOptions) -> tuple[pa.Table, Columns]:
    """Return the user, item and rating of a parquet file, its times, and what they are called in it."""
    if not file.beginning.startswith(MAGIC):
        raise FileProblem(f"{file.name!r} must be a parquet file, as its name says, and is not")
    with _undamaged(file):
        opened = parquet.ParquetFile(file.path)
        schema, n_rows = opened.schema_arrow, opened.metadata.num_rows
    columns = _columns_of(schema, options)
    if n_rows == 0:
        raise FileProblem(f"{file.name!r} must hold ratings, and has no rows")
    names = list(columns.by_role.values())
    with _undamaged(file):
        pages = read_pages(file.path, tuple(names))
        if any(chunks.n_values != n_rows for chunks in pages.values()):
            raise DamagedPages("the pages hold other rows than the file says")
    texts = [name for name in names if not _is_fixed(schema.field(name).type)]
    held = {name: TIMES_HELD * pages[name].n_bytes for name in texts}
    n_timed = n_rows * BYTES_OF_A_TIME + held.pop(columns.time or "", 0)
    n_bytes = n_rows * BYTES_OF_A_ROW + sum(held.values())
    named = options.time is not None
    columns = affordable(columns, n_bytes, n_timed, options.max_bytes, named=named)
    if columns.time is None:
        texts, n_timed = list(held), 0
        names = list(columns.by_role.values())
        pages = {name: pages[name] for name in names}
    if (
        max(n_bytes + n_timed, *(2 * chunks.largest for chunks in pages.values()))
        > options.max_bytes
    ):
        raise too_large(file.name, options.max_bytes)
    table = _table_of(file, names, texts, pages, options.max_bytes)
    table = table.rename_columns(list(columns.by_role))
    table, chunks = without_times(table)
    times, columns = keep_times(chunks, columns, named=options.time is not None)
    for role, column in times.items():
        table = table.append_column(role, column)
    return table, columns


def _columns_of(schema: pa.Schema, options: ReadOptions) -> Columns:
    """Return what the columns of a file are for; one that holds several values in a row is an error."""
    columns = find_columns(schema.names, **options.columns)
    if columns.time is None:
        alone = {name for name in columns.unused if schema.names.count(name) == 1}
        columns = named_times(columns, {name: schema.field(name).type for name in alone})
    for role, name in columns.by_role.items():
        kind = schema.field(name).type
        if pa.types.is_nested(kind):
            raise ColumnProblem(
                f"{columns.label(role)} must hold one value in each row, it holds {describe(kind)}"
            )
    return columns


def _table_of(
    file: RatingsFile,
    names: list[str],
    texts: list[str],
    pages: dict[str, Chunks],
    max_bytes: int,
) -> pa.Table:
    """Return these columns, in this order; `texts` are those of text."""
    with _undamaged(file):
        if any(pages[name].deltas for name in texts):
            table = _in_batches(file, names, pages, max_bytes)
        else:
            # Text stays a dictionary: one long id on every row is then stored once.
            opened = parquet.ParquetFile(file.path, read_dictionary=texts)
            table = opened.read(columns=names)
        table.validate(full=True)  # a damaged page can hold indices beyond its dictionary
    return table.select(names)


def _in_batches(
    file: RatingsFile, names: list[str], pages: dict[str, Chunks], max_bytes: int
) -> pa.Table:
    """Return the columns, a few rows at a time: text that repeats the text before it takes more than its pages say."""
    largest = max(chunks.largest for chunks in pages.values())
    n_together = max(1, min(_TOGETHER, max_bytes // (16 * max(1, largest))))
    batches, n_rows, n_bytes = [], 0, 0
    opened = parquet.ParquetFile(file.path)
    for batch in opened.iter_batches(n_together, columns=names, use_threads=False):
        batch.validate(full=True)
        coded = [one.dictionary_encode() if is_text(one.type) else one for one in batch.columns]
        batches.append(pa.record_batch(coded, names=batch.schema.names))
        n_rows, n_bytes = n_rows + batch.num_rows, n_bytes + batches[-1].nbytes
        if n_rows * BYTES_OF_A_ROW + TIMES_HELD * n_bytes > max_bytes:
            raise too_large(file.name, max_bytes)
    return pa.Table.from_batches(batches)


def _is_fixed(kind: pa.DataType) -> bool:
    try:
        return not pa.types.is_dictionary(kind) and kind.bit_width > 0
    except ValueError:  # arrow's way to say that the width varies
        return False


@contextmanager
def _undamaged(file: RatingsFile) -> Iterator[None]:
    """Turn arrow's many errors into one sentence."""
    try:
        yield
    except GoodfenceError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        raise FileProblem(
            f"{file.name!r} must be a whole parquet file, and is cut short or damaged"
        ) from None


class DamagedPages(ValueError):
    """A footer or the header of a page that cannot be."""


@dataclass(slots=True)
class Chunks:
    """What the pages of one column say, over all groups of rows."""

    n_values: int = 0
    n_bytes: int = 0
    """All of its pages, unpacked."""
    largest: int = 0
    """The largest of them."""
    deltas: bool = False
    """Whether a text may be stored as what differs from the one before it."""


def read_pages(path: Path, names: tuple[str, ...]) -> dict[str, Chunks]:
    """Return what the pages of these columns say; `DamagedPages` where that is impossible."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        footer = _footer(file, size)
        found = {name: Chunks() for name in names}
        for group in _structs(footer.get(4)):
            n_rows = _count(group.get(3))
            for column in _structs(group.get(1)):
                described = column.get(3)
                if not isinstance(described, dict):
                    raise DamagedPages("a column has no metadata")
                for name in names:
                    if described.get(3) == [name]:  # one name, so the column is not nested
                        _walk(file, size, described, found[name], n_rows)
    return found


def _footer(file: BinaryIO, size: int) -> Struct:
    file.seek(max(0, size - 8))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or not 0 < length <= min(size - 12, _LARGEST_FOOTER):
        raise DamagedPages("no footer of a possible length")
    file.seek(size - 8 - length)
    return _Compact(file.read(length)).struct()


def _structs(value: Any) -> list[Struct]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise DamagedPages("a list is missing")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise DamagedPages("a count is missing or negative")
    return value


def _walk(file: BinaryIO, size: int, described: Struct, chunks: Chunks, n_rows: int) -> None:
    """Go from page to page of one column in one group of rows."""
    expected, position = _count(described.get(5)), _count(described.get(9))
    dictionary = described.get(11)
    if isinstance(dictionary, int) and 0 < dictionary < position:
        position = dictionary
    end = position + _count(described.get(7))
    if end > size or expected != n_rows:
        raise DamagedPages("a column is longer than its file, or than its rows")
    encodings = described.get(2)
    chunks.deltas |= isinstance(encodings, list) and not _DELTAS.isdisjoint(encodings)
    seen = 0
    while seen < expected:
        header, length = _header(file, position, end)
        unpacked = _count(header.get(2))
        position += length + _count(header.get(3))
        if position > end:
            raise DamagedPages("a page ends after its column")
        seen += _values(header)
        chunks.n_bytes += unpacked
        chunks.largest = max(chunks.largest, unpacked)
    if seen != expected:
        raise DamagedPages("the pages hold more values than their column")
    chunks.n_values += seen


def _header(file: BinaryIO, position: int, end: int) -> tuple[Struct, int]:
    """Return the header of the page at `position`, and how long it is."""
    for longest in _HEADERS:
        file.seek(position)
        reader = _Compact(file.read(min(longest, end - position)))
        try:
            return reader.struct(), reader.at
        except DamagedPages:
            if longest == _HEADERS[-1]:
                raise
    raise AssertionError("the last try returns or raises")


def _values(header: Struct) -> int:
    """Return how many values of the column a page holds: none if it is a dictionary or an index."""
    kind = header.get(1)
    if kind in (1, 2):
        return 0
    data = header.get(5 if kind == 0 else 8)
    if kind not in (0, 3) or not isinstance(data, dict):
        raise DamagedPages("a page is of no known kind")
    n_values = _count(data.get(1))
    if n_values == 0 and _count(header.get(3)) == 0:
        raise DamagedPages("an empty page")  # else a chunk of them would be walked for ever
    return n_values


class _Compact:
    """Thrift's compact protocol: structs as dictionaries by field number, lists as lists."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def struct(self, depth: int = 0) -> Struct:
        """Return the struct that begins here."""
        if depth > _DEEPEST:
            raise DamagedPages("too deep")
        fields: Struct = {}
        number = 0
        while kind := self._byte():
            number = number + (kind >> 4) if kind >> 4 else self._signed()
            fields[number] = self._value(kind & 15, depth)
        return fields

    def _byte(self) -> int:
        try:
            value = self.data[self.at]
        except IndexError:
            raise DamagedPages("cut short") from None
        self.at += 1
        return value

    def _unsigned(self) -> int:
        result = shift = 0
        while True:
            byte = self._byte()
            result |= (byte & 127) << shift
            if byte < 128:
                return result
            shift += 7
            if shift > 63:
                raise DamagedPages("a number is too long")

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind in _INTEGERS:
            return self._signed()
        if kind == _BINARY:
            return self._skip(self._unsigned()).decode("utf-8", "replace")
        if kind in (_LIST, _SET):
            return self._list(depth)
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind == _MAP:
            return self._map(depth)
        if kind in (_BYTE, _DOUBLE):
            return self._skip(1 if kind == _BYTE else 8)
        raise DamagedPages("a field of no known type")

    def _skip(self, n_bytes: int) -> bytes:
        end = self.at + n_bytes
        if end > len(self.data):
            raise DamagedPages("cut short")
        found = self.data[self.at : end]
        self.at = end
        return found

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        size = head >> 4 if head >> 4 < 15 else self._unsigned()
        kind = head & 15
        if size > len(self.data) - self.at:  # each element takes a byte at least
            raise DamagedPages("a list is longer than the rest")
        if kind in (_TRUE, _FALSE):
            return list(self._skip(size))
        return [self._value(kind, depth + 1) for _ in range(size)]

    def _map(self, depth: int) -> None:
        size = self._unsigned()
        kinds = self._byte() if size else 0
        if size > len(self.data) - self.at:
            raise DamagedPages("a map is longer than the rest")
        for _ in range(size):
            self._value(kinds >> 4, depth + 1)
            self._value(kinds & 15, depth + 1)
