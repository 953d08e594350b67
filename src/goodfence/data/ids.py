"""The caller's own ids: read from a column, kept in row order, and looked up again."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from goodfence.arrays import Flags, Integers, Rows
from goodfence.errors import ColumnProblem, DataError, UnknownId, ValueProblem, given, warn

_LARGEST = np.iinfo(np.int64).max
SPACE = " \t"  # what may stand around a field
_INTEGER = r"^(0|-?[1-9][0-9]{0,18})$"  # as an id: 7, and not 007
_MISSING_WORDS = ("NA", "N/A", "NaN", "nan", "NULL", "Null", "null", "None", "\\N", "<NA>")


class Ids:
    """Different ids in a fixed order.

    Text is kept as it was given: two spellings that differ only by Unicode normalisation are two ids.
    """

    def __init__(self, values: npt.NDArray[Any], kind: str) -> None:
        self.values = values
        self.kind = kind

    @classmethod
    def of(cls, values: Sequence[str | int] | npt.NDArray[Any] | Ids, kind: str) -> Ids:
        """Return `values`, all integers or all text and no two equal, as ids of this kind ("users", "items")."""
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
        found = self.find(wanted.tolist() if isinstance(wanted, np.ndarray) else list(wanted))
        if (found < 0).any():
            raise self.unknown()
        return found

    def find(self, wanted: Sequence[Any]) -> Integers:
        """Return the position of each of `wanted`, -1 of what is not there."""
        position = self._position
        try:
            return np.fromiter((position.get(key, -1) for key in wanted), dtype=np.int64, count=len(wanted))
        except TypeError:  # what cannot be a key is no id
            raise self.unknown() from None

    def _positions_of_integers(self, wanted: npt.NDArray[Any]) -> Integers:
        """Look up all at once, by bisection."""
        ordered, places = self._ordered
        if wanted.dtype == np.uint64 and wanted.size and wanted.max() > _LARGEST:
            raise self.unknown()
        wanted = wanted.astype(np.int64, copy=False)
        found = np.searchsorted(ordered, wanted)
        inside = found < len(ordered)
        if not inside.all() or (ordered[found] != wanted).any():
            raise self.unknown()
        return found if places is None else places[found]

    def unknown(self, rule: str = "", hint: str = "") -> UnknownId:
        """Return the error for ids that are not there: it says which kind of id is, and names none."""
        if len(self) == 0:
            return UnknownId(
                f"there are no {self.kind} here: a model that was saved without ratings answers a profile only; call "
                "recommend(profile), or save the model with its ratings"
            )
        expected = "text" if self.are_text else "integers"
        said = rule or f"at least one of the {self.kind} asked for is not in the ratings"
        return UnknownId(f"{said} (ids here are {expected}){hint}")

    @cached_property
    def _ordered(self) -> tuple[npt.NDArray[Any], Integers | None]:
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


class CodedIds(NamedTuple):
    """Sorted ids, and the position of each row's id among them."""

    ids: Ids
    codes: Rows


def code_ids(column: pa.ChunkedArray, label: str, kind: str) -> CodedIds:
    """Return the ids, of the kind "users" or "items", of a column that errors call `label`, in order."""
    read = _read_ids(column, label)
    if pa.types.is_integer(read.type):
        if read.null_count:
            refuse_rows(np.asarray(read.is_null()), f"{label} must not be missing", "is")
        return _code_integers(read.to_numpy().astype(np.int64, copy=False), kind)
    array = one_dictionary(read)
    values, missing = array.dictionary, np.array(array.indices.is_null())
    indices = np.asarray(array.indices.fill_null(0))
    if is_text(values.type) and len(values):
        missing |= np.asarray(pc.equal(values, ""), dtype=np.bool_)[indices]
    refuse_rows(missing, f"{label} must not be missing", "is")
    values = values.dictionary_encode()  # a dictionary from elsewhere may hold a value twice
    codes = np.asarray(values.indices)[indices].astype(np.int32, copy=False)
    return _sorted(codes, values.dictionary, label, kind)


def _read_ids(column: pa.ChunkedArray, label: str) -> pa.ChunkedArray:
    """Return the column as int64-safe integers, text, or a dictionary of them; refuse everything else."""
    kind = plain_type(column.type)
    if pa.types.is_null(kind):
        raise ValueProblem(f"{label} must not be missing, row 1 is")
    if pa.types.is_string_view(kind):
        return _decoded(column).cast(pa.large_string())
    if pa.types.is_floating(kind) or pa.types.is_uint64(kind):
        return signed_integers(_decoded(column), label, "must be an integer or text")
    if not (pa.types.is_integer(kind) or is_text(kind)):
        raise ColumnProblem(f"{label} must hold integers or text, it holds {type_in_words(kind)}")
    return column


def signed_integers(numbers: pa.Array | pa.ChunkedArray, label: str, rule: str, n_before: int = 0) -> pa.ChunkedArray:
    """Return floats without a fraction, as pandas makes of integers, or unsigned integers as int64."""
    if pa.types.is_floating(numbers.type):
        floats = np.asarray(numbers).astype(np.float64)  # arrow's nulls are NaN here
        refuse_rows(np.isnan(floats), f"{label} must not be missing", "is", n_before)
        broken = (floats != np.floor(floats)) | (np.abs(floats) > 2.0**53)
        refuse_rows(broken, f"{label} {rule}", "is not", n_before)
        return pa.chunked_array([floats.astype(np.int64)])
    beyond = pc.greater(numbers, pa.scalar(_LARGEST, pa.uint64())).fill_null(False)
    fitting = f"{label} must fit in a signed 64-bit integer"
    refuse_rows(np.asarray(beyond), fitting, "does not", n_before)
    return numbers.cast(pa.int64())


def _code_integers(numbers: Integers, kind: str) -> CodedIds:
    """Return different integers in order and the position of each: by a table where they are dense, else by sorting."""
    lowest, highest = int(numbers.min()), int(numbers.max())
    if _is_dense(lowest, highest, len(numbers)):
        places = numbers - lowest
        present = np.zeros(highest - lowest + 1, dtype=np.bool_)
        present[places] = True
        ids = Ids.of_sorted(np.flatnonzero(present) + lowest, kind)
        return CodedIds(ids, np.cumsum(present, dtype=np.int32)[places] - np.int32(1))
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


def _sorted(codes: Rows, values: pa.Array, label: str, kind: str) -> CodedIds:
    """Return ids and codes in sorted order, without values that no row has."""
    used = np.bincount(codes, minlength=len(values)) > 0
    if not used.all():
        codes = (np.cumsum(used, dtype=np.int32) - np.int32(1))[codes]
        values = values.filter(pa.array(used))
    order = np.asarray(pc.sort_indices(values))
    ranks = np.empty(len(order), dtype=np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    values = values.take(pa.array(order))
    if is_text(values.type):
        _warn_about_text(values, label)
        own = np.empty(len(values), dtype=object)
        own[:] = values.to_pylist()
    else:
        own = np.asarray(values.cast(pa.int64()))
    return CodedIds(Ids.of_sorted(own, kind), ranks[codes])


def _warn_about_text(values: pa.Array, label: str) -> None:
    said = []
    if not pc.all(pc.string_is_ascii(values)).as_py():
        spellings = {unicodedata.normalize("NFC", value) for value in values.to_pylist()}
        if len(spellings) < len(values):
            said.append("differ only by Unicode normalisation; they are kept apart")
    if missing_words(values).any():
        said.append("read like a missing value (NA, null, NaN); they are kept as ids")
    for what in said:
        warn(f"{label} has ids that {what}")


def parse_ids(column: pa.ChunkedArray, label: str) -> pa.ChunkedArray:
    """Return a text column as a dictionary: of integers if every id is one, as in "7" and not "07", else of text."""
    coded = one_dictionary(column)
    values = pc.utf8_trim(coded.dictionary, SPACE)
    if not values.equals(coded.dictionary):
        warn(f"{label} has ids with spaces around them; the spaces were left out")
    integers = _as_integers(values)
    if integers is None:
        spelled = missing_among_integers(values)
        if spelled.any():
            at = np.asarray(coded.indices.fill_null(0))
            refuse_rows(spelled[at], f"{label} must not be missing", "is")
        integers = values
    return pa.chunked_array([pa.DictionaryArray.from_arrays(coded.indices, integers)])


def _as_integers(values: pa.Array) -> pa.Array | None:
    if pc.all(pc.match_substring_regex(values, _INTEGER)).as_py():
        with suppress(pa.ArrowInvalid):  # nineteen digits may be too many
            return values.cast(pa.int64())
    return None


def missing_among_integers(values: pa.Array) -> Flags:
    """Return which of different ids say that they are missing, as "NA" does: in a column of names they may be names."""
    spelled = missing_words(values)
    others = values.filter(pa.array(~spelled))
    integers = spelled.any() and len(others) > 0 and _as_integers(others) is not None
    return spelled if integers else np.zeros(len(values), dtype=np.bool_)


def missing_words(values: pa.Array) -> Flags:
    """Return which texts are missing or say so ("NA", "null")."""
    spelled = pc.is_in(values, value_set=pa.array(_MISSING_WORDS, values.type))
    return np.asarray(pc.or_(pc.is_null(values), spelled))


def one_dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return a column as one array of indices into its different values, none of which is null."""
    if pa.types.is_dictionary(column.type):
        try:
            if not any(chunk.dictionary.null_count for chunk in column.chunks):
                return column.unify_dictionaries().combine_chunks()
        except pa.ArrowException:  # indices too narrow for all values together
            pass
    return _decoded(column).dictionary_encode().unify_dictionaries().combine_chunks()


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(column.type):
        return column
    chunks = [chunk.dictionary_decode() for chunk in column.chunks]
    return pa.chunked_array(chunks, type=column.type.value_type)


def refuse_rows(broken: Flags, rule: str, verdict: str = "is not", n_before: int = 0) -> None:
    """Raise `ValueProblem` with the number, counted from 1, of the first row that is `broken`."""
    if broken.any():
        raise ValueProblem(f"{rule}, row {n_before + int(np.argmax(broken)) + 1} {verdict}")


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of what a column holds, where that may be a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this arrow type holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def type_in_words(kind: pa.DataType) -> str:
    """Return what a column of this arrow type holds, in plain words."""
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
