"""Imports and exports as Parquet: any types that can be meant, every kind of bad file, files that would fill memory."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from goodfence.errors import BadRequest
from goodfence.service import transfer
from goodfence.service.transfer import parquet_parts, parquet_rows
from tests.support.bad_inputs import BadInput
from tests.support.bad_parquet import as_bytes, bad_parquet
from tests.support.service_shop import Shop

KIND = {"Content-Type": "application/vnd.apache.parquet"}
NAMES = ("userId", "movieId", "rating", "user", "item", "value", "at", "labels")


def imported(shop: Shop, what: str, content: bytes) -> Any:
    return shop.ask("POST", f"/v1/import/{what}", "operator", content=content, headers=KIND)


def test_any_types_that_can_be_meant_are_imported(shop: Shop) -> None:
    coded = pa.array(["pq-a", "pq-a", "pq-b"]).dictionary_encode()
    table = pa.table({"user": coded, "item": ["i1", "i2", "i1"], "rating": pa.array([1, 2, 3], pa.int8())})
    assert imported(shop, "events", as_bytes(table)).json() == {"imported": 3}
    row = shop.service.records.user_row("pq-a")
    assert shop.service.records.profile(row).values.tolist() == [1.0, 2.0]
    labels = pa.array([["red", "old"], None, []])
    items = pa.table(
        {"item": pa.array([901, 902, 903]), "title": ["A", None, "C"], "labels": labels, "year": [1, 2, 3]}
    )
    assert imported(shop, "items", as_bytes(items)).json() == {"imported": 3}
    told = shop.told("GET", "/v1/items/901", "operator")
    assert told == {"item": "901", "title": "A", "labels": ["red", "old"], "hidden": False}


@pytest.mark.parametrize(
    "columns",
    [
        {"user": ["ann"], "item": ["i1"], "value": ["canary"]},
        {"user": ["ann"], "item": ["none"], "value": [3.0]},
        {"user": ["ann"], "item": ["i1"], "value": [99.0]},
        {"user": [None], "item": ["i1"], "value": [3.0]},
        {"user": [["ann"]], "item": ["i1"], "value": [3.0]},
        {"user": [b"ann"], "item": ["i1"], "value": [3.0]},
        {"user": ["ann" * 10_000], "item": ["i1"], "value": [3.0]},
        {"name": ["ann"], "film": ["i1"]},
    ],
)
def test_bad_rows_are_refused(shop: Shop, columns: dict[str, Any]) -> None:
    answer = imported(shop, "events", as_bytes(pa.table(columns)))
    assert (answer.status_code, answer.json()["code"]) == (422, "GF704")
    assert "ann" not in answer.text
    assert "canary" not in answer.text


def test_a_file_that_is_too_large_is_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    content = as_bytes(pa.table({"user": ["ann"], "item": ["i1"], "value": [3.0]}))
    monkeypatch.setattr(transfer, "LARGEST_FILE", len(content) - 1)
    assert imported(shop, "events", content).status_code == 413
    monkeypatch.setattr(transfer, "LARGEST_FILE", len(content))
    monkeypatch.setattr(transfer, "_LARGEST_GROUP", 10)
    assert imported(shop, "events", content).status_code == 422


@pytest.mark.hostile
@pytest.mark.parametrize("bad", bad_parquet(), ids=lambda bad: bad.name)
def test_a_bad_file_is_read_or_refused(bad: BadInput, tmp_path: Path) -> None:
    with bad.make(tmp_path).open("rb") as file:
        try:
            for rows in parquet_rows(file, NAMES, 5_000):
                assert len(rows) <= 5_000
        except BadRequest:
            return


@pytest.mark.parametrize("at", range(0, 600, 7))
def test_a_damaged_byte_makes_no_other_fault(at: int) -> None:
    content = bytearray(
        as_bytes(pa.table({"user": ["a", "b"] * 20, "item": ["x", "y"] * 20, "value": [1.0, 2.0] * 20}))
    )
    content[at % len(content)] ^= 0x55
    try:
        list(parquet_rows(io.BytesIO(bytes(content)), NAMES, 10))
    except BadRequest:
        return


def test_a_long_text_on_many_rows_is_not_copied() -> None:
    column = pa.DictionaryArray.from_arrays(np.zeros(5_000, dtype=np.int32), ["x" * 10**6])
    lists = pa.ListArray.from_arrays(np.arange(5_001, dtype=np.int32), column)
    for table in (pa.table({"user": column}), pa.table({"labels": lists})):
        content = as_bytes(table)
        tracemalloc.start()
        before = pa.total_allocated_bytes()
        with pytest.raises(BadRequest, match=r"4000 bytes|not read"):
            next(parquet_rows(io.BytesIO(content), NAMES, 5_000))
        assert tracemalloc.get_traced_memory()[1] < 50e6
        assert pa.total_allocated_bytes() - before < 50e6
        tracemalloc.stop()


def test_an_export_streams_in_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "_GROUP", 10)
    rows = [{"user": f"u{at}"} for at in range(95)]
    parts = list(parquet_parts("users", iter(rows)))
    assert len(parts) == 11
    assert all(parts)
    found = parquet.ParquetFile(io.BytesIO(b"".join(parts)))
    assert found.num_row_groups == 10
    assert found.read().to_pylist() == rows
    assert parquet.read_table(io.BytesIO(b"".join(parquet_parts("items", iter([]))))).num_rows == 0
