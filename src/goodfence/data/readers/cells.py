"""What the fields of a text file mean: integers or text for ids, numbers for ratings."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from goodfence.data.coding import first_row, missing_rows
from goodfence.errors import GoodfenceWarning, ValueProblem

_INTEGER = r"^(0|-?[1-9][0-9]{0,18})$"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_NOT_FINITE = r"^(?i)[+-]?(nan|inf|infinity)$"
_SPACE = " \t"


def parse_ids(column: pa.ChunkedArray, label: str) -> pa.ChunkedArray:
    """Return a text column as a dictionary: of integers if every id is one, else of text.

    Examples
    --------
    >>> parse_ids(pa.chunked_array([["10", "9", "10"]]), "user").type.value_type
    DataType(int64)
    >>> parse_ids(pa.chunked_array([["10", "09"]]), "user").type.value_type
    DataType(string)
    """
    coded = column.dictionary_encode().unify_dictionaries().combine_chunks()
    values = _trimmed(coded.dictionary, label)
    integers = _as_integers(values)
    if integers is None:
        _refuse_missing(coded, values, label)
        integers = values
    return pa.chunked_array([pa.DictionaryArray.from_arrays(coded.indices, integers)])


def parse_ratings(column: pa.ChunkedArray, label: str) -> pa.ChunkedArray:
    """Return a text column as numbers, or name the first row that is not one.

    Examples
    --------
    >>> parse_ratings(pa.chunked_array([["4", "four"]]), "rating")
    Traceback (most recent call last):
    ...
    goodfence.errors.ValueProblem: rating must be a number, row 2 is not
    """
    try:
        return column.cast(pa.float64())
    except pa.ArrowInvalid:
        trimmed = pc.utf8_trim(column, _SPACE)
    _refuse(pc.equal(trimmed, ""), f"{label} must not be missing", "is")
    _refuse(
        pc.match_substring_regex(trimmed, _NOT_FINITE), f"{label} must be a finite number", "is not"
    )
    _refuse(
        pc.invert(pc.match_substring_regex(trimmed, _NUMBER)), f"{label} must be a number", "is not"
    )
    return trimmed.cast(pa.float64())


def _refuse(rows: pa.ChunkedArray, rule: str, verdict: str) -> None:
    broken = np.asarray(rows.fill_null(False).to_numpy())
    if broken.any():
        raise ValueProblem(f"{rule}, row {first_row(broken)} {verdict}")


def _trimmed(values: pa.Array, label: str) -> pa.Array:
    trimmed = pc.utf8_trim(values, _SPACE)
    if not trimmed.equals(values):
        warnings.warn(
            f"{label} has ids with spaces around them; the spaces were left out",
            GoodfenceWarning,
            stacklevel=2,
        )
    return trimmed


def _as_integers(values: pa.Array) -> pa.Array | None:
    if not pc.all(pc.match_substring_regex(values, _INTEGER)).as_py():
        return None
    try:
        return values.cast(pa.int64())
    except pa.ArrowInvalid:  # nineteen digits may be too many
        return None


def _refuse_missing(coded: pa.DictionaryArray, values: pa.Array, label: str) -> None:
    """Refuse "NA", "null" and their like in a column that is otherwise integers.

    In a column of names they may be names; among integers they are not ids.
    """
    spelled = missing_rows(pa.chunked_array([values]), words=True)
    others = values.filter(pa.array(~spelled))
    if not spelled.any() or len(others) == 0 or _as_integers(others) is None:
        return
    indices: npt.NDArray[np.int32] = coded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    raise ValueProblem(f"{label} must not be missing, row {first_row(spelled[indices])} is")
