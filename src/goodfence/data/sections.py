"""The layout of the Netflix Prize: a line `17:` with an item's id, then a line `user,rating,date` for each rating."""

from __future__ import annotations

import re

_SECTION = re.compile(rb"(?m)^(\d{1,18}):\r?\n")
_FIRST = re.compile(r"\d{1,18}:")
COLUMNS: dict[str, str | None] = {"user": "1", "item": "4", "rating": "2"}
"""Which positions hold what, after the item was put at the end of each line."""


def begins_section(line: str) -> bool:
    """Return whether a first line is that of a section.

    Examples
    --------
    >>> begins_section("17:"), begins_section("17::2::3")
    (True, False)
    """
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
        pieces = _SECTION.split(
            lines
        )  # what belongs to the last item; then an item and what belongs to it, ...
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
        plain = piece.replace(b"\r\n", b"\n")
        return plain.replace(b"\n", b"," + self._item + b"\n")
