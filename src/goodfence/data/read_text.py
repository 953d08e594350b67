"""Text files: csv, tsv, the `::` files of MovieLens, blanks, the Netflix Prize's, JSON lines, and gzip of these."""

from __future__ import annotations

import gzip
import json
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from goodfence.data.columns import (
    ROLES,
    SECTIONED,
    Columns,
    Dialect,
    Sections,
    begins_section,
    find_columns,
    recognise,
)
from goodfence.data.files import RatingsFile, too_large
from goodfence.data.frame import ReadOptions
from goodfence.data.ids import is_text
from goodfence.data.lines import (
    BYTE_ORDER_MARK,
    BYTES_OF_A_ROW,
    BYTES_OF_AN_ID,
    CHUNK,
    TIMES_HELD,
    Lines,
    changes,
    parse_ids,
    parse_ratings,
)
from goodfence.errors import FileProblem, GoodfenceWarning, ValueProblem

_FEW = 2**16
_LOOKED_AT = 20  # lines that tell how a file is laid out
_BYTES_OF_CODES = 3 * 4  # three columns of 32 bits
_CODED = pa.dictionary(pa.int32(), pa.string())
_CODED_NOTHING = pa.table({role: pa.array([], _CODED) for role in ROLES})
_MOST = 2**63
_EXACT = 2**53
_BYTES_TOGETHER = (
    2**19
)  # of JSON are parsed at a time: as Python's own objects they take many times more


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
        user, item, rating = columns.chosen
        message = (
            f"the file has no header line: column {user} is read as the user, {item} as the item, {rating} as the "
            "rating; if that is wrong, say which with user=, item= and rating= (--user, --item, --rating)"
        )
        warnings.warn(message, GoodfenceWarning, stacklevel=2)
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
                f"{name!r} must close each quoted field on the line where it opens, line {self._odd_line()} does not"
            )

    def _odd_line(self) -> int:
        """Return the first line with an odd number of quotation marks."""
        number = 1
        for chunk in Lines(self.file, sys.maxsize, self.encoding).chunks(without_first=False):
            for line in chunk.split(b"\n")[:-1]:
                if line.count(b'"') % 2:
                    return number
                number += 1
        return 1


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
        named = SECTIONED if set(named.values()) == {None} else named
    if not head:
        raise FileProblem(f"{file.name!r} must hold ratings, and has none in its first section")
    dialect = recognise(head, file, options.separator, named)
    feed = _Feed(lines, dialect, file, options.max_bytes, sections)
    ragged: list[tuple[int, int]] = []
    table = _parsed(feed, dialect, ragged, tolerant=tolerant)
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
    )


def _parsed(
    feed: _Feed, dialect: Dialect, ragged: list[tuple[int, int]], *, tolerant: bool
) -> pa.Table:
    """Return the three columns as dictionaries of text, null where a field is empty; nothing after a ragged row."""
    positions = [str(position) for position in range(1, len(dialect.fields) + 1)]
    wanted = list(dialect.columns.chosen)
    if not dialect.columns.positional:
        wanted = [str(dialect.fields.index(name) + 1) for name in wanted]

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
                column_types=dict.fromkeys(wanted, _CODED),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except pa.ArrowException:  # which quotes the line
        if ragged:
            return _CODED_NOTHING  # what is wrong is known, and said by whoever asks
        raise FileProblem(
            f"{feed.file.name!r} must be a table of rows and fields, and cannot be parsed"
        ) from None
    return table.rename_columns(list(ROLES))


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


def is_json(file: RatingsFile) -> bool:
    """Return whether a text file is JSON, by its ending, or by how its first line begins."""
    if file.suffixes[0] in (".json", ".jsonl", ".ndjson"):
        return True
    beginning = file.beginning
    if file.suffixes[1]:
        try:
            with gzip.open(file.path) as inner:
                beginning = inner.read(len(beginning))
        except (OSError, EOFError, zlib.error):  # which is said where all of it is read
            return False
    plain = beginning.removeprefix(BYTE_ORDER_MARK).lstrip()
    return plain.startswith((b'{"', b'{ "', b"{'"))


def read_json(file: RatingsFile, options: ReadOptions) -> tuple[pa.Table, Columns]:
    """Return the user, item and rating of a file of JSON lines, and what they are called in it.

    The columns are found among the members of the first line.
    """
    lines = Lines(file, options.max_bytes, options.encoding)
    first = lines.head()[0]
    if first.lstrip().startswith(b"["):
        raise FileProblem(
            f"{file.name!r} must be JSON lines, one object a line, and is an array; write it again as lines "
            "(pandas: orient='records', lines=True)"
        )
    columns = find_columns(list(_object(first, 1, file)), **options.columns)
    parts: dict[str, list[pa.Array]] = {role: [] for role in ROLES}
    n_rows = n_bytes = 0
    for number, together in _pieces(lines):
        objects = _objects(together, number, columns, file)
        for role in ROLES:
            parts[role].append(_column(objects, number, role, columns))
            n_bytes += parts[role][-1].nbytes
        n_rows += len(objects)
        if n_rows * BYTES_OF_A_ROW + TIMES_HELD * (n_bytes - 24 * n_rows) > options.max_bytes:
            raise too_large(file.name, options.max_bytes)
    return pa.table({role: _joined(parts[role], columns.label(role)) for role in ROLES}), columns


def _pieces(lines: Lines) -> Iterator[tuple[int, list[bytes]]]:
    """Yield a few lines at a time, blank ones empty, with the number of the first."""
    number = 1
    for chunk in lines.chunks(without_first=False):
        start = 0
        while start < len(chunk):
            end = chunk.rfind(b"\n", start, start + _BYTES_TOGETHER) + 1
            end = end or chunk.index(b"\n", start) + 1  # one line that is longer
            piece = chunk[start:end].split(b"\n")[:-1]
            yield number, piece
            number, start = number + len(piece), end


def _objects(
    lines: Sequence[bytes], number: int, columns: Columns, file: RatingsFile
) -> list[tuple[int, dict[str, Any]]]:
    """Return the line number and the object of each line that is not blank: all at once where nothing is odd."""
    full = [(number + at, line) for at, line in enumerate(lines) if line.strip()]
    text = b"\n".join(line for _, line in full)
    # A member that is named twice shows as a name that is there more often than lines are.
    once = all(text.count(json.dumps(name).encode()) <= len(full) for name in columns.chosen)
    try:
        found = json.loads(
            b"[" + text.replace(b"\n", b",") + b"]", parse_float=_float, parse_constant=str
        )
    except (ValueError, RecursionError):
        found = []
    if once and len(found) == len(full) and all(type(one) is dict for one in found):
        return [(line, one) for (line, _), one in zip(full, found, strict=True)]
    return [(line, _object(text, line, file)) for line, text in full]


def _object(line: bytes, number: int, file: RatingsFile) -> dict[str, Any]:
    try:
        found = json.loads(line, object_pairs_hook=_once, parse_float=_float, parse_constant=str)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise FileProblem(
            f"{file.name!r} must hold one JSON object a line, line {number} is none, or names a member twice"
        ) from None
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a member is named twice")
    return found


def _float(text: str) -> float | str:
    """Return the number, or its spelling where a float cannot hold it."""
    value = float(text)
    return text if value in (float("inf"), float("-inf")) or changes(text, value) else value


def _column(
    objects: list[tuple[int, dict[str, Any]]], number: int, role: str, columns: Columns
) -> pa.Array:
    """Return one member of each object: integers or text for ids, floats for ratings."""
    name, label = columns.chosen[ROLES.index(role)], columns.label(role)
    values = [one.get(name) for _, one in objects]
    plain = _plain_column(values, role)
    if plain is not None:
        return plain
    for (line, _), value in zip(objects, values, strict=True):
        if value is None or value == "":
            raise ValueProblem(f"{label} must not be missing, line {line} is")
        if not (_is_rating if role == "rating" else _is_id)(value):
            rule = (
                "a number that a 64-bit float holds" if role == "rating" else "an integer or text"
            )
            raise ValueProblem(f"{label} must be {rule}, line {line} is not")
    if role == "rating":
        return pa.array(np.array(values, dtype=np.float64))
    raise ValueProblem(f"{label} must hold integers or text, and holds both near line {number}")


def _plain_column(values: list[Any], role: str) -> pa.Array | None:
    """Return the values at once where nothing is odd, as it is most often."""
    kinds = set(map(type, values))
    with suppress(OverflowError, UnicodeError, pa.ArrowException):
        if role == "rating" and kinds <= {int, float}:
            numbers = np.array(values, dtype=np.float64)
            if bool((np.abs(numbers) < _EXACT).all()):
                return pa.array(numbers)
        elif role != "rating" and (kinds == {int} or (kinds == {str} and "" not in values)):
            return pa.array(values, pa.int64() if kinds == {int} else pa.string())
    return None


def _is_rating(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) <= _EXACT)


def _is_id(value: Any) -> bool:
    if type(value) is str:  # JSON's escapes can spell half of a character
        return not any("\ud800" <= letter <= "\udfff" for letter in value)
    return type(value) is int and -_MOST <= value < _MOST


def _joined(parts: list[pa.Array], label: str) -> pa.ChunkedArray:
    if len({part.type for part in parts}) > 1:
        raise ValueProblem(f"{label} must hold integers or text, and holds both")
    whole = pa.concat_arrays(parts)  # many dictionaries would each repeat the ones before
    return pa.chunked_array([whole.dictionary_encode() if is_text(whole.type) else whole])
