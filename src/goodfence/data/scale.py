"""The scale of ratings, columns of ratings as numbers, and numbers that may mean "not rated"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goodfence.arrays import AnyFloats, Flags, Floats
from goodfence.data.columns import Columns
from goodfence.data.ids import SPACE, one_dictionary, refuse_rows, type_in_words
from goodfence.errors import ColumnProblem, DataError, ValueProblem, require, warn
from goodfence.settings import Finite, Positive, checked, finite

_STEPS = (1.0, 0.5, 0.25, 0.1)
_ON_GRID = 1e-9
_BLOCK = 2**16  # ratings that stay in the processor's cache
_OFTEN_NO_RATING = (-1, 0, 99, -99, 98, 100, 127, 255, 999, -999, 9999, -9999)
_MANY = 0.2  # the share of all rows from which a 0 is frequent
_FEWEST = 3  # different ratings, below which nothing is odd
_MOST_GRADES = 1000
_EXACT_DIGITS = 15  # of a decimal number, which every float holds
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_COMMA = r"^[+-]?[0-9]+,[0-9]+$"
_THOUSANDS = r"^[+-]?[0-9]{1,3}(,[0-9]{3})+$"
_NOT_FINITE = r"^(?i)[+-]?(nan|inf|infinity)$"
_NOTHING = r"^(?i)(nan)?$"
_WHOLE = 2.0**53  # beyond it a float holds not every integer


@checked
@dataclass(frozen=True, slots=True)
class Scale:
    """A rating scale.

    Parameters
    ----------
    lowest, highest : float
        The lowest and the highest rating that can be given.
    step : float or None, default 1.0
        The distance between neighbouring values; None where any value between the ends can be given.
    declared : bool, default True
        True where the catalogue or the caller states the scale, False where it was only observed. An observed scale
        is itself a statistic of the data, so the private models refuse it.

    Examples
    --------
    >>> print(Scale(1, 5))
    integers 1-5
    >>> print(Scale(0.5, 5, step=0.5))
    0.5-5 in steps of 0.5
    >>> print(Scale(-5, -1))
    integers -5 to -1
    """

    lowest: Finite
    highest: Finite
    step: Positive | None = 1.0
    declared: bool = True

    def __post_init__(self) -> None:
        ends = (self.lowest, self.highest)
        require(self.lowest <= self.highest, "scale", "lowest first", ends)
        if self.step is not None:
            even = bool(self.on_grid(np.array([self.highest], dtype=np.float64))[0])
            require(even, "scale", f"a whole number of steps of {self.step:g}", ends)

    @classmethod
    def of(cls, scale: Scale | tuple[float, ...] | list[float]) -> Scale:
        """Return a scale: itself, or declared by (lowest, highest) or (lowest, highest, step)."""
        if isinstance(scale, Scale):
            return scale
        rule = "(lowest, highest) or (lowest, highest, step)"
        listed = isinstance(scale, tuple | list) and len(scale) in (2, 3)
        require(listed, "scale", rule, scale)
        lowest, highest, *steps = (finite(value, "scale") for value in scale)
        return cls(lowest, highest, steps[0] if steps else 1.0)

    @classmethod
    def observed(cls, values: AnyFloats) -> Scale:
        """Return the narrowest scale that holds `values` (at least one), marked as observed."""
        given = np.asarray(values)
        require(
            given.ndim >= 1 and given.size >= 1 and given.dtype.kind in "fiu",
            "values",
            "numbers, at least one",
            type(values),
        )
        lowest, highest = float(given.min()), float(given.max())
        for step in _STEPS:
            # The distance is tried too: far from zero, both ends can be multiples and it not.
            distance = _multiples(np.array([highest]), lowest, step)
            if distance.all() and all_multiples(given, step):
                return cls(lowest, highest, step, declared=False)
        return cls(lowest, highest, None, declared=False)

    @checked
    def holds(self, values: AnyFloats) -> Flags:
        """Return which of `values` can be given on this scale."""
        given = np.asarray(values)
        return (given >= self.lowest) & (given <= self.highest) & self.on_grid(given)

    @checked
    def on_grid(self, values: AnyFloats) -> Flags:
        """Return which of `values` are an integer number of steps above the lowest."""
        if self.step is None:
            return np.ones(np.shape(values), dtype=np.bool_)
        return _multiples(np.asarray(values), self.lowest, self.step)

    @checked
    def round(self, values: AnyFloats) -> Floats:
        """Return the nearest value of the scale to each of `values`: halves up, ends clipped, NaN kept.

        Examples
        --------
        >>> Scale(1, 5).round(np.array([0.2, 2.5, 3.49, np.nan]))
        array([ 1.,  3.,  3., nan])
        """
        clipped: Floats = np.clip(values, self.lowest, self.highest, dtype=float)
        if self.step is None:
            return clipped
        steps = np.floor((clipped - self.lowest) / self.step + 0.5)
        return np.minimum(self.lowest + steps * self.step, self.highest)

    def __str__(self) -> str:
        between = "-" if self.lowest >= 0 else " to "
        ends = f"{self.lowest:g}{between}{self.highest:g}"
        if self.step is None:
            text = f"any value {ends}"
        elif self.step == 1 and float(self.lowest).is_integer():
            text = f"integers {ends}"
        else:
            text = f"{ends} in steps of {self.step:g}"
        return text if self.declared else f"{text} (observed)"


def _multiples(values: AnyFloats, origin: float, step: float) -> Flags:
    # What overflows gives NaN, which is near nothing.
    with np.errstate(over="ignore", invalid="ignore"):
        steps = (values - origin) / step
        near: Flags = np.abs(steps - np.rint(steps)) < _ON_GRID
    return near


def all_multiples(values: AnyFloats, step: float) -> bool:
    """Return whether all values are multiples of a step; block by block, in the processor's cache, up to an odd one."""
    blocks = range(0, len(values), _BLOCK)
    return all(_multiples(values[start : start + _BLOCK], 0.0, step).all() for start in blocks)


ScaleLike: TypeAlias = Scale | tuple[float, ...]  # a scale, or (lowest, highest) or (lowest, highest, step)


def rating_values(column: pa.ChunkedArray, label: str) -> Floats:
    """Return the ratings as float64; a missing, textual or infinite one is an error that names its row."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if column.null_count:
        advice = "; leave such rows out with read='unrated=missing' (--read)" if label.startswith("rating") else ""
        refuse_rows(np.asarray(column.is_null()), f"{label} must not be missing", f"is{advice}")
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise ValueProblem(f"{label} must be a number, row 1 is not: it holds {type_in_words(kind)}")
    try:
        values = np.asarray(column.cast(pa.float64()))
    except pa.ArrowInvalid:
        raise ValueProblem(f"{label} must be exact as a 64-bit float, at least one is not") from None
    refuse_rows(~np.isfinite(values), f"{label} must be a finite number")
    if pa.types.is_decimal(kind) and kind.precision > _EXACT_DIGITS:
        different = column.unique().to_pylist()
        rounded = [one for one in different if Decimal(repr(float(one))) != one]
        broken = np.asarray(pc.is_in(column, pa.array(rounded, kind)))
        refuse_rows(broken, f"{label} must be a number that a 64-bit float holds")
    return values


def check_spread(values: Floats, label: str) -> None:
    """Refuse a column that says the same of everything, unless a scale is declared: it holds no ratings."""
    if len(values) > 1 and bool((values == values[0]).all()):
        raise ValueProblem(
            f"{label} must differ between rows, and is the same in all {len(values):,}: these look like clicks or "
            "purchases, which are no ratings; if they are ratings, declare the scale with scale= (--scale); if they "
            "are events, take them so with likes= (--likes)"
        )


def check_grades(values: Floats, columns: Columns) -> None:
    """Refuse ids or times in the place of ratings, where no name says what the column is."""
    grades = np.unique(values)
    integers = bool((grades == np.floor(grades)).all())
    if integers and (len(grades) > _MOST_GRADES or np.abs(grades).max() > _MOST_GRADES):
        raise ColumnProblem(
            f"{columns.label('rating')} must look like ratings, and holds integers that are ids or times: more than "
            f"{_MOST_GRADES:,} different, or larger than that; give the positions of user, item and rating, or declare "
            "the scale"
        )


def without_unrated(table: pa.Table, unrated: float | Sequence[float] | None, label: str) -> pa.Table:
    """Return the rows of a table whose rating is none of `unrated`; a warning counts the others."""
    if unrated is None:
        return table
    listed = unrated if isinstance(unrated, list | tuple) else [unrated]
    wanted = [finite(one, "unrated") for one in listed if one == one]
    column, out = table["rating"], np.zeros(table.num_rows, dtype=np.bool_)
    if drops_missing(unrated):
        out = np.asarray(column.is_null(nan_is_null=pa.types.is_floating(column.type)))
    out[~out] = np.isin(rating_values(column.filter(pa.array(~out)), label), wanted)
    if out.all():
        raise DataError(f"{label} must hold a rating, and every row says that there is none")
    if out.any():
        warn(f"{int(out.sum()):,} rows say that there is no rating (unrated=); left out")
    return table.filter(pa.array(~out))


def drops_missing(unrated: float | Sequence[float] | None) -> bool:
    """Return whether NaN is among what means "not rated"."""
    return unrated is not None and bool(np.isnan(unrated).any())


def warn_of_sentinels(values: Floats, label: str) -> None:
    """Warn of a number that may mean "not rated", with the setting that leaves it out."""
    for value, share, why in find_sentinels(values):
        odd = f'{value:g} ({100 * share:.2g} of 100 ratings) may mean "not rated": {why}'
        advice = f"leave it out with read='unrated={value:g}' (--read), or declare the scale"
        warn(f"{label} holds {odd}; {advice}")


def find_sentinels(values: Floats) -> list[tuple[float, float, str]]:
    """Return which of the lowest and the highest rating may mean "not rated": number, share of all rows, and why.

    It is far from the others (less so if it is -1, 0, 99 or the like), or a 0 that is frequent beside a rare rating.
    """
    # By hashing, which is faster than sorting all ratings; -0.0 is the same as 0.0.
    counted = pc.value_counts(pa.array(values + 0.0)).flatten()
    order = np.argsort(counted[0].to_numpy())
    grades, counts = (part.to_numpy()[order] for part in counted)
    found: list[tuple[float, float, str]] = []
    if len(grades) <= _FEWEST:
        return found
    for at, rest in ((0, slice(1, None)), (-1, slice(None, -1))):
        value, others, share = float(grades[at]), grades[rest], float(counts[at] / counts.sum())
        gap, apart = np.abs(value - others).min(), np.diff(others).max()
        if gap > others[-1] - others[0] or (value in _OFTEN_NO_RATING and gap >= 2 * apart):
            why = f"it is far from the others, {others[0]:g} to {others[-1]:g}"
            found.append((value, share, why))
        elif value == 0 and share >= _MANY and counts[at] > 3 * counts[rest][0]:
            found.append((value, share, "it is frequent, and the rating next to it is rare"))
    return found


def parse_ratings(
    column: pa.ChunkedArray, label: str, decimal: str | None = None, *, missing: bool = False
) -> pa.ChunkedArray:
    """Return a text column as numbers, or name the first row that is not one; null for blanks and NaN if `missing`."""
    coded = one_dictionary(column)
    written = Written.of(coded.dictionary, decimal)
    values = pa.array(written.values)
    if missing:
        nothing = _matches(pc.utf8_trim(coded.dictionary, SPACE), _NOTHING)
        values = pc.if_else(pa.array(nothing), None, values)
        written = replace(written, missing=written.missing & ~nothing, infinite=written.infinite & ~nothing)
    for broken, rule, verdict in (
        (written.missing, "must not be missing", "is"),
        (written.infinite, "must be a finite number", "is not"),
        (written.textual, "must be a number", f"is not{written.advice}"),
        (written.inexact, "must be a number that a 64-bit float holds", "is not"),
    ):
        if broken.any():  # an empty field, which is null, is told later
            known = np.asarray(coded.indices.is_valid())
            at = np.asarray(coded.indices.fill_null(0))
            refuse_rows(broken[at] & known, f"{label} {rule}", verdict)
    if written.comma:
        warn(f"{label} is written with a decimal comma, and was read so")
    return pa.chunked_array([values.take(coded.indices)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Different texts, the number that each is, and what is wrong with those that are none."""

    values: Floats
    missing: Flags
    infinite: Flags
    textual: Flags
    inexact: Flags
    comma: bool  # whether a decimal comma was found without being stated
    advice: str

    @classmethod
    def of(cls, texts: pa.Array, decimal: str | None = None) -> Written:
        """Return what the texts are, with a decimal point, or the stated or only possible comma."""
        require(decimal in (None, ".", ","), "decimal", "'.' or ','", decimal)
        texts = pc.utf8_trim(texts, SPACE)
        found, pointed = decimal is None and _has_commas(texts), _matches(texts, r"\.")
        if found or decimal == ",":
            texts = pc.replace_substring(texts, ",", ".", max_replacements=1)
        textual = ~_matches(texts, _NUMBER)
        if decimal == ",":  # then a point would be something else
            textual |= pointed
        missing, spelled = _matches(texts, "^$"), _matches(texts, _NOT_FINITE)
        values = np.asarray(pc.if_else(pa.array(textual), "0", texts).cast(pa.float64()))
        advised = decimal is None and bool((_matches(texts, _COMMA) & textual).any())
        advice = "; if it has a decimal comma, say so with read='decimal=,' (--read)"
        return cls(
            values=values,
            missing=missing,
            infinite=spelled | ~np.isfinite(values),
            textual=textual & ~missing & ~spelled,
            inexact=_inexact(texts, values, textual),
            comma=found,
            advice=advice if advised else "",
        )


def _matches(texts: pa.Array, pattern: str) -> Flags:
    return np.array(pc.match_substring_regex(texts, pattern), dtype=np.bool_)


def _has_commas(texts: pa.Array) -> bool:
    """Return whether a comma can be nothing but a decimal one: no point anywhere, and no group of three digits."""
    commas = _matches(texts, _COMMA)
    others = _matches(texts, r"\.") | _matches(texts, _THOUSANDS)
    numbers = commas | _matches(texts, r"^[+-]?[0-9]*$")
    return bool(commas.any() and not others.any() and numbers.all())


def _inexact(texts: pa.Array, values: Floats, textual: Flags) -> Flags:
    """Return which numbers a float would change: integers beyond its digits, and what is too small for it."""
    size = np.abs(values)
    changed: Flags = ~textual & np.isfinite(values) & ((size >= _WHOLE) | (size == 0))
    for place in np.flatnonzero(changed).tolist():
        changed[place] = changes(texts[place].as_py(), float(values[place]))
    return changed


def changes(text: str, value: float) -> bool:
    """Return whether a number of this spelling is not `value`, by more than its last digit."""
    try:
        exact = Decimal(text)
    except InvalidOperation:  # an exponent of nineteen digits
        return True
    if value == 0:
        return exact != 0
    return abs(value) >= _WHOLE and Decimal(value) != exact
