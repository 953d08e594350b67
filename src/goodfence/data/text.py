"""Text files: csv, tsv, the `::` files of MovieLens, blanks, the Netflix Prize's, and gzip of these."""

from __future__ import annotations

import codecs
import gzip
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from goodfence.data.columns import Columns
from goodfence.data.dialect import SECTION, SECTIONED, Dialect, Sections, recognise
from goodfence.data.files import (
    BYTES_OF_A_ROW,
    BYTES_OF_AN_ID,
    TIMES_HELD,
    RatingsFile,
    readable,
    too_large,
)
from goodfence.data.frame import ReadOptions
from goodfence.data.ids import parse_ids
from goodfence.data.rating_values import parse_ratings
from goodfence.data.times import keep_times, without_times
from goodfence.errors import ColumnProblem, FileProblem, GoodfenceWarning, require

LONGEST_LINE = 2**20
"""The longest line of a text file, in bytes: 1 MiB. A rating needs a hundred."""
CHUNK = 2 * LONGEST_LINE
"""How many bytes are read at a time; several lines must fit."""
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


class Lines:
    """The checked lines of one text file as UTF-8, read once from its beginning to its end.

    It is gzip if its name ends in `.gz`. It may inflate to `max_bytes`, and have as many lines as fit into them with
    `BYTES_OF_A_ROW` each. `encoding`, one of `ENCODINGS`, is how its text is written; None is UTF-8.
    """

    def __init__(self, file: RatingsFile, max_bytes: int, encoding: str | None = None) -> None:
        rule = f"one of {', '.join(ENCODINGS)}"
        require(encoding is None or encoding in ENCODINGS, "encoding", rule, encoding)
        self.n_lines = 0
        """How many lines that are not blank were read."""
        self.n_read = 0
        """How many lines were read."""
        self._file, self._max_bytes = file, max_bytes
        self._encoding = None if encoding == "utf-8" else encoding
        self._chunks = self._checked()

    def head(self, n: int = 1) -> list[bytes]:
        """Return the first lines that are not blank, one at least, `n` at most; `chunks` gives them again."""
        chunk = next((one for one in self._chunks if one.strip()), b"")
        if not chunk:
            raise FileProblem(f"{self._file.name!r} must hold ratings, and is empty")
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
            if max(n_bytes, self.n_read * BYTES_OF_A_ROW) > self._max_bytes:
                raise too_large(self._file.name, self._max_bytes)
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
        """Yield the file's bytes as UTF-8."""
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
                f"{self._file.name!r} is not {self._encoding} text, as read='encoding=...' (--read) says"
            ) from None

    def _pieces(self) -> Iterator[bytes]:
        path, name, packed = self._file.path, self._file.name, self._file.suffixes[1] == ".gz"
        if packed and not self._file.beginning.startswith(b"\x1f\x8b"):
            raise FileProblem(f"{name!r} must be a gzip file, as its name says, and is not")
        try:
            with gzip.open(path, "rb") if packed else path.open("rb") as stream:
                while piece := stream.read(CHUNK):
                    yield piece
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise FileProblem(
                f"{name!r} must be a whole gzip file, and is cut short or damaged"
            ) from None
        except OSError:
            raise FileProblem(f"{name!r} must be readable, and reading it failed") from None

    def _without_mark(self, piece: bytes) -> bytes:
        for mark, encoding in _OTHER_MARKS:
            if piece.startswith(mark):
                raise FileProblem(
                    f"{self._file.name!r} must be UTF-8 text, and is {encoding.upper()}; save it as UTF-8, or say "
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
        if n_ends * BYTES_OF_A_ROW > self._max_bytes:  # one chunk of nothing but ends
            raise too_large(self._file.name, self._max_bytes)
        blank = b"\n\n" in lines or b"\n\r\n" in lines or lines[:1] in (b"\n", b"\r")
        self.n_lines += n_ends - (len(_BLANK.findall(lines)) if blank else 0)

    def _check_length(self, lines: bytes) -> None:
        start = 0
        while len(lines) - start > LONGEST_LINE:
            end = lines.rfind(b"\n", start, start + LONGEST_LINE + 1)
            if end < 0:
                line = self.n_read + lines.count(b"\n", 0, start) + 1
                raise FileProblem(
                    f"{self._file.name!r} must have lines of at most {readable(LONGEST_LINE)}, line {line} is longer"
                )
            start = end + 1

    def _problem(self, rule: str, before: bytes, advice: str = "") -> FileProblem:
        line = self.n_read + before.count(b"\n") + 1
        return FileProblem(f"{self._file.name!r} must be {rule}, line {line} is not{advice}")


def read_text(file: RatingsFile, options: ReadOptions) -> tuple[pa.Table, Columns]:
    """Return the columns user, item and rating of a text file, its times, and what they are called in it.

    A first line of numbers, or with a number third of three or four and no known name, is a rating, not a header; of
    events, one with any number. Ids are integers where every one of the column is written as an integer is ("7", not
    "007" or "7.0"), else text.
    """
    fields = read_fields(file, options)
    fields.check_rows()
    times, columns = keep_times(
        fields.times, fields.dialect.columns, named=options.time is not None
    )
    _release_unused(options.max_bytes)
    _check_ids(fields.table, file, options.max_bytes)
    parts = {role: parse_ids(fields.table[role], columns.label(role)) for role in ("user", "item")}
    texts_only = not any(pa.types.is_integer(one.type.value_type) for one in parts.values())
    for role in ("rating", "weight"):
        if role in columns.by_role:
            parts[role] = parse_ratings(fields.table[role], columns.label(role), options.decimal)
    if columns.positional and texts_only and options.user is None:
        roles = [role for role in ("user", "item", "rating") if role in columns.by_role]
        found = ", ".join(f"{role} in column {columns.by_role[role]}" for role in roles)
        asked = f"{', '.join(f'{role}=' for role in roles)} ({', '.join(f'--{role}' for role in roles)})"
        message = f"the file has no header line: it is read with {found}; if that is wrong, say which with {asked}"
        warnings.warn(message, GoodfenceWarning, stacklevel=2)
    return pa.table({**parts, **times}), columns


def _release_unused(max_bytes: int) -> None:
    """Give back what arrow needed to parse, where the limit on memory is near."""
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
    """Return how many different ids a column has, or any number above `most`; pieces are joined as they add up."""
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
    times: list[pa.Array]
    """The times as text, which most often are all different, in chunks; taken out of it as they are read."""
    dialect: Dialect
    file: RatingsFile
    encoding: str | None
    lines: Lines
    """The lines that were read."""
    n_sections: int | None
    """How many lines begin a section, where there are sections."""
    ragged: list[tuple[int, int]]
    """The rows, counted from 1, that have another number of fields than the first line, and how many."""

    def check_rows(self) -> None:
        """Check that every line became one row: a quotation mark without its partner swallows the lines after it."""
        name, positional = self.file.name, self.dialect.columns.positional
        if self.ragged:
            row, n_fields = self.ragged[0]
            raise FileProblem(
                f"{name!r} must have {len(self.dialect.fields)} fields in each row, row {row} has {n_fields}"
            )
        n_rows = self.lines.n_lines - (self.n_sections or int(not positional))
        if n_rows == 0:
            raise FileProblem(f"{name!r} must hold ratings, and has a header line only")
        if self.table.num_rows != n_rows:
            numbered = Lines(self.file, sys.maxsize, self.encoding).numbered()
            odd = next((number for number, line in numbered if line.count(b'"') % 2), 1)
            raise FileProblem(
                f"{name!r} must close each quoted field on the line where it opens, line {odd} does not"
            )

    def line_numbers(self) -> Iterator[int]:
        """Yield the number of the line of each row: the header, blank lines and those that begin a section are none."""
        full = (
            number
            for number, line in Lines(self.file, sys.maxsize, self.encoding).numbered()
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
    sections, roles = None, options.columns
    if SECTION.fullmatch(head[0].encode() + b"\n"):
        sections, head = Sections(), Sections.head(head)
        if not options.rated:
            raise ColumnProblem(
                f"{file.name!r} must hold events, and has the sections of the Netflix Prize, which hold ratings; say "
                "which of them count as likes with likes= (--likes)"
            )
        if all(roles[role] is None for role in SECTIONED):
            roles = {**roles, **SECTIONED}
    if not head:
        raise FileProblem(f"{file.name!r} must hold ratings, and has none in its first section")
    dialect = recognise(head, file, options.separator, roles)
    ragged: list[tuple[int, int]] = []
    feed = Feed(_prepared(lines, dialect, file, sections))
    table = _parsed(feed, dialect, ragged, file, options.max_bytes, tolerant=tolerant)
    _release_unused(options.max_bytes)
    table, times = without_times(table)
    return Fields(
        table=table,
        times=times,
        dialect=dialect,
        file=file,
        encoding=options.encoding,
        lines=lines,
        n_sections=sections.n_found if sections else None,
        ragged=ragged,
    )


def _parsed(
    feed: Feed,
    dialect: Dialect,
    ragged: list[tuple[int, int]],
    file: RatingsFile,
    max_bytes: int,
    *,
    tolerant: bool,
) -> pa.Table:
    """Return the columns by role as dictionaries of text, the times as text; no rows where one is ragged."""
    roles = dialect.columns.by_role
    kinds = {role: pa.string() if role == "time" else _CODED for role in roles}
    wanted = list(roles.values())
    if not dialect.columns.positional:
        wanted = [str(dialect.fields.index(name) + 1) for name in wanted]

    def note(row: arrow_csv.InvalidRow) -> str:
        ragged.append((row.number, row.actual_columns))
        return "skip" if tolerant else "error"

    batches, n_rows, n_bytes = [], 0, 0
    try:
        reader = arrow_csv.open_csv(
            pa.PythonFile(feed, mode="r"),
            # One thread: only then does arrow know the number of a broken row.
            read_options=arrow_csv.ReadOptions(
                use_threads=False,
                block_size=2 * CHUNK,
                column_names=[str(at + 1) for at in range(len(dialect.fields))],
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=dialect.delimiter,
                quote_char='"' if dialect.quotes else False,
                invalid_row_handler=note,
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=wanted,
                column_types=dict(zip(wanted, kinds.values(), strict=True)),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
        for batch in reader:
            batches.append(batch)
            n_rows += batch.num_rows
            for role, part in zip(roles, batch.columns, strict=True):
                text = part.nbytes - batch.num_rows * _BYTES_OF_A_TIME
                n_bytes += max(0, text) if role == "time" else part.dictionary.nbytes
            if n_rows * BYTES_OF_A_ROW + TIMES_HELD * n_bytes > max_bytes:
                raise too_large(file.name, max_bytes)
    except pa.ArrowException:  # which quotes the line
        if not ragged:
            raise FileProblem(
                f"{file.name!r} must be a table of rows and fields, and cannot be parsed"
            ) from None
        batches = []  # what is wrong is known, and said by whoever asks
    schema = pa.schema(list(zip(wanted, kinds.values(), strict=True)))
    return pa.Table.from_batches(batches, schema).rename_columns(list(roles))


class Feed:
    """What arrow reads from: each piece is less than it ever asks for."""

    closed = False

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def read(self, _n_bytes: int = -1) -> bytes:
        """Return the next lines."""
        return next(self._pieces, b"")

    def close(self) -> None:
        """Do nothing: the file is closed when its last line was read."""


def _prepared(
    lines: Lines, dialect: Dialect, file: RatingsFile, sections: Sections | None
) -> Iterator[bytes]:
    """Yield the rows, with one byte for each separator."""
    stray = stray_quotes(dialect.separator) if dialect.quotes else None
    steps: list[Callable[[bytes], bytes] | None] = [sections, dialect.single]
    for piece in lines.chunks(without_first=not dialect.columns.positional):
        found = stray.search(piece) if stray is not None and b'"' in piece else None
        if found is not None:
            n_before = lines.n_read - piece.count(b"\n")
            line = n_before + piece.count(b"\n", 0, found.end()) + 1
            raise FileProblem(
                f"{file.name!r} must quote a whole field or nothing of it, line {line} does not"
            )
        chunk = piece
        for step in steps:
            chunk = chunk if step is None else step(chunk)
        yield chunk


def stray_quotes(separator: str) -> re.Pattern[bytes]:
    r"""Return what finds a field of which only a part is quoted: text after its closing mark, or blanks before it.

    Examples
    --------
    >>> found = stray_quotes(",").search
    >>> bool(found(b'7,"a"b,3\n')), bool(found(b'7,"a""b",3\n')), bool(found(b'5" disk,2,3\n'))
    (True, False, False)
    """
    between = re.escape(separator.encode())
    blank = b"[ ]" if separator == "\t" else b"[ \t]"
    quoted = rb'"(?:[^"\n]|"")*+"'
    bare = rb'(?!%b*")[^%b\n]*+' % (blank, between)
    whole = rb"(?:(?:%b|%b)%b)*+" % (quoted, bare, between)
    broken = rb'(?:%b(?!%b|\r?\n)|%b++")' % (quoted, between, blank)
    return re.compile(rb"(?m)^" + whole + broken)
