"""Columns of ratings: their values, whether they can be ratings at all, and numbers that may mean "not rated"."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from goodfence.arrays import Floats
from goodfence.data.columns import Columns
from goodfence.data.ids import refuse_rows, type_in_words
from goodfence.errors import ColumnProblem, DataError, GoodfenceWarning, ValueProblem
from goodfence.settings import finite

_OFTEN_NO_RATING = (-1, 0, 99, -99, 98, 100, 127, 255, 999, -999, 9999, -9999)
_MANY = 0.2  # the share of all rows from which a 0 is frequent
_FEWEST = 3  # different ratings, below which nothing is odd
_MOST_COUNTED = 1000
_MOST_GRADES = 1000
_EXACT_DIGITS = 15  # of a decimal number, which every float holds
_BLOCK = 2**16  # ratings that stay in the processor's cache


def rating_values(column: pa.ChunkedArray, label: str) -> Floats:
    """Return the ratings as float64; a missing, textual or infinite one is an error that names its row.

    Examples
    --------
    >>> rating_values(pa.chunked_array([[4, None]]), "rating (column 'stars')")
    Traceback (most recent call last):
    ...
    goodfence.errors.ValueProblem: rating (column 'stars') must not be missing, row 2 is
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if column.null_count:
        refuse_rows(np.asarray(column.is_null()), f"{label} must not be missing", "is")
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise ValueProblem(
            f"{label} must be a number, row 1 is not: it holds {type_in_words(kind)}"
        )
    try:
        values = np.asarray(column.cast(pa.float64()))
    except pa.ArrowInvalid:
        raise ValueProblem(
            f"{label} must be exact as a 64-bit float, at least one is not"
        ) from None
    refuse_rows(~np.isfinite(values), f"{label} must be a finite number")
    if pa.types.is_decimal(kind) and kind.precision > _EXACT_DIGITS:
        rounded = [
            one for one in column.unique() if Decimal(repr(float(one.as_py()))) != one.as_py()
        ]
        if rounded:
            broken = np.asarray(pc.is_in(column, pa.array([one.as_py() for one in rounded], kind)))
            refuse_rows(broken, f"{label} must be a number that a 64-bit float holds")
    return values


def check_spread(values: Floats, label: str) -> None:
    """Refuse a column that says the same of everything, unless a scale is declared: it holds no ratings.

    Examples
    --------
    >>> check_spread(np.ones(3), "rating (column 'clicks')")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    goodfence.errors.ValueProblem: rating (column 'clicks') must differ between rows, and is the same in all 3: ...
    """
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


def without_unrated(
    table: pa.Table, unrated: float | Sequence[float] | None, label: str
) -> pa.Table:
    """Return the rows of a table whose rating is none of `unrated`; a warning counts the others."""
    if unrated is None:
        return table
    listed = unrated if isinstance(unrated, list | tuple) else [unrated]
    wanted = [finite(one, "unrated") for one in listed]
    out = np.isin(rating_values(table["rating"], label), wanted)
    if out.all():
        raise DataError(f"{label} must hold a rating, and every row says that there is none")
    if out.any():
        message = (
            f"{int(out.sum()):,} rows say that there is no rating (unrated=, --unrated); left out"
        )
        warnings.warn(message, GoodfenceWarning, stacklevel=2)
    return table.filter(pa.array(~out))


def warn_of_sentinels(values: Floats, label: str) -> None:
    """Warn of a number that may mean "not rated", with the setting that leaves it out."""
    for value, share, why in find_sentinels(values):
        odd = f'{value:g} ({100 * share:.2g} of 100 ratings) may mean "not rated": {why}'
        advice = f"leave it out with unrated={value:g} (--unrated {value:g}), or declare the scale"
        warnings.warn(f"{label} holds {odd}; {advice}", GoodfenceWarning, stacklevel=3)


def find_sentinels(values: Floats) -> list[tuple[float, float, str]]:
    """Return which of the lowest and the highest rating may mean "not rated": number, share of all rows, and why.

    One of the usual numbers (-1, 0, 99, ...) that is twice as far from the rest as these are from each other, any
    number that is farther than all of their range, or a 0 that is a fifth of all and three times as frequent as the
    rating next to it.

    Examples
    --------
    >>> [value for value, _, _ in find_sentinels(np.array([-1, 7, 8, 9, 6, 10, 8.0]))]
    [-1.0]
    >>> find_sentinels(np.array([1, 2, 3, 4, 5.0]))
    []
    """
    grades, counts = _counted(values)
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


def _counted(values: Floats) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return the different ratings in order and how often each was given; half steps need no sorting."""
    lowest, width = float(values.min()), float(values.max() - values.min())
    if width > _MOST_COUNTED:
        return np.unique(values, return_counts=True)
    counts = np.zeros(int(2 * width) + 1, dtype=np.int64)
    for start in range(0, len(values), _BLOCK):
        steps = 2 * (values[start : start + _BLOCK] - lowest)
        if bool((steps != np.floor(steps)).any()):
            return np.unique(values, return_counts=True)
        counts += np.bincount(steps.astype(np.int64), minlength=len(counts))
    given = np.flatnonzero(counts)
    return lowest + given / 2, counts[given]
