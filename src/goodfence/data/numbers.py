"""Ratings that are written as text: numbers, with a decimal point or comma, that a 64-bit float holds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from goodfence.arrays import Flags
from goodfence.data.ids import first_row
from goodfence.errors import GoodfenceWarning, ValueProblem, require

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_COMMA = r"^[+-]?[0-9]+,[0-9]+$"
_THOUSANDS = r"^[+-]?[0-9]{1,3}(,[0-9]{3})+$"
_NOT_FINITE = r"^(?i)[+-]?(nan|inf|infinity)$"
_SPACE = " \t"
_WHOLE = 2.0**53  # beyond it a float holds not every integer


def parse_ratings(
    column: pa.ChunkedArray, label: str, decimal: str | None = None
) -> pa.ChunkedArray:
    """Return a text column as numbers, or name the first row that is not one.

    Examples
    --------
    >>> parse_ratings(pa.chunked_array([["4", "four"]]), "rating")
    Traceback (most recent call last):
    ...
    goodfence.errors.ValueProblem: rating must be a number, row 2 is not
    """
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    coded = coded.unify_dictionaries().combine_chunks()
    written = Written.of(coded.dictionary, decimal)
    _refuse(written, coded.indices, label)
    if written.comma:
        warnings.warn(
            f"{label} is written with a decimal comma, and was read so", GoodfenceWarning, 2
        )
    return pa.chunked_array([pa.array(written.values).take(coded.indices)])


def _refuse(written: Written, codes: pa.Array, label: str) -> None:
    """Raise with the first row that is no number; `codes` are null where a field is empty, which is said later."""
    for broken, rule, verdict in (
        (written.missing, "must not be missing", "is"),
        (written.infinite, "must be a finite number", "is not"),
        (written.textual, "must be a number", "is not"),
        (written.inexact, "must be a number that a 64-bit float holds", "is not"),
    ):
        if broken.any():
            known = np.asarray(pc.is_valid(codes).to_numpy(zero_copy_only=False))
            indices = codes.fill_null(0).to_numpy(zero_copy_only=False)
            row = first_row(broken[indices] & known)
            advice = written.advice if broken is written.textual else ""
            raise ValueProblem(f"{label} {rule}, row {row} {verdict}{advice}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Different texts, the number that each is, and what is wrong with those that are none."""

    values: npt.NDArray[np.float64]
    missing: Flags
    infinite: Flags
    textual: Flags
    inexact: Flags
    comma: bool
    """Whether a decimal comma was found without being stated."""
    advice: str

    @classmethod
    def of(cls, texts: pa.Array, decimal: str | None = None) -> Written:
        """Return what the texts are, with a decimal point, or the stated or only possible comma."""
        require(decimal in (None, ".", ","), "decimal", "'.' or ','", decimal)
        trimmed = pc.utf8_trim(texts, _SPACE)
        found = decimal is None and _has_commas(trimmed)
        if found or decimal == ",":
            plain = pc.replace_substring(trimmed, ",", ".", max_replacements=1)
            textual = ~_matches(plain, _NUMBER)
            if decimal == ",":  # then a point would be something else
                textual |= _matches(trimmed, r"\.")
            trimmed = plain
        else:
            textual = ~_matches(trimmed, _NUMBER)
        missing = _matches(trimmed, "^$")
        spelled = _matches(trimmed, _NOT_FINITE)
        numbers = pc.if_else(pa.array(textual), "0", trimmed).cast(pa.float64())
        values = np.asarray(numbers.to_numpy(zero_copy_only=False))
        return cls(
            values=values,
            missing=missing,
            infinite=spelled | ~np.isfinite(values),
            textual=textual & ~missing & ~spelled,
            inexact=_inexact(trimmed, values, textual),
            comma=found,
            advice=_advice(trimmed, textual, decimal),
        )


def _matches(texts: pa.Array, pattern: str) -> Flags:
    found = pc.match_substring_regex(texts, pattern)
    return np.array(found.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _has_commas(texts: pa.Array) -> bool:
    """Return whether a comma can be nothing but a decimal one: no point anywhere, and no group of three digits."""
    commas = _matches(texts, _COMMA)
    return bool(
        commas.any()
        and not _matches(texts, r"\.").any()
        and not _matches(texts, _THOUSANDS).any()
        and (commas | _matches(texts, r"^[+-]?[0-9]*$")).all()
    )


def _inexact(texts: pa.Array, values: npt.NDArray[np.float64], textual: Flags) -> Flags:
    """Return which numbers a float would change: integers beyond its digits, and what is too small for it."""
    size = np.abs(values)
    unsafe = ~textual & np.isfinite(values) & ((size >= _WHOLE) | (size == 0))
    changed = np.zeros(len(values), dtype=np.bool_)
    for place in np.flatnonzero(unsafe).tolist():
        changed[place] = changes(texts[place].as_py(), float(values[place]))
    return changed


def changes(text: str, value: float) -> bool:
    """Return whether a number of this spelling is not `value`, by more than its last digit.

    Examples
    --------
    >>> changes("9007199254740993", 9007199254740992.0), changes("1e-400", 0.0), changes("0.1000000000000000", 0.1)
    (True, True, False)
    """
    try:
        exact = Decimal(text)
    except InvalidOperation:  # an exponent of nineteen digits
        return True
    if value == 0:
        return exact != 0
    return abs(value) >= _WHOLE and Decimal(value) != exact


def _advice(texts: pa.Array, textual: Flags, decimal: str | None) -> str:
    if decimal is None and (_matches(texts, _COMMA) & textual).any():
        return "; if it has a decimal comma, say so with decimal=',' (--decimal ,)"
    return ""
