"""Hostile and odd files of ratings, each with its right outcome, made from a seed.

A table of ratings is made up and written in one of many layouts: it must be read, cell for cell. Or it is harmed in one
of many ways: it must be refused. What a file must come to is known from how it was made, and never from reading it.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import goodfence as gf
from goodfence.data.frame import ReadOptions
from goodfence.errors import DataError, GoodfenceError, GoodfenceWarning

Cells = dict[tuple[Any, Any], float]
LIMIT = 64 * 2**20
"""What reading may take in memory, in the runs that measure it."""
SECRET = "Undine-Quark"  # noqa: S105 - an id
"""In an id of every table; no message may repeat it."""


@dataclass(kw_only=True)
class OddFile:
    """A file, how it is to be read, and what must come of it: cells, or a refusal (None)."""

    name: str
    content: bytes
    kind: str
    cells: Cells | None
    settings: dict[str, Any] = field(default_factory=dict)
    either: bool = False
    """Whether a refusal is right too."""
    times: dict[tuple[Any, Any], int] | None = None
    """When each was given, where that must be known."""

    def write(self, folder: Path) -> Path:
        path = folder / self.name
        path.write_bytes(self.content)
        return path


def outcome(odd: OddFile, folder: Path) -> str:
    """Return what is wrong with what the file came to, or nothing."""
    path = odd.write(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GoodfenceWarning)
            ratings = gf.load(path, read=ReadOptions(**odd.settings))
            found = _cells(ratings)
    except DataError as problem:
        if SECRET in str(problem):
            return "an id in the message"
        return "" if odd.cells is None or odd.either else f"refused: {problem}"[:300]
    except GoodfenceError as problem:
        return f"another error: {problem}"[:300]
    except Exception as problem:
        return f"raw {type(problem).__name__}"
    finally:
        path.unlink()
    if odd.cells is None:
        return "read, and had to be refused"
    same = found == odd.cells and (odd.times is None or _times(ratings) == odd.times)
    return "" if same else "misread"


def _cells(ratings: gf.Ratings) -> Cells:
    found = ratings.csr.tocoo()
    users, items = ratings.users.tolist(), ratings.items.tolist()
    triplets = zip(found.row.tolist(), found.col.tolist(), found.data.tolist(), strict=True)
    return {(users[row], items[column]): value for row, column, value in triplets}


def _times(ratings: gf.Ratings) -> dict[tuple[Any, Any], int]:
    if ratings.times is None:
        return {}
    return dict(zip(_cells(ratings), ratings.times.tolist(), strict=True))


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of text as they are written, and the cells that they are."""

    rows: list[tuple[str, str, str]]
    cells: Cells


def made_up(chance: random.Random, *, text: bool) -> Table:
    """Return a few ratings, no pair twice, two different grades at least."""
    n_users, n_items = chance.randint(1, 9), chance.randint(2, 9)
    users, items = made_ids(chance, n_users, text, "u"), made_ids(chance, n_items, text, "i")
    grades = chance.choice(
        [["1", "2", "3", "4", "5"], ["0.5", "1.0", "4.5"], ["-7.82", "9.5", "0"], ["1e0", "+2", "3."]]
    )
    pairs = [(user, item) for user in users for item in items]
    chosen = chance.sample(pairs, chance.randint(2, len(pairs)))
    rows = [(user, item, chance.choice(grades)) for user, item in chosen]
    rows[0], rows[1] = (*rows[0][:2], grades[0]), (*rows[1][:2], grades[1])
    chance.shuffle(rows)
    whole = {role: are_integers([row[at] for row in rows]) for at, role in enumerate(("user", "item"))}
    cells = {(int(u) if whole["user"] else u, int(i) if whole["item"] else i): float(r) for u, i, r in rows}
    return Table(rows=rows, cells=cells)


def made_ids(chance: random.Random, n: int, text: bool, prefix: str) -> list[str]:
    if not text:
        far = chance.random() < 0.2
        return [str(one) for one in chance.sample(range(-5, 10**15 if far else 40), n)]
    letters = "abcXYZé中😀-_.#/&'()"
    made = {f"{prefix}{SECRET}"}
    while len(made) < n:
        made.add(prefix + "".join(chance.choice(letters) for _ in range(chance.randint(1, 12))))
    return sorted(made)[:n]


def are_integers(ids: list[str]) -> bool:
    return all(one == "0" or (one.lstrip("-").isdecimal() and not one.lstrip("-").startswith("0")) for one in ids)


HEADERS = (
    ("userId", "movieId", "rating"),
    ("user_id", "item_id", "Feedback"),
    ("User-ID", "ISBN", "Book-Rating"),
    ("reviewerID", "asin", "overall"),
    ("user_id:token", "item_id:token", "rating:float"),
    ("customer", "product", "stars"),
)


def layouts(chance: random.Random) -> OddFile:
    """Return a file that is right, in a layout by chance."""
    kind = chance.choice(list(LAYOUTS))
    return LAYOUTS[kind](chance)


def _lines(rows: list[tuple[str, ...]], separator: str, end: str = "\n") -> str:
    return "".join(separator.join(row) + end for row in rows)


def _delimited(chance: random.Random) -> OddFile:
    table = made_up(chance, text=chance.random() < 0.5)
    ending, separator = chance.choice(
        [(".csv", ","), (".tsv", "\t"), (".csv", ";"), (".txt", "|"), (".txt", ","), (".csv", "\t"), (".rating", "\t"),
         ("", ","), (".export", ";"), (".inter", "\t"), (".dat", ","), (".data", "\t")]
    )  # fmt: skip
    header = chance.choice(HEADERS)
    order = chance.sample(range(3), 3)
    extra = chance.random() < 0.5
    head, rows = _shuffled([header, *table.rows], order, extra)
    if chance.random() < 0.3:
        rows = [tuple(f'"{one}"' for one in row) for row in rows]
    end = chance.choice(["\n", "\r\n"])
    text = _lines([head, *rows], separator, end)
    if chance.random() < 0.2:
        text = text.rstrip("\r\n")
    if chance.random() < 0.2:
        text = end * chance.randint(1, 3) + text.replace(end, end * 2, 1)
    return packed(chance, OddFile(name=f"a{ending}", content=marked(chance, text), kind="delimited", cells=table.cells))


def _shuffled(
    rows: list[tuple[str, ...]], order: list[int], extra: bool
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    moved = [tuple(row[at] for at in order) for row in rows]
    if extra:
        moved = [(*row, "timestamp" if at == 0 else str(881250949 + at)) for at, row in enumerate(moved)]
    return moved[0], moved[1:]


def marked(chance: random.Random, text: str) -> bytes:
    return (b"\xef\xbb\xbf" if chance.random() < 0.15 else b"") + text.encode()


def packed(chance: random.Random, odd: OddFile) -> OddFile:
    if chance.random() < 0.25:
        odd.name, odd.content = f"{odd.name}.gz", gzip.compress(odd.content)
    return odd


def _headless(chance: random.Random) -> OddFile:
    table = made_up(chance, text=False)
    ending, separator = chance.choice(
        [(".dat", "::"), (".data", "\t"), (".txt", " "), (".txt", "\t"), (".csv", ","), (".dat", "\t\t"),
         (".base", "\t"), (".txt", "::"), (".rating", "\t"), (".txt", "  ")]
    )  # fmt: skip
    rows: list[tuple[str, ...]] = list(table.rows)
    if chance.random() < 0.5:
        rows = [(*row, "978300760") for row in rows]
    text = _lines(rows, separator, chance.choice(["\n", "\r\n"]))
    return packed(chance, OddFile(name=f"a{ending}", content=text.encode(), kind="headless", cells=table.cells))


def _sections(chance: random.Random) -> OddFile:
    table = made_up(chance, text=False)
    rows = [row for row in table.rows if not row[1].startswith("-")]
    by_item: dict[str, list[str]] = {}
    for user, item, rating in rows:
        by_item.setdefault(item, []).append(f"{user},{rating},2005-09-06\n")
    text = "".join(f"{item}:\n{''.join(lines)}" for item, lines in by_item.items())
    cells = {(int(u), int(i)): float(r) for u, i, r in rows}
    constant = len(set(cells.values())) == 1 and len(cells) > 1
    good = bool(cells) and not constant
    return OddFile(name="combined.txt", content=text.encode(), kind="sections", cells=cells if good else None)


def _json(chance: random.Random) -> OddFile:
    table = made_up(chance, text=chance.random() < 0.5)
    user, item, rating = chance.choice(HEADERS[:4])
    lines = [
        {user: u, item: i, rating: r, "text": 'a "quoted", {odd}\n word', "nested": [1, {"a": None}]}
        for (u, i), r in table.cells.items()
    ]
    text = "".join(json.dumps(line, ensure_ascii=chance.random() < 0.5) + "\n" for line in lines)
    name = chance.choice(["a.json", "a.jsonl", "a.ndjson", "a.txt"])
    return packed(chance, OddFile(name=name, content=text.encode(), kind="JSON lines", cells=table.cells))


def _comma(chance: random.Random) -> OddFile:
    table = made_up(chance, text=False)
    rows = [(u, i, chance.choice(["1,5", "2", "3,25", "4,75"])) for u, i, _ in table.rows]
    rows[0] = (*rows[0][:2], "1,5")
    rows[1] = (*rows[1][:2], "2")
    cells = {(int(u), int(i)): float(r.replace(",", ".")) for u, i, r in rows}
    text = _lines([("user", "item", "rating"), *rows], ";")
    settings = chance.choice([{}, {"decimal": ","}])
    return OddFile(name="a.csv", content=text.encode(), kind="decimal comma", cells=cells, settings=settings)


def _encoded(chance: random.Random) -> OddFile:
    encoding = chance.choice(["latin-1", "cp1252", "utf-16", "utf-32"])
    table = made_up(chance, text=False)
    rows = [(f"é{u}", i, r) for u, i, r in table.rows]
    cells = {(f"é{u}", i): r for (u, i), r in table.cells.items()}
    text = _lines([("user", "item", "rating"), *rows], ",")
    return OddFile(
        name="a.csv", content=text.encode(encoding), kind="encoding", cells=cells, settings={"encoding": encoding}
    )


def _parquet(chance: random.Random) -> OddFile:
    table = made_up(chance, text=chance.random() < 0.5)
    users, items = zip(*table.cells, strict=True)
    made = pa.table(
        {
            "userId": list(users),
            "movieId": list(items),
            "rating": list(table.cells.values()),
            "tag": [["a"]] * len(users),
        }
    )
    options: dict[str, Any] = {
        "compression": chance.choice(["snappy", "zstd", "gzip", "none"]),
        "data_page_version": chance.choice(["1.0", "2.0"]),
        "row_group_size": chance.choice([1, 2, 1000]),
        "use_dictionary": chance.random() < 0.5,
    }
    if not options["use_dictionary"] and pa.types.is_string(made["userId"].type):
        options["column_encoding"] = {"userId": chance.choice(["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"])}
    sink = io.BytesIO()
    parquet.write_table(made, sink, **options)
    return OddFile(name="a.parquet", content=sink.getvalue(), kind="parquet", cells=table.cells)


def _quoted(chance: random.Random) -> OddFile:
    rows = [("1", "a, b", "3"), ("2", 'the "end"', "4"), ("3", "semi;colon", "5"), ("4", "it's", "1")]
    chance.shuffle(rows)
    lines = ["user,item,rating"] + [f'{u},"{i.replace(chr(34), chr(34) * 2)}",{r}' for u, i, r in rows]
    cells = {(int(u), i): float(r) for u, i, r in rows}
    return OddFile(name="a.csv", content=("\n".join(lines) + "\n").encode(), kind="quoted", cells=cells)


def _wide(chance: random.Random) -> OddFile:
    """Return a table of users x items, or one that is harmed in an odd place."""
    table = made_up(chance, text=chance.random() < 0.5)
    items = list(dict.fromkeys(item for _, item, _ in table.rows))
    users = list(dict.fromkeys(user for user, _, _ in table.rows))
    rated = {(user, item): rating for user, item, rating in table.rows}
    blank = chance.choice(["", "nan", "NaN", "99"])
    rows = [(chance.choice(["user", "Kundennr", ""]), *items)]
    rows += [(user, *(rated.get((user, item), blank) for item in items)) for user in users]
    harms: list[Callable[[], tuple[str, ...]]]
    harms = [lambda: rows[-1][:-1], lambda: rows[-1], lambda: (*rows[-1][:-1], "x"), lambda: ("", *["1"] * len(items))]
    harmed = chance.random() < 0.3
    rows += [chance.choice(harms)()] if harmed else []
    settings: dict[str, Any] = {"layout": "wide", "unrated": 99.0 if blank == "99" else None, "user": "1"}
    content = _lines(rows, chance.choice([",", ";", "|"]), chance.choice(["\n", "\r\n"])).encode()
    cells = None if harmed else table.cells
    return packed(chance, OddFile(name="a.txt", content=content, kind="wide", cells=cells, settings=settings))


def _archive(chance: random.Random) -> OddFile:
    """Return a layout in an archive, alone or beside another file."""
    odd = chance.choice([_delimited, _json, _parquet, _comma])(chance)
    alone = chance.random() < 0.7
    with zipfile.ZipFile(content := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr(
            chance.choice(["", "../", "/", "__MACOSX/../", "a/b/"]).replace("__MACOSX", "x") + odd.name, odd.content
        )
        opened.writestr("folder/", b"")
        opened.writestr("__MACOSX/._a" if alone else "another", b"x")
    odd.name, odd.kind, odd.content = "a.zip", "archive", content.getvalue()
    odd.cells = odd.cells if alone else None
    return odd


LAYOUTS: dict[str, Callable[[random.Random], OddFile]] = {
    "delimited": _delimited,
    "headless": _headless,
    "sections": _sections,
    "JSON lines": _json,
    "decimal comma": _comma,
    "encoding": _encoded,
    "parquet": _parquet,
    "quoted": _quoted,
    "wide": _wide,
    "archive": _archive,
}


def harmed(chance: random.Random) -> OddFile:
    """Return a csv file that must be refused, harmed in a way by chance."""
    table = made_up(chance, text=chance.random() < 0.5)
    rows: list[tuple[str, ...]] = [tuple(row) for row in table.rows]
    at = chance.randrange(len(rows))
    kind = chance.choice(list(HARMS))
    odd = HARMS[kind](chance, rows, at)
    odd.kind = f"harmed: {kind}"
    return packed(chance, odd) if "gz" not in odd.name else odd


def _csv(rows: list[tuple[str, ...]], name: str = "a.csv", **more: Any) -> OddFile:
    text = _lines([("user", "item", "rating"), *rows], ",")
    return OddFile(name=name, content=text.encode(), kind="", cells=None, **more)


def _cell(value: list[str], place: int) -> Callable[[random.Random, list[tuple[str, ...]], int], OddFile]:
    def harm(chance: random.Random, rows: list[tuple[str, ...]], at: int) -> OddFile:
        row = list(rows[at])
        row[place] = chance.choice(value)
        return _csv([*rows[:at], tuple(row), *rows[at + 1 :]])

    return harm


def _line(made: Callable[[tuple[str, ...]], str]) -> Callable[[random.Random, list[tuple[str, ...]], int], OddFile]:
    def harm(_: random.Random, rows: list[tuple[str, ...]], at: int) -> OddFile:
        lines = [",".join(row) for row in rows]
        lines[at] = made(rows[at])
        text = "user,item,rating\n" + "".join(f"{line}\n" for line in lines)
        return OddFile(name="a.csv", content=text.encode("utf-8", "surrogateescape"), kind="", cells=None)

    return harm


def _cut_gzip(chance: random.Random, rows: list[tuple[str, ...]], _at: int) -> OddFile:
    whole = gzip.compress(_csv(rows).content)
    return OddFile(name="a.csv.gz", content=whole[: chance.randint(2, len(whole) - 1)], kind="", cells=None)


def _with_bytes(raw: bytes) -> Callable[[random.Random, list[tuple[str, ...]], int], OddFile]:
    def harm(chance: random.Random, rows: list[tuple[str, ...]], _at: int) -> OddFile:
        odd = _csv(rows)
        place = chance.randrange(17, len(odd.content))
        return OddFile(name="a.csv", content=odd.content[:place] + raw + odd.content[place:], kind="", cells=None)

    return harm


HARMS: dict[str, Callable[[random.Random, list[tuple[str, ...]], int], OddFile]] = {
    "no rating": _cell(["", " ", '""'], 2),
    "no number": _cell(["four", "4/5", "0x4", "1_0", "٤", "3.1.4", "true", "NA", "4 5", "--1", "1e", "#"], 2),
    "not finite": _cell(["nan", "NaN", "inf", "-Infinity", "1e999", "-1e400"], 2),
    "changed by a float": _cell(["9007199254740993", "1e-400", "123456789012345678901"], 2),
    "no user": _cell(["", "  ", '""'], 0),
    "no item": _cell([""], 1),
    "too few fields": _line(lambda row: ",".join(row[:2])),
    "too many fields": _line(lambda row: ",".join([*row, "5"])),
    "half a quotation": _line(lambda row: f'"{row[0]}x"y,{row[1]},{row[2]}'),
    "an open quotation": _line(lambda row: f'"{row[0]},{row[1]},{row[2]}'),
    "a comment": _line(lambda row: f"# {row[0]}"),
    "a long line": _line(lambda row: f"{row[0]},{'x' * (2**20 + 1)},{row[2]}"),
    "twice": lambda _, rows, at: _csv([*rows, rows[at]]),
    "off the scale": lambda _, rows, _at: _csv([*rows, ("0", "new", "99")], settings={"scale": (-10, 10, 0.01)}),
    "a cut gzip": _cut_gzip,
    "NUL": _with_bytes(b"\0"),
    "no UTF-8": _with_bytes(b"\xff"),
    "an old line end": _with_bytes(b"\rx"),
    "a unit separator": _with_bytes(b"\x1f"),
    "clicks": lambda _, rows, _at: _csv([(u, i, "1") for u, i, _ in rows]),
    "no header": lambda _, rows, _at: OddFile(
        name="a.csv", content=_lines([("a", "b", "c"), *rows], ",").encode(), kind="", cells=None
    ),
    "two columns": lambda _, rows, _at: OddFile(
        name="a.csv", content=_lines([("user", "item"), *[row[:2] for row in rows]], ",").encode(), kind="", cells=None
    ),
    "two ratings": lambda _, rows, _at: OddFile(
        name="a.csv",
        content=_lines([("user", "item", "rating", "stars"), *[(*row, "1") for row in rows]], ",").encode(),
        kind="",
        cells=None,
    ),
    "times": lambda _, rows, _at: OddFile(
        name="a.csv",
        content=_lines([(str(n), str(n), str(881250949 + n), "4") for n, _ in enumerate(rows)], ",").encode(),
        kind="",
        cells=None,
    ),
    "nothing": lambda _, _rows, _at: OddFile(name="a.csv", content=b"\n\n", kind="", cells=None),
    "header only": lambda _, _rows, _at: _csv([]),
    "another format": lambda chance, _rows, _at: OddFile(
        name=chance.choice(["a.csv", "a.txt", "a"]),
        content=chance.choice([b"PK\x03\x04", b"%PDF-1.7\n", b"\x89HDF\r\n\x1a\n", b"SQLite format 3\x00"]) + bytes(50),
        kind="",
        cells=None,
    ),
}


def odd_file(seed: int) -> OddFile:
    """Return the file of a number: right or harmed."""
    chance = random.Random(seed)
    return layouts(chance) if chance.random() < 0.6 else harmed(chance)


@dataclass(frozen=True, kw_only=True)
class Bomb:
    """A file that takes, or would take, much more memory than its size says."""

    name: str
    make: Callable[[Path], object]


def bombs() -> list[Bomb]:
    """Return files around what `LIMIT` allows: just allowed, and far beyond."""
    n = LIMIT // 64
    return [
        *(Bomb(name=f"{name}.csv.gz", make=_zipped(head, line, times)) for name, head, line, times in _ZIPPED),
        Bomb(name="timed.parquet", make=lambda path: _timed(path, n * 7 // 10)),
        Bomb(name="many_times.parquet", make=lambda path: _timed(path, n * 9 // 10)),
        Bomb(name="dated.parquet", make=lambda path: _timed(path, n // 2, text=True)),
        Bomb(name="events.parquet", make=lambda path: _timed(path, n * 7 // 10, rated=False)),
        Bomb(name="rows.parquet", make=lambda path: _columns(path, n * 9 // 10, far=False)),
        Bomb(name="many_rows.parquet", make=lambda path: _columns(path, 8 * n, far=False)),
        Bomb(name="far_ids.parquet", make=lambda path: _columns(path, n * 6 // 10, far=True)),
        Bomb(name="long_ids.parquet", make=lambda path: _long(path, 12, 900_000)),
        Bomb(name="longer_ids.parquet", make=lambda path: _long(path, 2000, 900_000)),
        Bomb(name="delta.parquet", make=lambda path: _long(path, 5000, 100_000, delta=True)),
        Bomb(name="ids.csv", make=lambda path: _texts(path, LIMIT // 500)),
        Bomb(name="many_ids.csv", make=lambda path: _texts(path, LIMIT // 60)),
        Bomb(name="lines.jsonl", make=lambda path: _objects(path, n // 4)),
        Bomb(name="many_lines.jsonl", make=lambda path: _objects(path, 2 * n)),
        Bomb(name="rows.zip", make=_archived),
        Bomb(name="items.txt", make=lambda path: _items(path, LIMIT // 300)),
        Bomb(name="many_items.txt", make=lambda path: _items(path, LIMIT // 20)),
    ]


_TIMED = b"user,item,rating,timestamp\n"
_DATED = b"1,1,2,2026-11-17T20:15:00\n"
_ZIPPED = (
    ("short_rows", b"user,item,rating\n1,1,1\n", b"1,1,2\n", 3_000_000_000),
    ("allowed_rows", b"user,item,rating\n1,1,1\n", b"1,1,2\n", 6 * (LIMIT // 64) * 9 // 10),
    ("times", _TIMED + b"1,1,1,881250949\n", b"1,1,2,881250950\n", 16 * (LIMIT // 64) * 9 // 10),
    ("dates", _TIMED + _DATED, _DATED, len(_DATED) * (LIMIT // 64) * 9 // 10),
    ("long_times", _TIMED + _DATED, b"1,1,2," + b"x" * 2000 + b"\n", 3_000_000_000),
    ("events", b"user,item,timestamp\n", b"1,1,881250950\n", 14 * (LIMIT // 64) * 7 // 10),
    ("many_events", b"user,item\n", b"1,1\n", 3_000_000_000),
    ("newlines", b"user,item,rating\n", b"\n", 3_000_000_000),
    (
        "wide",
        b"user," + b",".join(b"i%d" % n for n in range(9_000)) + b"\n",
        b"x" * 900_000 + b",1" * 9_000 + b"\n",
        10**9,
    ),
    (
        "wide_rows",
        b"user," + b",".join(b"i%d" % n for n in range(90)) + b"\n",
        b"1" + b",2,3" * 45 + b"\n",
        2 * LIMIT // 64,
    ),
    ("lists_events", b"", b"u" * 500_000 + b",7" * 200_000 + b"\n", 10**9),
    ("long_lists_events", b"", b"7," * 500_000 + b"7\n", 3_000_000_000),
    ("unused", b"user,item,rating,more\n", b"1,1,2," + b"x" * 500_000 + b"\n", 3_000_000_000),
    ("no_line_end", b"user,item,rating\n", b"1", 3_000_000_000),
)


def _zipped(head: bytes, line: bytes, n_bytes: int) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        block = line * max(1, 2**24 // len(line))
        packed = gzip.compress(block, 1)  # gzip may hold many members
        whole, rest = divmod(n_bytes, len(block))
        end = gzip.compress(line * (rest // len(line)), 1)
        path.write_bytes(gzip.compress(head) + packed * whole + end)

    return make


def _archived(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened, opened.open("a.csv", "w") as file:
        file.write(b"user,item,rating\n")
        for _ in range(2 * LIMIT // 2**20):
            file.write(b"1,1,2\n" * (2**20 // 6))


def _columns(path: Path, n: int, *, far: bool) -> None:
    apart = 10**9 + 7 if far else 1
    users = np.arange(n) // 1000 * apart
    items = np.arange(n) % 1000 * apart if not far else np.arange(n)[::-1] * apart
    table = pa.table({"user": users, "item": items, "rating": np.arange(n) % 5})
    parquet.write_table(table, path, compression="zstd")


def _timed(path: Path, n: int, *, text: bool = False, rated: bool = True) -> None:
    columns: dict[str, Any] = {"user": np.arange(n) // 1000, "item": np.arange(n)[::-1] % 1000}
    times = pa.array(np.arange(n)[::-1] + 881250949, pa.int64())
    columns["timestamp"] = times.cast(pa.timestamp("s")).cast(pa.string()) if text else times
    if rated:
        columns["rating"] = np.arange(n) % 5
    parquet.write_table(pa.table(columns), path, compression="zstd")


def _long(path: Path, n: int, length: int, *, delta: bool = False) -> None:
    encoding = {"column_encoding": {"user": "DELTA_BYTE_ARRAY"}, "use_dictionary": False}
    numbers = np.arange(100) % 5
    schema = pa.schema([("user", pa.string()), ("item", pa.int64()), ("rating", pa.int64())])
    options: dict[str, Any] = encoding if delta else {}
    with parquet.ParquetWriter(path, schema, compression="zstd", **options) as writer:
        for start in range(0, n, 100):
            count = min(100, n - start)
            users = ["x" * length + str(start + at) for at in range(count)]
            batch = [users, np.arange(start, start + count), numbers[:count]]
            writer.write_table(pa.table(dict(zip(schema.names, batch, strict=True)), schema=schema))


def _texts(path: Path, n: int) -> None:
    path.write_text("user,item,rating\n" + "".join(f"u{at},i{at},{at % 5}\n" for at in range(n)))


def _objects(path: Path, n: int) -> None:
    path.write_text("".join(f'{{"user":{at},"item":{at},"rating":{at % 5}}}\n' for at in range(n)))


def _items(path: Path, n: int) -> None:
    path.write_text("".join(f"item{at}\n" for at in range(n)))


MEASURED = """
import json, pathlib, sys, time, warnings
warnings.simplefilter("ignore")
import goodfence as gf
from goodfence.data.frame import ReadOptions
from goodfence.data.load import read_item_list
from goodfence.errors import DataError
gf.load("movietweetings")
import goodfence.data.load

def status(name):
    words = pathlib.Path("/proc/self/status").read_text().split()
    return int(words[words.index(name) + 1]) / 1024

path, limit = pathlib.Path(sys.argv[1]), int(sys.argv[2])
before, start = status("VmRSS:"), time.process_time()
try:
    how = {"feedback": "implicit"} if "events" in path.name else {"duplicates": "last"}
    how |= {"layout": one for one in ("wide", "lists") if one in path.name}
    options = ReadOptions(max_bytes=limit, **how)
    read = read_item_list(path, limit) if path.suffix == ".txt" else gf.load(path, read=options)
    told = "read"
except DataError as problem:
    told = type(problem).__name__
print(json.dumps([told, status("VmHWM:") - before, time.process_time() - start]))
"""
"""Reads one file in a process of its own: what came of it, MiB more than before, seconds of processor."""
