"""The public list of items: a text file with one id a line, instead of the items that happen to be rated."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from goodfence.data.files import RatingsFile, check_limit, find_file, too_large
from goodfence.data.lines import Lines
from goodfence.data.ratings import Ratings
from goodfence.errors import FileProblem, GoodfenceWarning, ValueProblem

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")  # as ids of ratings are read: 7 and not 007
_LARGEST = 2**63
_SPACE = " \t"
_BYTES_OF_AN_ID = (
    256  # what an id takes as Python's own text, with its line and its place among the others
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ItemList:
    """The lines of a list of items, as text: only the ratings say whether ids are numbers."""

    file: str
    """The name of the file for errors, without folders."""
    numbers: list[int]
    """The line of each id, counted from 1."""
    ids: list[str]
    """The ids, all different, in the order of the lines."""

    def applied_to(self, ratings: Ratings) -> Ratings:
        """Return the ratings with these items as columns; all that were rated must be listed."""
        if ratings.items.dtype.kind not in "iu":
            return ratings.on_items(self.ids)
        return ratings.on_items(self._integers())

    def alone(self) -> list[int] | list[str]:
        """Return the ids as the list itself says them, whatever the ratings are: integers if all are, else text.

        Examples
        --------
        >>> ItemList(file="films.txt", numbers=[1, 2], ids=["7", "12"]).alone()
        [7, 12]
        """
        return [int(text) for text in self.ids] if all(map(_is_integer, self.ids)) else self.ids

    def _integers(self) -> list[int]:
        for number, text in zip(self.numbers, self.ids, strict=True):
            if not _is_integer(text):
                raise ValueProblem(
                    f"{self.file!r} must list integers, since the ratings number their items, "
                    f"line {number} is not one"
                )
        return [int(text) for text in self.ids]


def read_item_list(path: Path, max_bytes: int) -> ItemList:
    r"""Return what a list of items holds: one id a line, UTF-8, no header; blank lines are skipped.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "films.txt")
    ...     _ = path.write_text("tt01\n\ntt02\n")
    ...     listed = read_item_list(path, 2**20)
    >>> listed.ids, listed.numbers
    (['tt01', 'tt02'], [1, 3])
    """
    check_limit(max_bytes)
    nothing = FileProblem(f"{path.name!r} must list items, one id a line, and is empty")
    if _is_empty(path):
        raise nothing
    file = find_file(path, max_bytes)
    first: dict[str, int] = {}
    trimmed = False
    for number, line in _numbered(file, max_bytes):
        one = line.strip(_SPACE)
        trimmed |= one != line
        if one and first.setdefault(one, number) != number:
            raise ValueProblem(
                f"{file.name!r} must list each item once, line {number} repeats line {first[one]}"
            )
    if trimmed:
        message = f"{file.name!r} has ids with spaces around them; the spaces were left out"
        warnings.warn(message, GoodfenceWarning, stacklevel=2)
    if not first:
        raise nothing
    return ItemList(file=file.name, numbers=list(first.values()), ids=list(first))


def _numbered(file: RatingsFile, max_bytes: int) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line, as long as all of them fit into `max_bytes` as ids."""
    number = n_bytes = 0
    for chunk in Lines(file, max_bytes).chunks(without_first=False):
        n_bytes += 2 * len(chunk)
        if n_bytes + (number + chunk.count(b"\n")) * _BYTES_OF_AN_ID > max_bytes:
            raise too_large(file.name, max_bytes)
        for line in chunk.decode().split("\n")[:-1]:
            number += 1
            yield number, line.removesuffix("\r")


def _is_integer(text: str) -> bool:
    return bool(_INTEGER.fullmatch(text)) and -_LARGEST <= int(text) < _LARGEST


def _is_empty(path: Path) -> bool:
    """Return whether this is a file with nothing in it; whatever else is wrong is said where it is opened."""
    try:
        return path.is_file() and path.stat().st_size == 0
    except (OSError, ValueError):  # a loop of links, a NUL in the name
        return False
