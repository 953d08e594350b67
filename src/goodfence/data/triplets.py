"""Triplets: who, what, how much, checked row by row and put in order."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import narwhals.stable.v1 as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse

from goodfence.data.coding import code_ids, first_row
from goodfence.data.columns import Columns, find_columns
from goodfence.data.ids import Ids
from goodfence.data.repeats import Repeats, find_repeats
from goodfence.data.scale import Scale
from goodfence.data.values import check_scale, rating_values
from goodfence.errors import ColumnProblem, DataError, DuplicateProblem, GoodfenceWarning, require

Duplicates = Literal["error", "last", "first", "mean"]


@dataclass(frozen=True)
class Triplets:
    """Ratings as three columns of equal length, each (row, column) once, in row-major order."""

    users: Ids
    """The people, by row number."""
    items: Ids
    """The items, by column number."""
    rows: npt.NDArray[np.int32]
    columns: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]
    n_repeated: int = 0
    """How many ratings of the source were for a pair that had one already."""

    def __repr__(self) -> str:
        shape = f"{len(self.users):,} users x {len(self.items):,} items"
        return f"Triplets({shape}, {len(self.values):,} ratings)"

    def csr(self) -> sparse.csr_array:
        """Return the ratings as a users x items matrix, canonical and read-only.

        A 0 stays a rating.
        """
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

    Parameters
    ----------
    frame
        One row per rating.
    user, item, rating
        The columns, where their names do not say it.
    duplicates
        What to do where a person rated an item twice: refuse ("error"), keep the "last" or the
        "first" row, or take the "mean".
    scale
        The declared scale, if there is one: a rating outside it is refused with its row.

    Examples
    --------
    >>> table = pa.table({"uid": [2, 1], "film": ["b", "a"], "stars": [0, 5]})
    >>> read_triplets(table).rows
    array([0, 1], dtype=int32)
    """
    _check_duplicates(duplicates)
    known = _known_frame(frame)
    columns = find_columns(known.columns, user=user, item=item, rating=rating)
    arrays = {
        role: _arrow(known, name, columns.label(role))
        for role, name in zip(("user", "item", "rating"), columns.chosen, strict=True)
    }
    table = pa.table(arrays)
    return order_triplets(table, columns, duplicates=duplicates, scale=scale)


def order_triplets(
    table: pa.Table,
    columns: Columns,
    *,
    duplicates: Duplicates = "error",
    scale: Scale | None = None,
) -> Triplets:
    """Return the triplets of an arrow table whose columns are called user, item and rating.

    `columns` says what they were called where they come from, for errors.
    """
    _check_duplicates(duplicates)
    if table.num_rows == 0:
        raise DataError("there must be at least one rating, and there is none")
    values = rating_values(table["rating"], columns.label("rating"))
    if scale is not None:
        check_scale(values, scale, columns.label("rating"))
    users = code_ids(table["user"], columns.label("user"), "users")
    items = code_ids(table["item"], columns.label("item"), "items")
    repeats = find_repeats(users.codes, items.codes, len(items.ids))
    kept = _settled(values, repeats, duplicates, scale)
    rows, places = repeats.first(users.codes), repeats.first(items.codes)
    return Triplets(users.ids, items.ids, rows, places, kept, n_repeated=repeats.n_repeated)


def _check_duplicates(duplicates: Duplicates) -> None:
    known = get_args(Duplicates)
    require(duplicates in known, "duplicates", f"one of {', '.join(known)}", duplicates)


def _settled(
    values: npt.NDArray[np.float64], repeats: Repeats, duplicates: Duplicates, scale: Scale | None
) -> npt.NDArray[np.float64]:
    """Return one rating for each pair."""
    if repeats.n_repeated == 0:
        return repeats.first(values)
    if duplicates == "error":
        later, earlier = repeats.earliest()
        raise DuplicateProblem(
            f"a person must rate an item once, row {later} repeats row {earlier} "
            f"({repeats.n_repeated:,} such rows); "
            "choose with duplicates= (--duplicates) last, first or mean"
        )
    ways: dict[str, Callable[[], npt.NDArray[np.float64]]] = {
        "first": lambda: repeats.first(values),
        "last": lambda: repeats.last(values),
        "mean": lambda: repeats.mean(values),
    }
    settled = ways[duplicates]()
    if scale is not None and not scale.holds(settled).all():
        raise DataError(
            "the mean of repeated ratings must be on the declared scale, and at least one falls "
            "between its "
            "steps; choose duplicates last or first, or declare a scale without steps"
        )
    _warn(f"{repeats.n_repeated:,} ratings repeat a pair of person and item; kept the {duplicates}")
    return settled


def _known_frame(frame: Any) -> nw.DataFrame[Any]:
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError:
        raise DataError(
            "the ratings must be a data frame in memory (pandas, polars, arrow or another that "
            "narwhals knows), "
            f"got {type(frame).__name__}; collect a lazy one first"
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
        column = series.to_arrow()
    except Exception:  # arrow's message quotes the value, which may be somebody's id
        row = _first_of_another_kind(series.to_list())
        raise ColumnProblem(
            f"{label} must hold one kind of value, row {row} is of another"
        ) from None
    return pa.chunked_array([column])


def _first_of_another_kind(values: list[Any]) -> int:
    kinds = [type(value) for value in values if value is not None]
    other = np.array([value is not None and type(value) is not kinds[0] for value in values])
    return first_row(other)


def _warn(message: str) -> None:
    warnings.warn(message, GoodfenceWarning, stacklevel=2)
