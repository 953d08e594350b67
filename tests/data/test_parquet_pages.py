"""What the pages of a parquet file say: the same as arrow says, for every writer's options."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import goodfence as gf
from goodfence.data.read_parquet import DamagedPages, _Compact, read_pages
from goodfence.errors import FileProblem

N = 1000
TABLE = pa.table(
    {"user": [f"user{n % 77}" for n in range(N)], "item": np.arange(N), "rating": np.arange(N) % 5}
)
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
def test_pages_are_counted_as_arrow_counts_them(options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(TABLE, path, **options)
    found = read_pages(path, ("user", "item", "rating"))
    metadata = parquet.read_metadata(path)
    for at, name in enumerate(TABLE.column_names):
        groups = [metadata.row_group(group).column(at) for group in range(metadata.num_row_groups)]
        assert found[name].n_values == sum(one.num_values for one in groups) == N
        stated = sum(one.total_uncompressed_size for one in groups)
        assert 0 < found[name].n_bytes <= stated  # which counts the headers too
        assert found[name].largest <= found[name].n_bytes
    assert found["user"].deltas == ("DELTA" in str(options.get("column_encoding", {}).get("user")))
    ratings = gf.load(path)
    assert ratings.users.tolist() == sorted(set(TABLE["user"].to_pylist()))
    assert ratings.n_ratings == N


@pytest.mark.parametrize("cut", [0, 4, 8, 12, 100, 500])
def test_what_is_cut_short_is_damaged(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(TABLE, path)
    path.write_bytes(path.read_bytes()[: cut or -1])
    with pytest.raises(DamagedPages):
        read_pages(path, ("user",))
    with pytest.raises(FileProblem):
        gf.load(path)


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


def test_the_compact_protocol_by_hand() -> None:
    """Field by field as Thrift's specification writes them: kinds 1 to 12, numbers zigzag, a stop."""
    written = bytes.fromhex(
        "11"  # 1: true
        "12"  # 2: false
        "137f"  # 3: a byte
        "1505"  # 4: i32, -3
        "17000000000000f83f"  # 5: double
        "18026869"  # 6: "hi"
        "19250204"  # 7: a list of two i32, 1 and 2
        "1a1101"  # 8: a set of one truth
        "1b0158020161"  # 9: a map of one i32 to text
        "1c16d80400"  # 10: a struct with an i64, 300
        "054006"  # 32, by its whole number: i32, 3
        "00"
    )  # fmt: skip
    reader = _Compact(written)
    found = reader.struct()
    assert reader.at == len(written)
    assert (found[1], found[2], found[3], found[4]) == (True, False, b"\x7f", -3)
    assert found[5] == struct.pack("<d", 1.5)
    assert (found[6], found[7], found[8], found[10], found[32]) == ("hi", [1, 2], [1], {1: 300}, 3)
    for kind in (13, 14, 15):
        with pytest.raises(DamagedPages, match="no known type"):
            _Compact(bytes([0x10 | kind, 0, 0])).struct()
