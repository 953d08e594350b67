"""When ratings were given and events happened: columns of times, found by their names, as integers.

Integers are kept as they are, whatever they count (most often seconds since 1970). Dates and times of day become whole
seconds since 1970: as a type says, as ISO 8601 writes them, with "UTC" behind, or as 17.11.2026. What 03/04/2019 means
the caller must say.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goodfence.arrays import Integers
from goodfence.data.columns import TIMES, Columns, fold_name
from goodfence.data.ids import SPACE, is_text, plain_type, refuse_rows, signed_integers, type_in_words
from goodfence.errors import ValueProblem, warn

DateOrder: TypeAlias = Literal["day-first", "month-first"]
"""What 03/04/2019 means: the 3rd of April, or the 4th of March."""

_LIKELY = (100_000_000, 4_102_444_800)
"""From 1973 to 2100, in seconds since 1970: what integers are times without a name that says so."""
_UNITS = (1, 10**3, 10**6, 10**9)
_OF_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_INTEGER = re.compile(r"(-?[0-9]{1,18})(\.0*)?", re.ASCII)  # pandas writes 7.0 where one is missing
_DIGITS = r"^-?[0-9]{1,19}(\.0*)?$"
_NOTHING = r"\.0*$"
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?", re.ASCII)
_WRITTEN = tuple(pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC"))
"""How a time may be written: without a zone or with one, with up to six or nine digits after the second."""
_REWRITTEN = (
    (r"^([0-9])([./-])", r"0\1\2"),
    (r"^([0-9]{2}[./-])([0-9])([./-])", r"\10\2\3"),
    (r"^([0-9]{4})/([0-9]{2})/", r"\1-\2-"),
    (r"^([0-9]{2})\.([0-9]{2})\.([0-9]{4})", r"\3-\2-\1"),
    (r" ?(UTC|GMT)$", "Z"),
    (r" ([+-][0-9]{2}:?[0-9]{2})$", r"\1"),
)
"""What is written in other ways, and the same as ISO 8601 writes it."""
_UNTOLD = r"^([0-9]{2})[/-]([0-9]{2})[/-]([0-9]{4})"
_ORDERS = {"day-first": r"\3-\2-\1", "month-first": r"\3-\1-\2"}
_RULE = "must be an integer or a date as in 2026-11-17 or 2026-11-17T20:15:00Z"
_WHICH = (
    "does not tell day from month, as in 03/04/2019; say read='dates=day-first' or read='dates=month-first' (--read)"
)
TOO_MANY_TIMES = "times are left out: they would take more memory than read='max_bytes=...' (--read) allows"
BYTES_OF_A_TIME = 16  # what a time takes in memory while a file is read, beside its row


def found_among(columns: Columns, texts: Mapping[str, Sequence[str]]) -> Columns:
    """Return the columns with the time: the one called so, or left over, whose first `texts` are times."""
    if columns.positional:
        left = columns.unused if columns.rating is not None and len(columns.unused) == 1 else ()
        likely = [name for name in left if texts[name] and all(map(_is_likely, texts[name]))]
    else:
        likely = [
            name
            for name in columns.unused
            if fold_name(name) in TIMES and texts[name] and _look_like_times(texts[name])
        ]
    return columns.with_time(likely[0]) if len(likely) == 1 else columns


def named_times(columns: Columns, types: Mapping[str, pa.DataType]) -> Columns:
    """Return the columns with the time: the one called so and of such a type; text only where no other is."""
    called = [name for name in columns.unused if fold_name(name) in TIMES and name in types]
    for fits in (_is_temporal, is_text):
        likely = [name for name in called if fits(plain_type(types[name]))]
        if likely:
            return columns.with_time(likely[0]) if len(likely) == 1 else columns
    return columns


def _is_temporal(kind: pa.DataType) -> bool:
    types = pa.types
    return any(holds(kind) for holds in (types.is_integer, types.is_timestamp, types.is_date, types.is_floating))


def _look_like_times(texts: Sequence[str]) -> bool:
    """Return whether all of these are integers, or all of them dates."""
    if all(map(_INTEGER.fullmatch, texts)):
        return True
    written = _iso(pa.array(texts, pa.string()))
    if pc.all(pc.match_substring_regex(written, _UNTOLD)).as_py():
        return True
    dates = all(map(_DATE.fullmatch, written.to_pylist()))
    return dates and _cast(written, *_WRITTEN) is not None


def _is_likely(text: str) -> bool:
    found = _INTEGER.fullmatch(text)
    if found:
        return _unit(int(found[1]), int(found[1])) is not None
    return _look_like_times([text])


def _unit(first: int, last: int) -> int | None:
    """Return how many of these a second has, where they are times between 1973 and 2100; None where they are not."""
    lowest, highest = _LIKELY
    fits = (unit for unit in _UNITS if lowest * unit <= first and last <= highest * unit)
    return next(fits, None)


def affordable(columns: Columns, n_bytes: int, n_timed: int, max_bytes: int, *, named: bool) -> Columns:
    """Return the columns without the time, where `n_timed` bytes more are too many and it was not `named`."""
    if columns.time is None or named or not n_bytes <= max_bytes < n_bytes + n_timed:
        return columns
    warn(TOO_MANY_TIMES)
    return columns.without_time()


def without_times(table: pa.Table) -> tuple[pa.Table, list[pa.Array]]:
    """Return a table without its column "time", and the chunks of that; none where it has none."""
    if "time" not in table.column_names:
        return table, []
    return table.drop_columns(["time"]), table["time"].chunks


def keep_times(
    chunks: list[pa.Array], columns: Columns, *, named: bool, dates: DateOrder | None = None
) -> tuple[dict[str, pa.ChunkedArray], Columns]:
    """Return the times as a column "time"; a warning and none where one that was not `named` holds something else."""
    if columns.time is None:
        return {}, columns
    first = next((_decoded(chunk.slice(0, 20)) for chunk in chunks if len(chunk)), pa.array([]))
    first = first.drop_null()
    unlike = is_text(first.type) and not _look_like_times(first.to_pylist())
    numbered = columns.positional and len(first) and _INTEGER.fullmatch(str(first[0]).strip(SPACE))
    try:
        times = read_times(chunks, columns.label("time"), dates)
        if numbered and not named and _unit(int(times.min()), int(times.max())) is None:
            raise ValueProblem(f"{columns.label('time')} must be times between 1973 and 2100, and is not")
    except ValueProblem as problem:
        if named:
            raise
        if not unlike:  # else nothing is lost
            warn(f"times are left out: {problem}")
        return {}, columns.without_time()
    return {"time": pa.chunked_array([times])}, columns


def read_times(chunks: list[pa.Array], label: str, dates: DateOrder | None = None) -> Integers:
    """Return a column as integers; its chunks are taken out of the list, which frees them one by one."""
    times = np.empty(sum(map(len, chunks)), dtype=np.int64)
    at, kinds, rewritten = 0, (), False
    chunks.reverse()
    while chunks:
        chunk = _decoded(chunks.pop())
        if len(chunk) == 0:
            continue
        refuse_rows(np.asarray(chunk.is_null()), f"{label} must not be missing", "is", at)
        if is_text(chunk.type):
            chunk = pc.utf8_trim(chunk, SPACE)
            empty = np.asarray(pc.equal(chunk, ""), dtype=np.bool_)
            refuse_rows(empty, f"{label} must not be missing", "is", at)
            kinds = kinds or _kinds(chunk)
            rewritten = rewritten or not kinds
            if rewritten:
                chunk = _iso(chunk, dates)
                if pc.any(pc.match_substring_regex(chunk, _UNTOLD)).as_py():
                    raise ValueProblem(f"{label} {_WHICH}")
                kinds = kinds or _kinds(chunk)
            chunk = _parsed(chunk, kinds, label, at)
        times[at : at + len(chunk)] = _seconds(chunk, label, at)
        at += len(chunk)
    return times


def _decoded(chunk: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(chunk.type):
        chunk = chunk.dictionary_decode()
    return chunk.cast(pa.large_string()) if pa.types.is_string_view(chunk.type) else chunk


def _seconds(chunk: pa.Array, label: str, at: int) -> Integers:
    """Return what is typed as integers; `at` is how many rows come before."""
    kind, types = chunk.type, pa.types
    if types.is_floating(kind) or types.is_uint64(kind):
        return np.asarray(signed_integers(chunk, label, _RULE, at))
    if types.is_date(kind):
        chunk = chunk.cast(pa.timestamp("ms"))
    elif not (types.is_integer(kind) or types.is_timestamp(kind)):
        raise ValueProblem(f"{label} {_RULE}, row 1 is not: it holds {type_in_words(kind)}")
    return np.asarray(chunk.cast(pa.int64())) // _OF_A_SECOND[getattr(chunk.type, "unit", "s")]


def _iso(texts: pa.Array, dates: DateOrder | None = None) -> pa.Array:
    """Return dates as ISO 8601 writes them; 03/04/2019 only where `dates` says what it means."""
    for pattern, other in _REWRITTEN:
        texts = pc.replace_substring_regex(texts, pattern, other)
    return texts if dates is None else pc.replace_substring_regex(texts, _UNTOLD, _ORDERS[dates])


def _kinds(texts: pa.Array) -> tuple[pa.DataType, ...]:
    """Return how the first row is written: as an integer, as a date, or as one with a zone."""
    kinds = ((pa.int64(),), _WRITTEN[::2], _WRITTEN[1::2])
    return next((some for some in kinds if _cast(texts.slice(0, 1), *some) is not None), ())


def _parsed(texts: pa.Array, kinds: Sequence[pa.DataType], label: str, at: int) -> pa.Array:
    """Return texts as one of these kinds, or name the first that is none."""
    found = _cast(texts, *kinds)
    if found is not None:
        return found
    row = bisect_left(range(len(texts)), True, key=lambda n: _cast(texts.slice(0, n + 1), *kinds[-1:]) is None)
    raise ValueProblem(f"{label} {_RULE}, row {at + row + 1} is not")


def _cast(texts: pa.Array, *kinds: pa.DataType) -> pa.Array | None:
    """Return texts as the first of these kinds that all of them are."""
    for kind in kinds:
        numbers = texts
        if pa.types.is_integer(kind):
            if not pc.all(pc.match_substring_regex(texts, _DIGITS)).as_py():
                continue
            if pc.any(pc.match_substring(texts, ".")).as_py():
                numbers = pc.replace_substring_regex(texts, _NOTHING, "")
        with suppress(pa.ArrowException):  # whose message quotes the text
            return numbers.cast(kind)
    return None


def span(times: Integers) -> tuple[str, str]:
    """Return the first and the last time: days where the integers are likely times, else the integers themselves."""
    first, last = int(times.min()), int(times.max())
    unit = _unit(first, last)
    if unit is None:
        return str(first), str(last)
    days = (datetime.fromtimestamp(one // unit, UTC).date().isoformat() for one in (first, last))
    return next(days), next(days)
