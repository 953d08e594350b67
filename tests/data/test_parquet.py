"""Parquet files of every writer's options, damaged ones, and numbers that a float does not hold."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import goodfence as gf
from goodfence.errors import ColumnProblem, FileProblem, SizeProblem

N = 1000
TABLE = pa.table({"user": [f"user{n % 77}" for n in range(N)], "item": np.arange(N), "rating": np.arange(N) % 5})
OPTIONS: list[dict[str, Any]] = [
    {},
    {"row_group_size": 7},
    {"data_page_version": "2.0", "compression": "zstd"},
    {"use_dictionary": False, "data_page_size": 100},
    {"write_page_index": True, "write_statistics": False},
    {"use_dictionary": False, "column_encoding": {"user": "DELTA_BYTE_ARRAY"}},
    {"use_dictionary": False, "column_encoding": {"user": "DELTA_LENGTH_BYTE_ARRAY"}},
    {"use_dictionary": False, "column_encoding": {"item": "DELTA_BINARY_PACKED"}},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_every_writers_options_are_read(options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(TABLE, path, **options)
    ratings = gf.load(path)
    assert ratings.users.tolist() == sorted(set(TABLE["user"].to_pylist()))
    assert ratings.n_ratings == N


@pytest.mark.parametrize("cut", [0, 4, 8, 12, 100, 500])
def test_what_is_cut_short_is_damaged(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(TABLE, path)
    path.write_bytes(path.read_bytes()[: cut or -1])
    with pytest.raises(FileProblem):
        gf.load(path)


@pytest.mark.slow
def test_the_bits_that_ended_python_are_refused(tmp_path: Path) -> None:
    """Arrow's own `metadata.row_group(0).column(0)` ends the process where a histogram of levels is damaged."""
    path = tmp_path / "a.parquet"
    parquet.write_table(TABLE.slice(0, 40), path)
    whole = path.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for place in range(footer, len(whole) - 8):
        for bit in (0, 3, 7):
            harmed = bytearray(whole)
            harmed[place] ^= 1 << bit
            path.write_bytes(harmed)
            with suppress(gf.DataError):
                gf.load(path)


def _varint(number: int) -> bytes:
    """Return a number as the footer stores it."""
    number, digits = 2 * number, []
    while number:
        digits.append(number % 128 + (128 if number >= 128 else 0))
        number //= 128
    return bytes(digits)


def test_a_footer_that_understates_its_text_does_not_exceed_the_limit(tmp_path: Path) -> None:
    path, n, limit = tmp_path / "a.parquet", 1000, 24 * 2**20
    users = pa.array(["x" * 2**17 + str(row) for row in range(n)], pa.large_string())
    table = pa.table({"user": users, "item": np.arange(n), "rating": np.arange(n) % 5})
    delta = {"use_dictionary": False, "column_encoding": {"user": "DELTA_BYTE_ARRAY"}}
    parquet.write_table(table, path, compression="zstd", store_schema=False, **delta)
    del table, users
    whole = path.read_bytes()
    stated = _varint(parquet.read_metadata(path).row_group(0).total_byte_size)
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    understated = b"\x82" + b"\x80" * (len(stated) - 2) + b"\0"
    assert whole.count(stated, footer) == 1
    path.write_bytes(whole[:footer] + whole[footer:].replace(stated, understated))
    assert parquet.read_metadata(path).row_group(0).total_byte_size == 1
    before, counted = pa.default_memory_pool(), pa.proxy_memory_pool(pa.system_memory_pool())
    pa.set_memory_pool(counted)
    try:
        with pytest.raises(SizeProblem):
            gf.load(path, read=f"max_bytes={limit}")
    finally:
        pa.set_memory_pool(before)
    assert counted.max_memory() < 1.5 * limit


@pytest.mark.parametrize("places", [2, 29])
def test_a_decimal_is_not_rounded_in_silence(places: int, tmp_path: Path) -> None:
    ratings = [Decimal(f"3.{'0' * (places - 1)}1"), Decimal("4.5")]
    columns = {"user": [1, 2], "item": [1, 1], "rating": pa.array(ratings, pa.decimal128(38, 29))}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    if places == 2:
        assert gf.load(tmp_path / "a.parquet").csr.data.tolist() == [3.01, 4.5]
        return
    with pytest.raises(gf.DataError, match="64-bit float") as caught:
        gf.load(tmp_path / "a.parquet")
    assert "row 1" in str(caught.value)


@pytest.mark.parametrize("n", [10_001, 500_000])
def test_too_many_columns_are_refused_at_once(n: int, tmp_path: Path) -> None:
    names = ["user", "item", "rating", *"x" * (n - 3)]
    path = tmp_path / "a.csv"
    path.write_text(f"{','.join(names)}\n1,2,3\n", encoding="utf-8")
    start = time.process_time()
    with pytest.raises(ColumnProblem, match="10,000 columns"):
        gf.load(path)
    assert time.process_time() - start < 2


def test_too_many_columns_of_a_table_and_of_json(tmp_path: Path) -> None:
    wide = {"user": 1, "item": 2, "rating": 3, **{f"x{at}": 0 for at in range(10_000)}}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(wide) + "\n", encoding="utf-8")
    with pytest.raises(ColumnProblem, match="10,000 columns"):
        gf.load(path)
    with pytest.raises(ColumnProblem, match="10,000 columns"):
        gf.Ratings.from_frame(pa.Table.from_pylist([wide]))
