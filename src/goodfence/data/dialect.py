"""How a text file is laid out: what separates its fields, which of them are read, and the Netflix Prize's sections.

What separates the fields is found by the ending of the file's name, then by its first lines. What could be meant in two
ways is an error, not a guess.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from goodfence.data.columns import (
    DECLARE,
    FEWEST,
    POSITIONAL,
    Columns,
    Feedback,
    Roles,
    are_known,
    are_positions,
    check_number,
    find_columns,
    find_positions,
)
from goodfence.data.files import RatingsFile
from goodfence.data.times import found_among
from goodfence.errors import ColumnProblem, FileProblem, require

STAND_IN = b"\x1f"
"""The one-byte separator that takes the place of `::` and of runs of blanks; ASCII calls it the unit separator."""
BLANKS = " "
"""The separator that stands for any run of spaces and tabs."""
_ANY = (",", "\t", "::", ";", "|", BLANKS)
_ENDINGS = {
    ".csv": (",",),
    ".tsv": ("\t",),
    ".tab": ("\t",),
    ".inter": ("\t",),
    ".dat": ("::", "\t"),
    ".data": ("\t",),
    ".base": ("\t",),
    ".test": ("\t",),
}
"""What separates the fields, by the ending of the file's name; several are told apart by the first lines."""
_NAMES = {"\t": "tabs", "::": "'::'", BLANKS: "spaces"}
_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SEPARATOR = re.compile(r'::|[^"\r\n\0\x1f\x80-\U0010ffff]')
_RUN = re.compile(rb"[ \t]+")
_EDGE = re.compile(rb"(?m)^\x1f|\x1f(?=\r?$)")
SECTION = re.compile(rb"(?m)^(\d{1,18}):\r?\n")
"""The line that begins a section of the Netflix Prize's files."""
SECTIONED: dict[str, str | None] = {"user": "1", "item": "4", "rating": "2"}
"""Which positions hold what in the Netflix Prize's files, after the item was put at the end of each line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What separates the fields of a file, the fields of its first line, and which of them are the ratings'."""

    separator: str
    fields: tuple[str, ...]
    columns: Columns

    @property
    def delimiter(self) -> str:
        """The one character between fields after `single`."""
        return STAND_IN.decode() if self.separator in ("::", BLANKS) else self.separator

    @property
    def quotes(self) -> bool:
        """Whether a field may be quoted."""
        return self.delimiter == self.separator

    @property
    def single(self) -> Callable[[bytes], bytes] | None:
        """What makes one character of every separator; None where it is one."""
        if self.separator == "::":
            return lambda lines: lines.replace(b"::", STAND_IN)
        return _joined if self.separator == BLANKS else None


def _joined(lines: bytes) -> bytes:
    """Return the lines with one character for each run of blanks, and none at their ends."""
    single = b"  " not in lines and b"\t" not in lines
    marked = lines.replace(b" ", STAND_IN) if single else _RUN.sub(STAND_IN, lines)
    edges = (b"\x1f\n", b"\x1f\r", b"\n\x1f")
    edged = marked[:1] == STAND_IN or any(edge in marked for edge in edges)
    return _EDGE.sub(b"", marked) if edged else marked


def recognise(
    lines: Sequence[str], file: RatingsFile, separator: str | None, roles: Roles
) -> Dialect:
    """Return how a file is laid out, from its first lines that are not blank.

    `separator` is what the caller states; None is to be found.
    """
    used = _separator(lines, file, separator, "explicit" if "rating" in roles else "implicit")
    fields = split(lines[0], used)
    if are_positions(roles) or _is_data(fields, roles):
        columns, rows = find_positions(len(fields), roles), lines
    else:
        columns, rows = find_columns(fields, roles), lines[1:]
    if columns.time is None:
        texts = {name: _texts(rows, used, fields, columns, name) for name in columns.unused}
        columns = found_among(columns, texts)
    return Dialect(separator=used, fields=tuple(fields), columns=columns)


def _texts(
    rows: Sequence[str], separator: str, fields: Sequence[str], columns: Columns, name: str
) -> list[str]:
    """Return what the first rows say in one column; a row of another length says nothing, and is told of later."""
    place = int(name) - 1 if columns.positional else fields.index(name)
    found = (split(row, separator) for row in rows)
    return [row[place] for row in found if len(row) == len(fields)]


def _is_data(fields: list[str], roles: Roles) -> bool:
    """Return whether the first line is a rating and not a header: no known name, and a number where ratings are."""
    if all(map(_NUMBER.fullmatch, fields)):
        return True
    if are_known(fields) or any(name in fields for name in roles.values()):
        return False
    looked_at = fields[2:3] if "rating" in roles and len(fields) in POSITIONAL else fields
    return any(map(_NUMBER.fullmatch, looked_at))


def _separator(
    lines: Sequence[str], file: RatingsFile, given: str | None, feedback: Feedback
) -> str:
    """Return what separates the fields of the first lines, or refuse to guess."""
    if given is not None:
        good = isinstance(given, str) and _SEPARATOR.fullmatch(given)
        require(bool(good), "separator", "one ASCII character or '::'", given)
    stated = (given,) if given is not None else _ENDINGS.get(file.suffixes[0], _ANY)
    fewest = FEWEST[feedback]
    check_number(max(lines[0].count(one) for one in stated))
    fitting = [one for one in stated if _fits(lines[0], one, fewest)]
    if len(fitting) > 1:
        fitting = _steady(lines, fitting) or fitting
    if given is None and (not fitting or (fitting == ["\t"] and _doubled(lines))):
        fitting = _steady(lines, [one for one in _ANY if _fits(lines[0], one, fewest)]) or fitting
    if len(fitting) == 1:
        return fitting[0]
    raise _undecided(lines[0], file, stated, fitting, feedback)


def _fits(line: str, separator: str, fewest: int) -> bool:
    return len(split(line, separator)) >= fewest


def _steady(lines: Sequence[str], separators: list[str]) -> list[str]:
    """Return the separators with which all lines have equally many fields."""
    found = [one for one in separators if len({len(split(line, one)) for line in lines}) == 1]
    if BLANKS in found and len(found) > 1:
        # Runs of blanks may fit where one tab does; they are meant only where tabs leave empty fields.
        others = [one for one in found if one != BLANKS]
        found = [BLANKS] if others == ["\t"] and _doubled(lines) else others
    return found


def _doubled(lines: Sequence[str]) -> bool:
    """Return whether single tabs would leave an empty field in each line."""
    return all("" in split(line, "\t") for line in lines)


def _undecided(
    line: str,
    file: RatingsFile,
    stated: Sequence[str],
    fitting: list[str],
    feedback: Feedback,
) -> FileProblem | ColumnProblem:
    if fitting:
        return FileProblem(
            f"{file.name!r} must have one separator, and {_listed(fitting)} both fit its first "
            "line; say which with read='separator=...' (--read)"
        )
    other = [one for one in _ANY if _fits(line, one, FEWEST[feedback])]
    if other:
        return FileProblem(
            f"{file.name!r} must be separated by {_listed(stated)}, and looks separated by "
            f"{_listed(other[:1])}; if so, say it with read='separator=...' (--read)"
        )
    roles = "user, item and rating" if feedback == "explicit" else "user and item"
    two = feedback == "explicit" and any(len(split(line, one)) == 2 for one in (*stated, *_ANY))
    events = f"; if each line is an event, a user and an item, {DECLARE}" if two else ""
    return ColumnProblem(
        f"{file.name!r} must have columns for {roles} separated by "
        f"{_listed(stated)}, and its first line has {len(split(line, stated[0]))} field(s){events}"
    )


def _listed(separators: Sequence[str]) -> str:
    return " or ".join(_NAMES.get(one, repr(one)) for one in separators)


def split(line: str, separator: str) -> list[str]:
    """Return the fields of a line, without blanks around them; those of a csv file may be quoted."""
    if separator == BLANKS:
        return line.split()
    if separator == "::":
        return [field.strip() for field in line.split(separator)]
    try:
        return [field.strip() for field in next(csv.reader([line], delimiter=separator))]
    except csv.Error:  # a field beyond all measure
        return []


class Sections:
    r"""Puts the item of its section at the end of each line, chunk by chunk.

    Examples
    --------
    >>> put = Sections()
    >>> put(b"7:\n1,5,2005-09-06\n"), put(b"2,3,2005-09-07\n"), put.n_found
    (b'1,5,2005-09-06,7\n', b'2,3,2005-09-07,7\n', 1)
    """

    def __init__(self) -> None:
        self.n_found = 0
        """How many sections there were."""
        self._item = b""

    def __call__(self, lines: bytes) -> bytes:
        """Return whole lines, without those that begin a section."""
        # What belongs to the last item; then an item and what belongs to it, and so on.
        pieces = SECTION.split(lines)
        parts = [self._with_item(pieces[0])]
        for item, piece in zip(pieces[1::2], pieces[2::2], strict=True):
            self._item = item
            self.n_found += 1
            parts.append(self._with_item(piece))
        return b"".join(parts) or (b"\n" if lines else b"")

    @staticmethod
    def head(lines: list[str]) -> list[str]:
        """Return the lines that are ratings, as they will be read."""
        text = "".join(f"{line}\n" for line in lines).encode()
        return Sections()(text).decode().splitlines()

    def _with_item(self, piece: bytes) -> bytes:
        return piece.replace(b"\r\n", b"\n").replace(b"\n", b"," + self._item + b"\n")
