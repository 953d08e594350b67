"""The lines of a text file, checked while they stream: size, encoding, line ends, length."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from typing import BinaryIO, cast

import numpy as np

from goodfence.data.limits import LONGEST_LINE, readable, too_large
from goodfence.data.readers.files import RatingsFile
from goodfence.errors import FileProblem

CHUNK = 4 * LONGEST_LINE
"""How many bytes are read at a time; several lines must fit."""
BYTE_ORDER_MARK = codecs.BOM_UTF8
STAND_IN = b"\x1f"
"""The one-byte separator that takes the place of `::`; ASCII calls it the unit separator."""

_OTHER_ENCODINGS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


class Lines:
    """The checked lines of one text file, read once from its beginning to its end.

    Parameters
    ----------
    file
        What to read; gzip if its name ends in `.gz`.
    max_bytes
        How many bytes it may inflate to.
    """

    def __init__(self, file: RatingsFile, max_bytes: int) -> None:
        self.n_lines = 0
        """How many lines that are not blank were read."""
        self._file = file
        self._max_bytes = max_bytes
        self._line = 0
        self._chunks = self._checked()

    def first(self) -> bytes:
        """Return the first line that is not blank, without its end.

        It is only looked at: `chunks` gives it again.
        """
        chunk = next(self._chunks, b"")
        while chunk and not chunk.strip():
            chunk = next(self._chunks, b"")
        if not chunk.strip():
            raise FileProblem(f"{self._file.name!r} must hold ratings, and is empty")
        self._chunks = _put_back(chunk, self._chunks)
        return chunk.lstrip(b"\r\n").split(b"\n", 1)[0].rstrip(b"\r")

    def chunks(self, *, without_first: bool) -> Iterator[bytes]:
        """Yield pieces of whole lines, with or without the first that is not blank."""
        if without_first:
            chunk = next(self._chunks).lstrip(b"\r\n")
            yield chunk[chunk.index(b"\n") + 1 :] or b"\n"  # nothing would mean the end of the file
        yield from self._chunks

    def _checked(self) -> Iterator[bytes]:
        """Yield whole lines, each checked; the last one always gets an end."""
        held, n_bytes = b"", 0
        for number, piece in enumerate(self._pieces()):
            n_bytes += len(piece)
            if n_bytes > self._max_bytes:
                raise too_large(self._file.name, self._max_bytes)
            if number == 0:
                piece = self._without_mark(piece)
            chunk = held + piece
            end = chunk.rfind(b"\n") + 1
            held = chunk[end:]
            self._check(chunk[:end])
            self._check_length(held, self._line)
            if end:
                yield chunk[:end]
        if held:
            self._check(held + b"\n")
            yield held + b"\n"

    def _pieces(self) -> Iterator[bytes]:
        name = self._file.name
        packed = self._file.suffixes[1] == ".gz"
        if packed and not self._file.beginning.startswith(b"\x1f\x8b"):
            raise FileProblem(f"{name!r} must be a gzip file, as its name says, and is not")
        try:
            with self._open(packed) as stream:
                while piece := stream.read(CHUNK):
                    yield piece
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise FileProblem(
                f"{name!r} must be a whole gzip file, and is cut short or damaged"
            ) from None
        except OSError:
            raise FileProblem(f"{name!r} must be readable, and reading it failed") from None

    def _open(self, packed: bool) -> BinaryIO:
        path = self._file.path
        return cast("BinaryIO", gzip.open(path, "rb")) if packed else path.open("rb")

    def _without_mark(self, piece: bytes) -> bytes:
        for mark, encoding in _OTHER_ENCODINGS:
            if piece.startswith(mark):
                raise FileProblem(
                    f"{self._file.name!r} must be UTF-8 text, and is {encoding}; save it as UTF-8"
                )
        return piece.removeprefix(BYTE_ORDER_MARK)

    def _check(self, lines: bytes) -> None:
        """Check lines that are whole, and count them."""
        self._check_length(lines, self._line)
        if b"\0" in lines:
            raise self._problem("text without NUL bytes", lines[: lines.index(b"\0")])
        if STAND_IN in lines:
            raise self._problem("text without control characters", lines[: lines.index(STAND_IN)])
        if lines.count(b"\r") != lines.count(b"\r\n"):
            place = next(
                i for i, b in enumerate(lines) if b == 13 and lines[i + 1 : i + 2] != b"\n"
            )
            raise self._problem("text with ordinary line ends", lines[:place])
        try:
            lines.decode()  # an end of line is never inside a character
        except UnicodeDecodeError as problem:
            raise self._problem("UTF-8 text", lines[: problem.start]) from None
        self._count(lines)

    def _check_length(self, lines: bytes, n_before: int) -> None:
        start = 0
        while len(lines) - start > LONGEST_LINE:
            end = lines.rfind(b"\n", start, start + LONGEST_LINE + 1)
            if end < 0:
                line = n_before + lines.count(b"\n", 0, start) + 1
                raise FileProblem(
                    f"{self._file.name!r} must have lines of at most {readable(LONGEST_LINE)}, "
                    f"line {line} is longer"
                )
            start = end + 1

    def _count(self, lines: bytes) -> None:
        n_ends = lines.count(b"\n")
        self._line += n_ends
        self.n_lines += n_ends - _count_blank(lines)

    def _problem(self, rule: str, before: bytes) -> FileProblem:
        line = self._line + before.count(b"\n") + 1
        return FileProblem(f"{self._file.name!r} must be {rule}, line {line} is not")


def _put_back(chunk: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield chunk
    yield from rest


def _count_blank(lines: bytes) -> int:
    """Return how many lines have nothing but their end."""
    if b"\n\n" not in lines and b"\n\r\n" not in lines and lines[:1] not in (b"\n", b"\r"):
        return 0
    letters = np.frombuffer(lines, dtype=np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    starts = np.append(0, ends[:-1] + 1)
    lengths = ends - starts
    blank = (lengths == 0) | ((lengths == 1) & (letters[starts] == ord("\r")))
    return int(blank.sum())
