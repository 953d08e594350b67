"""JSON lines: one object a line, also packed with gzip."""

from __future__ import annotations

import gzip
import json
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from goodfence.data.columns import Columns, find_columns
from goodfence.data.files import RatingsFile, too_large
from goodfence.data.frame import ReadOptions
from goodfence.data.ids import is_text
from goodfence.data.lines import BYTE_ORDER_MARK, BYTES_OF_A_ROW, TIMES_HELD, Lines, changes
from goodfence.data.times import found_among, keep_times
from goodfence.errors import FileProblem, GoodfenceWarning, ValueProblem

_MOST = 2**63
_EXACT = 2**53
_BYTES_TOGETHER = 2**19
"""Of JSON are parsed at a time: as Python's own objects they take many times more."""


def is_json(file: RatingsFile) -> bool:
    """Return whether a text file is JSON, by its ending, or by how its first line begins."""
    if file.suffixes[0] in (".json", ".jsonl", ".ndjson"):
        return True
    beginning = file.beginning
    if file.suffixes[1]:
        try:
            with gzip.open(file.path) as inner:
                beginning = inner.read(len(beginning))
        except (OSError, EOFError, zlib.error):  # which is said where all of it is read
            return False
    plain = beginning.removeprefix(BYTE_ORDER_MARK).lstrip()
    return plain.startswith((b'{"', b'{ "', b"{'"))


def read_json(
    file: RatingsFile, options: ReadOptions, *, timed: bool = True
) -> tuple[pa.Table, Columns]:
    """Return the user, item and rating of a file of JSON lines, its times, and what they are called in it.

    The columns are found among the members of the first line; times that the caller did not name only if `timed`.
    """
    lines = Lines(file, options.max_bytes, options.encoding)
    first = lines.head()[0]
    if first.lstrip().startswith(b"["):
        raise FileProblem(
            f"{file.name!r} must be JSON lines, one object a line, and is an array; write it again as lines "
            "(pandas: orient='records', lines=True)"
        )
    members = _object(first, 1, file)
    columns = find_columns(list(members), **options.columns)
    if columns.time is None and timed:
        columns = found_among(columns, {name: [str(members[name])] for name in columns.unused})
    parts: dict[str, list[pa.Array]] = {role: [] for role in columns.by_role}
    n_rows = n_bytes = 0
    for number, together in _pieces(lines):
        objects = _objects(together, number, columns, file)
        try:
            for role in parts:
                parts[role].append(_column(objects, number, role, columns))
                n_bytes += parts[role][-1].nbytes
        except _NoTime as problem:
            return _untimed(problem, file, options)
        n_rows += len(objects)
        if (
            n_rows * BYTES_OF_A_ROW + TIMES_HELD * (n_bytes - 8 * len(parts) * n_rows)
            > options.max_bytes
        ):
            raise too_large(file.name, options.max_bytes)
    try:
        found = {role: _joined(parts[role], role, columns) for role in columns.by_role}
    except _NoTime as problem:
        return _untimed(problem, file, options)
    chunks = found.pop("time").chunks if columns.time is not None else []
    times, columns = keep_times(chunks, columns, named=options.time is not None)
    return pa.table({**found, **times}), columns


class _NoTime(ValueError):
    """A member that was to be a time and is none; it is told to nobody, but as a problem or a warning."""


def _untimed(problem: _NoTime, file: RatingsFile, options: ReadOptions) -> tuple[pa.Table, Columns]:
    """Read the file without times, where the caller named none."""
    if options.time is not None:
        raise ValueProblem(str(problem)) from None
    warnings.warn(f"times are left out: {problem}", GoodfenceWarning, stacklevel=3)
    return read_json(file, options, timed=False)


def _pieces(lines: Lines) -> Iterator[tuple[int, list[bytes]]]:
    """Yield a few lines at a time, blank ones empty, with the number of the first."""
    number = 1
    for chunk in lines.chunks():
        start = 0
        while start < len(chunk):
            end = chunk.rfind(b"\n", start, start + _BYTES_TOGETHER) + 1
            end = end or chunk.index(b"\n", start) + 1  # one line that is longer
            piece = chunk[start:end].split(b"\n")[:-1]
            yield number, piece
            number, start = number + len(piece), end


def _objects(
    lines: Sequence[bytes], number: int, columns: Columns, file: RatingsFile
) -> list[tuple[int, dict[str, Any]]]:
    """Return the line number and the object of each line that is not blank: all at once where nothing is odd."""
    full = [(number + at, line) for at, line in enumerate(lines) if line.strip()]
    text = b"\n".join(line for _, line in full)
    # A member that is named twice shows as a name that is there more often than lines are.
    once = all(
        text.count(json.dumps(name).encode()) <= len(full) for name in columns.by_role.values()
    )
    try:
        found = json.loads(
            b"[" + text.replace(b"\n", b",") + b"]", parse_float=_float, parse_constant=str
        )
    except (ValueError, RecursionError):
        found = []
    if once and len(found) == len(full) and all(type(one) is dict for one in found):
        return [(line, one) for (line, _), one in zip(full, found, strict=True)]
    return [(line, _object(text, line, file)) for line, text in full]


def _object(line: bytes, number: int, file: RatingsFile) -> dict[str, Any]:
    try:
        found = json.loads(line, object_pairs_hook=_once, parse_float=_float, parse_constant=str)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise FileProblem(
            f"{file.name!r} must hold one JSON object a line, line {number} is none, or names a member twice"
        ) from None
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a member is named twice")
    return found


def _float(text: str) -> float | str:
    """Return the number, or its spelling where a float cannot hold it."""
    value = float(text)
    return text if value in (float("inf"), float("-inf")) or changes(text, value) else value


def _column(
    objects: list[tuple[int, dict[str, Any]]], number: int, role: str, columns: Columns
) -> pa.Array:
    """Return one member of each object: integers or text for ids and times, floats for ratings."""
    name, label = columns.by_role[role], columns.label(role)
    values = [one.get(name) for _, one in objects]
    plain = _plain_column(values, role)
    if plain is not None:
        return plain
    numeric = role in ("rating", "weight")
    problem = _NoTime if role == "time" else ValueProblem
    for (line, _), value in zip(objects, values, strict=True):
        if value is None or value == "":
            raise problem(f"{label} must not be missing, line {line} is")
        if not (_is_rating if numeric else _is_id)(value):
            rule = "a number that a 64-bit float holds" if numeric else "an integer or text"
            raise problem(f"{label} must be {rule}, line {line} is not")
    if numeric:
        return pa.array(np.array(values, dtype=np.float64))
    raise problem(f"{label} must hold integers or text, and holds both near line {number}")


def _plain_column(values: list[Any], role: str) -> pa.Array | None:
    """Return the values at once where nothing is odd, as it is most often."""
    kinds = set(map(type, values))
    with suppress(OverflowError, UnicodeError, pa.ArrowException):
        if role in ("rating", "weight") and kinds <= {int, float}:
            numbers = np.array(values, dtype=np.float64)
            if bool((np.abs(numbers) < _EXACT).all()):
                return pa.array(numbers)
        elif role not in ("rating", "weight") and (
            kinds == {int} or (kinds == {str} and "" not in values)
        ):
            return pa.array(values, pa.int64() if kinds == {int} else pa.string())
    return None


def _is_rating(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) <= _EXACT)


def _is_id(value: Any) -> bool:
    if type(value) is str:  # JSON's escapes can spell half of a character
        return not any("\ud800" <= letter <= "\udfff" for letter in value)
    return type(value) is int and -_MOST <= value < _MOST


def _joined(parts: list[pa.Array], role: str, columns: Columns) -> pa.ChunkedArray:
    if len({part.type for part in parts}) > 1:
        problem = _NoTime if role == "time" else ValueProblem
        raise problem(f"{columns.label(role)} must hold integers or text, and holds both")
    if role == "time":
        return pa.chunked_array(parts)
    whole = pa.concat_arrays(parts)  # many dictionaries would each repeat the ones before
    return pa.chunked_array([whole.dictionary_encode() if is_text(whole.type) else whole])
