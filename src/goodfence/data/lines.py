"""The lines of a text file, checked as they stream (size, encoding, line ends, length), and their ids and ratings."""

from __future__ import annotations

import codecs
import gzip
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goodfence.arrays import Flags, Floats, Integers
from goodfence.data.files import LONGEST_LINE, RatingsFile, readable, too_large
from goodfence.data.ids import missing_words, one_dictionary, refuse_rows
from goodfence.errors import FileProblem, GoodfenceWarning, require

CHUNK = 4 * LONGEST_LINE
"""How many bytes are read at a time; several lines must fit."""
BYTES_OF_A_ROW = 64
"""What a rating takes in memory while a file is read, its ids apart: `max_bytes` allows so many rows."""
BYTES_OF_AN_ID = 80
"""What a different id takes that was read as text, its letters apart."""
TIMES_HELD = 4
"""How often the text of ids is held at once while it is made into ids."""
ENCODINGS = ("utf-8", "latin-1", "cp1252", "cp1251", "utf-16", "utf-32", "gb18030", "shift_jis")
"""How the text of a file may be written."""
BYTE_ORDER_MARK = codecs.BOM_UTF8
SPACE = " \t"
"""What may stand around a field."""
_OTHER_ENCODINGS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_COMMA = r"^[+-]?[0-9]+,[0-9]+$"
_THOUSANDS = r"^[+-]?[0-9]{1,3}(,[0-9]{3})+$"
_NOT_FINITE = r"^(?i)[+-]?(nan|inf|infinity)$"
_INTEGER = r"^(0|-?[1-9][0-9]{0,18})$"  # as an id: 7, and not 007
_WHOLE = 2.0**53  # beyond it a float holds not every integer


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
        self._file = file
        self._max_bytes = max_bytes
        self._encoding = None if encoding == "utf-8" else encoding
        self._chunks = self._checked()

    def head(self, n: int = 1) -> list[bytes]:
        """Return the first lines that are not blank, without their ends: one at least, `n` at most.

        They are only looked at: `chunks` gives them again.
        """
        chunk = next(self._chunks, b"")
        while chunk and not chunk.strip():
            chunk = next(self._chunks, b"")
        if not chunk.strip():
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
                f"{self._file.name!r} must be {self._encoding} text, as encoding= (--encoding) says, and is not"
            ) from None

    def _pieces(self) -> Iterator[bytes]:
        name = self._file.name
        packed = self._file.suffixes[1] == ".gz"
        if packed and not self._file.beginning.startswith(b"\x1f\x8b"):
            raise FileProblem(f"{name!r} must be a gzip file, as its name says, and is not")
        path = self._file.path
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
        for mark, encoding in _OTHER_ENCODINGS:
            if piece.startswith(mark):
                raise FileProblem(
                    f"{self._file.name!r} must be UTF-8 text, and is {encoding}; save it as UTF-8, or say "
                    f"encoding='{encoding.lower()}' (--encoding {encoding.lower()})"
                )
        return piece.removeprefix(BYTE_ORDER_MARK)

    def _check(self, lines: bytes) -> None:
        """Check lines that are whole, and count them."""
        self._check_length(lines)
        for letter, rule in ((b"\0", "NUL bytes"), (b"\x1f", "control characters")):
            if letter in lines:
                raise self._problem(f"text without {rule}", lines[: lines.index(letter)])
        if lines.count(b"\r") != lines.count(b"\r\n"):
            place = next(
                i for i, b in enumerate(lines) if b == 13 and lines[i + 1 : i + 2] != b"\n"
            )
            raise self._problem("text with ordinary line ends", lines[:place])
        try:
            lines.decode()  # an end of line is never inside a character
        except UnicodeDecodeError as problem:
            advice = "if it is Latin-1, say so with encoding='latin-1' (--encoding latin-1)"
            raise self._problem("UTF-8 text", lines[: problem.start], advice) from None
        n_ends = lines.count(b"\n")
        self.n_read += n_ends
        if n_ends * BYTES_OF_A_ROW > self._max_bytes:  # one chunk of nothing but ends
            raise too_large(self._file.name, self._max_bytes)
        self.n_lines += n_ends - len(blank_lines(lines))

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
        said = f"{self._file.name!r} must be {rule}, line {line} is not"
        return FileProblem(f"{said}; {advice}" if advice else said)


def blank_lines(lines: bytes) -> Integers:
    """Return which lines, counted from 0, have nothing but their end."""
    if b"\n\n" not in lines and b"\n\r\n" not in lines and lines[:1] not in (b"\n", b"\r"):
        return np.empty(0, dtype=np.int64)
    letters = np.frombuffer(lines, dtype=np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    starts = np.append(0, ends[:-1] + 1)
    lengths = ends - starts
    return np.flatnonzero((lengths == 0) | ((lengths == 1) & (letters[starts] == ord("\r"))))


def parse_ids(column: pa.ChunkedArray, label: str) -> pa.ChunkedArray:
    """Return a text column as a dictionary: of integers if every id is one, else of text.

    Examples
    --------
    >>> [parse_ids(pa.chunked_array([ids]), "user").type.value_type for ids in (["10", "9"], ["10", "09"])]
    [DataType(int64), DataType(string)]
    """
    coded = one_dictionary(column)
    values = pc.utf8_trim(coded.dictionary, SPACE)
    if not values.equals(coded.dictionary):
        message = f"{label} has ids with spaces around them; the spaces were left out"
        warnings.warn(message, GoodfenceWarning, stacklevel=2)
    integers = _as_integers(values)
    if integers is None:
        spelled = missing_among_integers(values)
        if spelled.any():
            at = np.asarray(coded.indices.fill_null(0))
            refuse_rows(spelled[at], f"{label} must not be missing", "is")
        integers = values
    return pa.chunked_array([pa.DictionaryArray.from_arrays(coded.indices, integers)])


def _as_integers(values: pa.Array) -> pa.Array | None:
    if not pc.all(pc.match_substring_regex(values, _INTEGER)).as_py():
        return None
    try:
        return values.cast(pa.int64())
    except pa.ArrowInvalid:  # nineteen digits may be too many
        return None


def missing_among_integers(values: pa.Array) -> Flags:
    """Return which of different ids say that they are missing, as "NA" does: in a column of names they may be names."""
    spelled = missing_words(values)
    others = values.filter(pa.array(~spelled))
    if not spelled.any() or len(others) == 0 or _as_integers(others) is None:
        return np.zeros(len(values), dtype=np.bool_)
    return spelled


def parse_ratings(
    column: pa.ChunkedArray, label: str, decimal: str | None = None
) -> pa.ChunkedArray:
    """Return a text column as numbers, or name the first row that is not one.

    Examples
    --------
    >>> parse_ratings(pa.chunked_array([["4", "four"]]), "rating")
    Traceback (most recent call last):
    ...
    goodfence.errors.ValueProblem: rating must be a number, row 2 is not
    """
    coded = one_dictionary(column)
    written = Written.of(coded.dictionary, decimal)
    for broken, rule, verdict in (
        (written.missing, "must not be missing", "is"),
        (written.infinite, "must be a finite number", "is not"),
        (written.textual, "must be a number", f"is not{written.advice}"),
        (written.inexact, "must be a number that a 64-bit float holds", "is not"),
    ):
        if broken.any():  # an empty field, which is null, is told later
            known = np.asarray(coded.indices.is_valid())
            at = np.asarray(coded.indices.fill_null(0))
            refuse_rows(broken[at] & known, f"{label} {rule}", verdict)
    if written.comma:
        message = f"{label} is written with a decimal comma, and was read so"
        warnings.warn(message, GoodfenceWarning, stacklevel=2)
    return pa.chunked_array([pa.array(written.values).take(coded.indices)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Different texts, the number that each is, and what is wrong with those that are none."""

    values: Floats
    missing: Flags
    infinite: Flags
    textual: Flags
    inexact: Flags
    comma: bool
    """Whether a decimal comma was found without being stated."""
    advice: str

    @classmethod
    def of(cls, texts: pa.Array, decimal: str | None = None) -> Written:
        """Return what the texts are, with a decimal point, or the stated or only possible comma."""
        require(decimal in (None, ".", ","), "decimal", "'.' or ','", decimal)
        texts = pc.utf8_trim(texts, SPACE)
        found, pointed = decimal is None and _has_commas(texts), _matches(texts, r"\.")
        if found or decimal == ",":
            texts = pc.replace_substring(texts, ",", ".", max_replacements=1)
        textual = ~_matches(texts, _NUMBER)
        if decimal == ",":  # then a point would be something else
            textual |= pointed
        missing, spelled = _matches(texts, "^$"), _matches(texts, _NOT_FINITE)
        values = np.asarray(pc.if_else(pa.array(textual), "0", texts).cast(pa.float64()))
        advised = decimal is None and bool((_matches(texts, _COMMA) & textual).any())
        advice = "; if it has a decimal comma, say so with decimal=',' (--decimal ,)"
        return cls(
            values=values,
            missing=missing,
            infinite=spelled | ~np.isfinite(values),
            textual=textual & ~missing & ~spelled,
            inexact=_inexact(texts, values, textual),
            comma=found,
            advice=advice if advised else "",
        )


def _matches(texts: pa.Array, pattern: str) -> Flags:
    return np.array(pc.match_substring_regex(texts, pattern), dtype=np.bool_)


def _has_commas(texts: pa.Array) -> bool:
    """Return whether a comma can be nothing but a decimal one: no point anywhere, and no group of three digits."""
    commas = _matches(texts, _COMMA)
    others = _matches(texts, r"\.") | _matches(texts, _THOUSANDS)
    numbers = commas | _matches(texts, r"^[+-]?[0-9]*$")
    return bool(commas.any() and not others.any() and numbers.all())


def _inexact(texts: pa.Array, values: Floats, textual: Flags) -> Flags:
    """Return which numbers a float would change: integers beyond its digits, and what is too small for it."""
    size = np.abs(values)
    changed: Flags = ~textual & np.isfinite(values) & ((size >= _WHOLE) | (size == 0))
    for place in np.flatnonzero(changed).tolist():
        changed[place] = changes(texts[place].as_py(), float(values[place]))
    return changed


def changes(text: str, value: float) -> bool:
    """Return whether a number of this spelling is not `value`, by more than its last digit.

    Examples
    --------
    >>> changes("9007199254740993", 9007199254740992.0), changes("1e-400", 0.0), changes("0.1000000000000000", 0.1)
    (True, True, False)
    """
    try:
        exact = Decimal(text)
    except InvalidOperation:  # an exponent of nineteen digits
        return True
    if value == 0:
        return exact != 0
    return abs(value) >= _WHOLE and Decimal(value) != exact
