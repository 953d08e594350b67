"""Imports and exports: NDJSON and CSV, a part at a time."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from starlette.concurrency import run_in_threadpool

from goodfence.errors import BadRequest
from goodfence.service.records import Said
from goodfence.service.routes import missing
from goodfence.service.state import Service

_PART = 5_000
_LONGEST_LINE = 2**16
_CSV, _NDJSON = "text/csv", "application/x-ndjson"
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


async def imported(service: Service, what: str, kind: str, body: AsyncIterator[bytes]) -> int:
    """Save the rows of a body as they come, and return how many there were."""
    if what not in _FIELDS:
        raise missing("import")
    if kind not in (_CSV, _NDJSON):
        raise BadRequest(f"the content type must be {_CSV} or {_NDJSON}")
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


def exported(service: Service, what: str, form: str) -> tuple[str, Iterator[str]]:
    """Return the content type of an export and its parts."""
    if what not in _FIELDS:
        raise missing("export")
    if form not in ("ndjson", "csv"):
        raise BadRequest("format must be ndjson or csv")
    rows = service.store.stream(_ROWS[what])
    return (_CSV, _as_csv(what, rows)) if form == "csv" else (_NDJSON, _as_lines(what, rows))


def _as_lines(what: str, rows: Iterator[tuple[Any, ...]]) -> Iterator[str]:
    for row in rows:
        told = dict(zip(_FIELDS[what], row, strict=True))
        if what == "items":
            told |= {"labels": json.loads(told["labels"]), "hidden": bool(told["hidden"])}
        yield f"{json.dumps(told)}\n"


def _as_csv(what: str, rows: Iterator[tuple[Any, ...]]) -> Iterator[str]:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(_FIELDS[what])
    for row in rows:
        told = (*row[:2], "|".join(json.loads(row[2])), row[3]) if what == "items" else row
        writer.writerow(told)
        yield written.getvalue()
        written.seek(0)
        written.truncate()
    yield written.getvalue()
