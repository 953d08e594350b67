"""Text files: csv, tsv, the `::` files of MovieLens, blanks, the Netflix Prize's, JSON lines, and gzip of these."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from goodfence.data.columns import Columns
from goodfence.data.dialect import SECTIONED, Dialect, Sections, begins_section, recognise
from goodfence.data.files import RatingsFile, too_large
from goodfence.data.frame import ReadOptions
from goodfence.data.lines import (
    BYTES_OF_A_ROW,
    BYTES_OF_AN_ID,
    CHUNK,
    TIMES_HELD,
    Lines,
    parse_ids,
    parse_ratings,
)
from goodfence.data.times import keep_times, without_times
from goodfence.errors import ColumnProblem, FileProblem, GoodfenceWarning

_FEW = 2**16
_LOOKED_AT = 20  # lines that tell how a file is laid out
_BYTES_OF_CODES = 4  # of a column of text, 32 bits a row
_BYTES_OF_A_TIME = 24  # as text; it is made into 8 bytes before anything else
_CODED = pa.dictionary(pa.int32(), pa.string())


def read_text(file: RatingsFile, options: ReadOptions) -> tuple[pa.Table, Columns]:
    """Return the columns user, item and rating of a text file, its times, and what they are called in it.

    A first line of numbers, or with a number third of three or four and no known name, is a rating, not a header; of
    events, one with any number. Ids are integers where every one of the column is written as an integer is ("7", not
    "007" or "7.0"), else text.
    """
    texts = read_fields(file, options)
    texts.check_rows()
    times, columns = keep_times(texts.times, texts.dialect.columns, named=options.time is not None)
    table = texts.table
    _check_ids(table, file, options.max_bytes)
    parts = {role: parse_ids(table[role], columns.label(role)) for role in ("user", "item")}
    texts_only = not any(pa.types.is_integer(one.type.value_type) for one in parts.values())
    for role in ("rating", "weight"):
        if role in columns.by_role:
            parts[role] = parse_ratings(table[role], columns.label(role), options.decimal)
    parts |= times
    if columns.positional and texts_only and options.user is None:
        named = ", ".join(
            f"{'column ' if role == 'user' else ''}{name} {'is read ' if role == 'user' else ''}as the {role}"
            for role, name in columns.by_role.items()
            if role in ("user", "item", "rating")
        )
        asked = "user=, item= and rating= (--user, --item, --rating)"
        asked = asked if options.rated else "user= and item= (--user, --item)"
        message = f"the file has no header line: {named}; if that is wrong, say which with {asked}"
        warnings.warn(message, GoodfenceWarning, stacklevel=2)
    return pa.table(parts), columns


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
        if n_waiting >= max(len(seen), _FEW) or chunk is column.chunks[-1]:
            seen = pc.unique(pa.concat_arrays([seen, *waiting]))
            waiting, n_waiting = [], 0
            if len(seen) > most:
                break
    return len(pc.unique(pa.concat_arrays([seen, *waiting]))) if waiting else len(seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """What the lines of a text file hold, before anything is asked of it."""

    table: pa.Table
    """The user, item and rating of each row as dictionaries of text, null where a field is empty."""
    dialect: Dialect
    file: RatingsFile
    encoding: str | None
    n_lines: int
    """How many lines that are not blank there are, the header line apart."""
    n_blank: int
    """How many lines are blank."""
    sectioned: bool = False
    """Whether lines that begin a section are between the rows."""
    ragged: list[tuple[int, int]] = field(default_factory=list)
    """The rows, counted from 1, that have another number of fields than the first line, and how many."""
    times: list[pa.Array] = field(default_factory=list)
    """The times as text, which most often are all different, in chunks; taken out of it as they are read."""

    def check_rows(self) -> None:
        """Check that every line became one row: a quotation mark without its partner swallows the lines after it."""
        name = self.file.name
        if self.ragged:
            row, n_fields = self.ragged[0]
            raise FileProblem(
                f"{name!r} must have {len(self.dialect.fields)} fields in each row, row {row} has {n_fields}"
            )
        if self.n_lines == 0:
            raise FileProblem(f"{name!r} must hold ratings, and has a header line only")
        if self.table.num_rows != self.n_lines:
            raise FileProblem(
                f"{name!r} must close each quoted field on the line where it opens, line {self._odd_line()} does not"
            )

    def _odd_line(self) -> int:
        """Return the first line with an odd number of quotation marks."""
        number = 1
        for chunk in Lines(self.file, sys.maxsize, self.encoding).chunks():
            for line in chunk.split(b"\n")[:-1]:
                if line.count(b'"') % 2:
                    return number
                number += 1
        return 1


def read_fields(file: RatingsFile, options: ReadOptions, *, tolerant: bool = False) -> Fields:
    """Return the fields of a text file as they are written; a `tolerant` reading goes on after a ragged row."""
    if file.suffixes[1]:  # keep none of what gzip holds at first: too much is refused in no memory
        for _ in Lines(file, options.max_bytes, options.encoding).chunks():
            pass
    lines = Lines(file, options.max_bytes, options.encoding)
    head = [line.decode() for line in lines.head(_LOOKED_AT)]
    sections, named = None, options.columns
    if begins_section(head[0]):
        sections, head = Sections(), Sections.head(head)
        if not options.rated:
            raise ColumnProblem(
                f"{file.name!r} must hold events, and has the sections of the Netflix Prize, which hold ratings; say "
                "which of them count as likes with likes= (--likes)"
            )
        unnamed = {named[role] for role in SECTIONED} == {None}
        named = {**named, **SECTIONED} if unnamed else named
    if not head:
        raise FileProblem(f"{file.name!r} must hold ratings, and has none in its first section")
    dialect = recognise(head, file, options.separator, named)
    feed = _Feed(lines, dialect, file, options.max_bytes, sections)
    ragged: list[tuple[int, int]] = []
    table, times = _parsed(feed, dialect, ragged, tolerant=tolerant)
    n_apart = sections.n_found if sections else int(not dialect.columns.positional)
    return Fields(
        table=table,
        dialect=dialect,
        file=file,
        encoding=options.encoding,
        n_lines=lines.n_lines - n_apart,
        n_blank=lines.n_read - lines.n_lines,
        sectioned=sections is not None,
        ragged=ragged,
        times=times,
    )


def _parsed(
    feed: _Feed, dialect: Dialect, ragged: list[tuple[int, int]], *, tolerant: bool
) -> tuple[pa.Table, list[pa.Array]]:
    """Return the columns as dictionaries of text, null where a field is empty, and the times as chunks of text.

    Nothing where there is a ragged row, unless the reading is tolerant.
    """
    positions = [str(position) for position in range(1, len(dialect.fields) + 1)]
    roles = dialect.columns.by_role
    wanted = list(roles.values())
    if not dialect.columns.positional:
        wanted = [str(dialect.fields.index(name) + 1) for name in wanted]
    kinds = [pa.string() if role == "time" else _CODED for role in roles]

    def note(row: arrow_csv.InvalidRow) -> str:
        ragged.append((row.number, row.actual_columns))
        return "skip" if tolerant else "error"

    try:
        table = arrow_csv.read_csv(
            pa.PythonFile(feed, mode="r"),
            # One thread: only then does arrow know the number of a broken row.
            read_options=arrow_csv.ReadOptions(
                use_threads=False, block_size=2 * CHUNK, column_names=positions
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=dialect.delimiter,
                quote_char='"' if dialect.quotes else False,
                invalid_row_handler=note,
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=wanted,
                column_types=dict(zip(wanted, kinds, strict=True)),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except pa.ArrowException:  # which quotes the line
        if ragged:
            # What is wrong is known, and said by whoever asks.
            return pa.table({role: pa.array([], _CODED) for role in roles if role != "time"}), []
        raise FileProblem(
            f"{feed.file.name!r} must be a table of rows and fields, and cannot be parsed"
        ) from None
    return without_times(table.rename_columns(list(roles)))


class _Feed:
    """What arrow reads from: the checked lines, with one byte for each separator, as far as the memory allows."""

    closed = False

    def __init__(
        self,
        lines: Lines,
        dialect: Dialect,
        file: RatingsFile,
        max_bytes: int,
        sections: Sections | None,
    ) -> None:
        self._lines, self.file, self._max_bytes = lines, file, max_bytes
        self._before = pa.total_allocated_bytes()
        self._bytes_of_codes = sum(
            _BYTES_OF_A_TIME if role == "time" else _BYTES_OF_CODES
            for role in dialect.columns.by_role
        )
        self._chunks = lines.chunks(without_first=not dialect.columns.positional)
        self._steps: list[Callable[[bytes], bytes]] = []
        if dialect.quotes:
            self._stray = stray_quotes(dialect.separator)
            self._steps.append(self._check_quotes)
        self._steps += [step for step in (sections, dialect.single) if step is not None]

    def read(self, _n_bytes: int = -1) -> bytes:
        """Return the next lines, which are fewer bytes than arrow ever asks for."""
        n_rows = self._lines.n_read
        text = pa.total_allocated_bytes() - self._before - n_rows * self._bytes_of_codes - 4 * CHUNK
        if n_rows * BYTES_OF_A_ROW + TIMES_HELD * text > self._max_bytes:
            raise too_large(self.file.name, self._max_bytes)
        chunk = next(self._chunks, b"")
        for step in self._steps:
            chunk = step(chunk)
        return chunk

    def _check_quotes(self, chunk: bytes) -> bytes:
        found = self._stray.search(chunk) if b'"' in chunk else None
        if found is not None:
            n_before = self._lines.n_read - chunk.count(b"\n")
            line = n_before + chunk.count(b"\n", 0, found.end()) + 1
            raise FileProblem(
                f"{self.file.name!r} must quote a whole field or nothing of it, line {line} does not"
            )
        return chunk

    def close(self) -> None:
        """Do nothing: the file is closed when its last line was read."""

    def readable(self) -> bool:
        """Return True: this is for reading."""
        return True

    def seekable(self) -> bool:
        """Return False: the lines come once."""
        return False


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
