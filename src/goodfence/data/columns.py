"""Which column of a table holds the user, which the item and which the rating, and how a text file is laid out.

Columns are found by name, whatever the case and the punctuation, or by position where a file has no header line. What
separates the fields of a text file is found by the ending of its name, then by its first lines. What could be meant in
two ways is an error, not a guess.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from goodfence.data.files import RatingsFile
from goodfence.errors import ColumnProblem, FileProblem, did_you_mean, require

ROLES = ("user", "item", "rating")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _with_id(words: str) -> frozenset[str]:
    return frozenset(name for word in words.split() for name in (word, f"{word}id"))


NAMES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "user": _with_id(
            "user person customer member reviewer rater viewer reader client listener visitor "
            "account consumer voter player"
        )
        | {"uid"},
        "item": _with_id(
            "item movie film book product song track album artist game show anime joke recipe "
            "business article place restaurant hotel beer wine video course app venue manga paper"
        )
        | {"iid", "isbn", "isbn13", "asin", "sku"},
        "rating": _words(
            "rating ratings score scores star stars starrating grade userrating userscore itemrating movierating "
            "filmrating bookrating productrating reviewscore overall feedback rate vote preference myscore myrating "
            "ratingscore scorerating reviewrating reviewoverall ratingvalue overallrating stargiven bewertung"
        ),
    }
)
"""The names that are known, without case and punctuation."""

SECOND: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "user": _words(
            "username useridx usercode userindex reviewername profilename reviewprofilename author profile "
            "profileid"
        ),
        "item": _words(
            "title movietitle booktitle itemname itemidx itemcode itemindex moviename productname name parentasin "
            "beerbeerid"
        ),
        "rating": _words("value points response label mark"),
    }
)
"""Names that count only where no column has one of `NAMES`: a title beside an id is not the item."""

COUNTS = _words("weight count counts plays playcount listens clicks views purchases quantity hours")
"""Names of how often somebody did something, which is no rating."""

_TYPED = re.compile(r":(token|float|token_seq|float_seq)$")  # as RecBole writes behind a name
_EXAMPLES = {
    "user": "user, userId, user_id, uid",
    "item": "item, itemId, movie_id, book_id",
    "rating": "rating, score, stars",
}
_POSITIONAL = (3, 4)  # columns that a file without a header line has
_LONGEST_SHOWN = 40
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
_FEWEST = 3  # fields of a line
_SECTION = re.compile(rb"(?m)^(\d{1,18}):\r?\n")
_FIRST = re.compile(r"\d{1,18}:")
SECTIONED: dict[str, str | None] = {"user": "1", "item": "4", "rating": "2"}
"""Which positions hold what in the Netflix Prize's files, after the item was put at the end of each line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns that hold the user, the item and the rating, and those that are not used."""

    user: str
    item: str
    rating: str
    unused: tuple[str, ...] = ()
    positional: bool = False
    """Whether the names are positions, counted from 1, of a file without a header line."""

    @property
    def chosen(self) -> tuple[str, str, str]:
        """The three columns that are read, in the order user, item, rating."""
        return self.user, self.item, self.rating

    def label(self, role: str) -> str:
        """Return how an error names the column of this role.

        Examples
        --------
        >>> Columns(user="userId", item="movieId", rating="stars").label("rating")
        "rating (column 'stars')"
        """
        name = dict(zip(ROLES, self.chosen, strict=True))[role]
        return f"{role} (column {name if self.positional else shown(name)})"


def shown(name: str) -> str:
    """Return a column's name for an error: quoted, and cut where it is long."""
    return repr(name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}...")


def plain(name: str) -> str:
    """Return a name without case and punctuation.

    Examples
    --------
    >>> plain(" User-ID "), plain("user_id:token")
    ('userid', 'userid')
    """
    return "".join(letter for letter in _TYPED.sub("", name).casefold() if letter.isalnum())


def are_known(names: Sequence[str]) -> bool:
    """Return whether any of the names is one that a header line has."""
    known = frozenset().union(*NAMES.values(), *SECOND.values(), COUNTS)
    return any(plain(name) in known for name in names)


def are_positions(user: str | None, item: str | None, rating: str | None) -> bool:
    """Return whether the caller names all three columns by position: the file has no header line."""
    return all(name is not None and name.isdecimal() for name in (user, item, rating))


def find_columns(
    names: Sequence[str],
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
) -> Columns:
    """Return which of `names` are the user, the item and the rating.

    The column of a role is the one that the caller names; None finds it by its name.

    Examples
    --------
    >>> find_columns(["userId", "movieId", "rating", "timestamp"]).unused
    ('timestamp',)
    """
    given = {"user": user, "item": item, "rating": rating}
    if not all(isinstance(name, str) for name in names):
        raise ColumnProblem("the names of the columns must be text; name them before reading")
    chosen = {
        role: _named(role, name, names) if name is not None else _recognised(role, names, given)
        for role, name in given.items()
    }
    return _columns(names, chosen, positional=False)


def find_positions(
    n_columns: int,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
) -> Columns:
    """Return which positions hold what in a file without a header line, counted from 1.

    They are the first, the second and the third of three or four, as in the MovieLens files, unless the caller says
    otherwise.

    Examples
    --------
    >>> find_positions(4).chosen
    ('1', '2', '3')
    """
    names = tuple(str(position) for position in range(1, n_columns + 1))
    given = {"user": user, "item": item, "rating": rating}
    if None in given.values() and n_columns not in _POSITIONAL:
        raise ColumnProblem(
            f"a file without a header line must have 3 or 4 columns, this one has {n_columns}; write a table of users "
            "x items as one rating a line, or give the positions of user, item and rating (for example user='1', "
            "item='2', rating='3')"
        )
    chosen: dict[str, str] = {}
    for position, (role, name) in enumerate(given.items(), start=1):
        if name is not None and name not in names:
            raise ColumnProblem(
                f"{role} must be a position from 1 to {n_columns}: the file has no header line with names"
            )
        chosen[role] = str(position) if name is None else name
    return _columns(names, chosen, positional=True)


def _named(role: str, name: str, names: Sequence[str]) -> str:
    found = [known for known in names if known == name]
    if len(found) > 1:
        raise ColumnProblem(f"{role} must name one column, and {shown(name)} names {len(found)}")
    if not found:
        # Names are suggested where one of them is known: in a file without a header line they are somebody's ids.
        known = names if any(are_known([one]) for one in names) else []
        raise ColumnProblem(
            f"{role} must name a column, and there is none called "
            f"{shown(name)}{did_you_mean(name, known)}"
        )
    return name


def _recognised(role: str, names: Sequence[str], given: Mapping[str, str | None]) -> str:
    taken = set(given.values())
    found = [name for name in names if plain(name) in NAMES[role] and name not in taken]
    found = found or [name for name in names if plain(name) in SECOND[role] and name not in taken]
    if len(found) > 1:
        listed = " and ".join(shown(name) for name in found[:3])
        raise ColumnProblem(
            f"{role} must be one column, and {listed} could each be it; say which with {role}= (--{role})"
        )
    if not found:
        count = next((n for n in names if plain(n) in COUNTS and n not in taken), None)
        if role == "rating" and count is not None:
            raise ColumnProblem(
                f"rating must be a column of ratings, and {shown(count)} sounds like a count, which is none; "
                "if it is meant, name it with rating= (--rating)"
            )
        # The names that are there are not listed: in a file without a header line they are
        # somebody's rating.
        raise ColumnProblem(
            f"{role} must be a column called {_EXAMPLES[role]} or the like, and none of the "
            f"{len(names)} is; name it with {role}= (--{role}), or give positions if the file has no header line "
            "(user='1', item='2', rating='3')"
        )
    return found[0]


def _columns(names: Sequence[str], chosen: Mapping[str, str], *, positional: bool) -> Columns:
    taken = set(chosen.values())
    if len(taken) < len(chosen):
        raise ColumnProblem("user, item and rating must be three different columns; name all three")
    unused = tuple(name for name in names if name not in taken)
    return Columns(**chosen, unused=unused, positional=positional)


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
    lines: Sequence[str], file: RatingsFile, separator: str | None, named: dict[str, Any]
) -> Dialect:
    """Return how a file is laid out, from its first lines that are not blank.

    `separator` is what the caller states, `named` what the caller calls the columns; None is to be found.
    """
    used = _separator(lines, file, separator)
    fields = split(lines[0], used)
    if are_positions(**named) or _is_data(fields, named):
        columns = find_positions(len(fields), **named)
    else:
        columns = find_columns(fields, **named)
    return Dialect(separator=used, fields=tuple(fields), columns=columns)


def _is_data(fields: list[str], named: dict[str, Any]) -> bool:
    """Return whether the first line is a rating and not a header: no known name, and a number where ratings are."""
    if all(map(_NUMBER.fullmatch, fields)):
        return True
    if are_known(fields) or any(name in fields for name in named.values()):
        return False
    looked_at = fields[2:3] if len(fields) in _POSITIONAL else fields
    return any(map(_NUMBER.fullmatch, looked_at))


def _separator(lines: Sequence[str], file: RatingsFile, given: str | None) -> str:
    """Return what separates the fields of the first lines, or refuse to guess."""
    if given is not None:
        good = isinstance(given, str) and _SEPARATOR.fullmatch(given)
        require(bool(good), "separator", "one ASCII character or '::'", given)
    stated = (given,) if given is not None else _ENDINGS.get(file.suffixes[0], _ANY)
    fitting = [one for one in stated if _fits(lines[0], one)]
    if len(fitting) > 1:
        fitting = _steady(lines, fitting) or fitting
    if given is None and (not fitting or (fitting == ["\t"] and _doubled(lines))):
        fitting = _steady(lines, [one for one in _ANY if _fits(lines[0], one)]) or fitting
    if len(fitting) == 1:
        return fitting[0]
    raise _undecided(lines[0], file, stated, fitting)


def _fits(line: str, separator: str) -> bool:
    return len(split(line, separator)) >= _FEWEST


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
    line: str, file: RatingsFile, stated: Sequence[str], fitting: list[str]
) -> FileProblem | ColumnProblem:
    if fitting:
        return FileProblem(
            f"{file.name!r} must have one separator, and {_listed(fitting)} both fit its first "
            "line; say which with separator= (--separator)"
        )
    other = [one for one in _ANY if _fits(line, one)]
    if other:
        return FileProblem(
            f"{file.name!r} must be separated by {_listed(stated)}, and looks separated by "
            f"{_listed(other[:1])}; if so, say it with separator= (--separator)"
        )
    return ColumnProblem(
        f"{file.name!r} must have columns for user, item and rating separated by "
        f"{_listed(stated)}, and its first line has {len(split(line, stated[0]))} field(s)"
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


def begins_section(line: str) -> bool:
    """Return whether a first line is that of a section."""
    return _FIRST.fullmatch(line) is not None


def section_lines(lines: bytes) -> list[int]:
    """Return which lines, counted from 0, begin a section."""
    return [lines.count(b"\n", 0, found.start()) for found in _SECTION.finditer(lines)]


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
        pieces = _SECTION.split(lines)
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
