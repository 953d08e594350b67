"""Bad inputs that are no file that can be read: no file at all, no text, not what its name says."""

from __future__ import annotations

import gzip
import io
import os
import socket
import sqlite3
import zipfile
from pathlib import Path

from tests.support.bad_inputs import HEADER, ITEMS, NAMES, BadInput, Make, good_rows, put


def bad_files() -> list[BadInput]:
    """Return every kind of file that cannot be read."""
    return [*_no_files(), *_no_text(), *_not_its_name(), *_packed(), *_empty()]


def table(separator: str = ",", header: tuple[str, ...] | None = HEADER) -> bytes:
    """Return good ratings as text."""
    rows = good_rows() if header is None else [header, *good_rows()]
    return "".join(separator.join(row) + "\n" for row in rows).encode()


def written(name: str, content: bytes) -> Make:
    """Return what writes one file."""
    return lambda folder: put(folder, name, content)


def many(kind: str, says: str, variants: dict[str, Make], arguments: tuple[str, ...] = ()) -> list[BadInput]:
    """Return one bad input for each way to make it."""
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

    def below(place: Path | None, name: str) -> Make:
        return lambda folder: (place or folder) / name

    none = {name: below(None, name) for name in ("a.csv", "a.parquet", "a")}
    none["dangling link"] = link("ratings.csv", "nowhere.csv")
    none["below a missing folder"] = below(None, "nowhere/a.dat")
    ordinary = "must be an ordinary file"
    devices = {name: below(Path("/dev"), name) for name in ("null", "zero", "tty")}
    kinds = [
        *many("missing file", "does not exist", none),
        *many(
            "directory", "is a directory", {name: directory(name) for name in ("a.csv", "a.parquet", "a", "a.csv.gz")}
        ),
        *many("named pipe", ordinary, {n: pipe(n) for n in ("a.csv", "a.parquet", "a.csv.gz")}),
        *many("device", ordinary, {k: v for k, v in devices.items() if Path("/dev", k).exists()}),
        *many("socket", ordinary, {"csv": bound}),
        *many(
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
        kinds += many("locked", "you may not read it", {n: locked(n) for n in ("a.csv", "a.dat")})
    return kinds


def _no_text() -> list[BadInput]:
    encodings = {"UTF-16": ("utf-16", "utf-16"), "UTF-32": ("utf-32", "utf-32")}
    kinds = []
    for name, (codec, _) in encodings.items():
        text = table().decode().encode(codec)
        big = (b"\xfe\xff" if name == "UTF-16" else b"\0\0\xfe\xff") + table().decode().encode(f"{codec}-be")
        variants = {
            "csv": written("a.csv", text),
            "big-endian": written("a.csv", big),
            "tsv": written("a.tsv", table("\t").decode().encode(codec)),
            "gz": written("a.csv.gz", gzip.compress(text)),
        }
        kinds += many(name, f"and is {name}; save it as UTF-8", variants)
    bare = table().decode().encode("utf-16-le")
    kinds += many(
        "UTF-16 without a mark",
        "NUL bytes",
        {"csv": written("a.csv", bare), "gz": written("a.csv.gz", gzip.compress(bare))},
    )
    mac = table().replace(b"\n", b"\r")
    kinds += many(
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
    said = {
        "parquet": "is a parquet file; rename it to end in .parquet",
        "gzip": "is a gzip file; rename it to end in .gz",
        "zip": "is a zip archive",
        "spreadsheet": "is a zip archive or a spreadsheet",
        "database": "is a database",
        "PDF": "is a PDF document",
        "zstandard": "is a zstandard file",
        "HDF5": "is an HDF5 file",
        "arrow": "is an arrow file",
    }
    prose = {
        "html": written("a.csv", b"<!doctype html>\n<p>not found</p>\n"),
        "words": written("a.csv", f"{NAMES[0]}:{ITEMS[0]}\n".encode()),
    }
    lines = {
        "an array": written("a.json", b'[{"user": 1}]\n'),
        "no JSON": written("a.jsonl", table()),
        "Python": written("a.json", b"{'user': 1, 'item': 2, 'rating': 3}\n"),
        "a member twice": written("a.json", b'{"user": 1, "user": 2, "item": 2, "rating": 3}\n'),
        "half a line": written("a.json", b'{"user": 1, "item": 2,\n"rating": 3}\n'),
        "deep": written("a.json", b"[" * 100_000 + b"\n"),
    }
    endings = (".npz", ".pkl", ".xls", ".feather", ".csv.bz2")
    return [
        *(one for key, make in variants.items() for one in many("not what its name says", said[key], {key: make})),
        *many("unknown ending", unknown, {end: written("a" + end, table()) for end in endings}),
        *many("not JSON lines", "must", lines),
        *many("no table", "needs columns for user, item and rating", prose),
    ]


def _packed() -> list[BadInput]:
    whole = gzip.compress(table() * 50)
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 0xFF
    wrong_sum = whole[:-8] + bytes(4) + whole[-4:]
    damaged = "is cut short or damaged"
    return [
        *many(
            "a gz that is not one",
            "must be a gzip file, as its name says",
            {
                "text": written("a.csv.gz", table()),
                "tsv": written("a.tsv.gz", table("\t")),
                "dat": written("a.dat.gz", table("::", None)),
                "one byte": written("a.csv.gz", b"\x1f"),
            },
        ),
        *many(
            "a truncated gz",
            damaged,
            {
                "half": written("a.csv.gz", whole[: len(whole) // 2]),
                "head": written("a.csv.gz", whole[:10]),
                "magic": written("a.csv.gz", whole[:2]),
                "end": written("a.csv.gz", whole[:-1]),
            },
        ),
        *many(
            "a damaged gz",
            damaged,
            {
                "checksum": written("a.csv.gz", wrong_sum),
                "waste after it": written("a.csv.gz", whole + b"waste"),
                "method": written("a.csv.gz", b"\x1f\x8b\x07" + whole[3:]),
            },
        ),
        *many("a gz with a flipped byte", "must", {"middle": written("a.csv.gz", bytes(broken))}),
        *many(
            "gzipped parquet",
            "says it is parquet",
            {"parquet.gz": written("a.parquet.gz", whole), "pq.gz": written("a.pq.gz", whole)},
        ),
    ]


def _empty() -> list[BadInput]:
    header = ",".join(HEADER).encode()
    return [
        *many(
            "empty file",
            "is empty; it must",
            {n: written(n, b"") for n in ("a.csv", "a.tsv", "a.dat", "a.csv.gz", "a.parquet", "a")},
        ),
        *many(
            "nothing but blanks",
            "is empty; it must",
            {
                "lines": written("a.csv", b"\n\n\n"),
                "windows": written("a.csv", b"\r\n\r\n"),
                "mark": written("a.csv", b"\xef\xbb\xbf"),
                "gz": written("a.csv.gz", gzip.compress(b"")),
                "mark and line": written("a.tsv", b"\xef\xbb\xbf\n"),
            },
        ),
        *many(
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
