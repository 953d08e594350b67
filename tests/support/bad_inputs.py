"""Files that must be refused: the corpus behind `goodfence check`, made afresh in a folder.

Each file holds planted ids and ratings (`SECRETS`) that no message may repeat. The kinds are in
three parts: rows that break a rule (each in several text formats), text files broken as a whole, and
parquet. What is large is made of repeated pieces, so the corpus takes seconds.

    python -m tests.support.bad_inputs FOLDER     write all of it into FOLDER
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

USERS = ("471108150", "471108151", "471108152", "471108153", "471108154")
ITEMS = ("662607015", "662607016", "662607017", "662607018", "662607019")
RATINGS = ("3.14159", "2.71828", "1.41421", "1.73205", "0.57721")
NAMES = ("Undine Quark", "Zeno Vandal")
SECRETS = (*USERS, *ITEMS, *RATINGS, *NAMES, "66.6667")
HEADER = ("userId", "movieId", "rating")
BROKEN = 3
"""The row, counted from 1, that a broken row stands in."""

Make = Callable[[Path], Path]
Row = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BadInput:
    """One file that must be refused, and part of what must be said about it."""

    kind: str
    variant: str
    make: Make
    says: str
    arguments: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.variant}".replace(" ", "_")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFormat:
    """One way to write rows as text."""

    ending: str
    separator: str
    header: bool = True
    newline: str = "\n"

    def lines(self, rows: list[Row]) -> list[str]:
        written = [HEADER, *rows] if self.header else rows
        return [self.separator.join(row) + self.newline for row in written]

    def write(self, folder: Path, content: bytes) -> Path:
        path = folder / f"ratings{self.ending}"
        path.write_bytes(gzip.compress(content) if self.ending.endswith(".gz") else content)
        return path


FORMATS = {
    "csv": TextFormat(ending=".csv", separator=","),
    "tsv": TextFormat(ending=".tsv", separator="\t"),
    "gz": TextFormat(ending=".csv.gz", separator=","),
    "dat": TextFormat(ending=".dat", separator="::", header=False),
    "data": TextFormat(ending=".data", separator="\t", header=False),
    "windows": TextFormat(ending=".csv", separator=",", newline="\r\n"),
}
QUOTING = ("csv", "tsv", "gz")


def good_rows() -> list[Row]:
    """Return rows with which nothing is wrong."""
    return list(zip(USERS, ITEMS, RATINGS, strict=True))


def put(folder: Path, name: str, content: bytes) -> Path:
    """Write one file."""
    path = folder / name
    path.write_bytes(content)
    return path


def corpus() -> tuple[BadInput, ...]:
    """Return every bad input."""
    from tests.support.bad_events import bad_events
    from tests.support.bad_files import bad_files
    from tests.support.bad_parquet import bad_parquet
    from tests.support.bad_tables import bad_tables

    return (*bad_rows(), *bad_files(), *bad_tables(), *bad_parquet(), *bad_events())


def bad_rows() -> list[BadInput]:
    """Return text files of which one row breaks a rule."""
    return [*_bad_cells(), *_bad_pairs(), *_bad_lines()]


def _with_cell(style: TextFormat, place: int, cell: str) -> Make:
    def make(folder: Path) -> Path:
        rows = good_rows()
        row = list(rows[BROKEN - 1])
        row[place] = cell
        rows[BROKEN - 1] = tuple(row)
        return style.write(folder, "".join(style.lines(rows)).encode())

    return make


_MISSING, _NUMBER, _FINITE = "must not be missing", "must be a number", "must be a finite number"
_CELLS: dict[str, tuple[int, str, str]] = {
    "a word for a rating": (2, "four", _NUMBER),
    "a fraction for a rating": (2, "4/5", _NUMBER),
    "a percentage for a rating": (2, "66.6667%", _NUMBER),
    "a date for a rating": (2, "2024-01-31", _NUMBER),
    "a truth value for a rating": (2, "true", _NUMBER),
    "stars for a rating": (2, "****", _NUMBER),
    "a hexadecimal rating": (2, "0x4", _NUMBER),
    "an underscore in a rating": (2, "1_0", _NUMBER),
    "foreign digits for a rating": (2, "٤", _NUMBER),
    "two points in a rating": (2, "3.1.4", _NUMBER),
    "a name for a rating": (2, NAMES[0], _NUMBER),
    "NA for a rating": (2, "NA", _NUMBER),
    "NaN for a rating": (2, "NaN", _FINITE),
    "infinity for a rating": (2, "inf", _FINITE),
    "minus infinity for a rating": (2, "-Infinity", _FINITE),
    "an overflowing rating": (2, "1e999", _FINITE),
    "no rating": (2, "", _MISSING),
    "a blank rating": (2, "  ", _MISSING),
    "no user": (0, "", _MISSING),
    "no item": (1, "", _MISSING),
    "NULL for a user": (0, "NULL", _MISSING),
    "NaN for an item": (1, "NaN", _MISSING),
    "None for a user": (0, "None", _MISSING),
    "a blank item": (1, " ", _MISSING),
}


def _bad_cells() -> list[BadInput]:
    role = ("user", "item", "rating")
    cells = [
        BadInput(
            kind=kind,
            variant=variant,
            make=_with_cell(style, place, cell),
            says=f"{role[place]} (column {HEADER[place]!r}) {rule}, row {BROKEN} is"
            if style.header
            else f"{role[place]} (column {place + 1}) {rule}, row {BROKEN} is",
        )
        for kind, (place, cell, rule) in _CELLS.items()
        for variant, style in FORMATS.items()
    ]
    quoted = [
        BadInput(
            kind=kind, variant=variant, make=_with_cell(FORMATS[variant], place, cell), says=f"{rule}, row {BROKEN} is"
        )
        for kind, place, cell, rule in (
            ("a quoted empty user", 0, '""', _MISSING),
            ("a quoted empty rating", 2, '""', _MISSING),
            ("a decimal comma", 2, '"66,6667"', _NUMBER),
        )
        for variant in QUOTING
    ]
    return cells + quoted


def _bad_pairs() -> list[BadInput]:
    scale = ("--scale", "0", "5", "0.00001")
    repeated = (USERS[0], ITEMS[0], RATINGS[0])
    kinds: list[tuple[str, Row, str, tuple[str, ...]]] = [
        ("a pair twice", repeated, "row 6 repeats row 1", ()),
        ("a pair twice with two ratings", (*repeated[:2], RATINGS[4]), "row 6 repeats row 1", ()),
        ("above the scale", (USERS[0], ITEMS[1], "99"), "must be on the scale", scale),
        ("below the scale", (USERS[0], ITEMS[1], "-3"), "must be on the scale", scale),
        ("between the steps", (USERS[0], ITEMS[1], "1.000005"), "must be on the scale", scale),
        (
            "a mean between the steps",
            (*repeated[:2], "3.14158"),
            "the mean of repeated ratings must be on the declared scale",
            (*scale, "--read", "duplicates=mean"),
        ),
    ]

    def make(style: TextFormat, row: Row) -> Make:
        return lambda folder: style.write(folder, "".join(style.lines([*good_rows(), row])).encode())

    return [
        BadInput(kind=kind, variant=v, make=make(style, row), says=says, arguments=arguments)
        for kind, row, says, arguments in kinds
        for v, style in FORMATS.items()
    ]


def _bad_lines() -> list[BadInput]:
    """Return files of which one line is broken: `{}` is the separator of the format."""
    u, i, r = USERS[2], ITEMS[2], RATINGS[2]
    fields = f"must have 3 fields in each row, row {BROKEN} has"
    kinds: list[tuple[str, str, str, tuple[str, ...]]] = [
        ("too few fields", f"{u}{{}}{i}", f"{fields} 2", tuple(FORMATS)),
        ("too many fields", f"{u}{{}}{i}{{}}{r}{{}}{r}", f"{fields} 4", tuple(FORMATS)),
        ("one field", f"{u}", f"{fields} 1", tuple(FORMATS)),
        ("a line of spaces", "   ", f"{fields} 1", tuple(FORMATS)),
        ("another separator in one row", f"{u}|{i}|{r}", f"{fields} 1", tuple(FORMATS)),
        ("a NUL byte", f"{u}{{}}{i}\0{{}}{r}", "must be text without NUL bytes", tuple(FORMATS)),
        ("a unit separator", f"{u}\x1f{{}}{i}{{}}{r}", "control characters", tuple(FORMATS)),
        ("a lone carriage return", f"{u}{{}}{i}\r{{}}{r}", "ordinary line ends", tuple(FORMATS)),
        ("a line of 2 MiB", f"{u}{{}}{'x' * 2**21}{{}}{r}", "must have lines of", tuple(FORMATS)),
        ("a comment", "# checked by hand", f"{fields} 1", tuple(FORMATS)),
        ("an open quotation mark", f'{u}{{}}{i}{{}}"{r}', "must close each quoted", QUOTING),
        ("an open quotation mark first", f'"{u}{{}}{i}{{}}{r}', fields, QUOTING),
    ]

    def make(style: TextFormat, line: str) -> Make:
        def write(folder: Path) -> Path:
            lines = style.lines(good_rows())
            place = BROKEN - 1 + style.header
            lines[place] = line.replace("{}", style.separator) + style.newline
            return style.write(folder, "".join(lines).encode())

        return write

    made = [
        BadInput(kind=kind, variant=variant, make=make(FORMATS[variant], line), says=says)
        for kind, line, says, variants in kinds
        for variant in variants
    ]
    return [*made, *_swallowed(), *_bad_bytes()]


def _swallowed() -> list[BadInput]:
    """Return files in which a quotation mark in an unused column swallows the lines after it."""

    def make(style: TextFormat, closing: str) -> Make:
        def write(folder: Path) -> Path:
            rows = [(*row, "fine") for row in good_rows()]
            rows[1] = (*rows[1][:3], '"fine')
            rows[3] = (*rows[3][:3], closing)
            header = style.separator.join((*HEADER, "comment")) + "\n"
            body = "".join(style.separator.join(row) + "\n" for row in rows)
            return style.write(folder, (header + body).encode())

        return write

    says = "must close each quoted field on the line where it opens, line 3 does not"
    return [
        BadInput(kind="swallowed rows", variant=f"{v}-{n}", make=make(FORMATS[v], closing), says=says)
        for v in QUOTING
        for n, closing in (("open", "fine"), ("closed", 'fine"'))
    ]


def _bad_bytes() -> list[BadInput]:
    def make(style: TextFormat, raw: bytes) -> Make:
        def write(folder: Path) -> Path:
            lines = [line.encode() for line in style.lines(good_rows())]
            place = BROKEN - 1 + style.header
            lines[place] = raw + lines[place]
            return style.write(folder, b"".join(lines))

        return write

    kinds = {
        "Latin-1": "Zoë".encode("latin-1"),
        "half a character": "Zoë".encode()[:-1],
        "a surrogate": b"\xed\xa0\x80",
        "an overlong character": b"\xc0\xaf",
    }
    return [
        BadInput(
            kind=kind,
            variant=variant,
            make=make(style, raw),
            says=f"must be UTF-8 text, line {BROKEN + style.header} is not",
        )
        for kind, raw in kinds.items()
        for variant, style in FORMATS.items()
    ]


def main() -> None:
    """Write the corpus into the folder that the command line names."""
    for bad in corpus():
        folder = Path(sys.argv[1]) / bad.name.replace("/", "_")
        folder.mkdir(parents=True)
        bad.make(folder)


if __name__ == "__main__":
    main()
