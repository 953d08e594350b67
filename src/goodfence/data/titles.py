"""What items are called: the title files that come with ratings."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from goodfence.errors import FileProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class TitleFile:
    """A text file of which the first field is an item's id and the second its title."""

    name: str
    """The name of the file."""
    separator: str
    """What stands between its fields; a comma means csv, with quotes and a header."""
    encoding: str = "utf-8"
    """How its text is written."""

    def read(self, folder: Path, items: Collection[str | int]) -> dict[str | int, str]:
        """Return the titles of `items`; none where the file is not there."""
        path = folder / self.name
        if not path.is_file():
            return {}
        known = {str(item): item for item in items}
        try:
            with path.open(encoding=self.encoding, newline="") as lines:
                rows = csv.reader(lines) if self.separator == "," else self._split(lines)
                return {known[row[0]]: row[1] for row in rows if row and row[0] in known}
        except (UnicodeDecodeError, csv.Error, IndexError) as problem:
            raise FileProblem(
                f"{path} must be {self.encoding} text with an id and a title in each line"
            ) from problem

    def _split(self, lines: Iterator[str]) -> Iterator[list[str]]:
        return (line.rstrip("\r\n").split(self.separator) for line in lines)
