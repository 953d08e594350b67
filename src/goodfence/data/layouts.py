"""Text that has not a row for each rating: a table of users x items, or a line of items for each user."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goodfence.arrays import Integers
from goodfence.data.columns import NAMES, SECOND, Columns, Roles, fold_name
from goodfence.errors import ColumnProblem, FileProblem

TextLayout: TypeAlias = Literal["wide", "lists", "baskets"]
"""A row of each user with a column of each item; a line of each user with their items; a line of items alone."""
_TOGETHER = 2**16
_RANGE = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})?", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?|nan|", re.ASCII | re.IGNORECASE)
_NOTHING = r"(?i)^[ \t]*(nan)?[ \t]*$"
STAND_IN = "\x1f"
"""The one-byte separator that takes the place of `::` and of runs of blanks; ASCII calls it the unit separator."""


def _coded(codes: Integers, values: Sequence[str] | pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(values, pa.string()))


def is_user(field: str) -> bool:
    """Return whether a header calls a column of users so."""
    return fold_name(field) in NAMES["user"] | SECOND["user"]


@dataclass(kw_only=True)
class Wide:
    """Where a table of users x items has what, and how its rows become ratings."""

    user: int | None  # the place of the users; None numbers the rows from 1
    places: range  # the places of the items
    names: list[str]
    headed: bool
    n_rows: int = 0

    @classmethod
    def of(cls, fields: Sequence[str], roles: Roles) -> Wide:
        """Return how a table is laid out, from its first line and from what the caller says."""
        at, headed = _place_of_users(fields, roles["user"], numbered=roles["item"] is not None)
        places = _places_of_items(len(fields), roles["item"], at)
        names = [fields[place] for place in places] if headed else [str(n + 1) for n in range(len(places))]
        return cls(user=at, places=places, names=names, headed=headed)

    @property
    def columns(self) -> Columns:
        """What the columns are called for whoever asks."""
        items = f"columns {self.places[0] + 1} to {self.places[-1] + 1}"
        user = "row number" if self.user is None else f"column {self.user + 1}"
        return Columns(user=user, item=items, rating="cells", layout="wide", positional=not self.headed)

    @property
    def wanted(self) -> list[str]:
        """The columns to read, by position, the users first."""
        users = [] if self.user is None else [str(self.user + 1)]
        return users + [str(place + 1) for place in self.places]

    def ratings(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the cells that hold anything, row by row, as user, item and rating."""
        n_rows, n_items = batch.num_rows, len(self.places)
        cells = pa.concat_arrays(batch.columns[-n_items:])
        filled = ~np.asarray(pc.match_substring_regex(cells.fill_null(""), _NOTHING))
        by_row = np.arange(n_rows * n_items).reshape(n_items, n_rows).T.ravel()
        by_row = by_row[filled[by_row]]
        if self.user is None:
            users = _coded(np.arange(n_rows), [str(self.n_rows + n + 1) for n in range(n_rows)])
        else:
            users = batch.column(0).dictionary_encode()
        self.n_rows += n_rows
        parts = [
            users.take(pa.array(by_row % n_rows)),
            _coded(by_row // n_rows, self.names),
            cells.take(pa.array(by_row)).dictionary_encode(),
        ]
        return pa.record_batch(parts, names=["user", "item", "rating"])


def _place_of_users(fields: Sequence[str], user: str | None, *, numbered: bool) -> tuple[int | None, bool]:
    """Return where the users are, None for nowhere, and whether the first line is a header."""
    if user is not None:
        # An item may be called 1 in the header: a number is a position.
        at = int(user) - 1 if user.isdecimal() else fields.index(user) if user in fields else -1
        if at not in range(len(fields)):
            raise ColumnProblem(
                f"user must be the name of a column of the table, or a position from 1 to {len(fields)}"
            )
        return at, not user.isdecimal() or fields[at] == "" or is_user(fields[at])
    if is_user(fields[0]):
        return 0, True
    numeric = [bool(_NUMBER.fullmatch(field)) for field in fields]
    if fields[0] == "" and not any(numeric[1:]):
        return 0, True
    # A blank in the first place begins a header, or it is a user's who did not rate the first item.
    if (any(numeric) and not all(numeric)) or (fields[0] == "" and not numbered):
        raise ColumnProblem(
            "a table of users x items must say which column has the users, by name or by position: user= (--user); if "
            "none has, item='1-' (--item)"
        )
    return None, not all(numeric)


def _places_of_items(n_columns: int, item: str | None, user: int | None) -> range:
    """Return where the items are: in all columns behind the users, or where the caller says."""
    if item is None and user:
        raise ColumnProblem("item must name the positions of the items, as in item='2-' (--item)")
    found = _RANGE.fullmatch(item or ("1-" if user is None else "2-"))
    first, last = (int(found[1]), int(found[2] or n_columns)) if found else (1, 0)
    if not first <= last <= n_columns:
        raise ColumnProblem(
            f"item must be the positions of the items in a table of users x items, within 1 to {n_columns}: "
            "item='2-101' or item='2-' (--item)"
        )
    if user in range(first - 1, last):
        raise ColumnProblem("user and item must be different columns")
    return range(first - 1, last)


def listed(pieces: Iterator[bytes], delimiter: str, name: str, *, with_user: bool) -> Iterator[pa.RecordBatch]:
    """Yield user and item of lines of items, each begun by its user or numbered; an empty field is no item."""
    users: list[str] = []
    ends: list[int] = []
    items: list[str] = []
    number = 0
    for piece in pieces:
        for number, line in enumerate(piece.decode().split("\n")[:-1], number + 1):  # noqa: B020
            fields = _fields(line, delimiter, name, number)
            if with_user and fields and not (number == 1 and is_user(fields[0])):
                users.append(fields[0])
                items += filter(None, fields[1:])
            elif not with_user:
                users.append(str(number))
                items += filter(None, fields)
            else:
                continue
            ends.append(len(items))
            if len(items) >= _TOGETHER:
                yield _drained(users, ends, items)
    if items:
        yield _drained(users, ends, items)


def _drained(users: list[str], ends: list[int], items: list[str]) -> pa.RecordBatch:
    """Return what the lists hold, and empty them."""
    rows = _coded(np.repeat(np.arange(len(users)), np.diff(ends, prepend=0)), users)
    found = pa.record_batch([rows, pa.array(items, pa.string()).dictionary_encode()], names=["user", "item"])
    for held in (users, ends, items):
        held.clear()
    return found


def _fields(line: str, delimiter: str, name: str, number: int) -> list[str]:
    """Return the fields of a line, without blanks around them."""
    line = line.removesuffix("\r")
    if '"' not in line or delimiter == STAND_IN:
        return [field.strip() for field in line.split(delimiter)] if line else []
    with suppress(csv.Error):  # a field beyond all measure
        if line.count('"') % 2 == 0:
            return [field.strip() for field in next(csv.reader([line], delimiter=delimiter))]
    raise FileProblem(f"{name!r} must close each quoted field on the line where it opens, line {number} does not")
