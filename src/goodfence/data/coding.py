"""A column of ids as sorted ids and codes: for each row of the table, the position of its id.

Ids are sorted, integers by value and text by code point, so the order of a file's lines leaves no
trace.
"""

from __future__ import annotations

import unicodedata
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from goodfence.data.ids import Ids
from goodfence.errors import ColumnProblem, GoodfenceWarning, ValueProblem

_LARGEST = np.iinfo(np.int64).max
_MISSING_WORDS = ("NA", "N/A", "NaN", "nan", "NULL", "Null", "null", "None", "\\N", "<NA>")


@dataclass(frozen=True, slots=True)
class Coded:
    """Sorted ids, and the position of each row's id among them."""

    ids: Ids
    codes: npt.NDArray[np.int32]


def code_ids(column: pa.ChunkedArray, label: str, kind: str) -> Coded:
    """Return the ids of an arrow column in order, and each row's position among them.

    Parameters
    ----------
    column
        Integers, text, whole floats (as pandas makes of integers), or a dictionary of these.
    label
        How an error names the column.
    kind
        What the ids are of: "users" or "items".

    Examples
    --------
    >>> coded = code_ids(pa.chunked_array([["bob", "ann", "bob"]]), "user", "users")
    >>> coded.ids.values, coded.codes
    (array(['ann', 'bob'], dtype=object), array([1, 0, 1], dtype=int32))
    """
    indices, values = _encoded(_as_ids(column, label), label)
    values = values.dictionary_encode()  # a dictionary from elsewhere may hold a value twice
    codes = values.indices.to_numpy(zero_copy_only=False)[indices]
    return _sorted(codes.astype(np.int32, copy=False), values.dictionary, label, kind)


def missing_rows(column: pa.ChunkedArray, words: bool = False) -> npt.NDArray[np.bool_]:
    """Return which rows of a text column are missing.

    With `words`, also those that say so ("NA", "null").
    """
    missing = pc.is_null(column)
    if words:
        spelled = pc.is_in(column, value_set=pa.array(_MISSING_WORDS, column.type))
        missing = pc.or_(missing, spelled)
    return np.asarray(missing.to_numpy())


def first_row(holds: npt.NDArray[np.bool_]) -> int:
    """Return the number, counted from 1, of the first row that `holds`."""
    return int(np.argmax(holds)) + 1


def _as_ids(column: pa.ChunkedArray, label: str) -> pa.ChunkedArray:
    """Return the column as int64-safe integers, text, or a dictionary of them.

    Refuse everything else.
    """
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_null(kind):
        raise ValueProblem(f"{label} must not be missing, row 1 is")
    if pa.types.is_floating(kind):
        return _whole(_decoded(column), label)
    if pa.types.is_string_view(kind):
        return _decoded(column).cast(pa.large_string())
    if pa.types.is_uint64(kind):
        return _signed(_decoded(column), label)
    if not (pa.types.is_integer(kind) or _is_text(kind)):
        raise ColumnProblem(f"{label} must hold integers or text, it holds {describe(kind)}")
    return column


def _encoded(column: pa.ChunkedArray, label: str) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """Return each row's index into the values, and the values: no null, no empty text."""
    array = _one_dictionary(column)
    values = array.dictionary
    unknown = np.asarray(pc.is_null(array.indices).to_numpy(zero_copy_only=False))
    if _is_text(values.type):
        empty = np.asarray(pc.equal(values, "").to_numpy(zero_copy_only=False), dtype=np.bool_)
        filled = np.asarray(array.indices.fill_null(0).to_numpy(zero_copy_only=False))
        unknown |= empty[filled] if len(empty) else False
    if unknown.any():
        raise ValueProblem(f"{label} must not be missing, row {first_row(unknown)} is")
    return array.indices.to_numpy(zero_copy_only=False), values


def _one_dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    if pa.types.is_dictionary(column.type):
        try:
            clean = not any(chunk.dictionary.null_count for chunk in column.chunks)
            whole = column.unify_dictionaries().combine_chunks() if clean else None
        except pa.ArrowException:  # indices too narrow for all values together
            whole = None
        if whole is not None:
            return whole
    return _decoded(column).dictionary_encode().unify_dictionaries().combine_chunks()


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(column.type):
        return column
    chunks = [chunk.dictionary_decode() for chunk in column.chunks]
    return pa.chunked_array(chunks, type=column.type.value_type)


def _sorted(codes: npt.NDArray[np.int32], values: pa.Array, label: str, kind: str) -> Coded:
    """Return ids and codes in sorted order, without values that no row has."""
    used = np.bincount(codes, minlength=len(values)) > 0
    if not used.all():
        codes = (np.cumsum(used, dtype=np.int32) - np.int32(1))[codes]
        values = values.filter(pa.array(used))
    order = pc.sort_indices(values).to_numpy(zero_copy_only=False)
    ranks = np.empty(len(order), dtype=np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    values = values.take(pa.array(order))
    if _is_text(values.type):
        _warn_about_text(values, label)
    return Coded(Ids.of_sorted(_own(values), kind), ranks[codes])


def _own(values: pa.Array) -> npt.NDArray[Any]:
    if _is_text(values.type):
        text = np.empty(len(values), dtype=object)
        text[:] = values.to_pylist()
        return text
    return np.asarray(values.cast(pa.int64()).to_numpy(zero_copy_only=False))


def _whole(column: pa.ChunkedArray, label: str) -> pa.ChunkedArray:
    floats = column.to_numpy().astype(np.float64)
    missing = np.isnan(floats)  # arrow's nulls are NaN here too
    if missing.any():
        raise ValueProblem(f"{label} must not be missing, row {first_row(missing)} is")
    broken = (floats != np.floor(floats)) | (np.abs(floats) > 2.0**53)
    if broken.any():
        raise ValueProblem(
            f"{label} must be a whole number or text, row {first_row(broken)} is not"
        )
    return pa.chunked_array([floats.astype(np.int64)])


def _signed(column: pa.ChunkedArray, label: str) -> pa.ChunkedArray:
    beyond = pc.greater(column, pa.scalar(_LARGEST, pa.uint64())).fill_null(False)
    if pc.any(beyond).as_py():
        row = first_row(np.asarray(beyond.to_numpy()))
        raise ValueProblem(f"{label} must fit in a signed 64-bit integer, row {row} does not")
    return column.cast(pa.int64())


def _warn_about_text(values: pa.Array, label: str) -> None:
    if not pc.all(pc.string_is_ascii(values)).as_py():
        spellings = {unicodedata.normalize("NFC", value) for value in values.to_pylist()}
        if len(spellings) < len(values):
            _warn(f"{label} has ids that differ only by Unicode normalisation; they are kept apart")
    if missing_rows(pa.chunked_array([values]), words=True).any():
        _warn(
            f"{label} has ids that read like a missing value (NA, null, NaN); they are kept as ids"
        )


def _warn(message: str) -> None:
    warnings.warn(message, GoodfenceWarning, stacklevel=2)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def describe(kind: pa.DataType) -> str:
    """Return what a column of this arrow type holds, in plain words.

    Examples
    --------
    >>> describe(pa.list_(pa.int64()))
    'nested values'
    """
    tests = (
        (pa.types.is_nested, "nested values"),
        (pa.types.is_boolean, "true and false"),
        (pa.types.is_temporal, "dates or times"),
        (pa.types.is_decimal, "decimal numbers"),
        (pa.types.is_floating, "fractions"),
        (pa.types.is_integer, "integers"),
        (_is_text, "text"),
    )
    return next((words for holds, words in tests if holds(kind)), "something else")
