"""Text files: csv, tsv, the `::` files of MovieLens, blanks, the Netflix Prize's, and gzip of these."""

from __future__ import annotations

import codecs
import collections
import csv
import gzip
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from goodfence.data.columns import (
    DECLARE,
    FEWEST,
    POSITIONAL,
    ROLES,
    Columns,
    Feedback,
    Roles,
    are_known,
    are_positions,
    check_number,
    find_columns,
    find_positions,
)
from goodfence.data.files import BYTES_OF_A_ROW, BYTES_OF_AN_ID, TIMES_HELD, RatingsFile, readable, too_large
from goodfence.data.frame import ReadOptions, filtered, require_rows
from goodfence.data.ids import parse_ids
from goodfence.data.layouts import STAND_IN, Wide, listed
from goodfence.data.scale import drops_missing, parse_ratings
from goodfence.data.times import found_among, keep_times, without_times
from goodfence.errors import ColumnProblem, FileProblem, require, warn

LONGEST_LINE = 2**20
"""The longest line of a text file, in bytes: 1 MiB. A rating needs a hundred."""
CHUNK = 2 * LONGEST_LINE  # how many bytes are read at a time; several lines must fit
ENCODINGS = ("utf-8", "latin-1", "cp1252", "cp1251", "utf-16", "utf-32", "gb18030", "shift_jis")
"""How the text of a file may be written."""
BYTE_ORDER_MARK = codecs.BOM_UTF8
_OTHER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ODD = re.compile(rb"\0|\x1f|\r(?!\n)")
_RULES = {
    b"\0": "text without NUL bytes",
    b"\x1f": "text without control characters",
    b"\r": "text with ordinary line ends",
}
_BLANK = re.compile(rb"(?m)^\r?\n")
_FEW = 2**16
_LOOKED_AT = 20  # lines that tell how a file is laid out
_BYTES_OF_A_TIME = 24  # as text; it is made into 8 bytes before anything else
_CODED = pa.dictionary(pa.int32(), pa.string())

BLANKS = " "  # the separator that stands for any run of spaces and tabs
_ANY = (",", "\t", "::", ";", "|", BLANKS)
_ENDINGS = {
    ".csv": (",",),
    ".dat": ("::", "\t"),
    **dict.fromkeys((".tsv", ".tab", ".inter", ".data", ".base", ".test"), ("\t",)),
}
"""What separates the fields, by the ending of the file's name; several are told apart by the first lines."""
_NAMES = {"\t": "tabs", "::": "'::'", BLANKS: "spaces"}
_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SEPARATOR = re.compile(r'::|[^"\r\n\0\x1f\x80-\U0010ffff]')
_RUN = re.compile(rb"[ \t]+")
_EDGE = re.compile(rb"(?m)^\x1f|\x1f(?=\r?$)")
SECTION = re.compile(rb"(?m)^(\d{1,18}):\r?\n")  # the line that begins a section of the Netflix Prize's files
SECTIONED: dict[str, str | None] = {"user": "1", "item": "4", "rating": "2"}
"""Which positions hold what in the Netflix Prize's files, after the item was put at the end of each line."""


class Lines:
    """The checked lines of one text file as UTF-8, read once; they may inflate to `max_bytes`.

    `encoding`, one of `ENCODINGS`, is how its text is written; None is UTF-8.
    """

    def __init__(self, file: RatingsFile, max_bytes: int, encoding: str | None = None) -> None:
        rule = f"one of {', '.join(ENCODINGS)}"
        require(encoding is None or encoding in ENCODINGS, "encoding", rule, encoding)
        self.n_read = self.n_lines = 0
        """How many lines were read, and how many of them are not blank."""
        self.file, self.max_bytes = file, max_bytes
        self._encoding = None if encoding == "utf-8" else encoding
        self._chunks = self._checked()

    def again(self) -> Lines:
        """Return the lines once more, from the beginning, without a limit."""
        return Lines(self.file, sys.maxsize, self._encoding)

    def head(self, n: int = 1) -> list[bytes]:
        """Return the first lines that are not blank, one at least, `n` at most; `chunks` gives them again."""
        chunk = next((one for one in self._chunks if one.strip()), b"")
        if not chunk:
            raise FileProblem(f"{self.file.name!r} is empty; it must hold ratings")
        self._chunks = chain([chunk], self._chunks)
        lines = chunk.lstrip(b"\r\n").split(b"\n", 2 * n)[:-1]
        return [line.rstrip(b"\r") for line in lines if line not in (b"", b"\r")][:n]

    def chunks(self, *, without_first: bool = False) -> Iterator[bytes]:
        """Yield pieces of whole lines, with or without the first that is not blank."""
        if without_first:
            chunk = next(self._chunks).lstrip(b"\r\n")
            yield chunk[chunk.index(b"\n") + 1 :] or b"\n"  # nothing would mean the end of the file
        yield from self._chunks

    def numbered(self) -> Iterator[tuple[int, bytes]]:
        """Yield the number, counted from 1, and the text of each line without its end."""
        number = 0
        for chunk in self.chunks():
            for number, line in enumerate(chunk.split(b"\n")[:-1], number + 1):  # noqa: B020
                yield number, line.removesuffix(b"\r")

    def _checked(self) -> Iterator[bytes]:
        """Yield whole lines, each checked; the last one always gets an end."""
        held, n_bytes = b"", 0
        for number, piece in enumerate(self._text()):
            n_bytes += len(piece)
            if max(n_bytes, self.n_read * BYTES_OF_A_ROW) > self.max_bytes:
                raise too_large(self.file.name, self.max_bytes)
            chunk = held + (piece if number else self._without_mark(piece))
            end = chunk.rfind(b"\n") + 1
            held = chunk[end:]
            self._check(chunk[:end])
            self._check_length(held)
            if end:
                yield chunk[:end]
        if held:
            self._check(held + b"\n")
            yield held + b"\n"

    def _text(self) -> Iterator[bytes]:
        if self._encoding is None:
            yield from self._pieces()
            return
        decoder = codecs.getincrementaldecoder(self._encoding)(errors="strict")
        try:
            for piece in self._pieces():
                yield decoder.decode(piece).encode()
            yield decoder.decode(b"", final=True).encode()
        except UnicodeError:
            raise FileProblem(
                f"{self.file.name!r} is not {self._encoding} text, as read='encoding=...' (--read) says"
            ) from None

    def _pieces(self) -> Iterator[bytes]:
        path, name, packed = self.file.path, self.file.name, self.file.suffixes[1] == ".gz"
        if packed and not self.file.beginning.startswith(b"\x1f\x8b"):
            raise FileProblem(f"{name!r} must be a gzip file, as its name says, and is not")
        try:
            with gzip.open(path, "rb") if packed else path.open("rb") as stream:
                while piece := stream.read(CHUNK):
                    yield piece
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise FileProblem(f"{name!r} must be a whole gzip file, and is cut short or damaged") from None
        except OSError:
            raise FileProblem(f"{name!r} must be readable, and reading it failed") from None

    def _without_mark(self, piece: bytes) -> bytes:
        for mark, encoding in _OTHER_MARKS:
            if piece.startswith(mark):
                raise FileProblem(
                    f"{self.file.name!r} must be UTF-8 text, and is {encoding.upper()}; save it as UTF-8, or say "
                    f"read='encoding={encoding}' (--read)"
                )
        return piece.removeprefix(BYTE_ORDER_MARK)

    def _check(self, lines: bytes) -> None:
        """Check lines that are whole, and count them."""
        self._check_length(lines)
        if b"\0" in lines or b"\x1f" in lines or lines.count(b"\r") != lines.count(b"\r\n"):
            found = _ODD.search(lines)
            if found is not None:
                raise self._problem(_RULES[found[0]], lines[: found.start()])
        try:
            lines.decode()  # an end of line is never inside a character
        except UnicodeDecodeError as problem:
            advice = "; if it is Latin-1, say so with read='encoding=latin-1' (--read)"
            raise self._problem("UTF-8 text", lines[: problem.start], advice) from None
        n_ends = lines.count(b"\n")
        self.n_read += n_ends
        if n_ends * BYTES_OF_A_ROW > self.max_bytes:  # one chunk of nothing but ends
            raise too_large(self.file.name, self.max_bytes)
        blank = b"\n\n" in lines or b"\n\r\n" in lines or lines[:1] in (b"\n", b"\r")
        self.n_lines += n_ends - (len(_BLANK.findall(lines)) if blank else 0)

    def _check_length(self, lines: bytes) -> None:
        start = 0
        while len(lines) - start > LONGEST_LINE:
            end = lines.rfind(b"\n", start, start + LONGEST_LINE + 1)
            if end < 0:
                line = self.n_read + lines.count(b"\n", 0, start) + 1
                raise FileProblem(
                    f"{self.file.name!r} must have lines of at most {readable(LONGEST_LINE)}, line {line} is longer"
                )
            start = end + 1

    def _problem(self, rule: str, before: bytes, advice: str = "") -> FileProblem:
        line = self.n_read + before.count(b"\n") + 1
        return FileProblem(f"{self.file.name!r} must be {rule}, line {line} is not{advice}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What separates the fields of a file, the fields of its first line, and which of them are the ratings'."""

    separator: str
    fields: tuple[str, ...]
    columns: Columns

    @property
    def delimiter(self) -> str:
        """The one character between fields after `single`."""
        return STAND_IN if self.separator in ("::", BLANKS) else self.separator

    @property
    def quotes(self) -> bool:
        """Whether a field may be quoted."""
        return self.delimiter == self.separator

    def single(self, lines: bytes) -> bytes:
        """Return whole lines with one byte for every separator; blanks at the ends of a line separate nothing."""
        if self.separator == "::":
            return lines.replace(b"::", STAND_IN.encode())
        if self.separator != BLANKS:
            return lines
        plain = b"  " not in lines and b"\t" not in lines
        marked = lines.replace(b" ", b"\x1f") if plain else _RUN.sub(b"\x1f", lines)
        edges = (b"\x1f\n", b"\x1f\r", b"\n\x1f")
        edged = marked[:1] == b"\x1f" or any(edge in marked for edge in edges)
        return _EDGE.sub(b"", marked) if edged else marked


def recognise(lines: Sequence[str], file: RatingsFile, separator: str | None, roles: Roles) -> Dialect:
    """Return how a file is laid out, from its first lines that are not blank; None finds the separator."""
    used = _separator(lines, file, separator, "explicit" if "rating" in roles else "implicit")
    fields = split(lines[0], used)
    if are_positions(roles) or _is_data(fields, roles):
        columns, rows = find_positions(len(fields), roles), lines
    else:
        columns, rows = find_columns(fields, roles), lines[1:]
    if columns.time is None:
        known = (split(row, used) for row in rows)  # a row of another length is told of later
        by_column = list(zip(*(row for row in known if len(row) == len(fields)), strict=True))
        names = [str(at) for at in range(1, len(fields) + 1)] if columns.positional else fields
        texts = dict.fromkeys(names, ()) | dict(zip(names[::-1], by_column[::-1], strict=False))
        columns = found_among(columns, texts)
    return Dialect(separator=used, fields=tuple(fields), columns=columns)


def _is_data(fields: list[str], roles: Roles) -> bool:
    """Return whether the first line is a rating and not a header: no known name, and a number where ratings are."""
    if all(map(_NUMBER.fullmatch, fields)):
        return True
    if are_known(fields) or any(name in fields for name in roles.values()):
        return False
    looked_at = fields[2:3] if "rating" in roles and len(fields) in POSITIONAL else fields
    return any(map(_NUMBER.fullmatch, looked_at))


def _separator(lines: Sequence[str], file: RatingsFile, given: str | None, feedback: Feedback) -> str:
    """Return what separates the fields of the first lines, or refuse to guess."""
    stated = _ENDINGS.get(file.suffixes[0], _ANY)
    if given is not None:
        good = isinstance(given, str) and _SEPARATOR.fullmatch(given)
        require(bool(good), "separator", "one ASCII character or '::'", given)
        stated = (given,)
    fewest = FEWEST[feedback]
    check_number(max(lines[0].count(one) for one in stated))
    n_fields = {one: len(split(lines[0], one)) for one in (*stated, *_ANY)}
    fitting = [one for one in stated if n_fields[one] >= fewest]
    any_fitting = [one for one in _ANY if n_fields[one] >= fewest]
    if len(fitting) > 1:
        fitting = _steady(lines, fitting) or fitting
    if given is None and (not fitting or (fitting == ["\t"] and _doubled(lines))):
        fitting = _steady(lines, any_fitting) or fitting
    if len(fitting) == 1:
        return fitting[0]
    raise _undecided(file, stated, (fitting, any_fitting), n_fields, feedback)


def _undecided(
    file: RatingsFile,
    stated: Sequence[str],
    found: tuple[list[str], list[str]],
    n_fields: dict[str, int],
    feedback: Feedback,
) -> FileProblem | ColumnProblem:
    fitting, others = found
    if fitting:
        return FileProblem(
            f"{file.name!r} must have one separator, and {_listed(fitting)} both fit its first "
            "line; say which with read='separator=...' (--read)"
        )
    if others:
        return FileProblem(
            f"{file.name!r} must be separated by {_listed(stated)}, and looks separated by "
            f"{_listed(others[:1])}; if so, say it with read='separator=...' (--read)"
        )
    roles = "user, item and rating" if feedback == "explicit" else "user and item"
    two = feedback == "explicit" and 2 in n_fields.values()
    events = f"; if each line is an event, a user and an item, {DECLARE}" if two else ""
    return ColumnProblem(
        f"{file.name!r} needs columns for {roles} separated by "
        f"{_listed(stated)}; its first line has {n_fields[stated[0]]} field(s){events}"
    )


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
    r"""Puts the item of its section at the end of each line, chunk by chunk."""

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

    def _with_item(self, piece: bytes) -> bytes:
        return piece.replace(b"\r\n", b"\n").replace(b"\n", b"," + self._item + b"\n")


def read_text(file: RatingsFile, options: ReadOptions) -> tuple[pa.Table, Columns]:
    """Return the columns user, item and rating of a text file, its times, and what they are called in it."""
    fields = read_fields(file, options)
    fields.check_rows()
    times, columns = keep_times(
        fields.times, fields.dialect.columns, named=options.time is not None, dates=options.dates
    )
    _release_unused(options.max_bytes)
    _check_ids(fields.table, file, options.max_bytes)
    parts = {role: parse_ids(fields.table[role], columns.label(role)) for role in ("user", "item")}
    texts_only = not any(pa.types.is_integer(one.type.value_type) for one in parts.values())
    for role in ("rating", "weight"):
        if role in columns.by_role:
            parts[role] = parse_ratings(
                fields.table[role], columns.label(role), options.decimal, missing=drops_missing(options.unrated)
            )
    if columns.positional and not columns.layout and options.item is None and (texts_only or options.user is not None):
        roles = [role for role in ("user", "item", "rating") if role in columns.by_role]
        found = ", ".join(f"{role} in column {columns.by_role[role]}" for role in roles)
        asked = f"{', '.join(f'{role}=' for role in roles)} ({', '.join(f'--{role}' for role in roles)})"
        warn(f"the file has no header line: it is read with {found}; if that is wrong, say which with {asked}")
    return pa.table({**parts, **times}), columns


def _release_unused(max_bytes: int) -> None:
    if pa.total_allocated_bytes() > max_bytes // 8:
        pa.default_memory_pool().release_unused()


def _check_ids(table: pa.Table, file: RatingsFile, max_bytes: int) -> None:
    """Refuse more rows and different ids than `max_bytes` allows, before one dictionary is made of all."""
    left = max_bytes - table.num_rows * BYTES_OF_A_ROW
    for role in ("user", "item"):
        left -= _count_different(table[role], left // BYTES_OF_AN_ID) * BYTES_OF_AN_ID
        if left < 0:
            raise too_large(file.name, max_bytes)


def _count_different(column: pa.ChunkedArray, most: int) -> int:
    """Return how many different ids a column has, or any number above `most`."""
    seen, waiting, n_waiting = pa.array([], pa.string()), [], 0
    for chunk in column.chunks:
        waiting.append(chunk.dictionary)
        n_waiting += len(chunk.dictionary)
        if n_waiting >= max(len(seen), _FEW):
            seen = pc.unique(pa.concat_arrays([seen, *waiting]))
            waiting, n_waiting = [], 0
            if len(seen) > most:
                break
    return len(pc.unique(pa.concat_arrays([seen, *waiting])))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """What the lines of a text file hold, before anything is asked of it."""

    table: pa.Table
    """The user, item and rating of each row as dictionaries of text, null where a field is empty."""
    times: list[pa.Array]  # the times as text, in chunks; taken out of it as they are read
    dialect: Dialect
    lines: Lines
    n_sections: int  # how many lines begin a section of the Netflix Prize's layout
    n_rows: int  # how many rows were read, before `where` and `layout`
    ragged: list[tuple[int, int]]
    """The rows, counted from 1, that have another number of fields than the first line, and how many."""

    def check_rows(self) -> None:
        """Check that every line became one row: a quotation mark without its partner swallows the lines after it."""
        name, positional = self.lines.file.name, self.dialect.columns.positional
        if self.ragged:
            row, n_fields = self.ragged[0]
            raise FileProblem(
                f"{name!r} must have {len(self.dialect.fields)} fields in each row, row {row} has {n_fields}"
            )
        n_rows = self.lines.n_lines - (self.n_sections or int(not positional))
        if n_rows == 0:
            raise FileProblem(f"{name!r} has a header line only, and no ratings")
        if self.n_rows != n_rows:
            numbered = self.lines.again().numbered()
            odd = next((number for number, line in numbered if line.count(b'"') % 2), 1)
            raise FileProblem(f"{name!r} must close each quoted field on the line where it opens, line {odd} does not")
        if self.table.num_rows == 0 and self.dialect.columns.layout:
            raise FileProblem(f"{name!r} must hold ratings or items, and every field is empty")
        require_rows(self.table.num_rows)

    def line_numbers(self) -> Iterator[int]:
        """Yield the number of the line of each row, without the header, blank lines and beginnings of sections."""
        full = (
            number
            for number, line in self.lines.again().numbered()
            if line and not (self.n_sections and SECTION.match(line + b"\n"))
        )
        if not self.dialect.columns.positional:
            next(full)
        return full


def read_fields(file: RatingsFile, options: ReadOptions, *, tolerant: bool = False) -> Fields:
    """Return the fields of a text file as they are written; a `tolerant` reading goes on after a ragged row."""
    if file.suffixes[1]:  # keep none of what gzip holds at first: too much is refused in no memory
        for _ in Lines(file, options.max_bytes, options.encoding).chunks():
            pass
    lines = Lines(file, options.max_bytes, options.encoding)
    head = [line.decode() for line in lines.head(_LOOKED_AT)]
    if options.layout is not None:
        return _laid_out(lines, head, options, tolerant=tolerant)
    sections, head, known = _sectioned(head, file, options)
    dialect = recognise(head, file, options.separator, known)
    ragged: list[tuple[int, int]] = []
    by_role = dialect.columns.by_role
    roles = [role for role in by_role if role != "where"]
    wanted = [name if dialect.columns.positional else str(dialect.fields.index(name) + 1) for name in by_role.values()]
    kinds = {at: pa.string() if role == "time" else _CODED for role, at in zip(by_role, wanted, strict=True)}

    read = _batches(lines, dialect, kinds, ragged, sections, tolerant=tolerant)
    named = partial(pa.RecordBatch.rename_columns, names=list(by_role))
    table, n_rows = _gathered(read, lambda batch: filtered(named(batch), options), roles, lines)
    _release_unused(options.max_bytes)
    table, times = without_times(table)
    return Fields(
        table=table,
        times=times,
        dialect=dialect,
        lines=lines,
        n_sections=sections.n_found if sections else 0,
        n_rows=n_rows,
        ragged=ragged,
    )


def _sectioned(
    head: list[str], file: RatingsFile, options: ReadOptions
) -> tuple[Sections | None, list[str], dict[str, str | None]]:
    """Return what turns sections into rows, if the first line begins one, the first rows, and what they hold."""
    known = options.columns
    if not SECTION.fullmatch(head[0].encode() + b"\n"):
        return None, head, known
    if not options.rated:
        raise ColumnProblem(
            f"{file.name!r} must hold events, and has the sections of the Netflix Prize, which hold ratings; say "
            "which of them count as likes with likes= (--likes)"
        )
    head = Sections()("".join(f"{line}\n" for line in head).encode()).decode().splitlines()
    if not head:
        raise FileProblem(f"{file.name!r} must hold ratings, and has none in its first section")
    return Sections(), head, {**known, **SECTIONED} if all(known[role] is None for role in SECTIONED) else known


def _laid_out(lines: Lines, head: list[str], options: ReadOptions, *, tolerant: bool) -> Fields:
    """Return the fields of a file that has not a row for each rating."""
    file, roles = lines.file, options.columns
    ragged: list[tuple[int, int]] = []
    if options.layout == "wide":
        used = _separator(head, file, options.separator, "implicit")
        fields = split(head[0], used)
        wide = Wide.of(fields, roles)
        dialect = Dialect(separator=used, fields=tuple(fields), columns=wide.columns)
        kinds = dict.fromkeys(wide.wanted, pa.string())
        read = _batches(lines, dialect, kinds, ragged, tolerant=tolerant)
        table, n_rows = _gathered(read, wide.ratings, ROLES, lines)
    else:
        for role in ROLES[:2]:
            require(roles[role] is None, role, f"left out for layout={options.layout}", roles[role])
        with_user = options.layout == "lists"
        user, item = ("first field", "fields behind it") if with_user else ("line number", "fields")
        columns = Columns(user=user, item=item, layout=options.layout, positional=True)
        dialect = Dialect(separator=_between_items(head, file, options), fields=(), columns=columns)
        read = listed(_prepared(lines, dialect), dialect.delimiter, file.name, with_user=with_user)
        table, _ = _gathered(read, lambda batch: batch, ROLES[:2], lines)
        n_rows = lines.n_lines
    return Fields(table=table, times=[], dialect=dialect, lines=lines, n_sections=0, n_rows=n_rows, ragged=ragged)


def _between_items(head: list[str], file: RatingsFile, options: ReadOptions) -> str:
    """Return what separates the items of a list: what is in the first lines, blanks if nothing else is."""
    if options.separator is not None:
        return _separator(head, file, options.separator, "implicit")
    found = [one for one in _ANY[:-1] if any(len(split(line, one)) > 1 for line in head)]
    alike = found and all(len(split(line, found[0])) == 2 for line in head)  # perhaps a user, and items behind it
    if len(found) > 1 or (alike and any(len(line.split()) > 2 for line in head)):
        raise FileProblem(
            f"{file.name!r} must have one separator, and {_listed([*found, BLANKS][:2])} both fit its first lines; say "
            "which with read='separator=...' (--read)"
        )
    return found[0] if found else BLANKS


def _batches(
    lines: Lines,
    dialect: Dialect,
    kinds: dict[str, pa.DataType],
    ragged: list[tuple[int, int]],
    sections: Sections | None = None,
    *,
    tolerant: bool,
) -> Iterator[pa.RecordBatch]:
    """Yield the columns of these positions as these types, up to a ragged row unless `tolerant`, which is noted."""

    def note(row: arrow_csv.InvalidRow) -> str:
        ragged.append((row.number, row.actual_columns))
        return "skip" if tolerant else "error"

    feed = Feed(_prepared(lines, dialect, sections))
    rows: Iterable[pa.RecordBatch] = ()
    try:
        rows = arrow_csv.open_csv(
            pa.PythonFile(feed, mode="r"),
            # One thread: only then does arrow know the number of a broken row.
            read_options=arrow_csv.ReadOptions(
                use_threads=False, block_size=2 * CHUNK, column_names=[str(at + 1) for at in range(len(dialect.fields))]
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=dialect.delimiter, quote_char='"' if dialect.quotes else False, invalid_row_handler=note
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=list(kinds), column_types=kinds, null_values=[""], strings_can_be_null=True
            ),
        )
        yield from rows
    except pa.ArrowException:  # which quotes the line
        if not ragged:  # else what is wrong is known, and said by whoever asks
            raise FileProblem(f"{lines.file.name!r} must be a table of rows and fields, and cannot be parsed") from None
    finally:  # arrow reads ahead in a thread of its own, which must not outlive the interpreter
        feed.stop()
        with suppress(Exception):
            collections.deque(rows, maxlen=0)


def _gathered(
    batches: Iterable[pa.RecordBatch],
    changed: Callable[[pa.RecordBatch], pa.RecordBatch],
    roles: Iterable[str],
    lines: Lines,
) -> tuple[pa.Table, int]:
    """Return what the batches are after `changed`, by role: dictionaries of text, times as text; and their rows."""
    kept, n_read, n_rows, n_bytes = [], 0, 0, 0
    for batch in batches:
        n_read += batch.num_rows
        kept.append(changed(batch))
        n_rows += kept[-1].num_rows
        for role, part in zip(roles, kept[-1].columns, strict=True):
            text = part.nbytes - kept[-1].num_rows * _BYTES_OF_A_TIME
            n_bytes += max(0, text) if role == "time" else part.dictionary.nbytes
        if n_rows * BYTES_OF_A_ROW + TIMES_HELD * n_bytes > lines.max_bytes:
            raise too_large(lines.file.name, lines.max_bytes)
    schema = pa.schema([(role, pa.string() if role == "time" else _CODED) for role in roles])
    return pa.Table.from_batches(kept, schema), n_read


class Feed:
    """What arrow reads from: each piece is less than it ever asks for."""

    closed = False

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def read(self, _n_bytes: int = -1) -> bytes:
        """Return the next lines."""
        return next(self._pieces, b"")

    def stop(self) -> None:
        """Say from now on that the file has ended."""
        self._pieces = iter(())

    def close(self) -> None:
        """Do nothing: the file is closed when its last line was read."""


def _prepared(lines: Lines, dialect: Dialect, sections: Sections | None = None) -> Iterator[bytes]:
    """Yield the rows, with one byte for each separator."""
    stray = stray_quotes(dialect.separator) if dialect.quotes else None
    for piece in lines.chunks(without_first=not dialect.columns.positional):
        found = stray.search(piece) if stray is not None and b'"' in piece else None
        if found is not None:
            n_before = lines.n_read - piece.count(b"\n")
            line = n_before + piece.count(b"\n", 0, found.end()) + 1
            raise FileProblem(f"{lines.file.name!r} must quote a whole field or nothing of it, line {line} does not")
        yield dialect.single(piece if sections is None else sections(piece))


def stray_quotes(separator: str) -> re.Pattern[bytes]:
    r"""Return what finds a field of which only a part is quoted: text after its closing mark, or blanks before it."""
    between = re.escape(separator.encode())
    blank = b"[ ]" if separator == "\t" else b"[ \t]"
    quoted = rb'"(?:[^"\n]|"")*+"'
    bare = rb'(?!%b*")[^%b\n]*+' % (blank, between)
    whole = rb"(?:(?:%b|%b)%b)*+" % (quoted, bare, between)
    broken = rb'(?:%b(?!%b|\r?\n)|%b++")' % (quoted, between, blank)
    return re.compile(rb"(?m)^" + whole + broken)
