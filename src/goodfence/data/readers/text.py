"""Text files: csv, tsv, the `::` files of MovieLens, and gzip of these."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyarrow import csv as arrow_csv

from goodfence.data.columns import Columns, are_positions, find_columns, find_positions
from goodfence.data.readers.cells import parse_ids, parse_ratings
from goodfence.data.readers.files import RatingsFile
from goodfence.data.readers.lines import CHUNK, STAND_IN, Lines
from goodfence.errors import ColumnProblem, FileProblem, require

_ANY = (",", "\t", "::", ";", "|")
SEPARATORS = {
    ".csv": (",",),
    ".tsv": ("\t",),
    ".tab": ("\t",),
    ".dat": ("::", "\t"),
    ".data": ("\t",),
    ".base": ("\t",),
    ".test": ("\t",),
    ".txt": _ANY,
    "": _ANY,
}
"""What separates the fields, by the ending of the file's name.

Several are told apart by the first line.
"""

_NAMES = {"\t": "tabs", "::": "'::'"}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_FEWEST = 3


def read_text(
    file: RatingsFile,
    *,
    user: str | None,
    item: str | None,
    rating: str | None,
    separator: str | None,
    max_bytes: int,
) -> tuple[pa.Table, Columns]:
    """Return the columns user, item and rating of a text file, and what they are called in it.

    A first line of three or four numbers is a rating, not a header. Ids are integers where every
    one of the column is written as an integer is ("7", not "007" or "7.0"), else text.
    """
    if file.suffixes[1]:
        _inflate_once(file, max_bytes)
    lines = Lines(file, max_bytes)
    first = lines.first().decode()
    used = _separator(first, file, separator)
    fields = _fields(first, used)
    named = {"user": user, "item": item, "rating": rating}
    headless = are_positions(user, item, rating) or all(map(_NUMBER.fullmatch, fields))
    columns = find_positions(len(fields), **named) if headless else find_columns(fields, **named)
    table = _parsed(lines, file, columns, fields, used)
    ids = {role: parse_ids(table[role], columns.label(role)) for role in ("user", "item")}
    ratings = parse_ratings(table["rating"], columns.label("rating"))
    return pa.table({**ids, "rating": ratings}), columns


def _inflate_once(file: RatingsFile, max_bytes: int) -> None:
    """Go through what gzip holds and keep none of it: what is too much is refused in no memory."""
    for _ in Lines(file, max_bytes).chunks(without_first=False):
        pass


def _separator(first: str, file: RatingsFile, given: str | None) -> str:
    """Return what separates the fields of the first line, or refuse to guess."""
    if given is not None:
        ordinary = given == "::" or (len(given) == 1 and given.isascii() and given not in '"\r\n\0')
        require(ordinary, "separator", "one ASCII character or '::'", given)
    expected = (given,) if given is not None else SEPARATORS[file.suffixes[0]]
    fitting = [one for one in expected if len(_fields(first, one)) >= _FEWEST]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise FileProblem(
            f"{file.name!r} must have one separator, and {_listed(fitting)} both fit its first "
            "line; "
            "say which with separator= (--separator)"
        )
    other = [one for one in _ANY if len(_fields(first, one)) >= _FEWEST]
    if other:
        raise FileProblem(
            f"{file.name!r} must be separated by {_listed(expected)}, and looks separated by "
            f"{_listed(other[:1])}; if so, say it with separator= (--separator)"
        )
    raise ColumnProblem(
        f"{file.name!r} must have columns for user, item and rating separated by "
        f"{_listed(expected)}, "
        f"and its first line has {len(_fields(first, expected[0]))} field(s)"
    )


def _listed(separators: tuple[str, ...] | list[str]) -> str:
    return " or ".join(_NAMES.get(one, repr(one)) for one in separators)


def _fields(line: str, separator: str) -> list[str]:
    if separator == "::":
        return [field.strip() for field in line.split(separator)]
    try:
        return [field.strip() for field in next(csv.reader([line], delimiter=separator))]
    except csv.Error:  # a field beyond all measure
        return []


def _parsed(
    lines: Lines, file: RatingsFile, columns: Columns, fields: list[str], separator: str
) -> pa.Table:
    """Return the three columns as text, null where a field is empty."""
    places = [str(place) for place in range(1, len(fields) + 1)]
    wanted = columns.chosen if columns.positional else _places(columns, fields)
    feed = _Feed(lines, separator, without_first=not columns.positional)
    with _told_plainly(file, len(fields)) as ragged:
        table = arrow_csv.read_csv(
            pa.PythonFile(feed, mode="r"),
            # One thread: only then does arrow know the number of a broken row.
            read_options=arrow_csv.ReadOptions(
                use_threads=False, block_size=2 * CHUNK, column_names=places
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=STAND_IN.decode() if separator == "::" else separator,
                quote_char=False if separator == "::" else '"',
                invalid_row_handler=ragged.note,
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=list(wanted),
                column_types=dict.fromkeys(wanted, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    _check_rows(table.num_rows, lines.n_lines - (not columns.positional), file)
    return table.rename_columns(["user", "item", "rating"])


def _places(columns: Columns, fields: list[str]) -> tuple[str, ...]:
    return tuple(str(fields.index(name) + 1) for name in columns.chosen)


def _check_rows(n_rows: int, n_lines: int, file: RatingsFile) -> None:
    """Check that every line became one row.

    A quotation mark without its partner swallows the lines after it.
    """
    if n_lines == 0:
        raise FileProblem(f"{file.name!r} must hold ratings, and has a header line only")
    if n_rows != n_lines:
        raise FileProblem(
            f"{file.name!r} must close each quoted field on the line where it opens, "
            f"line {_odd_line(file)} does not"
        )


def _odd_line(file: RatingsFile) -> int:
    """Return the first line with an odd number of quotation marks, for an error."""
    number = 1
    for chunk in Lines(file, sys.maxsize).chunks(without_first=False):
        for line in chunk.split(b"\n")[:-1]:
            if line.count(b'"') % 2:
                return number
            number += 1
    return 1


class _Ragged:
    """The first row that has too few or too many fields."""

    def __init__(self) -> None:
        self.row: int | None = None
        self.n_fields = 0

    def note(self, row: arrow_csv.InvalidRow) -> str:
        if self.row is None:
            self.row, self.n_fields = row.number, row.actual_columns
        return "error"


@contextmanager
def _told_plainly(file: RatingsFile, n_fields: int) -> Iterator[_Ragged]:
    """Turn arrow's errors, which quote the line, into a sentence that does not."""
    ragged = _Ragged()
    try:
        yield ragged
    except pa.ArrowException:
        if ragged.row is not None:
            raise FileProblem(
                f"{file.name!r} must have {n_fields} fields in each row, row {ragged.row} has "
                f"{ragged.n_fields}"
            ) from None
        raise FileProblem(
            f"{file.name!r} must be a table of rows and fields, and cannot be parsed"
        ) from None


class _Feed:
    """What arrow reads from: the checked lines, with one byte in the place of each `::`."""

    closed = False

    def __init__(self, lines: Lines, separator: str, *, without_first: bool) -> None:
        self._chunks = lines.chunks(without_first=without_first)
        self._replace = separator == "::"

    def read(self, _n_bytes: int = -1) -> bytes:
        """Return the next lines, which are fewer bytes than arrow ever asks for."""
        chunk = next(self._chunks, b"")
        return chunk.replace(b"::", STAND_IN) if self._replace else chunk

    def close(self) -> None:
        """Do nothing: the file is closed when its last line was read."""

    def readable(self) -> bool:
        """Return True: this is for reading."""
        return True

    def seekable(self) -> bool:
        """Return False: the lines come once."""
        return False
