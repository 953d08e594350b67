"""Bad inputs that can be read but hold no ratings: wrong separators, wrong columns, far too much."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from tests.support.bad_files import many, table, written
from tests.support.bad_inputs import FORMATS, HEADER, ITEMS, NAMES, RATINGS, USERS, BadInput, Make, good_rows, put

MEBIBYTE = 2**20


def bad_tables() -> list[BadInput]:
    """Return every kind of text that is not a table of ratings, or too large a one."""
    return [*_separators(), *_columns(), *_positions(), *_enormous()]


def _separators() -> list[BadInput]:
    both = {
        "txt": written("a.txt", b"user,item,rating\tuser\titem,rating\n"),
        "no ending": written("a", b"1,2,3|4|5\n"),
    }
    stated = {"csv": written("a.csv", table()), "tsv": written("a.tsv", table(","))}
    return [
        *many("two delimiters", "must have one separator", both),
        *many("wrong stated delimiter", "looks separated by", stated, ("--read", "separator=;")),
        *many(
            "one column",
            "needs columns for user, item and rating",
            {
                "csv": written("a.csv", b"rating\n" + RATINGS[0].encode() + b"\n"),
                "number": written("a.csv", RATINGS[0].encode() + b"\n"),
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
            "a.csv", f"{NAMES[0]},{RATINGS[0]},{NAMES[1]}\n".encode() + table(header=None)
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
    same = "must be different columns"
    mean = "did you mean 'movieId'?"
    return [
        *many("missing column", "or the like; name the column", none),
        *many("ambiguous column", "could each be it", two),
        *many("misspelt user", "there is none called 'usr'", good, ("--user", "usr")),
        *many("misspelt item", mean, good, ("--item", "movieid")),
        *many("misspelt rating", "did you mean 'rating'?", good, ("--rating", "ratng")),
        *many("name of two columns", "names 2", twice, ("--rating", "rating")),
        *many("one column twice", same, good, ("--user", "movieId", "--item", "movieId")),
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
        *many("five numbers without names", "must have 3 or 4 columns", {"csv": wide}),
        *many("position beyond the last", "from 1 to 3", good, ("--rating", "9")),
        *many("position nought", "from 1 to 3", good, ("--user", "0")),
        *many("name without a header", "from 1 to 3", good, ("--user", "userId")),
        *many("one position twice", "different columns", good, ("--user", "2", "--item", "2")),
        *many("positions with a header", "must be a number, row 1 is not", header, positions),
        *many(
            "times in the place of ratings",
            "must look like ratings",
            {"csv": headless(ids, ids, times, grades), "ids": headless(grades, times, ids)},
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
    limit = ("--read", "max_bytes=100")
    small = {name: written(f"a{f.ending}", _text(name)) for name, f in FORMATS.items()}
    small["gz"] = written("a.csv.gz", gzip.compress(table()))
    return [
        *many(
            "1 GiB on one line",
            lines,
            {
                "zeros": sparse("a.csv", header, 1024 * MEBIBYTE),
                "no header": sparse("a.tsv", b"1", 1024 * MEBIBYTE),
                "packed": repeated("a.csv.gz", header, b"x", 64),
                "numbers": long_line,
            },
        ),
        *many(
            "more than the limit",
            "must be at most 2 GiB once inflated",
            {
                "csv": sparse("a.csv", header, 2100 * MEBIBYTE),
                "parquet": sparse("a.parquet", b"PAR1", 2100 * MEBIBYTE),
                "dat": sparse("a.dat", b"1::2::3\n", 2100 * MEBIBYTE),
            },
        ),
        *many(
            "a gz that inflates to gigabytes",
            "must be at most 64 MiB once inflated",
            {"rows": repeated("a.csv.gz", header, row, 150), "blank lines": repeated("a.csv.gz", header, b"\n", 150)},
            ("--read", f"max_bytes={64 * MEBIBYTE}"),
        ),
        *many("more than a small limit", "must be at most 100 bytes", small, limit),
    ]


def _text(name: str) -> bytes:
    style = FORMATS[name]
    return "".join(style.lines(good_rows())).encode()
