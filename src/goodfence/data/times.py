"""When ratings were given and events happened: columns of times, found by their names, as integers.

Integers are kept as they are, whatever they count (most often seconds since 1970). Dates and times of day, as ISO 8601
writes them or as a type says, become whole seconds since 1970.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goodfence.arrays import Flags, Integers
from goodfence.data.columns import Columns, plain
from goodfence.data.ids import describe, is_text, refuse_rows
from goodfence.errors import GoodfenceWarning, ValueProblem

NAMES = frozenset(
    {
        *(
            "timestamp",
            "timestamps",
            "time",
            "date",
            "datetime",
            "ts",
            "epoch",
            "unixtime",
            "unixtimestamp",
        ),
        *(
            "unixreviewtime",
            "reviewtime",
            "reviewdate",
            "ratingtime",
            "ratingdate",
            "ratingtimestamp",
        ),
        *("eventtime", "eventdate", "eventtimestamp", "createdat", "ratedat"),
    }
)
"""The names that are known, without case and punctuation."""
_LIKELY = (100_000_000, 4_102_444_800)
"""From 1973 to 2100, in seconds since 1970: what integers are times without a name that says so."""
_UNITS = (1, 10**3, 10**6, 10**9)
_OF_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400
_INTEGER = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?", re.ASCII)
_SPACE = " \t"
_WRITTEN = (
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns"),
    pa.timestamp("ns", "UTC"),
)
"""How a time may be written: without a zone or with one, with up to six or nine digits after the second."""
_RULE = "must be an integer or a date as in 2026-11-17 or 2026-11-17T20:15:00Z"
_WHOLE = 2.0**53


def found_among(columns: Columns, texts: Mapping[str, Sequence[str]]) -> Columns:
    """Return the columns with the time, where one that is not used is called so and looks so in the first rows.

    `texts` is what the first rows say. In a file without a header line, whose columns have no names, the one that is
    left over is taken where it holds nothing but likely times.

    Examples
    --------
    >>> found = Columns(user="u", item="i", rating="r", unused=("date", "time"))
    >>> found_among(found, {"date": ["2005-09-06"], "time": ["noon"]}).time
    'date'
    """
    if columns.positional:
        left = columns.unused if columns.rating is not None and len(columns.unused) == 1 else ()
        likely = [name for name in left if texts[name] and all(map(_is_likely, texts[name]))]
    else:
        likely = [
            name
            for name in columns.unused
            if plain(name) in NAMES and texts[name] and looks_like_times(texts[name])
        ]
    return columns.with_time(likely[0]) if len(likely) == 1 else columns


def named_times(columns: Columns, types: Mapping[str, pa.DataType]) -> Columns:
    """Return the columns with the time, where exactly one that is not used is called so and is of a type that can be.

    Text counts only where no other column is one of times.
    """
    called = [name for name in columns.unused if plain(name) in NAMES and name in types]
    for fits in (_is_temporal, is_text):
        likely = [name for name in called if fits(_plain_type(types[name]))]
        if likely:
            return columns.with_time(likely[0]) if len(likely) == 1 else columns
    return columns


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_temporal(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_timestamp(kind)
        or types.is_date(kind)
        or types.is_floating(kind)
    )


def looks_like_times(texts: Sequence[str]) -> bool:
    """Return whether all of these are integers, or all of them dates.

    Examples
    --------
    >>> looks_like_times(["881250949"]), looks_like_times(["2005-09-06 10:00"]), looks_like_times(["12:30"])
    (True, True, False)
    """
    return all(map(_INTEGER.fullmatch, texts)) or _are_dates(texts)


def _are_dates(texts: Sequence[str]) -> bool:
    if not all(map(_DATE.fullmatch, texts)):
        return False
    written = pa.array(texts, pa.string())
    return any(_cast(written, kind) is not None for kind in _WRITTEN)


def _is_likely(text: str) -> bool:
    if _INTEGER.fullmatch(text):
        return _unit(int(text), int(text)) is not None
    return _are_dates([text])


def _unit(first: int, last: int) -> int | None:
    """Return how many of these a second has, where they are times between 1973 and 2100; None where they are not."""
    lowest, highest = _LIKELY
    fits = (unit for unit in _UNITS if lowest * unit <= first and last <= highest * unit)
    return next(fits, None)


def settled(table: pa.Table, columns: Columns, *, named: bool) -> tuple[pa.Table, Columns]:
    """Return the table with its times as integers; one that was not `named` and holds something else is left out.

    A warning says so where the first rows looked like times.
    """
    if columns.time is None:
        return table, columns
    place, column = table.column_names.index("time"), table["time"]
    try:
        times = read_times(column, columns.label("time"))
        numbered = columns.positional and _INTEGER.fullmatch(str(column[0]).strip(_SPACE))
        if numbered and not named and _unit(int(times.min()), int(times.max())) is None:
            raise ValueProblem(
                f"{columns.label('time')} must be times between 1973 and 2100, and is not"
            )
    except ValueProblem as problem:
        if named:
            raise
        if not _plainly_not(column):
            message = f"times are left out: {problem}"
            warnings.warn(message, GoodfenceWarning, stacklevel=3)
        return table.remove_column(place), columns.without_time()
    return table.set_column(place, "time", pa.chunked_array([times])), columns


def _plainly_not(column: pa.ChunkedArray) -> bool:
    """Return whether the first rows of text are no times, so that nothing is lost where they are not used."""
    first = column.slice(0, 20).drop_null()
    if pa.types.is_dictionary(first.type):
        first = first.cast(first.type.value_type)
    return is_text(first.type) and not looks_like_times(first.to_pylist())


def read_times(column: pa.ChunkedArray, label: str) -> Integers:
    """Return a column as integers; what is missing or no time is an error that names its row.

    Examples
    --------
    >>> read_times(pa.chunked_array([["1970-01-02", "1970-01-01T00:00:01.9"]]), "time")
    array([86400,     1])
    >>> read_times(pa.chunked_array([["1970-01-02", "noon"]]), "time")
    Traceback (most recent call last):
    ...
    goodfence.errors.ValueProblem: time must be an integer or a date as in 2026-11-17 or 2026-11-17T20:15:00Z, row 2 ...
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_string_view(kind):
        column = column.cast(pa.large_string())
    if column.null_count or pa.types.is_null(kind):
        refuse_rows(np.asarray(column.is_null()), f"{label} must not be missing", "is")
    if pa.types.is_floating(kind):
        return _of_floats(column, label)
    if pa.types.is_uint64(kind):
        beyond = pc.greater(column, pa.scalar(2**63 - 1, pa.uint64()))
        refuse_rows(np.asarray(beyond), f"{label} must fit in a signed 64-bit integer", "does not")
    if pa.types.is_integer(kind):
        integers: Integers = np.asarray(column.cast(pa.int64()))
        return integers
    if is_text(column.type):
        return _of_texts(column, label)
    if pa.types.is_date32(kind):
        return np.asarray(column.cast(pa.int32())).astype(np.int64) * _DAY
    if pa.types.is_date64(kind):
        return np.asarray(column.cast(pa.int64())) // 1000
    if pa.types.is_timestamp(kind):
        return np.asarray(column.cast(pa.int64())) // _OF_A_SECOND[kind.unit]
    raise ValueProblem(f"{label} {_RULE}, row 1 is not: it holds {describe(kind)}")


def _of_floats(column: pa.ChunkedArray, label: str) -> Integers:
    """Return floats without a fraction, as pandas makes of integers, as integers."""
    floats = column.to_numpy().astype(np.float64)
    refuse_rows(np.isnan(floats), f"{label} must not be missing", "is")
    refuse_rows((floats != np.floor(floats)) | (np.abs(floats) > _WHOLE), f"{label} {_RULE}")
    integers: Integers = floats.astype(np.int64)
    return integers


def _of_texts(column: pa.ChunkedArray, label: str) -> Integers:
    """Return integers or dates that are written out."""
    parts = [_trimmed(chunk) for chunk in column.chunks]
    for chunk, before in zip(parts, _starts(parts), strict=True):
        empty = np.asarray(pc.equal(chunk, ""), dtype=np.bool_)
        if empty.any():
            refuse_rows(_after(empty, before), f"{label} must not be missing", "is")
    for kind in (pa.int64(), *_WRITTEN):
        found = [_cast(chunk, kind) for chunk in parts]
        if all(one is not None for one in found):
            # An empty column has no parts.
            whole = pa.chunked_array(found, kind)
            return read_times(whole, label)
    kinds = (pa.int64(), *_WRITTEN)
    fitting = next((kind for kind in kinds if _cast(parts[0].slice(0, 1), kind) is not None), None)
    for chunk, before in zip(parts, _starts(parts), strict=True):
        at = 0 if fitting is None else _first_broken(chunk, fitting)
        if at is not None:
            raise ValueProblem(f"{label} {_RULE}, row {before + at + 1} is not")
    raise AssertionError("what cannot be cast has a first row that cannot")


def _trimmed(chunk: pa.Array) -> pa.Array:
    return pc.utf8_trim(chunk, _SPACE)


def _starts(parts: Sequence[pa.Array]) -> list[int]:
    return [0, *np.cumsum([len(part) for part in parts]).tolist()][: len(parts)]


def _after(broken: Flags, n_before: int) -> Flags:
    return np.concatenate((np.zeros(n_before, dtype=np.bool_), broken))


def _cast(texts: pa.Array, kind: pa.DataType) -> pa.Array | None:
    if (
        pa.types.is_integer(kind)
        and not pc.all(pc.match_substring_regex(texts, r"^-?[0-9]{1,19}$")).as_py()
    ):
        return None
    try:
        return texts.cast(kind)
    except pa.ArrowException:  # whose message quotes the text
        return None


def _first_broken(texts: pa.Array, kind: pa.DataType) -> int | None:
    """Return the first place that cannot be cast, by halving; None where all can."""
    if _cast(texts, kind) is not None:
        return None
    low, high = 0, len(texts)  # the first `low` can, the first `high` cannot
    while high - low > 1:
        middle = (low + high) // 2
        if _cast(texts.slice(low, middle - low), kind) is None:
            high = middle
        else:
            low = middle
    return low


def span(times: Integers) -> tuple[str, str]:
    """Return the first and the last time: days where the integers are likely times, else the integers themselves.

    Examples
    --------
    >>> span(np.array([893286638, 874724710])), span(np.array([1, 5]))
    (('1997-09-20', '1998-04-22'), ('1', '5'))
    """
    first, last = int(times.min()), int(times.max())
    unit = _unit(first, last)
    if unit is None:
        return str(first), str(last)
    days = (datetime.fromtimestamp(one // unit, UTC).date().isoformat() for one in (first, last))
    return next(days), next(days)
