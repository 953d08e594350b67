"""Loading ratings: a data set by its name, or a file by its path."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from goodfence.data.catalogue import DATASETS, Dataset, extract_only, find_dataset
from goodfence.data.columns import Columns, Feedback
from goodfence.data.files import (
    BYTES_OF_A_ROW,
    BYTES_OF_AN_ID,
    TIMES_HELD,
    RatingsFile,
    check_limit,
    find_file,
    too_large,
)
from goodfence.data.frame import ReadOptions, in_order
from goodfence.data.ids import SPACE, are_dense, is_text
from goodfence.data.ratings import Id, Ratings
from goodfence.data.scale import ScaleLike, warn_of_sentinels, without_unrated
from goodfence.data.text import Lines, read_text
from goodfence.data.times import BYTES_OF_A_TIME, affordable, without_times
from goodfence.data.typed import is_json, read_json, read_parquet
from goodfence.errors import (
    ColumnProblem,
    FileProblem,
    SettingError,
    UnknownDataset,
    ValueProblem,
    did_you_mean,
    require,
    warn,
)
from goodfence.settings import checked

PARQUET = (".parquet", ".pq")
STDIN = "-"  # what stands for standard input in the place of a path
_NO_TEXT = (
    *(".npz", ".npy", ".pkl", ".pickle", ".joblib", ".xls", ".xlsx", ".ods", ".feather", ".arrow"),
    *(".orc", ".avro", ".h5", ".hdf5", ".mat", ".rdata", ".rds", ".sav", ".db", ".sqlite"),
    *(".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".tgz", ".pdf", ".html", ".xml"),
)
_STATED = (
    *("user", "item", "rating", "time", "weight"),
    *("scale", "separator", "decimal", "encoding", "unrated", "dates"),
)
"""What a named data set states itself."""
_BYTES_OF_SORTING = 16  # what sorting takes for each row, where ids are integers far apart
_BYTES_OF_A_TEXT = 128  # what an id that is text takes beside its letters, as Python's own text
_BYTES_OF_A_LINE = 256  # what an item of a list takes, with its line and its place among the others
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")  # as ids of ratings are read: 7 and not 007


@checked
def load(
    name: str | os.PathLike[str],
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    time: str | None = None,
    scale: ScaleLike | None = None,
    feedback: Feedback = "explicit",
    likes: float | None = None,
    items: Sequence[Id] | npt.NDArray[Any] | None = None,
    read: ReadOptions | str | None = None,
) -> Ratings:
    """Return the ratings or the events of a file, or of a data set that has a name.

    A named data set is looked for among the bundled ones, in the folder `GOODFENCE_DATA` and in the user's cache; then
    its original archive is downloaded into the cache.

    Parameters
    ----------
    name : str or path
        A name of the catalogue, or a path: text (csv, tsv, "::" dat, blanks, JSON lines, the Netflix Prize's
        files; gz of these), parquet, or a zip that holds one of these; "-" is standard input.
    user, item, rating : str, optional
        The columns of a file, where their names do not tell; "1", "2", ... where it has no header line.
    time : str, optional
        The column of the times, integers or dates, kept as `Ratings.times`. None takes a column that is
        called timestamp, time, date or the like and holds nothing else.
    scale : Scale or tuple of float, optional
        The ratings that can be given in a file; None observes the scale from the data.
    feedback : {"explicit", "implicit"}, default "explicit"
        Whether a row of the file is a rating, or an event without one: a click, a purchase, a play.
    likes : float, optional
        Turns ratings into events: those of at least this value. It is kept as `Ratings.liked_from`.
    items : sequence of id, optional
        All items, from a public source, in the order of the columns. None takes those that somebody rated.
    read : ReadOptions or str, optional
        The rarer options of a file, as in "encoding=latin-1 where=event_type=view": where, layout, weight, duplicates,
        separator, decimal, encoding, unrated, dates, max_bytes.

    Examples
    --------
    >>> load("movietweetings")
    Ratings(1,238 users x 1,191 items, 45,027 ratings, integers 0-10)
    >>> load("movietweetings", likes=8)
    Ratings(1,238 users x 1,191 items, 20,391 events)
    """
    options = ReadOptions.parse(read).merged(
        user=user, item=item, rating=rating, time=time, scale=scale, likes=likes, feedback=feedback
    )
    found = locate(name, options).read()
    return found if items is None else found.on_items(items)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedRatings:
    """A file of ratings, how it is to be read, and its entry in the catalogue, if any."""

    path: Path
    options: ReadOptions
    dataset: Dataset | None = None

    def read(self) -> Ratings:
        """Return the ratings or the events; those of the catalogue are counted before `likes` leaves any out."""
        counted = replace(self.options, likes=None) if self.dataset else self.options
        return self.completed(read_ratings(self.path, counted))

    def completed(self, ratings: Ratings, shape: tuple[int, int] | None = None, n_found: int | None = None) -> Ratings:
        """Return what was read, with titles, after making sure that it is what the catalogue says.

        `shape` and `n_found` are those of the whole, where these ratings are only what is public of it.
        """
        dataset, least = self.dataset, self.options.likes
        if dataset is None:
            return ratings
        liked = ratings.liked_from is not None
        n_ratings = dataset.n_ratings if liked else ratings.n_ratings if n_found is None else n_found
        if (shape or ratings.shape, n_ratings) != (dataset.shape, dataset.n_ratings):
            users, items = dataset.shape
            raise FileProblem(
                f"{self.path} must be {dataset.name} with {users:,} users, {items:,} items and "
                f"{dataset.n_ratings:,} ratings, got {ratings!r}; load it by its path if that is meant"
            )
        # Which items a published data set holds was published with it: its list is declared.
        known = dataset.titles
        titles = known.read(self.path.parent, ratings.items.tolist()) if known else None
        named = ratings.replaced(ratings.csr, ratings.times, titles=titles, items_declared=True)
        return named if least is None or liked else named.liked(least)


def locate(name: str | os.PathLike[str], options: ReadOptions) -> LocatedRatings:
    """Return where the ratings of a name or a path are, without reading them."""
    dataset = DATASETS.get(name) if isinstance(name, str) else None
    if dataset is None:
        return LocatedRatings(path=_path(name), options=options)
    if not options.rated:
        raise SettingError(
            "feedback must be explicit for a named data set, which holds ratings; say which of them are likes with "
            "likes= (--likes)"
        )
    for setting in _STATED:
        if getattr(options, setting) is not None:
            raise SettingError(f"{setting} must be left out for a named data set, which states it")
    return _located(dataset, find_dataset(dataset), replace(options, feedback="explicit"))


def load_dataset(dataset: Dataset, folder: Path, options: ReadOptions | None = None) -> Ratings:
    """Return the ratings of a data set from its folder, after making sure that it is the one."""
    return _located(dataset, folder, options or ReadOptions()).read()


def _located(dataset: Dataset, folder: Path, options: ReadOptions) -> LocatedRatings:
    path, rule = dataset.checked_file(folder), options.duplicates or dataset.duplicates
    stated = replace(options, scale=dataset.scale, duplicates=rule)
    return LocatedRatings(path=path, options=stated, dataset=dataset)


def _path(name: str | os.PathLike[str]) -> Path:
    """Return the path that is meant: one that exists, or that looks like one."""
    require(isinstance(name, str | os.PathLike), "name", "a path or a name of a data set", name)
    path = Path(name)
    try:
        exists = path.exists()
    except (OSError, ValueError):  # too long for a name, or with a NUL in it
        exists = False
    if not isinstance(name, str) or path.suffix or len(path.parts) > 1 or exists or name == STDIN:
        return path
    near = did_you_mean(name, DATASETS)
    raise UnknownDataset(f"name must be a file or one of {', '.join(DATASETS)}, got {name!r}{near}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReport:
    """Ratings, and how they were found in their file."""

    ratings: Ratings
    columns: Columns
    n_repeated: int


def read_ratings(path: str | os.PathLike[str], options: ReadOptions | None = None) -> Ratings:
    """Return the checked ratings of a file of text or parquet, by the ending of its name and its first lines."""
    return read_reported(path, options).ratings


def read_reported(path: str | os.PathLike[str], options: ReadOptions | None = None) -> ReadReport:
    """Return the ratings of a file as `read_ratings` does, with the columns they were found in."""
    given = options or ReadOptions()
    table, columns = read_table(path, given)
    if given.rated:
        table = without_unrated(table, given.unrated, columns.label("rating"))
    parts = {role: table[role] for role in table.column_names}
    del table  # as large as the ratings themselves: each column goes when it is no longer needed
    triplets = in_order(parts, columns, given)
    if given.rated and given.scale is None:
        warn_of_sentinels(triplets.values, columns.label("rating"))
    ratings = Ratings.from_triplets(triplets, given)
    return ReadReport(ratings=ratings, columns=columns, n_repeated=triplets.n_repeated)


def read_table(path: str | os.PathLike[str], options: ReadOptions | None = None) -> tuple[pa.Table, Columns]:
    """Return a file's columns by role as an arrow table, the time last, and what they are called in it."""
    given = options or ReadOptions()
    with open_ratings_file(path, given.max_bytes) as file:
        if given.layout is not None and (file.suffixes[0] in PARQUET or is_json(file)):
            raise SettingError("layout must be left out for parquet and JSON: it is for text")
        if file.suffixes[0] in PARQUET:  # never packed: `opened` refuses that
            table, columns = read_parquet(file, given)
        else:
            table, columns = (read_json if is_json(file) else read_text)(file, given)
        # Before they are put in order:
        n_bytes = _bytes_of_ids(table["user"]) + _bytes_of_ids(table["item"])
        n_bytes += table.num_rows * BYTES_OF_A_ROW
        n_timed = 0 if columns.time is None else table.num_rows * BYTES_OF_A_TIME
        named = given.time is not None
        columns = affordable(columns, n_bytes, n_timed, given.max_bytes, named=named)
        if columns.time is None:
            table, n_timed = without_times(table)[0], 0
        if n_bytes + n_timed > given.max_bytes:
            raise too_large(file.name, given.max_bytes)
    return table, columns


@contextmanager
def open_ratings_file(path: str | os.PathLike[str], max_bytes: int) -> Iterator[RatingsFile]:
    """Give the file at `path`, or what standard input holds where that is "-", if it may be one of ratings."""
    check_limit(max_bytes)
    with on_disk(path, max_bytes) as place:
        file = find_file(place, max_bytes)
        ending, packed = file.suffixes
        if ending == ".zip":
            raise FileProblem(f"{file.name!r} must be unpacked once, and is an archive in another")
        if ending in PARQUET and packed:
            raise FileProblem(f"{file.name!r} must be text inside its gzip, and says it is parquet; unpack it first")
        if ending in _NO_TEXT:
            raise FileProblem(
                f"{file.name!r} must end in .csv, .tsv, .dat, .txt, .jsonl (each also with .gz) or .parquet, and says "
                "that it is something else; export it as one of these"
            )
        yield file


@contextmanager
def on_disk(path: str | os.PathLike[str], max_bytes: int) -> Iterator[str | os.PathLike[str]]:
    """Give `path` itself, or where what it holds was written to: standard input ("-"), or the file in an archive."""
    place = Path(path)
    if place.name != STDIN and place.suffix.lower() != ".zip":
        yield path
        return
    with TemporaryDirectory(prefix="goodfence-") as folder:  # which nobody else may enter
        place = _spooled(Path(folder), max_bytes) if os.fspath(path) == STDIN else place
        if place.suffix.lower() == ".zip":
            find_file(place, max_bytes)
            place = extract_only(place, Path(folder), max_bytes)
        yield place


def _spooled(folder: Path, max_bytes: int) -> Path:
    """Write standard input into the folder, under a name that tells what it is."""
    source = sys.stdin.buffer
    start = source.read(4)
    ending = {b"PAR1": ".parquet", b"PK\x03\x04": ".zip"}.get(start, ".gz" if start.startswith(b"\x1f\x8b") else "")
    path, n_bytes = folder / f"standard input{ending}", len(start)
    with path.open("xb") as file:
        file.write(start)
        while piece := source.read(2**20):
            n_bytes += len(piece)
            if n_bytes > max_bytes:
                raise too_large("standard input", max_bytes)
            file.write(piece)
    return path


def _bytes_of_ids(column: pa.ChunkedArray) -> int:
    """Return what ids take in memory beside their rows; several chunks of text may hold the same ones."""
    if pa.types.is_integer(column.type):
        return 0 if are_dense(column) else _BYTES_OF_SORTING * len(column)
    if not pa.types.is_dictionary(column.type):
        return 0
    if not is_text(column.type.value_type):
        return BYTES_OF_AN_ID * max(len(chunk.dictionary) for chunk in column.chunks)
    return sum(
        len(chunk.dictionary) * _BYTES_OF_A_TEXT + TIMES_HELD * chunk.dictionary.nbytes for chunk in column.chunks
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ItemList:
    """The lines of a list of items, as text: only the ratings say whether ids are numbers."""

    file: str  # the name of the file, for errors
    lines: dict[str, int]  # the ids in the order of the lines, each with the number of its line

    def applied_to(self, ratings: Ratings) -> Ratings:
        """Return the ratings with these items as columns; all that were rated must be listed."""
        if ratings.items.dtype.kind not in "iu":
            return ratings.on_items(list(self.lines))
        for text, number in self.lines.items():
            if not _is_integer(text):
                raise ValueProblem(
                    f"{self.file!r} must list integers, since the ratings number their items, line {number} is not one"
                )
        return ratings.on_items([int(text) for text in self.lines])

    def alone(self) -> list[int] | list[str]:
        """Return the ids as the list itself says them: integers if all are, else text."""
        listed = list(self.lines)
        return [int(text) for text in listed] if all(map(_is_integer, listed)) else listed


def read_item_list(path: Path, max_bytes: int) -> ItemList:
    """Return what a list of items holds: one id a line, UTF-8, no header; blank lines are skipped."""
    check_limit(max_bytes)
    purpose = "list items, one id a line"
    file = find_file(path, max_bytes, purpose)
    first: dict[str, int] = {}
    trimmed, n_bytes = False, 0
    for number, text in Lines(file, max_bytes).numbered():
        n_bytes += 2 * (len(text) + 1) + _BYTES_OF_A_LINE
        if n_bytes > max_bytes:
            raise too_large(file.name, max_bytes)
        line = text.decode()
        one = line.strip(SPACE)
        trimmed |= one != line
        if one and first.setdefault(one, number) != number:
            raise ValueProblem(f"{file.name!r} must list each item once, line {number} repeats line {first[one]}")
    if trimmed:
        warn(f"{file.name!r} has ids with spaces around them; the spaces were left out")
    if not first:
        raise FileProblem(f"{file.name!r} is empty; it must {purpose}")
    return ItemList(file=file.name, lines=first)


def read_labels(file: str | os.PathLike[str], column: str, user: str | None = None) -> dict[Id, Id]:
    """Return the class of each user from a file of any kind that ratings can be in: one row for each user."""
    options = ReadOptions(user=user, item=column, feedback="implicit")
    try:
        found = read_ratings(file, options)
    except ColumnProblem as problem:
        raise ColumnProblem(f"user= and column= must name columns of the file of classes: {problem}") from None
    if found.n_ratings != len(found.users):
        raise ValueProblem("a user must have one class, at least one has several")
    return dict(zip(found.users.tolist(), found.items[found.csr.indices].tolist(), strict=True))


def _is_integer(text: str) -> bool:
    return bool(_INTEGER.fullmatch(text)) and -(2**63) <= int(text) < 2**63
