"""Text files: csv, tsv, the `::` files of MovieLens, blanks, the Netflix Prize's layout, and gzip of these."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from goodfence.data.columns import ROLES, Columns
from goodfence.data.dialect import COLUMNS, Dialect, Sections, begins_section, recognise
from goodfence.data.files import RatingsFile, too_large
from goodfence.data.frame import ReadOptions
from goodfence.data.ids import first_row, missing_rows
from goodfence.data.lines import (
    BYTES_OF_A_ROW,
    BYTES_OF_AN_ID,
    CHUNK,
    TIMES_HELD,
    Lines,
    parse_ratings,
)
from goodfence.errors import FileProblem, GoodfenceWarning, ValueProblem

_FEW = 2**16
_LOOKED_AT = 20  # lines that tell how a file is laid out
_INTEGER = r"^(0|-?[1-9][0-9]{0,18})$"
_SPACE = " \t"
_BYTES_OF_CODES = 3 * 4  # three columns of 32 bits
_CODED = pa.dictionary(pa.int32(), pa.string())
_CODED_NOTHING = pa.table({role: pa.array([], _CODED) for role in ROLES})


def read_text(file: RatingsFile, options: ReadOptions) -> tuple[pa.Table, Columns]:
    """Return the columns user, item and rating of a text file, and what they are called in it.

    A first line of numbers, or with a number third of three or four and no known name, is a rating, not a header. Ids
    are integers where every one of the column is written as an integer is ("7", not "007" or "7.0"), else text.
    """
    texts = read_fields(file, options)
    table, columns = texts.table, texts.dialect.columns
    texts.check_rows()
    _check_ids(table, file, options.max_bytes)
    ids = {role: parse_ids(table[role], columns.label(role)) for role in ("user", "item")}
    ratings = parse_ratings(table["rating"], columns.label("rating"), options.decimal)
    texts_only = not any(pa.types.is_integer(one.type.value_type) for one in ids.values())
    if columns.positional and texts_only and options.user is None:
        _warn_of_no_header(columns)
    return pa.table({**ids, "rating": ratings}), columns


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
                f"{name!r} must close each quoted field on the line where it opens, "
                f"line {_odd_line(self.file, self.encoding)} does not"
            )


def read_fields(file: RatingsFile, options: ReadOptions, *, tolerant: bool = False) -> Fields:
    """Return the fields of a text file as they are written; a `tolerant` reading goes on after a ragged row."""
    if file.suffixes[1]:  # keep none of what gzip holds at first: too much is refused in no memory
        for _ in Lines(file, options.max_bytes, options.encoding).chunks(without_first=False):
            pass
    lines = Lines(file, options.max_bytes, options.encoding)
    head = [line.decode() for line in lines.head(_LOOKED_AT)]
    sections, named = None, options.columns
    if begins_section(head[0]):
        sections, head = Sections(), Sections.head(head)
        named = COLUMNS if set(named.values()) == {None} else named
    if not head:
        raise FileProblem(f"{file.name!r} must hold ratings, and has none in its first section")
    dialect = recognise(head, file, options.separator, named)
    feed = _Feed(lines, dialect, file, options.max_bytes, sections)
    ragged: list[tuple[int, int]] = []
    table = _CODED_NOTHING
    with _reading_text(file, ragged):
        table = _parsed(feed, dialect, ragged, tolerant=tolerant)
    n_apart = sections.n_found if sections else int(not dialect.columns.positional)
    n_lines, n_blank = lines.n_lines - n_apart, lines.n_read - lines.n_lines
    return Fields(
        table=table,
        dialect=dialect,
        file=file,
        encoding=options.encoding,
        n_lines=n_lines,
        n_blank=n_blank,
        sectioned=sections is not None,
        ragged=ragged,
    )


def _parsed(
    feed: _Feed, dialect: Dialect, ragged: list[tuple[int, int]], *, tolerant: bool
) -> pa.Table:
    """Return the three columns as dictionaries of text, null where a field is empty."""
    positions = [str(position) for position in range(1, len(dialect.fields) + 1)]
    wanted: tuple[str, ...] = dialect.columns.chosen
    if not dialect.columns.positional:
        wanted = tuple(str(dialect.fields.index(name) + 1) for name in wanted)

    def note(row: arrow_csv.InvalidRow) -> str:
        ragged.append((row.number, row.actual_columns))
        return "skip" if tolerant else "error"

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
            include_columns=list(wanted),
            column_types=dict.fromkeys(wanted, _CODED),
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    return table.rename_columns(list(ROLES))


def _odd_line(file: RatingsFile, encoding: str | None) -> int:
    """Return the first line with an odd number of quotation marks, for an error."""
    number = 1
    for chunk in Lines(file, sys.maxsize, encoding).chunks(without_first=False):
        for line in chunk.split(b"\n")[:-1]:
            if line.count(b'"') % 2:
                return number
            number += 1
    return 1


@contextmanager
def _reading_text(file: RatingsFile, ragged: list[tuple[int, int]]) -> Iterator[None]:
    """Turn arrow's errors, which quote the line, into a sentence that does not."""
    try:
        yield
    except pa.ArrowException:
        if ragged:
            return  # what is wrong is known, and said by whoever asks
        raise FileProblem(
            f"{file.name!r} must be a table of rows and fields, and cannot be parsed"
        ) from None


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
        self._lines, self._file, self._max_bytes = lines, file, max_bytes
        self._before = pa.total_allocated_bytes()
        self._chunks = lines.chunks(without_first=not dialect.columns.positional)
        self._steps: list[Callable[[bytes], bytes]] = []
        if dialect.quotes:
            self._stray = stray_quotes(dialect.separator)
            self._steps.append(self._check_quotes)
        self._steps += [step for step in (sections, dialect.single) if step is not None]

    def read(self, _n_bytes: int = -1) -> bytes:
        """Return the next lines, which are fewer bytes than arrow ever asks for."""
        n_rows = self._lines.n_read
        text = pa.total_allocated_bytes() - self._before - n_rows * _BYTES_OF_CODES - 4 * CHUNK
        if n_rows * BYTES_OF_A_ROW + TIMES_HELD * text > self._max_bytes:
            raise too_large(self._file.name, self._max_bytes)
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
                f"{self._file.name!r} must quote a whole field or nothing of it, line {line} does not"
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


def parse_ids(column: pa.ChunkedArray, label: str) -> pa.ChunkedArray:
    """Return a text column as a dictionary: of integers if every id is one, else of text.

    Examples
    --------
    >>> parse_ids(pa.chunked_array([["10", "9", "10"]]), "user").type.value_type
    DataType(int64)
    >>> parse_ids(pa.chunked_array([["10", "09"]]), "user").type.value_type
    DataType(string)
    """
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    coded = coded.unify_dictionaries().combine_chunks()
    values = _trimmed(coded.dictionary, label)
    integers = _as_integers(values)
    if integers is None:
        _refuse_missing(coded, values, label)
        integers = values
    return pa.chunked_array([pa.DictionaryArray.from_arrays(coded.indices, integers)])


def _trimmed(values: pa.Array, label: str) -> pa.Array:
    trimmed = pc.utf8_trim(values, _SPACE)
    if not trimmed.equals(values):
        warnings.warn(
            f"{label} has ids with spaces around them; the spaces were left out",
            GoodfenceWarning,
            stacklevel=2,
        )
    return trimmed


def _as_integers(values: pa.Array) -> pa.Array | None:
    if not pc.all(pc.match_substring_regex(values, _INTEGER)).as_py():
        return None
    try:
        return values.cast(pa.int64())
    except pa.ArrowInvalid:  # nineteen digits may be too many
        return None


def _refuse_missing(coded: pa.DictionaryArray, values: pa.Array, label: str) -> None:
    """Refuse "NA", "null" and their like in a column that is otherwise integers.

    In a column of names they may be names; among integers they are not ids.
    """
    spelled = missing_words(values)
    if not spelled.any():
        return
    indices: npt.NDArray[np.int32] = coded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    raise ValueProblem(f"{label} must not be missing, row {first_row(spelled[indices])} is")


def missing_words(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which of different ids say that they are missing: none, unless all others are integers."""
    spelled = missing_rows(pa.chunked_array([values]), words=True)
    others = values.filter(pa.array(~spelled))
    if not spelled.any() or len(others) == 0 or _as_integers(others) is None:
        return np.zeros(len(values), dtype=np.bool_)
    return spelled


def _warn_of_no_header(columns: Columns) -> None:
    user, item, rating = columns.chosen
    warnings.warn(
        f"the file has no header line: column {user} is read as the user, {item} as the item, {rating} as the rating; "
        "if that is wrong, say which with user=, item= and rating= (--user, --item, --rating)",
        GoodfenceWarning,
        stacklevel=2,
    )
