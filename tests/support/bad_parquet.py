"""Bad inputs in parquet: damaged, of the wrong kind, or small files that would fill the memory."""

from __future__ import annotations

import datetime
import decimal
import io
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tests.support.bad_inputs import ITEMS, NAMES, RATINGS, USERS, BadInput, Make, put

MILLION = 10**6
_DAY = datetime.date(2024, 1, 31)


def bad_parquet() -> list[BadInput]:
    """Return every kind of bad parquet file."""
    return [*_damaged(), *_wrong_kinds(), *_wrong_values(), *_wrong_columns(), *_bombs()]


def good_columns() -> dict[str, Any]:
    """Return columns with which nothing is wrong."""
    return {
        "userId": pa.array([int(user) for user in USERS]),
        "movieId": pa.array([int(item) for item in ITEMS]),
        "rating": pa.array([float(rating) for rating in RATINGS]),
    }


def as_bytes(table: pa.Table) -> bytes:
    """Return a table as the bytes of a parquet file."""
    sink = io.BytesIO()
    parquet.write_table(table, sink)
    return sink.getvalue()


def _written(content: bytes, name: str = "a.parquet") -> Make:
    return lambda folder: put(folder, name, content)


def _replaced(**columns: Any) -> Make:
    def make(folder: Path) -> Path:
        return put(folder, "a.parquet", as_bytes(pa.table({**good_columns(), **columns})))

    return make


def _many(kind: str, says: str, variants: dict[str, Make], arguments: tuple[str, ...] = ()) -> list[BadInput]:
    return [
        BadInput(kind=f"parquet: {kind}", variant=v, make=make, says=says, arguments=arguments)
        for v, make in variants.items()
    ]


def _damaged() -> list[BadInput]:
    whole = as_bytes(pa.table(good_columns()))
    footer = int.from_bytes(whole[-8:-4], "little")
    metadata = bytearray(whole)
    metadata[-footer : -footer // 2] = bytes(len(metadata[-footer : -footer // 2]))
    pages = b"PAR1" + bytes(len(whole) - footer - 12) + whole[-footer - 8 :]
    length = whole[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1"
    cuts = (4, 5, 8, 12, 100, len(whole) // 2, len(whole) - 8, len(whole) - 4, len(whole) - 1)
    damaged = "is cut short or damaged"
    return [
        *_many("truncated", damaged, {f"at {n}": _written(whole[:n]) for n in cuts}),
        *_many(
            "damaged",
            damaged,
            {
                "metadata": _written(bytes(metadata)),
                "pages": _written(pages),
                "length": _written(length),
                "waste after it": _written(whole + b"waste"),
            },
        ),
        *_many(
            "not parquet",
            "is not a parquet file",
            {
                "text": _written(b"userId,movieId,rating\n"),
                "encrypted": _written(b"PARE" + whole[4:]),
                "pq": _written(b"waste", "a.pq"),
                "zeros": _written(bytes(1000)),
                "no head": _written(whole[4:]),
            },
        ),
    ]


def _wrong_kinds() -> list[BadInput]:
    ids: dict[str, pa.Array] = {
        "truth": pa.array([True] * 5),
        "dates": pa.array([_DAY] * 5),
        "bytes": pa.array([b"a"] * 5),
        "decimals": pa.array([decimal.Decimal("1.5")] * 5),
    }
    ratings: dict[str, pa.Array] = {
        "text": pa.array(RATINGS),
        "words": pa.array([NAMES[0]] * 5),
        "truth": pa.array([True] * 5),
        "dates": pa.array([_DAY] * 5),
        "bytes": pa.array([b"4"] * 5),
    }
    nested: dict[str, pa.Array] = {
        "list": pa.array([[1]] * 5),
        "struct": pa.array([{"a": 1}] * 5),
        "map": pa.array([[("a", 1)]] * 5, pa.map_(pa.string(), pa.int64())),
    }
    kind = "must hold integers or text"
    one = "must hold one value in each row, it holds nested values"
    return [
        *_many("user of the wrong kind", kind, {k: _replaced(userId=v) for k, v in ids.items()}),
        *_many("item of the wrong kind", kind, {k: _replaced(movieId=v) for k, v in ids.items()}),
        *_many(
            "rating of the wrong kind",
            "must be a number, row 1 is not",
            {k: _replaced(rating=v) for k, v in ratings.items()},
        ),
        *_many("nested user", one, {k: _replaced(userId=v) for k, v in nested.items()}),
        *_many("nested rating", one, {k: _replaced(rating=v) for k, v in nested.items()}),
    ]


def _wrong_values() -> list[BadInput]:
    def ratings(value: float | None) -> pa.Array:
        return pa.array([*map(float, RATINGS[:2]), value, *map(float, RATINGS[3:])])

    def users(value: Any, kind: pa.DataType | None = None) -> pa.Array:
        convert = str if pa.types.is_string(kind or pa.int64()) else int
        return pa.array([*map(convert, USERS[:2]), value, *map(convert, USERS[3:])], kind)

    floats = [float(user) for user in USERS]
    text = pa.string()
    missing = {
        "integer": _replaced(userId=users(None)),
        "text": _replaced(userId=users(None, text)),
        "empty text": _replaced(userId=users("", text)),
        "NaN": _replaced(userId=pa.array([*floats[:2], float("nan"), *floats[3:]])),
        "item": _replaced(movieId=users(None)),
    }
    pair = {"userId": [int(USERS[0])] * 5, "movieId": [int(ITEMS[0])] * 5}
    large = pa.array([1, 2, 2**64 - 1, 3, 4], pa.uint64())
    scale = ("--scale", "0", "5", "0.00001")
    nothing = pa.nulls(5)
    return [
        *_many("missing id", "must not be missing, row 3 is", missing),
        *_many("only missing ids", "must not be missing, row 1", {"null": _replaced(userId=nothing)}),
        *_many("only missing ratings", "must not be missing, row 1", {"null": _replaced(rating=nothing)}),
        *_many("missing rating", "missing, row 3 is", {"float": _replaced(rating=ratings(None))}),
        *_many(
            "rating that is not finite",
            "must be a finite number, row 3 is not",
            {v: _replaced(rating=ratings(float(v))) for v in ("nan", "inf", "-inf")},
        ),
        *_many(
            "rating off the scale",
            "must be on the scale (0-5 in steps of 1e-05), row 3 is not",
            {str(v): _replaced(rating=ratings(v)) for v in (-3.0, 99.0, 1.000005)},
            scale,
        ),
        *_many(
            "fraction for an id",
            "must be an integer or text, row 3 is not",
            {
                "half": _replaced(userId=pa.array([*floats[:2], 0.5, *floats[3:]])),
                "infinity": _replaced(userId=pa.array([*floats[:2], float("inf"), *floats[3:]])),
                "large": _replaced(movieId=pa.array([*floats[:2], 1e300, *floats[3:]])),
            },
        ),
        *_many("id too large", "signed 64-bit", {"uint64": _replaced(userId=large)}),
        *_many("pair twice", "row 2 repeats row 1", {"all": _replaced(**pair)}),
        *_many(
            "inexact rating", "must be exact as a 64-bit float", {"int64": _replaced(rating=pa.array([2**62 + 1] * 5))}
        ),
    ]


def _wrong_columns() -> list[BadInput]:
    good = pa.table(good_columns())
    none = pa.table({name: column[:0] for name, column in good_columns().items()})
    twice = pa.table([*good.columns, good["rating"]], names=[*good.column_names, "rating"])
    return [
        *_many("no rows", "has no rows", {"typed": _written(as_bytes(none))}),
        *_many(
            "missing column",
            "or the like; name the column",
            {
                name: _written(as_bytes(good.rename_columns(names)))
                for name, names in (
                    ("user", ["who", "item", "rating"]),
                    ("item", ["user", "what", "rating"]),
                    ("rating", ["user", "item", "how"]),
                )
            },
        ),
        *_many("no columns", "none of the 0 columns is", {"none": _written(as_bytes(pa.table({})))}),
        *_many("ambiguous", "could each be it", {"twice": _written(as_bytes(twice))}),
        *_many("misspelt", "did you mean 'rating'?", {"rating": _replaced()}, ("--rating", "raiting")),
    ]


def _bombs() -> list[BadInput]:
    """Return small files of very many rows, each row group the same few bytes."""

    def rows(n_groups: int) -> Make:
        return lambda folder: put(folder, "a.parquet", _equal_rows(n_groups))

    def text(folder: Path) -> Path:
        names = pa.array([f"{NAMES[0]}{n:06}" + "x" * 1000 for n in range(20_000)])
        columns = {"user": names, "item": names, "rating": pa.array([4] * 20_000)}
        path = folder / "a.parquet"
        parquet.write_table(pa.table(columns), path, compression="zstd", use_dictionary=False)
        return path

    small = ("--read", f"max_bytes={2**20}")
    return [
        *_many("inflates to gigabytes", "must be at most 2 GiB once inflated", {"rows": rows(91)}),
        *_many(
            "inflates beyond a small limit",
            "must be at most 1 MiB once inflated",
            {"rows": rows(1), "text": text},
            small,
        ),
    ]


@cache
def _equal_rows(n_groups: int) -> bytes:
    """Return a file of `n_groups` million equal rows; a few hundred bytes for each million."""
    same = {"user": 1, "item": 2, "rating": 3}
    group = pa.table({k: pa.array(np.full(MILLION, v)) for k, v in same.items()})
    sink = io.BytesIO()
    with parquet.ParquetWriter(sink, group.schema, write_statistics=False) as writer:
        for _ in range(n_groups):
            writer.write_table(group, row_group_size=MILLION)
    return sink.getvalue()
