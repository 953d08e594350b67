"""The caller's own ids: read from a column, kept in row order, and looked up again."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from goodfence.arrays import Flags, Integers, Rows
from goodfence.errors import (
    ColumnProblem,
    DataError,
    GoodfenceWarning,
    UnknownId,
    ValueProblem,
    given,
)

_LARGEST = np.iinfo(np.int64).max
_MISSING_WORDS = ("NA", "N/A", "NaN", "nan", "NULL", "Null", "null", "None", "\\N", "<NA>")


class Ids:
    """Different ids in a fixed order.

    Text is kept as it was given: two spellings that differ only by Unicode normalisation are two ids.

    Examples
    --------
    >>> ids = Ids.of(["ann", "bob", "Zoë"], "users")
    >>> ids.positions(["Zoë", "ann"])
    array([2, 0])
    """

    def __init__(self, values: npt.NDArray[Any], kind: str) -> None:
        self.values = values
        self.kind = kind

    @classmethod
    def of(cls, values: Sequence[str | int] | npt.NDArray[Any] | Ids, kind: str) -> Ids:
        """Return `values` as ids of this kind ("users", "items").

        They must be all integers or all text, and no two equal.
        """
        if isinstance(values, Ids):
            return values
        array = _as_ids(values, kind)
        n_different = len(set(array.tolist())) if array.dtype == object else len(np.unique(array))
        if n_different != len(array):
            raise DataError(f"the ids of the {kind} must all be different")
        array.flags.writeable = False
        return cls(array, kind)

    @classmethod
    def of_sorted(cls, values: npt.NDArray[Any], kind: str) -> Ids:
        """Return int64 or text ids that are known to be different, without looking again."""
        values.flags.writeable = False
        return cls(values, kind)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Ids({len(self):,} {self.kind})"

    @property
    def are_text(self) -> bool:
        """Whether the ids are text rather than integers."""
        return bool(self.values.dtype == object)

    def positions(self, wanted: Sequence[str | int] | npt.NDArray[Any]) -> Integers:
        """Return the position of each of `wanted`; one that is not there is an error that does not name it."""
        if not self.are_text and isinstance(wanted, np.ndarray) and wanted.dtype.kind in "iu":
            return self._positions_of_integers(wanted)
        position = self._position
        keys = wanted.tolist() if isinstance(wanted, np.ndarray) else list(wanted)
        try:
            return np.fromiter((position[key] for key in keys), dtype=np.int64, count=len(keys))
        except (KeyError, TypeError):
            raise self._unknown() from None

    def _positions_of_integers(self, wanted: npt.NDArray[Any]) -> Integers:
        """Look up all at once, by bisection."""
        ordered, places = self._sorted
        if wanted.dtype == np.uint64 and wanted.size and wanted.max() > _LARGEST:
            raise self._unknown()
        wanted = wanted.astype(np.int64, copy=False)
        found = np.searchsorted(ordered, wanted)
        inside = found < len(ordered)
        if not inside.all() or (ordered[found] != wanted).any():
            raise self._unknown()
        return found if places is None else places[found]

    def _unknown(self) -> UnknownId:
        expected = "text" if self.are_text else "integers"
        return UnknownId(
            f"at least one of the {self.kind} asked for is not in the ratings (ids here are {expected})"
        )

    @cached_property
    def _sorted(self) -> tuple[npt.NDArray[Any], Integers | None]:
        """The ids in ascending order and the position of each; None where they are in order already."""
        if (self.values[1:] > self.values[:-1]).all():
            return self.values, None
        places = np.argsort(self.values)
        return self.values[places], places

    @cached_property
    def _position(self) -> dict[Any, int]:
        return {value: position for position, value in enumerate(self.values.tolist())}


def _as_ids(values: Sequence[str | int] | npt.NDArray[Any], kind: str) -> npt.NDArray[Any]:
    single = isinstance(values, np.ndarray) and values.ndim == 0
    if single or isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise DataError(f"the ids of the {kind} must be listed, and are {given(type(values))}")
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError):  # lists of different lengths
        array = np.empty(0, dtype=object)
    if array.ndim == 1 and array.dtype.kind in "iu":
        if array.dtype == np.uint64 and array.size and array.max() > _LARGEST:
            raise DataError(f"the ids of the {kind} must fit in signed 64-bit integers")
        return array.astype(np.int64)
    listed = list(values)
    if listed and not all(isinstance(value, str) for value in listed):
        raise DataError(f"the ids of the {kind} must be all integers or all text")
    text = np.empty(len(listed), dtype=object)
    text[:] = [str(value) for value in listed]
    return text


@dataclass(frozen=True, slots=True)
class CodedIds:
    """Sorted ids, and the position of each row's id among them."""

    ids: Ids
    codes: Rows


def code_ids(column: pa.ChunkedArray, label: str, kind: str) -> CodedIds:
    """Return the ids of an arrow column in order, and each row's position among them.

    The column holds integers, text, floats without a fraction (as pandas makes of integers), or a dictionary of these;
    errors call it `label`. `kind` is what the ids are of: "users" or "items".

    Examples
    --------
    >>> coded = code_ids(pa.chunked_array([["bob", "ann", "bob"]]), "user", "users")
    >>> coded.ids.values, coded.codes
    (array(['ann', 'bob'], dtype=object), array([1, 0, 1], dtype=int32))
    """
    read = _read_ids(column, label)
    if pa.types.is_integer(read.type):
        _refuse_null(read, label)
        return _code_integers(read.to_numpy().astype(np.int64, copy=False), kind)
    indices, values = _encoded(read, label)
    values = values.dictionary_encode()  # a dictionary from elsewhere may hold a value twice
    codes = values.indices.to_numpy(zero_copy_only=False)[indices]
    return _sorted(codes.astype(np.int32, copy=False), values.dictionary, label, kind)


def _refuse_null(column: pa.ChunkedArray, label: str) -> None:
    if column.null_count:
        missing = np.asarray(column.is_null().to_numpy())
        raise ValueProblem(f"{label} must not be missing, row {first_row(missing)} is")


def _code_integers(numbers: Integers, kind: str) -> CodedIds:
    """Return different integers in order and the position of each: by a table where they are dense, else by sorting.

    Examples
    --------
    >>> coded = _code_integers(np.array([9, 7, 9]), "users")
    >>> coded.ids.values, coded.codes
    (array([7, 9]), array([1, 0, 1], dtype=int32))
    """
    lowest, highest = int(numbers.min()), int(numbers.max())
    if _is_dense(lowest, highest, len(numbers)):
        places = numbers - lowest
        present = np.zeros(highest - lowest + 1, dtype=np.bool_)
        present[places] = True
        ranks = np.cumsum(present, dtype=np.int32)
        return CodedIds(
            Ids.of_sorted(np.flatnonzero(present) + lowest, kind), ranks[places] - np.int32(1)
        )
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    new = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    values = ordered[new]
    del ordered
    codes = np.empty(len(numbers), dtype=np.int32)
    codes[order] = np.cumsum(new, dtype=np.int32) - np.int32(1)
    return CodedIds(Ids.of_sorted(values, kind), codes)


def _is_dense(lowest: int, highest: int, n: int) -> bool:
    return highest - lowest < 2 * n + 1024


def are_dense(column: pa.ChunkedArray) -> bool:
    """Return whether a column of integers has them so near to each other that a table of all is small."""
    ends = pc.min_max(column).as_py()
    return ends["min"] is None or _is_dense(ends["min"], ends["max"], len(column))


def missing_rows(column: pa.ChunkedArray, words: bool = False) -> Flags:
    """Return which rows of a text column are missing; with `words`, also those that say so ("NA", "null")."""
    missing = pc.is_null(column)
    if words:
        spelled = pc.is_in(column, value_set=pa.array(_MISSING_WORDS, column.type))
        missing = pc.or_(missing, spelled)
    return np.asarray(missing.to_numpy())


def first_row(holds: Flags) -> int:
    """Return the number, counted from 1, of the first row that `holds`."""
    return int(np.argmax(holds)) + 1


def _read_ids(column: pa.ChunkedArray, label: str) -> pa.ChunkedArray:
    """Return the column as int64-safe integers, text, or a dictionary of them; refuse everything else."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_null(kind):
        raise ValueProblem(f"{label} must not be missing, row 1 is")
    if pa.types.is_floating(kind):
        return _integers(_decoded(column), label)
    if pa.types.is_string_view(kind):
        return _decoded(column).cast(pa.large_string())
    if pa.types.is_uint64(kind):
        return _signed(_decoded(column), label)
    if not (pa.types.is_integer(kind) or is_text(kind)):
        raise ColumnProblem(f"{label} must hold integers or text, it holds {describe(kind)}")
    return column


def _encoded(column: pa.ChunkedArray, label: str) -> tuple[Rows, pa.Array]:
    """Return each row's index into the values, and the values: no null, no empty text."""
    array = _one_dictionary(column)
    values = array.dictionary
    unknown = np.asarray(pc.is_null(array.indices).to_numpy(zero_copy_only=False))
    if is_text(values.type):
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
            one = column.unify_dictionaries().combine_chunks() if clean else None
        except pa.ArrowException:  # indices too narrow for all values together
            one = None
        if one is not None:
            return one
    return _decoded(column).dictionary_encode().unify_dictionaries().combine_chunks()


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(column.type):
        return column
    chunks = [chunk.dictionary_decode() for chunk in column.chunks]
    return pa.chunked_array(chunks, type=column.type.value_type)


def _sorted(codes: Rows, values: pa.Array, label: str, kind: str) -> CodedIds:
    """Return ids and codes in sorted order, without values that no row has."""
    used = np.bincount(codes, minlength=len(values)) > 0
    if not used.all():
        codes = (np.cumsum(used, dtype=np.int32) - np.int32(1))[codes]
        values = values.filter(pa.array(used))
    order = pc.sort_indices(values).to_numpy(zero_copy_only=False)
    ranks = np.empty(len(order), dtype=np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    values = values.take(pa.array(order))
    if is_text(values.type):
        _warn_about_text(values, label)
    return CodedIds(Ids.of_sorted(_own(values), kind), ranks[codes])


def _own(values: pa.Array) -> npt.NDArray[Any]:
    if is_text(values.type):
        text = np.empty(len(values), dtype=object)
        text[:] = values.to_pylist()
        return text
    return np.asarray(values.cast(pa.int64()).to_numpy(zero_copy_only=False))


def _integers(column: pa.ChunkedArray, label: str) -> pa.ChunkedArray:
    floats = column.to_numpy().astype(np.float64)
    missing = np.isnan(floats)  # arrow's nulls are NaN here too
    if missing.any():
        raise ValueProblem(f"{label} must not be missing, row {first_row(missing)} is")
    broken = (floats != np.floor(floats)) | (np.abs(floats) > 2.0**53)
    if broken.any():
        raise ValueProblem(f"{label} must be an integer or text, row {first_row(broken)} is not")
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


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this arrow type holds text."""
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
        (is_text, "text"),
    )
    return next((words for holds, words in tests if holds(kind)), "something else")
