"""JSON lines: one object a line, of which three members are the user, the item and the rating."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from goodfence.data.columns import ROLES, Columns, find_columns
from goodfence.data.files import RatingsFile, too_large
from goodfence.data.frame import ReadOptions
from goodfence.data.ids import is_text
from goodfence.data.lines import BYTE_ORDER_MARK, BYTES_OF_A_ROW, TIMES_HELD, Lines, changes
from goodfence.errors import FileProblem, ValueProblem

_MOST = 2**63
_EXACT = 2**53
_BYTES_TOGETHER = 2**19
"""So many bytes of lines are parsed at a time: as Python's own objects they take many times more."""


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


def read_json(file: RatingsFile, options: ReadOptions) -> tuple[pa.Table, Columns]:
    """Return the user, item and rating of a file of JSON lines, and what they are called in it.

    The columns are found among the members of the first line.
    """
    lines = Lines(file, options.max_bytes, options.encoding)
    first = lines.head()[0]
    if first.lstrip().startswith(b"["):
        raise FileProblem(
            f"{file.name!r} must be JSON lines, one object a line, and is an array; write it again as lines "
            "(pandas: orient='records', lines=True)"
        )
    columns = find_columns(list(_object(first, 1, file)), **options.columns)
    parts: dict[str, list[pa.Array]] = {role: [] for role in ROLES}
    n_rows = n_bytes = 0
    for number, together in _pieces(lines):
        objects = _objects(together, number, columns, file)
        for role in ROLES:
            parts[role].append(_column(objects, number, role, columns))
            n_bytes += parts[role][-1].nbytes
        n_rows += len(objects)
        if n_rows * BYTES_OF_A_ROW + TIMES_HELD * (n_bytes - 24 * n_rows) > options.max_bytes:
            raise too_large(file.name, options.max_bytes)
    return pa.table({role: _joined(parts[role], columns.label(role)) for role in ROLES}), columns


def _pieces(lines: Lines) -> Iterator[tuple[int, list[bytes]]]:
    """Yield a few lines at a time, blank ones empty, with the number of the first."""
    number = 1
    for chunk in lines.chunks(without_first=False):
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
    once = all(text.count(json.dumps(name).encode()) <= len(full) for name in columns.chosen)
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
        found = json.loads(
            line, object_pairs_hook=_once, parse_float=_float, parse_constant=lambda text: text
        )
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
    """Return one member of each object: integers or text for ids, floats for ratings."""
    name = dict(zip(ROLES, columns.chosen, strict=True))[role]
    values = [one.get(name) for _, one in objects]
    kinds = set(map(type, values))
    try:
        if role == "rating" and kinds <= {int, float}:
            numbers = np.array(values, dtype=np.float64)
            if bool((np.abs(numbers) < _EXACT).all()):
                return pa.array(numbers)
        elif role != "rating" and (kinds == {int} or (kinds == {str} and "" not in values)):
            return pa.array(values, pa.int64() if kinds == {int} else pa.string())
    except (OverflowError, UnicodeError, pa.ArrowException):  # beyond 64 bits, half a character
        pass
    for line, one in objects:
        _check(one.get(name), role, line, columns)
    if role == "rating":
        return pa.array(np.array(values, dtype=np.float64))
    raise ValueProblem(
        f"{columns.label(role)} must hold integers or text, and holds both near line {number}"
    )


def _check(value: Any, role: str, line: int, columns: Columns) -> None:
    """Refuse an id or a rating that is none, with its line."""
    label = columns.label(role)
    if value is None or value == "":
        raise ValueProblem(f"{label} must not be missing, line {line} is")
    if role == "rating":
        good = type(value) is float or (type(value) is int and abs(value) <= _EXACT)
        rule = "a number that a 64-bit float holds"
    else:
        good = (type(value) is str and _is_whole(value)) or (
            type(value) is int and -_MOST <= value < _MOST
        )
        rule = "an integer or text"
    if not good:
        raise ValueProblem(f"{label} must be {rule}, line {line} is not")


def _is_whole(text: str) -> bool:
    """Return whether a text can be written: JSON's escapes can spell half of a character."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _joined(parts: list[pa.Array], label: str) -> pa.ChunkedArray:
    if len({part.type for part in parts}) > 1:
        raise ValueProblem(f"{label} must hold integers or text, and holds both")
    whole = pa.concat_arrays(parts)  # many dictionaries would each repeat the ones before
    return pa.chunked_array([whole.dictionary_encode() if is_text(whole.type) else whole])
