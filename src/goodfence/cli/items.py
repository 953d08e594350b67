"""`--items FILE`: all items there are, from a public source, one id a line."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from goodfence.errors import FileProblem, GoodfenceWarning, ValueProblem

if TYPE_CHECKING:
    from goodfence.data.ratings import Ratings

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")  # as ids of ratings are read: 7 and not 007
_LARGEST = 2**63
_SPACE = " \t"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListedItems:
    """The lines of a list of items, as text: only the ratings say whether ids are numbers."""

    file: str
    """The name of the file for errors, without folders."""
    numbers: list[int]
    """Where each id stands, counted from 1."""
    ids: list[str]
    """The ids, all different, in the order of the lines."""

    def under(self, ratings: Ratings) -> Ratings:
        """Return the ratings with these items as columns; all that were rated must be listed."""
        if ratings.items.dtype.kind not in "iu":
            return ratings.on_items(self.ids)
        return ratings.on_items(self._integers())

    def _integers(self) -> list[int]:
        for number, text in zip(self.numbers, self.ids, strict=True):
            if not (_INTEGER.fullmatch(text) and -_LARGEST <= int(text) < _LARGEST):
                raise ValueProblem(
                    f"{self.file!r} must list whole numbers, since the ratings number their items, "
                    f"line {number} is not one"
                )
        return [int(text) for text in self.ids]


def read_items(path: Path, max_bytes: int) -> ListedItems:
    r"""Return what a list of items holds: one id a line, UTF-8, no header; blank lines are passed over.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "films.txt")
    ...     _ = path.write_text("tt01\n\ntt02\n")
    ...     listed = read_items(path, 2**20)
    >>> listed.ids, listed.numbers
    (['tt01', 'tt02'], [1, 3])
    """
    from goodfence.data.limits import check_limit
    from goodfence.data.readers.files import find_file
    from goodfence.data.readers.lines import Lines

    check_limit(max_bytes)
    nothing = FileProblem(f"{path.name!r} must list items, one id a line, and is empty")
    if _is_empty(path):
        raise nothing
    file = find_file(path, max_bytes)
    text = b"".join(Lines(file, max_bytes).chunks(without_first=False)).decode()
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    stripped = [line.strip(_SPACE) for line in lines]
    if lines != stripped:
        message = f"{file.name!r} has ids with spaces around them; the spaces were left out"
        warnings.warn(message, GoodfenceWarning, stacklevel=2)
    listed = [(number, line) for number, line in enumerate(stripped, start=1) if line]
    if not listed:
        raise nothing
    _refuse_repeated(file.name, listed)
    return ListedItems(
        file=file.name, numbers=[number for number, _ in listed], ids=[one for _, one in listed]
    )


def _is_empty(path: Path) -> bool:
    """Return whether this is a file with nothing in it; whatever else is wrong is said where it is opened."""
    try:
        return path.is_file() and path.stat().st_size == 0
    except (OSError, ValueError):  # a loop of links, a NUL in the name
        return False


def _refuse_repeated(name: str, listed: list[tuple[int, str]]) -> None:
    first: dict[str, int] = {}
    for number, one in listed:
        if first.setdefault(one, number) != number:
            raise ValueProblem(
                f"{name!r} must list each item once, line {number} repeats line {first[one]}"
            )
