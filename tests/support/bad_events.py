"""Bad inputs that are read as events: not declared, ratings in disguise, broken times and weights, broken rows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.support.bad_files import bad_files, many, written
from tests.support.bad_inputs import BROKEN, FORMATS, ITEMS, NAMES, RATINGS, USERS, BadInput, Make, Row, TextFormat, put
from tests.support.bad_parquet import as_bytes, good_columns

IMPLICIT = ("--feedback", "implicit")
NAMED = (*IMPLICIT, "--read", "time=seen", "--read", "weight=plays")
POSITIONS = (*IMPLICIT, "--read", "time=3", "--read", "weight=4")
HEADER = ("userId", "movieId", "seen", "plays")
TIMES = ("881250949", "881250950", "881250951", "881250952", "881250953")
_DECLARED = "say so with feedback='implicit' (--feedback implicit)"
_LIKES = "likes= (--likes)"


def bad_events() -> list[BadInput]:
    """Return every kind of file that must not be taken for events."""
    return [*_undeclared(), *_rated(), *_bad_cells(), *_bad_lines(), *_bad_parquet(), *_also_bad()]


def event_rows() -> list[Row]:
    """Return events with which nothing is wrong: user, item, time and weight."""
    return list(zip(USERS, ITEMS, TIMES, ("1", "2", "3", "4", "5"), strict=True))


def _text(style: TextFormat, rows: list[Row], header: Row) -> bytes:
    lines = [header, *rows] if style.header else rows
    return "".join(style.separator.join(row) + style.newline for row in lines).encode()


def _kept(style: TextFormat, n: int) -> Make:
    rows = [row[:n] for row in event_rows()]
    return lambda folder: style.write(folder, _text(style, rows, HEADER[:n]))


def _undeclared() -> list[BadInput]:
    """Return events that nobody declared."""
    objects = [{"user": u, "item": i} for u, i, *_ in event_rows()]
    lines = "".join(json.dumps(one) + "\n" for one in objects).encode()
    columns = good_columns()
    del columns["rating"]
    two = {name: _kept(style, 2) for name, style in FORMATS.items()}
    two["jsonl"] = written("a.jsonl", lines)
    two["parquet"] = written("a.parquet", as_bytes(pa.table(columns)))
    two["spaces"] = written("a.txt", "".join(f"{u} {i}\n" for u, i, *_ in event_rows()).encode())
    timed = {name: _kept(style, 3) for name, style in FORMATS.items() if style.header}
    counted = {name: _kept(style, 4) for name, style in FORMATS.items() if style.header}
    return [
        *many("undeclared events", _DECLARED, two),
        *many("undeclared events with times", _DECLARED, timed),
        *many("undeclared events with counts", _DECLARED, counted),
    ]


def _rated() -> list[BadInput]:
    """Return ratings that are declared to be events: a low one is no like."""

    def named(name: str) -> Make:
        rows = [("user", "item", name), *zip(USERS, ITEMS, RATINGS, strict=True)]
        return written("a.csv", "".join(",".join(row) + "\n" for row in rows).encode())

    names = ("rating", "Stars", "score", "overall", "label", "value", "user_rating", "Book-Rating")
    sections = "".join(f"{i}:\n{u},{r},2005-09-06\n" for u, i, r in zip(USERS, ITEMS, RATINGS, strict=True))
    columns = good_columns()
    member = "".join(json.dumps({"user": u, "item": i, "rating": 1}) + "\n" for u, i, *_ in event_rows())
    found: dict[str, Make] = {name: named(name) for name in names}
    found["parquet"] = written("a.parquet", as_bytes(pa.table(columns)))
    found["jsonl"] = written("a.jsonl", member.encode())
    found["sections"] = written("a.txt", sections.encode())
    headless = {name: style for name, style in FORMATS.items() if not style.header}
    return [
        *many("ratings for events", _LIKES, found, IMPLICIT),
        *many(
            "columns without names",
            "must have 2 columns, this one has",
            {f"{name} {n}": _kept(style, n) for name, style in headless.items() for n in (3, 4)},
            IMPLICIT,
        ),
    ]


_MISSING, _NUMBER, _FINITE = "must not be missing", "must be a number", "must be a finite number"
_TIME, _MORE = "must be an integer or a date", "must be more than 0"
_CELLS: dict[str, tuple[int, str, str]] = {
    "no user of an event": (0, "", _MISSING),
    "no item of an event": (1, "", _MISSING),
    "a blank item of an event": (1, " ", _MISSING),
    "NULL for a user of an event": (0, "NULL", _MISSING),
    "no time": (2, "", _MISSING),
    "a blank time": (2, "  ", _MISSING),
    "a word for a time": (2, "noon", _TIME),
    "a name for a time": (2, NAMES[1], _TIME),
    "a time of day": (2, "12:30", _TIME),
    "a fraction of a second": (2, "881250949.5", _TIME),
    "a date among seconds": (2, "2024-01-31", _TIME),
    "NaN for a time": (2, "NaN", _TIME),
    "a time of twenty digits": (2, "9" * 20, _TIME),
    "foreign digits for a time": (2, "٨٨١٢٥٠", _TIME),
    "no weight": (3, "", _MISSING),
    "a weight of nought": (3, "0", _MORE),
    "a negative weight": (3, "-3", _MORE),
    "a word for a weight": (3, "often", _NUMBER),
    "NaN for a weight": (3, "NaN", _FINITE),
    "infinity for a weight": (3, "inf", _FINITE),
    "an overflowing weight": (3, "1e999", _FINITE),
    "a weight that rounds to nought": (3, "1e-400", "must be a number that a 64-bit float holds"),
}


def _bad_cells() -> list[BadInput]:
    def make(style: TextFormat, place: int, cell: str) -> Make:
        rows = event_rows()
        row = list(rows[BROKEN - 1])
        row[place] = cell
        rows[BROKEN - 1] = tuple(row)
        return lambda folder: style.write(folder, _text(style, rows, HEADER))

    roles = ("user", "item", "time", "weight")
    return [
        BadInput(
            kind=kind,
            variant=variant,
            make=make(style, place, cell),
            says=f"{roles[place]} (column {repr(HEADER[place]) if style.header else place + 1}) {rule}",
            arguments=NAMED if style.header else POSITIONS,
        )
        for kind, (place, cell, rule) in _CELLS.items()
        for variant, style in FORMATS.items()
    ]


def _bad_lines() -> list[BadInput]:
    u, i, t, w = event_rows()[BROKEN - 1]
    fields = f"must have 4 fields in each row, row {BROKEN} has"
    kinds: dict[str, tuple[str, str]] = {
        "an event with too few fields": (f"{u}{{}}{i}", f"{fields} 2"),
        "an event with too many fields": (f"{u}{{}}{i}{{}}{t}{{}}{w}{{}}{w}", f"{fields} 5"),
        "an event of one field": (u, f"{fields} 1"),
        "a comment among events": ("# checked by hand", f"{fields} 1"),
        "a NUL byte in an event": (f"{u}{{}}{i}\0{{}}{t}{{}}{w}", "must be text without NUL bytes"),
        "a lone carriage return in an event": (f"{u}{{}}{i}\r{{}}{t}{{}}{w}", "ordinary line ends"),
    }

    def make(style: TextFormat, line: str) -> Make:
        def write(folder: Path) -> Path:
            content = _text(style, event_rows(), HEADER).decode()
            lines = content.split(style.newline)
            lines[BROKEN - 1 + style.header] = line.replace("{}", style.separator)
            return style.write(folder, style.newline.join(lines).encode())

        return write

    return [
        BadInput(
            kind=kind,
            variant=variant,
            make=make(style, line),
            says=says,
            arguments=NAMED if style.header else POSITIONS,
        )
        for kind, (line, says) in kinds.items()
        for variant, style in FORMATS.items()
    ]


def _bad_parquet() -> list[BadInput]:
    ids = {name: column for name, column in good_columns().items() if name != "rating"}
    stamps = pa.array([int(time) for time in TIMES])
    counts = pa.array([1.0, 2.0, 3.0, 4.0, 5.0])

    def replaced(**columns: Any) -> Make:
        table = pa.table({**ids, "seen": stamps, "plays": counts, **columns})
        return lambda folder: put(folder, "a.parquet", as_bytes(table))

    missing = pa.array([1, 2, None, 4, 5])
    whole = as_bytes(pa.table(ids))
    return [
        *many(
            "parquet: time of the wrong kind",
            _TIME,
            {
                "truth": replaced(seen=pa.array([True] * 5)),
                "words": replaced(seen=pa.array([NAMES[0]] * 5)),
                "fractions": replaced(seen=pa.array([0.5] * 5)),
            },
            NAMED,
        ),
        *many("parquet: nested time", "it holds nested values", {"list": replaced(seen=pa.array([[1]] * 5))}, NAMED),
        *many("parquet: missing time", "must not be missing, row 3 is", {"integer": replaced(seen=missing)}, NAMED),
        *many("parquet: missing weight", "must not be missing, row 3 is", {"integer": replaced(plays=missing)}, NAMED),
        *many(
            "parquet: weight that does not count",
            _MORE,
            {str(v): replaced(plays=pa.array([1.0, v, 3.0, 4.0, 5.0])) for v in (0.0, -1.0)},
            NAMED,
        ),
        *many("parquet: weight of the wrong kind", _NUMBER, {"text": replaced(plays=pa.array(["often"] * 5))}, NAMED),
        *many("parquet: event without a user", "missing, row 3 is", {"integer": replaced(userId=missing)}, NAMED),
        *many(
            "parquet: truncated events",
            "is cut short or damaged",
            {f"at {n}": written("a.parquet", whole[:n]) for n in (8, 100, len(whole) // 2, len(whole) - 1)},
            IMPLICIT,
        ),
        *many(
            "parquet: events without columns",
            "or the like; name the column",
            {"names": written("a.parquet", as_bytes(pa.table(ids).rename_columns(["who", "what"])))},
            IMPLICIT,
        ),
    ]  # fmt: skip


def _also_bad() -> list[BadInput]:
    """Return what is no file, no text or not what its name says, declared to be events."""
    return [
        replace(bad, kind=f"events: {bad.kind}", arguments=(*bad.arguments, *IMPLICIT))
        for bad in bad_files()
        if bad.kind not in ("no table", "header only")  # of which the columns are told first
    ]
