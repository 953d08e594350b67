"""From a table to triplets: who, what, how much, checked row by row and put in order."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import narwhals.stable.v1 as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse

from goodfence.arrays import AnyIntegers, Floats, Integers, Rows
from goodfence.data.columns import ROLES, Columns, find_columns
from goodfence.data.files import DEFAULT_MAX_BYTES
from goodfence.data.ids import Ids, code_ids, describe, refuse_rows
from goodfence.data.scale import Scale, ScaleLike
from goodfence.errors import (
    ColumnProblem,
    DataError,
    DuplicateProblem,
    GoodfenceWarning,
    ValueProblem,
    require,
)
from goodfence.settings import finite

Duplicates = Literal["error", "last", "first", "mean"]
T = TypeVar("T", bound=np.generic)
_OFTEN_NO_RATING = (-1, 0, 99, -99, 98, 100, 127, 255, 999, -999, 9999, -9999)
_MANY = 0.2  # the share of all rows from which a 0 is frequent
_FEWEST = 3  # different ratings, below which nothing is odd
_MOST_COUNTED = 1000
_MOST_GRADES = 1000
_BLOCK = 2**16  # ratings that stay in the processor's cache


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How the ratings of a file are to be read."""

    user: str | None = None
    item: str | None = None
    rating: str | None = None
    """The columns, by name, or by position from 1 ("1") where the file has no header line; None finds them."""
    scale: ScaleLike | None = None
    """What ratings can be given; None observes it."""
    duplicates: Duplicates = "error"
    """What to do where a user rated an item twice: refuse, keep the last or the first row, or take the mean."""
    separator: str | None = None
    """What separates the fields of a text file, a space for any blanks; None finds it."""
    decimal: str | None = None
    """What stands before the fraction of a rating in a text file, "." or ","; None finds it."""
    encoding: str | None = None
    """How a text file is written; None is UTF-8."""
    unrated: float | Sequence[float] | None = None
    """What a rating says where there is none, as -1 or 99: such rows are left out, and counted in a warning."""
    max_bytes: int = DEFAULT_MAX_BYTES
    """How many bytes the file may inflate to."""

    @property
    def columns(self) -> dict[str, str | None]:
        """The columns by role, as `find_columns` takes them."""
        return {"user": self.user, "item": self.item, "rating": self.rating}


@dataclass(frozen=True)
class Triplets:
    """Ratings as three columns of equal length, each (row, column) once, in row-major order."""

    users: Ids
    items: Ids
    rows: Rows
    columns: Rows
    values: Floats
    n_repeated: int = 0
    """How many ratings of the source were for a pair that had one already."""

    def __repr__(self) -> str:
        shape = f"{len(self.users):,} users x {len(self.items):,} items"
        return f"Triplets({shape}, {len(self.values):,} ratings)"

    def csr(self) -> sparse.csr_array:
        """Return the ratings as a users x items matrix, canonical and read-only; a 0 stays a rating."""
        counts = np.bincount(self.rows, minlength=len(self.users))
        small = len(self.values) <= np.iinfo(np.int32).max
        starts = np.zeros(len(self.users) + 1, dtype=np.int32 if small else np.int64)
        np.cumsum(counts, out=starts[1:])
        parts = (self.values, self.columns.astype(starts.dtype, copy=False), starts)
        for part in parts:
            part.flags.writeable = False
        shape = (len(self.users), len(self.items))
        matrix = sparse.csr_array(parts, shape=shape, copy=False)
        matrix.has_canonical_format = True
        return matrix


def read_triplets(
    frame: Any,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    duplicates: Duplicates = "error",
    scale: Scale | None = None,
) -> Triplets:
    """Return the checked triplets of a data frame: pandas, polars, arrow or their like.

    `frame` has one row per rating; a rating outside the declared `scale` is refused with its row.

    Examples
    --------
    >>> table = pa.table({"uid": [2, 1], "film": ["b", "a"], "stars": [0, 5]})
    >>> read_triplets(table).rows
    array([0, 1], dtype=int32)
    """
    known = _known_frame(frame)
    columns = find_columns(known.columns, user=user, item=item, rating=rating)
    arrays = {
        role: _arrow(known, name, columns.label(role))
        for role, name in zip(ROLES, columns.chosen, strict=True)
    }
    return order_triplets(arrays, columns, duplicates=duplicates, scale=scale)


def order_triplets(
    parts: dict[str, pa.ChunkedArray],
    columns: Columns,
    *,
    duplicates: Duplicates = "error",
    scale: Scale | None = None,
    guessed: bool = False,
) -> Triplets:
    """Return the triplets of the columns user, item and rating, which are taken out of `parts` one by one.

    `columns` says what they were called where they come from, for errors. `guessed` says that neither a name nor the
    caller told which column holds the ratings: then it must look like ratings, before anything else is said of it.
    """
    rules = get_args(Duplicates)
    require(duplicates in rules, "duplicates", f"one of {', '.join(rules)}", duplicates)
    if len(parts["rating"]) == 0:
        raise DataError("there must be at least one rating, and there is none")
    label = columns.label("rating")
    values = rating_values(parts.pop("rating"), label)
    if scale is not None:
        refuse_rows(~scale.holds(values), f"{label} must be on the scale ({scale})")
    elif guessed:
        check_grades(values, columns)
    users = code_ids(parts.pop("user"), columns.label("user"), "users")
    items = code_ids(parts.pop("item"), columns.label("item"), "items")
    repeats = find_repeats(users.codes, items.codes, len(items.ids))
    kept = _settled(values, repeats, duplicates, scale)
    if scale is None:
        check_spread(kept, label)
    rows, places = repeats.first(users.codes), repeats.first(items.codes)
    return Triplets(users.ids, items.ids, rows, places, kept, n_repeated=repeats.n_repeated)


def _settled(
    values: Floats, repeats: Repeats, duplicates: Duplicates, scale: Scale | None
) -> Floats:
    """Return one rating for each pair."""
    if repeats.n_repeated == 0:
        return repeats.first(values)
    if duplicates == "error":
        later, earlier = repeats.earliest()
        raise DuplicateProblem(
            f"a user must rate an item once, row {later} repeats row {earlier} "
            f"({repeats.n_repeated:,} such rows); "
            "choose with duplicates= (--duplicates) last, first or mean"
        )
    settled: Floats = getattr(repeats, duplicates)(values)  # the first, the last or the mean
    if scale is not None and not scale.holds(settled).all():
        raise DataError(
            "the mean of repeated ratings must be on the declared scale, and at least one falls "
            "between its steps; choose duplicates last or first, or declare a scale without steps"
        )
    message = (
        f"{repeats.n_repeated:,} ratings repeat a pair of user and item; kept the {duplicates}"
    )
    warnings.warn(message, GoodfenceWarning, stacklevel=2)
    return settled


def _known_frame(frame: Any) -> nw.DataFrame[Any]:
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError:
        raise DataError(
            "the ratings must be a data frame in memory (pandas, polars, arrow or another that "
            f"narwhals knows), got {type(frame).__name__}; collect a lazy one first"
        ) from None
    except Exception:  # each library has its own error for two columns of one name
        raise ColumnProblem("the columns of the data frame must have different names") from None


def _arrow(frame: nw.DataFrame[Any], name: str, label: str) -> pa.ChunkedArray:
    """Return one column as arrow; whatever goes wrong is told without its value."""
    series = frame.get_column(name)
    native = series.to_native()
    if isinstance(native, pa.ChunkedArray):
        return native
    try:
        return pa.chunked_array([series.to_arrow()])
    except Exception:  # arrow's message quotes the value, which may be somebody's id
        kinds = [(at, type(value)) for at, value in enumerate(series, 1) if value is not None]
        row = next((at for at, kind in kinds if kind is not kinds[0][1]), 1)
        raise ColumnProblem(
            f"{label} must hold one kind of value, row {row} is of another"
        ) from None


@dataclass(frozen=True, slots=True)
class Repeats:
    """The rows of a table, grouped by their pair, in the order of the pairs."""

    order: Integers
    """The rows by pair, and by their position in the table within a pair."""
    starts: Integers
    """Where each pair begins in `order`."""
    in_order: bool = False
    """Whether the table is in the order of its pairs already, each of them once."""

    @property
    def n_repeated(self) -> int:
        """How many rows are for a pair that an earlier row has."""
        return len(self.order) - len(self.starts)

    def first(self, column: npt.NDArray[T]) -> npt.NDArray[T]:
        """Return what `column` holds in the first row of each pair."""
        return column if self.in_order else column[self.order[self.starts]]

    def last(self, column: npt.NDArray[T]) -> npt.NDArray[T]:
        """Return what `column` holds in the last row of each pair."""
        ends = np.append(self.starts[1:], len(self.order))
        chosen: npt.NDArray[T] = column[self.order[ends - 1]]
        return chosen

    def mean(self, values: Floats) -> Floats:
        """Return the mean of each pair's values."""
        counts = np.diff(np.append(self.starts, len(self.order)))
        sums: Floats = np.add.reduceat(values[self.order], self.starts)
        return sums / counts

    def earliest(self) -> tuple[int, int]:
        """Return the first row that repeats a pair and the row it repeats, both counted from 1."""
        is_first = np.zeros(len(self.order), dtype=np.bool_)
        is_first[self.starts] = True
        later = np.where(is_first, len(self.order), self.order)
        place = int(np.argmin(later))
        start = self.starts[np.searchsorted(self.starts, place, side="right") - 1]
        return int(self.order[place]) + 1, int(self.order[start]) + 1


def find_repeats(rows: AnyIntegers, columns: AnyIntegers, n_columns: int) -> Repeats:
    """Return the table's rows grouped by (row, column) of the matrix.

    Examples
    --------
    >>> find_repeats(np.array([1, 0, 1]), np.array([0, 1, 0]), 2).earliest()
    (3, 1)
    """
    keys = rows.astype(np.int64) * n_columns + columns
    if bool((keys[1:] > keys[:-1]).all()):
        everything = np.arange(len(keys), dtype=np.int64)
        return Repeats(everything, everything, in_order=True)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return Repeats(order, starts)


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
        raise ValueProblem(f"{label} must be a number, row 1 is not: it holds {describe(kind)}")
    try:
        values = np.asarray(column.cast(pa.float64()))
    except pa.ArrowInvalid:
        raise ValueProblem(
            f"{label} must be exact as a 64-bit float, at least one is not"
        ) from None
    refuse_rows(~np.isfinite(values), f"{label} must be a finite number")
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
            "purchases, which are no ratings; if they are ratings, declare the scale with scale= (--scale)"
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
