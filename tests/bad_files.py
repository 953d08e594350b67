"""Bad inputs that are broken as a whole: no file, no text, no table of ratings, or too much."""

from __future__ import annotations

import gzip
import io
import os
import socket
import sqlite3
import zipfile
from pathlib import Path

from tests.bad_inputs import (
    FORMATS,
    HEADER,
    ITEMS,
    NAMES,
    RATINGS,
    USERS,
    BadInput,
    Make,
    good_rows,
    put,
)

MEBIBYTE = 2**20


def bad_files() -> list[BadInput]:
    """Return every kind that is not about one row, and not parquet."""
    return [
        *_no_files(),
        *_no_text(),
        *_not_its_name(),
        *_packed(),
        *_empty(),
        *_separators(),
        *_columns(),
        *_positions(),
        *_enormous(),
    ]


def table(separator: str = ",", header: tuple[str, ...] | None = HEADER) -> bytes:
    """Return good ratings as text."""
    rows = good_rows() if header is None else [header, *good_rows()]
    return "".join(separator.join(row) + "\n" for row in rows).encode()


def written(name: str, content: bytes) -> Make:
    """Return what writes one file."""
    return lambda folder: put(folder, name, content)


def _many(
    kind: str, says: str, variants: dict[str, Make], arguments: tuple[str, ...] = ()
) -> list[BadInput]:
    return [
        BadInput(kind=kind, variant=variant, make=make, says=says, arguments=arguments)
        for variant, make in variants.items()
    ]


def _no_files() -> list[BadInput]:
    def directory(name: str) -> Make:
        def make(folder: Path) -> Path:
            (folder / name).mkdir()
            return folder / name

        return make

    def link(name: str, to: str) -> Make:
        def make(folder: Path) -> Path:
            (folder / name).symlink_to(folder / to)
            return folder / name

        return make

    def pipe(name: str) -> Make:
        def make(folder: Path) -> Path:
            os.mkfifo(folder / name)
            return folder / name

        return make

    def bound(folder: Path) -> Path:
        here = Path.cwd()
        os.chdir(folder)  # the path of a socket may have a hundred letters only
        try:
            with socket.socket(socket.AF_UNIX) as opened:
                opened.bind("ratings.csv")
        finally:
            os.chdir(here)
        return folder / "ratings.csv"

    def locked(name: str) -> Make:
        def make(folder: Path) -> Path:
            path = put(folder, name, table())
            path.chmod(0)
            return path

        return make

    none = {name: (lambda folder, name=name: folder / name) for name in ("a.csv", "a.parquet", "a")}
    none["dangling link"] = link("ratings.csv", "nowhere.csv")
    none["below a missing folder"] = lambda folder: folder / "nowhere" / "a.dat"
    ordinary = "must be an ordinary file"
    devices = {name: (lambda _, name=name: Path("/dev", name)) for name in ("null", "zero", "tty")}
    kinds = [
        *_many("missing file", "there is none of that name", none),
        *_many(
            "directory",
            "is a directory",
            {name: directory(name) for name in ("a.csv", "a.parquet", "a", "a.csv.gz")},
        ),
        *_many("named pipe", ordinary, {n: pipe(n) for n in ("a.csv", "a.parquet", "a.csv.gz")}),
        *_many("device", ordinary, {k: v for k, v in devices.items() if Path("/dev", k).exists()}),
        *_many("socket", ordinary, {"csv": bound}),
        *_many(
            "unreachable",
            "the system could not open it",
            {
                "loop of links": link("a.csv", "a.csv"),
                "name too long": lambda folder: folder / ("a" * 300 + ".csv"),
                "below a file": lambda folder: put(folder, "a.csv", table()) / "b.csv",
            },
        ),
    ]
    if os.geteuid() != 0:  # root may read everything
        kinds += _many("locked", "you may not read it", {n: locked(n) for n in ("a.csv", "a.dat")})
    return kinds


def _no_text() -> list[BadInput]:
    encodings = {"UTF-16": ("utf-16", "utf-16"), "UTF-32": ("utf-32", "utf-32")}
    kinds = []
    for name, (codec, _) in encodings.items():
        text = table().decode().encode(codec)
        big = (b"\xfe\xff" if name == "UTF-16" else b"\0\0\xfe\xff") + table().decode().encode(
            f"{codec}-be"
        )
        variants = {
            "csv": written("a.csv", text),
            "big-endian": written("a.csv", big),
            "tsv": written("a.tsv", table("\t").decode().encode(codec)),
            "gz": written("a.csv.gz", gzip.compress(text)),
        }
        kinds += _many(name, f"and is {name}; save it as UTF-8", variants)
    bare = table().decode().encode("utf-16-le")
    kinds += _many(
        "UTF-16 without a mark",
        "NUL bytes",
        {"csv": written("a.csv", bare), "gz": written("a.csv.gz", gzip.compress(bare))},
    )
    mac = table().replace(b"\n", b"\r")
    kinds += _many(
        "old Macintosh line ends",
        "ordinary line ends",
        {"csv": written("a.csv", mac), "gz": written("a.csv.gz", gzip.compress(mac))},
    )
    return kinds


def _not_its_name() -> list[BadInput]:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("ratings.csv", table())

    def database(folder: Path) -> Path:
        connection = sqlite3.connect(folder / "a.csv")
        connection.execute("create table ratings (user, item, rating)")
        connection.commit()
        connection.close()
        return folder / "a.csv"

    name = "must be what its name says, and is"
    unknown = "must end in .csv, .tsv, .dat, .txt"
    variants = {
        "parquet": written("a.csv", b"PAR1" + bytes(20)),
        "gzip": written("a.csv", gzip.compress(table())),
        "zip": written("a.csv", archive.getvalue()),
        "spreadsheet": written("a.xlsx", archive.getvalue()),
        "database": database,
        "PDF": written("a.csv", b"%PDF-1.7\n"),
        "zstandard": written("a.csv", b"\x28\xb5\x2f\xfd" + bytes(20)),
        "HDF5": written("a.parquet", b"\x89HDF\r\n\x1a\n" + bytes(20)),
        "arrow": written("a.parquet", b"ARROW1" + bytes(20)),
    }
    prose = {
        "html": written("a.csv", b"<!doctype html>\n<p>not found</p>\n"),
        "json": written("a.csv", b'{"ratings": []}\n'),
        "words": written("a.csv", f"{NAMES[0]} saw {ITEMS[0]}\n".encode()),
    }
    endings = (".json", ".npz", ".pkl", ".xls", ".feather", ".csv.bz2")
    return [
        *_many("not what its name says", name, variants),
        *_many("unknown ending", unknown, {end: written("a" + end, table()) for end in endings}),
        *_many("no table", "must have columns for user, item and rating", prose),
    ]


def _packed() -> list[BadInput]:
    whole = gzip.compress(table() * 50)
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 0xFF
    wrong_sum = whole[:-8] + bytes(4) + whole[-4:]
    damaged = "is cut short or damaged"
    return [
        *_many(
            "a gz that is not one",
            "must be a gzip file, as its name says",
            {
                "text": written("a.csv.gz", table()),
                "tsv": written("a.tsv.gz", table("\t")),
                "dat": written("a.dat.gz", table("::", None)),
                "one byte": written("a.csv.gz", b"\x1f"),
            },
        ),
        *_many(
            "a truncated gz",
            damaged,
            {
                "half": written("a.csv.gz", whole[: len(whole) // 2]),
                "head": written("a.csv.gz", whole[:10]),
                "magic": written("a.csv.gz", whole[:2]),
                "end": written("a.csv.gz", whole[:-1]),
            },
        ),
        *_many(
            "a damaged gz",
            damaged,
            {
                "checksum": written("a.csv.gz", wrong_sum),
                "waste after it": written("a.csv.gz", whole + b"waste"),
                "method": written("a.csv.gz", b"\x1f\x8b\x07" + whole[3:]),
            },
        ),
        *_many("a gz with a flipped byte", "must", {"middle": written("a.csv.gz", bytes(broken))}),
        *_many(
            "gzipped parquet",
            "says it is parquet",
            {"parquet.gz": written("a.parquet.gz", whole), "pq.gz": written("a.pq.gz", whole)},
        ),
    ]


def _empty() -> list[BadInput]:
    header = ",".join(HEADER).encode()
    return [
        *_many(
            "empty file",
            "and is empty",
            {n: written(n, b"") for n in ("a.csv", "a.tsv", "a.dat", "a.csv.gz", "a.parquet", "a")},
        ),
        *_many(
            "nothing but blanks",
            "and is empty",
            {
                "lines": written("a.csv", b"\n\n\n"),
                "windows": written("a.csv", b"\r\n\r\n"),
                "mark": written("a.csv", b"\xef\xbb\xbf"),
                "gz": written("a.csv.gz", gzip.compress(b"")),
                "mark and line": written("a.tsv", b"\xef\xbb\xbf\n"),
            },
        ),
        *_many(
            "header only",
            "has a header line only",
            {
                "csv": written("a.csv", header + b"\n"),
                "no end": written("a.csv", header),
                "windows": written("a.csv", header + b"\r\n\r\n"),
                "tsv": written("a.tsv", header.replace(b",", b"\t")),
                "gz": written("a.csv.gz", gzip.compress(header)),
            },
        ),
    ]


def _separators() -> list[BadInput]:
    wrong = {
        "csv with semicolons": written("a.csv", table(";")),
        "csv with tabs": written("a.csv", table("\t")),
        "csv with bars": written("a.csv", table("|")),
        "csv with colons": written("a.csv", table("::", None)),
        "tsv with commas": written("a.tsv", table(",")),
        "dat with commas": written("a.dat", table(",", None)),
        "u.data with commas": written("u.data", table(",", None)),
        "gz with semicolons": written("a.csv.gz", gzip.compress(table(";"))),
    }
    both = {
        "txt": written("a.txt", b"user,item,rating\tuser\titem,rating\n"),
        "no ending": written("a", b"1,2,3|4|5\n"),
    }
    stated = {"csv": written("a.csv", table()), "tsv": written("a.tsv", table(","))}
    return [
        *_many("wrong delimiter", "looks separated by", wrong),
        *_many("two delimiters", "must have one separator", both),
        *_many("wrong stated delimiter", "looks separated by", stated, ("--separator", ";")),
        *_many(
            "one column",
            "must have columns for user, item and rating",
            {
                "csv": written("a.csv", b"rating\n" + RATINGS[0].encode() + b"\n"),
                "number": written("a.csv", RATINGS[0].encode() + b"\n"),
                "spaces": written("a.csv", table(" ")),
            },
        ),
    ]


def _columns() -> list[BadInput]:
    def named(*names: str) -> Make:
        rows = [[*row, "0"][: len(names)] for row in good_rows()]
        text = "\n".join(",".join(row) for row in [list(names), *rows]) + "\n"
        return written("a.csv", text.encode())

    none = {
        "user": named("who", "item", "rating"),
        "item": named("user", "what", "rating"),
        "rating": named("user", "item", "how"),
        "all": named("a", "b", "c"),
        "time only": named("user", "item", "timestamp"),
        "blank": named("", "item", "rating"),
        "a first row for a header": written(
            "a.csv", f"{NAMES[0]},{ITEMS[0]},{RATINGS[0]}\n".encode() + table(header=None)
        ),
    }
    two = {
        "user": named("user", "user_id", "item", "rating"),
        "item": named("user", "movieId", "item", "rating"),
        "rating": named("user", "item", "rating", "stars"),
        "same name": named("user", "item", "rating", "rating"),
    }
    good = {"csv": written("a.csv", table()), "tsv": written("a.tsv", table("\t"))}
    twice = {"csv": named("user", "item", "rating", "rating")}
    same = "must be three different columns"
    mean = "did you mean 'movieId'?"
    return [
        *_many("missing column", "or the like, and none of the", none),
        *_many("ambiguous column", "could each be it", two),
        *_many("misspelt user", "there is none called 'usr'", good, ("--user", "usr")),
        *_many("misspelt item", mean, good, ("--item", "movieid")),
        *_many("misspelt rating", "did you mean 'rating'?", good, ("--rating", "ratng")),
        *_many("name of two columns", "names 2", twice, ("--rating", "rating")),
        *_many("one column twice", same, good, ("--user", "movieId", "--item", "movieId")),
    ]


def _positions() -> list[BadInput]:
    def headless(*columns: tuple[str, ...]) -> Make:
        text = "\n".join(",".join(row) for row in zip(*columns, strict=True)) + "\n"
        return written("a.csv", text.encode())

    times = tuple(str(881250949 + 7 * n) for n in range(1500))
    grades = ("4",) * 1500
    ids = tuple(str(n) for n in range(1500))
    wide = headless(USERS, ITEMS, RATINGS, RATINGS, RATINGS)
    good = {"csv": headless(USERS, ITEMS, RATINGS), "dat": written("a.dat", table("::", None))}
    header = {"csv": written("a.csv", table()), "tsv": written("a.tsv", table("\t"))}
    positions = ("--user", "1", "--item", "2", "--rating", "3")
    return [
        *_many("five numbers without names", "must have 3 or 4 columns", {"csv": wide}),
        *_many("position beyond the last", "from 1 to 3", good, ("--rating", "9")),
        *_many("position nought", "from 1 to 3", good, ("--user", "0")),
        *_many("name without a header", "from 1 to 3", good, ("--user", "userId")),
        *_many("one position twice", "three different columns", good, ("--user", "2")),
        *_many("positions with a header", "must be a number, row 1 is not", header, positions),
        *_many(
            "times in the place of ratings",
            "must look like ratings",
            {
                "csv": headless(ids, ids, times, grades),
                "ids": headless(grades, times, ids),
            },
        ),
    ]


def _enormous() -> list[BadInput]:
    """Return files of gigabytes: sparse on the disk, or one packed piece many times over."""

    def sparse(name: str, start: bytes, n_bytes: int) -> Make:
        def make(folder: Path) -> Path:
            path = put(folder, name, start)
            os.truncate(path, n_bytes)
            return path

        return make

    def repeated(name: str, start: bytes, piece: bytes, times: int) -> Make:
        def make(folder: Path) -> Path:
            packed = gzip.compress(piece * (16 * MEBIBYTE // len(piece)), compresslevel=1)
            return put(folder, name, gzip.compress(start) + packed * times)

        return make

    def long_line(folder: Path) -> Path:
        with (folder / "a.csv").open("wb") as opened:
            for _ in range(32):
                opened.write(USERS[0].encode() * (MEBIBYTE // 9))
        return folder / "a.csv"

    header = ",".join(HEADER).encode() + b"\n"
    row = ",".join(good_rows()[0]).encode() + b"\n"
    lines = "must have lines of at most 1 MiB"
    limit = ("--max-bytes", "100")
    small = {name: written(f"a{f.ending}", _text(name)) for name, f in FORMATS.items()}
    small["gz"] = written("a.csv.gz", gzip.compress(table()))
    return [
        *_many(
            "1 GiB on one line",
            lines,
            {
                "zeros": sparse("a.csv", header, 1024 * MEBIBYTE),
                "no header": sparse("a.tsv", b"1", 1024 * MEBIBYTE),
                "packed": repeated("a.csv.gz", header, b"x", 64),
                "numbers": long_line,
            },
        ),
        *_many(
            "more than the limit",
            "must be at most 2 GiB once inflated",
            {
                "csv": sparse("a.csv", header, 2100 * MEBIBYTE),
                "parquet": sparse("a.parquet", b"PAR1", 2100 * MEBIBYTE),
                "dat": sparse("a.dat", b"1::2::3\n", 2100 * MEBIBYTE),
            },
        ),
        *_many(
            "a gz that inflates to gigabytes",
            "must be at most 64 MiB once inflated",
            {
                "rows": repeated("a.csv.gz", header, row, 150),
                "blank lines": repeated("a.csv.gz", header, b"\n", 150),
            },
            ("--max-bytes", str(64 * MEBIBYTE)),
        ),
        *_many("more than a small limit", "must be at most 100 bytes", small, limit),
    ]


def _text(name: str) -> bytes:
    style = FORMATS[name]
    return "".join(style.lines(good_rows())).encode()
