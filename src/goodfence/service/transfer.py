"""Imports and exports: NDJSON, CSV and Parquet, a part at a time."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from tempfile import TemporaryFile
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from starlette.concurrency import run_in_threadpool

from goodfence.errors import BadRequest
from goodfence.service.hot_path import body_too_large
from goodfence.service.records import Said
from goodfence.service.routes import missing
from goodfence.service.state import Service

_PART = 5_000
_LONGEST_LINE = 2**16
_CSV, _NDJSON, _PARQUET = "text/csv", "application/x-ndjson", "application/vnd.apache.parquet"
_FIELDS = {
    "items": ("item", "title", "labels", "hidden"),
    "users": ("user",),
    "events": ("user", "item", "value", "at"),
}
_ROWS = {
    "items": "SELECT ext, title, labels, hidden FROM item ORDER BY id",
    "users": "SELECT ext FROM account ORDER BY id",
    "events": "SELECT account.ext, item.ext, value, at FROM cell JOIN account ON account.id = user_id "
    "JOIN item ON item.id = item_id ORDER BY user_id, item_id",
}
LARGEST_FILE = 2**30
"""Bytes of a Parquet file: its contents are listed at its end, so it is kept until it is whole."""
_LARGEST_GROUP, _MOST_ROWS, _LONGEST_TEXT, _MOST_LABELS = 2**28, 2**26, 4_000, 2**20
_GROUP = 50_000
_TEXT, _LABELS = pa.string(), pa.list_(pa.string())
_SCHEMAS = {
    "items": pa.schema({"item": _TEXT, "title": _TEXT, "labels": _LABELS, "hidden": pa.bool_()}),
    "users": pa.schema({"user": _TEXT}),
    "events": pa.schema({"user": _TEXT, "item": _TEXT, "value": pa.float64(), "at": pa.int64()}),
}


async def imported(service: Service, what: str, kind: str, body: AsyncIterator[bytes]) -> int:
    """Save the rows of a body as they come, and return how many there were."""
    if what not in _FIELDS:
        raise missing("import")
    if kind == _PARQUET:
        return await _imported_parquet(service, what, body)
    if kind not in (_CSV, _NDJSON):
        raise BadRequest(f"the content type must be {_CSV}, {_NDJSON} or {_PARQUET}")
    n, rows, header = 0, list[dict[str, Any]](), None
    async for line in _lines(body):
        if kind == _CSV and header is None:
            header = [name.strip() for name in next(csv.reader([line]))]
            continue
        rows.append(_parsed(line, header))
        if len(rows) == _PART:
            n += await run_in_threadpool(_save, service, what, rows)
            rows = []
    return n + await run_in_threadpool(_save, service, what, rows)


async def _imported_parquet(service: Service, what: str, body: AsyncIterator[bytes]) -> int:
    n = 0
    with TemporaryFile() as file:
        async for part in body:
            n += len(part)
            if n > LARGEST_FILE:
                raise body_too_large(f"a Parquet file must have at most {LARGEST_FILE} bytes; import it in parts")
            await run_in_threadpool(file.write, part)
        n, names = 0, (*_FIELDS[what], "rating")
        parts = parquet_rows(file, names, _PART)
        while (rows := await run_in_threadpool(next, parts, None)) is not None:
            n += await run_in_threadpool(_save, service, what, rows)
    return n


async def _lines(body: AsyncIterator[bytes]) -> AsyncIterator[str]:
    rest = b""
    async for part in body:
        *whole, rest = (rest + part).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            raise BadRequest("a line of an import is too long")
        for line in whole:
            if line.strip():
                yield _text(line)
    if rest.strip():
        yield _text(rest)


def _text(line: bytes) -> str:
    try:
        return line.decode("utf-8").removeprefix("\ufeff").strip()
    except UnicodeDecodeError:
        raise BadRequest("an import must be UTF-8") from None


def _parsed(line: str, header: list[str] | None) -> dict[str, Any]:
    """Return one row, of JSON or of a CSV with this header."""
    if header is None:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            raise BadRequest("every line must be a JSON object; one is not") from None
        if not isinstance(found, dict):
            raise BadRequest("every line must be a JSON object; one is not")
        return found
    cells = next(csv.reader([line]), [])
    if len(cells) != len(header):
        raise BadRequest("every line must have as many cells as the header; one has not")
    found = {name: cell for name, cell in zip(header, cells, strict=True) if cell != ""}
    if "labels" in found:
        found["labels"] = found["labels"].split("|")
    if "hidden" in found:
        found["hidden"] = found["hidden"].lower() in ("1", "true", "yes")
    return found


def _save(service: Service, what: str, rows: list[dict[str, Any]]) -> int:
    if not rows:
        return 0
    if what == "items":
        service.records.save_items([{**row, "item": _id(row, "item")} for row in rows])
    elif what == "users":
        service.records.save_users([_id(row, "user") for row in rows])
    else:
        service.records.save_bulk([(_id(row, "user"), _said(row)) for row in rows], service.scale)
    return len(rows)


def _id(row: dict[str, Any], name: str) -> str:
    found = row.get(name)
    if not isinstance(found, str | int) or isinstance(found, bool):
        raise BadRequest(f"every row must have a {name}; one has not")
    return str(found)


def _said(row: dict[str, Any]) -> Said:
    try:
        value = float(row.get("value", row.get("rating", 1.0)))
        at = None if row.get("at") is None else int(row["at"])
    except (TypeError, ValueError, OverflowError):
        raise BadRequest("value and at must be numbers; one is not") from None
    if value != value or abs(value) > 1e12 or (at is not None and not 0 <= at <= 2**40):
        raise BadRequest("value and at must be numbers; one is not")
    return Said(_id(row, "item"), value, at)


def exported(service: Service, what: str, form: str) -> tuple[str, Iterator[str] | Iterator[bytes]]:
    """Return the content type of an export and its parts."""
    if what not in _FIELDS:
        raise missing("export")
    if form not in ("ndjson", "csv", "parquet"):
        raise BadRequest("format must be ndjson, csv or parquet")
    rows = service.store.stream(_ROWS[what])
    if form == "csv":
        return _CSV, _as_csv(what, rows)
    named = _named(what, rows)
    lines = (f"{json.dumps(told)}\n" for told in named)
    return (_PARQUET, parquet_parts(what, named)) if form == "parquet" else (_NDJSON, lines)


def _named(what: str, rows: Iterator[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        told = dict(zip(_FIELDS[what], row, strict=True))
        if what == "items":
            told |= {"labels": json.loads(told["labels"]), "hidden": bool(told["hidden"])}
        yield told


def _as_csv(what: str, rows: Iterator[tuple[Any, ...]]) -> Iterator[str]:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(_FIELDS[what])
    for row in rows:
        told = (*row[:2], "|".join(json.loads(row[2])), row[3]) if what == "items" else row
        writer.writerow(told)
        yield _taken(written)
    yield _taken(written)


def _taken(written: Any) -> Any:
    part = written.getvalue()
    written.seek(0)
    written.truncate()
    return part


def parquet_parts(what: str, rows: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    """Yield a Parquet file of these rows, part by part."""
    written, schema = io.BytesIO(), _SCHEMAS[what]
    with parquet.ParquetWriter(written, schema) as writer:
        while group := list(islice(rows, _GROUP)):
            writer.write_batch(pa.RecordBatch.from_pylist(group, schema=schema))
            yield _taken(written)
    yield _taken(written)


def parquet_rows(file: IO[bytes], names: tuple[str, ...], n: int) -> Iterator[list[dict[str, Any]]]:
    """Yield at most `n` rows at a time of the columns that have these names; what is null is left out."""
    try:
        found = parquet.ParquetFile(file)
        schema = found.schema_arrow
        kept = [name for name in schema.names if name in names]
        nested = {name for name in kept if kept.count(name) > 1 or pa.types.is_nested(schema.field(name).type)}
        if nested - {"labels"} or kept.count("labels") > 1:
            raise BadRequest("every column must have a name of its own, and only labels may be a list")
        _require_few(found.metadata)
        # Text stays a dictionary: one that is on many rows is held once, and its length is known before it is copied.
        leaves = [found.schema.column(at) for at in range(len(found.schema))]
        texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        for batch in parquet.ParquetFile(file, read_dictionary=texts).iter_batches(n, columns=kept, use_threads=False):
            batch.validate(full=True)  # a damaged page can hold indices beyond its dictionary
            for column in batch.columns:
                _require_short(column)
            yield [{name: value for name, value in row.items() if value is not None} for row in batch.to_pylist()]
    except (pa.ArrowException, OSError, ValueError, OverflowError, TypeError):  # of many kinds, and they quote values
        raise BadRequest("the Parquet file is cut short, damaged, or encoded in a way that is not read") from None


def _require_few(about: Any) -> None:
    largest = max((about.row_group(at).total_byte_size for at in range(about.num_row_groups)), default=0)
    if about.num_rows > _MOST_ROWS or largest > _LARGEST_GROUP:
        raise BadRequest(f"a row group must be at most {_LARGEST_GROUP} bytes and a file {_MOST_ROWS} rows")


def _require_short(column: Any) -> None:
    while pa.types.is_nested(column.type):
        if not isinstance(column, pa.ListArray | pa.LargeListArray):
            raise BadRequest("labels must be a list of text")
        column = column.flatten()
    texts = column.dictionary if pa.types.is_dictionary(column.type) else column
    textual = texts.type in (pa.string(), pa.large_string(), pa.binary())
    if len(column) > _MOST_LABELS or (textual and (pc.max(pc.binary_length(texts)).as_py() or 0) > _LONGEST_TEXT):
        raise BadRequest(f"a text must have at most {_LONGEST_TEXT} bytes, and {_PART} items {_MOST_LABELS} labels")
