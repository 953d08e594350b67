"""From a table to triplets: who, what, how much and when, checked row by row and put in order."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import narwhals.stable.v1 as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from goodfence.arrays import AnyIntegers, Floats, Integers, Rows
from goodfence.data.columns import ROLES, TIMES, Columns, Feedback, find_columns, fold_name
from goodfence.data.files import DEFAULT_MAX_BYTES, check_limit
from goodfence.data.ids import SPACE, Ids, code_ids, plain_type, refuse_rows
from goodfence.data.layouts import TextLayout
from goodfence.data.matrix import read_only
from goodfence.data.scale import Scale, ScaleLike, check_grades, check_spread, rating_values
from goodfence.data.times import DateOrder, keep_times, named_times
from goodfence.errors import (
    ColumnProblem,
    DataError,
    DuplicateProblem,
    SettingError,
    ValueProblem,
    did_you_mean,
    require,
    warn,
)
from goodfence.settings import Finite, checked

Duplicates = Literal["error", "last", "first", "mean", "once", "count", "sum"]
RATING_RULES: tuple[Duplicates, ...] = ("error", "last", "first", "mean")
"""What can be done about a pair that was rated twice."""
EVENT_RULES: tuple[Duplicates, ...] = ("error", "once", "count", "sum")
"""What can be done about an event that happened twice."""
T = TypeVar("T", bound=np.generic)
Rowed = TypeVar("Rowed", pa.Table, pa.RecordBatch)
_PARSED: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("weight", "time", "where", "layout", "duplicates", "decimal", "encoding", "dates"), str),
    "separator": lambda text: {"\\t": "\t", "tab": "\t", "space": " "}.get(text, text),
    "unrated": lambda text: tuple(np.nan if one == "missing" else float(one) for one in text.split(",")),
    "max_bytes": int,
}
"""The options that `ReadOptions.parse` knows, and how each is read."""


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How the ratings or the events of a file are read; `gf.load` takes the rarer of these as `read=`."""

    user: str | None = None
    item: str | None = None
    rating: str | None = None
    """The columns, by name, or by position from 1 ("1") where the file has no header line; None finds them."""
    time: str | None = None
    """The column of the times, likewise; None uses one that is called so and holds nothing else."""
    weight: str | None = None
    """Of events: the column that says how much each counts; None counts each once."""
    where: str | None = None
    """Which rows are read, as in "event_type=view" or "event_type=view,cart"; None reads all."""
    layout: TextLayout | None = None
    """How a text file is laid out that has not a row for each rating: "wide", a row for each user and a column for each
    item, empty where it is not rated; "lists", lines of a user and their items; "baskets", lines of items alone."""
    feedback: Feedback = "explicit"
    """Whether a row is a rating, or an event without one."""
    likes: Finite | None = None
    """The least rating that counts as an event, where ratings are read as events."""
    scale: ScaleLike | None = None
    """What ratings can be given; None observes it."""
    duplicates: Duplicates | None = None
    """What to do where a user rated an item twice: refuse, keep the last or the first row, or take the mean. Where an
    event happened twice: count it once, count how often, sum its weights, or refuse. None is as `repeated` says."""
    separator: str | None = None
    """What separates the fields of a text file, a space for any blanks; None finds it."""
    decimal: str | None = None
    """What stands before the fraction of a rating in a text file, "." or ","; None finds it."""
    encoding: str | None = None
    """How a text file is written; None is UTF-8."""
    unrated: float | Sequence[float] | None = None
    """What a rating says where there is none, as -1 or 99; NaN ("missing" in text) where it says nothing. Such rows are
    left out, and counted in a warning."""
    dates: DateOrder | None = None
    """What times such as 03/04/2019 mean; None refuses them."""
    max_bytes: int = DEFAULT_MAX_BYTES
    """How many bytes the file may inflate to."""

    @classmethod
    def parse(cls, text: str | ReadOptions | None) -> ReadOptions:
        """Return the rarer options, written as for `--read`; `separator` also takes "tab" and "space"."""
        if not isinstance(text, str):
            return text or cls()
        found: dict[str, Any] = {}
        try:
            words = shlex.split(text)
        except ValueError:
            raise SettingError("read must close every quotation mark") from None
        for word in words:
            name, equals, value = word.partition("=")
            name = name.replace("-", "_")
            known = f"settings of {', '.join(_PARSED)}"
            require(name in _PARSED, "read", known, name, did_you_mean(name, _PARSED))
            require(bool(equals and value), "read", "NAME=VALUE, as in encoding=latin-1", word)
            require(name not in found, name, "given once", value)
            try:
                found[name] = _PARSED[name](value)
            except ValueError:
                also = " or missing" if name == "unrated" else ""
                raise SettingError(f"{name} must be a number{also}, got {value!r}") from None
        return cls(**found)

    def merged(self, **given: Any) -> ReadOptions:
        """Return the options with those that are given, and not the default, in the place of these."""
        kept = {name: one for name, one in given.items() if one is not None and (name, one) != ("feedback", "explicit")}
        return replace(self, **kept)

    def __post_init__(self) -> None:
        check_limit(self.max_bytes)
        name, _, values = (self.where or "all=rows").partition("=")
        require(bool(name and values), "where", "COLUMN=VALUE, as in event_type=view", self.where)

    def check(self) -> None:
        """Raise `SettingError` where options do not go together: ratings have no weight, events no scale."""
        refused = ("weight",) if self.rated else ("rating", "scale", "unrated")
        what = "ratings" if self.rated else "events"
        also = "" if self.rated else "; if there are ratings, say which are likes with likes="
        for name in refused:
            if getattr(self, name) is not None:
                raise SettingError(f"{name} must be left out for {what}{also}")
        if self.layout is not None:
            for name in ("rating", "weight", "time", "where"):
                require(getattr(self, name) is None, name, f"left out for layout={self.layout}", getattr(self, name))
            if self.rated != (self.layout == "wide"):
                hint = "likes= (--likes): 1 for 0 and 1" if self.layout == "wide" else "--feedback implicit"
                raise SettingError(f"layout={self.layout} holds {'events' if self.rated else 'ratings'}; add {hint}")
        rules = RATING_RULES if self.rated else EVENT_RULES
        for_these = f"one of {', '.join(rules)} for {what}"
        require(self.repeated in rules, "duplicates", for_these, self.duplicates)
        if not self.rated and self.repeated != "error":
            rule = "sum where a weight is named, and once or count where none is"
            weighed = self.weight is not None
            require((self.repeated == "sum") == weighed, "duplicates", rule, self.repeated)

    @property
    def rated(self) -> bool:
        """Whether the rows are ratings, of which `likes` may make events."""
        return self.feedback == "explicit" or self.likes is not None

    @property
    def repeated(self) -> Duplicates:
        """What is done about a pair that is there twice: ratings are refused, events count once, weights are summed."""
        if self.duplicates is not None:
            return self.duplicates
        if self.rated:
            return "error"
        return "once" if self.weight is None else "sum"

    @property
    def columns(self) -> dict[str, str | None]:
        """The columns by role, as `find_columns` takes them, after `check`."""
        self.check()
        given = {role: getattr(self, role) for role in ("user", "item", "rating", "weight", "where", "time")}
        given["where"] = self.where and self.where.partition("=")[0]
        needed = ROLES if self.rated else ROLES[:2]
        return {role: name for role, name in given.items() if role in needed or name is not None}


@dataclass(frozen=True)
class Triplets:
    """Ratings as three columns of equal length, each (row, column) once, in row-major order."""

    users: Ids
    items: Ids
    rows: Rows
    columns: Rows
    values: Floats
    n_repeated: int = 0  # how many ratings of the source were for a pair that had one already
    times: Integers | None = None  # when each was given, where that is known

    def __repr__(self) -> str:
        shape = f"{len(self.users):,} users x {len(self.items):,} items"
        return f"Triplets({shape}, {len(self.values):,} ratings)"

    def csr(self) -> sparse.csr_array:
        """Return the ratings as a users x items matrix, canonical and read-only; a 0 stays a rating."""
        counts = np.bincount(self.rows, minlength=len(self.users))
        kind = np.int32 if len(self.values) <= np.iinfo(np.int32).max else np.int64
        starts = np.concatenate(([0], np.cumsum(counts))).astype(kind)
        parts = (self.values, self.columns.astype(kind, copy=False), starts)
        matrix = read_only(parts, (len(self.users), len(self.items)))
        matrix.has_canonical_format = True
        return matrix


def read_triplets(frame: Any, options: ReadOptions | None = None) -> Triplets:
    """Return the checked triplets of a data frame (pandas, polars, arrow, ...), one row per rating or event."""
    given = options or ReadOptions()
    require(given.layout is None, "layout", "left out for a data frame; make it one row a rating first", given.layout)
    known = _known_frame(frame)
    columns = find_columns(known.columns, given.columns)
    if columns.time is None:
        types = {}
        for name in columns.unused:
            with suppress(ColumnProblem):  # of several kinds
                if fold_name(name) in TIMES:
                    types[name] = _arrow(known, name, name).type
        columns = named_times(columns, types)
    arrays = {role: _arrow(known, name, columns.label(role)) for role, name in columns.by_role.items()}
    if given.where is not None:
        table = filtered(pa.table(arrays), given)
        require_rows(table.num_rows)
        arrays = {role: table[role] for role in table.column_names}
    chunks = arrays.pop("time").chunks if "time" in arrays else []
    times, columns = keep_times(chunks, columns, named=given.time is not None, dates=given.dates)
    arrays |= times
    return in_order(arrays, columns, given)


def filtered(table: Rowed, options: ReadOptions) -> Rowed:
    """Return the rows that have one of the values of `where`, without its column."""
    if "where" not in table.schema.names:
        return table
    column = table["where"]
    try:
        texts = column.cast(plain_type(column.type)).cast(pa.string())
    except pa.ArrowException:  # which quotes the value
        raise ColumnProblem("where must name a column of text or numbers") from None
    values = (options.where or "").partition("=")[2].split(",")
    return table.filter(pc.is_in(pc.utf8_trim(texts, SPACE), pa.array(values, pa.string()))).drop_columns(["where"])


def require_rows(n_rows: int) -> None:
    """Raise where `where` left no row."""
    if n_rows == 0:
        raise DataError("no row has the value that where asks for (--where)")


def in_order(parts: dict[str, pa.ChunkedArray], columns: Columns, options: ReadOptions) -> Triplets:
    """Return the triplets of columns by their roles, which are taken out of `parts` one by one.

    An event counts 1, how often it happened, or the sum of its weights; its time is that of the first time.
    """
    rated, rule = options.rated, options.repeated
    if len(parts["user"]) == 0:
        raise DataError(f"there must be at least one {'rating' if rated else 'event'}")
    scale = None if options.scale is None else Scale.of(options.scale)
    values, role = np.ones(len(parts["user"])), "rating" if rated else "weight"
    label = columns.label(role) if role in parts else ""
    if label:
        values = _checked_values(parts.pop(role), label, scale, columns, options)
    users = code_ids(parts.pop("user"), columns.label("user"), "users")
    items = code_ids(parts.pop("item"), columns.label("item"), "items")
    repeats = find_repeats(users.codes, items.codes, len(items.ids))
    kept = _settled(values, repeats, rule, scale, rated=rated)
    if rated and scale is None and options.likes is None:
        check_spread(kept, label)
    if not rated and not np.isfinite(kept).all():
        raise ValueProblem(f"{label} must have finite sums, and at least one is not")
    times = None
    if "time" in parts:
        given = np.asarray(parts.pop("time"))
        early = repeats.first if rule in ("error", "first") else repeats.last
        times = early(given) if rated else repeats.least(given)
        del given
    rows, places = repeats.first(users.codes), repeats.first(items.codes)
    return Triplets(users.ids, items.ids, rows, places, kept, repeats.n_repeated, times)


def _checked_values(
    part: pa.ChunkedArray, label: str, scale: Scale | None, columns: Columns, options: ReadOptions
) -> Floats:
    values = rating_values(part, label)
    if not options.rated:
        refuse_rows(~(values > 0), f"{label} must be more than 0")
    elif scale is not None:
        refuse_rows(~scale.holds(values), f"{label} must be on the scale ({scale})")
    elif columns.positional and options.rating is None:  # neither a name nor the caller told
        check_grades(values, columns)
    return values


def _settled(values: Floats, repeats: Repeats, rule: Duplicates, scale: Scale | None, *, rated: bool) -> Floats:
    """Return one value for each pair."""
    if repeats.n_repeated == 0:
        return repeats.first(values)
    if rule == "error":
        later, earlier = repeats.earliest()
        what = "a user must rate an item" if rated else "an event must happen"
        others = "last, first or mean" if rated else "once or count, or sum where a weight is named"
        raise DuplicateProblem(
            f"{what} once, row {later} repeats row {earlier} ({repeats.n_repeated:,} such rows); choose with "
            f"read='duplicates=...' (--read): {others}"
        )
    settled = repeats.settled(values, rule)
    if scale is not None and not scale.holds(settled).all():
        raise DataError(
            "the mean of repeated ratings must be on the declared scale, and at least one falls "
            "between its steps; choose duplicates last or first, or declare a scale without steps"
        )
    if rated:
        warn(f"{repeats.n_repeated:,} ratings repeat a pair of user and item; kept the {rule}")
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
        raise ColumnProblem(f"{label} must hold one kind of value, row {row} is of another") from None


@dataclass(frozen=True, slots=True)
class Repeats:
    """The rows of a table, grouped by their pair, in the order of the pairs."""

    order: Integers  # the rows by pair, and by their position in the table within a pair
    starts: Integers  # where each pair begins in `order`
    in_order: bool = False  # whether the table is in the order of its pairs already, each of them once

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

    def settled(self, values: Floats, rule: Duplicates) -> Floats:
        """Return one value for each pair, by a rule for what is there twice; an event is 1, or its weight."""
        if rule == "once":
            return np.ones(len(self.starts))
        if rule in ("first", "last"):
            return self.first(values) if rule == "first" else self.last(values)
        with np.errstate(over="ignore"):  # whoever asks looks whether sums are finite
            sums: Floats = np.add.reduceat(values[self.order], self.starts)
        return sums / np.diff(np.append(self.starts, len(self.order))) if rule == "mean" else sums

    def least(self, values: Integers) -> Integers:
        """Return the least of each pair's values."""
        if self.in_order:
            return values
        return np.minimum.reduceat(values[self.order], self.starts)

    def earliest(self) -> tuple[int, int]:
        """Return the first row that repeats a pair and the row it repeats, both counted from 1."""
        is_first = np.zeros(len(self.order), dtype=np.bool_)
        is_first[self.starts] = True
        later = np.where(is_first, len(self.order), self.order)
        place = int(np.argmin(later))
        start = self.starts[np.searchsorted(self.starts, place, side="right") - 1]
        return int(self.order[place]) + 1, int(self.order[start]) + 1


def find_repeats(rows: AnyIntegers, columns: AnyIntegers, n_columns: int) -> Repeats:
    """Return the table's rows grouped by (row, column) of the matrix."""
    keys = rows.astype(np.int64) * n_columns + columns
    if bool((keys[1:] > keys[:-1]).all()):
        everything = np.arange(len(keys), dtype=np.int64)
        return Repeats(everything, everything, in_order=True)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return Repeats(order, starts)
