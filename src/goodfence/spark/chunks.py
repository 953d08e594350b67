"""From a path or a data frame to chunks: one pass over the ratings, in tasks.

A chunk is some consecutive ratings of one split of the input. It holds each id once, and a rating names its position.
Files of this machine are read by the tasks themselves: Spark hands the rows of a data frame to Python one by one.
"""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import dataset

from goodfence import errors
from goodfence.arrays import Floats
from goodfence.data.columns import ROLES, find_columns
from goodfence.data.frame import ReadOptions
from goodfence.data.ids import code_ids
from goodfence.data.load import read_table
from goodfence.data.scale import Scale, check_grades, rating_values, without_unrated
from goodfence.errors import ColumnProblem, DataError, GoodfenceWarning, ValueProblem, require
from goodfence.neighbours.similarity import EXACT, FACTORS, ON_GRID
from goodfence.parallel import ranges
from goodfence.spark import messages, shuffle
from goodfence.spark.messages import AnyNumbers, ChunkFacts, ChunkIds, ChunkRatings, Message
from goodfence.spark.session import Batches, SparkConfig

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Given: TypeAlias = "DataFrame | str | os.PathLike[str]"
_ID_TYPES = {  # and what Spark calls them
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.string(): "string",
    pa.large_string(): "string",
}
_RATING_TYPES = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64())
_WRONG = (
    *(f"{role} must not be missing, {{n:,}} rows are" for role in ROLES),
    "rating must be a finite number, {n:,} rows are not",
    "rating must be on the declared scale, {n:,} rows are not",
    "weight must be more than 0, {n:,} rows are not",
)
_BYTES_OF_A_RATING = 24
_ROWS_AT_A_TIME = 1 << 16
_CHUNKS_IN_MEMORY = 8  # a chunk is there several times while it is coded
_LARGEST_CHUNK = 32 << 20  # bytes: the next one takes the memory that this one leaves


def encode(given: Given, config: SparkConfig) -> DataFrame:
    """Return `ChunkFacts`, `ChunkIds` and `ChunkRatings` of each chunk, from its split, by its number in the split."""
    from pyspark.sql import DataFrame

    encoder, frame = Encoder.of(config), given
    if isinstance(given, str | os.PathLike):
        reader = reader_of(os.fspath(given), config)
        if reader is not None:
            splits = config.spark.range(0, len(reader.splits), 1, len(reader.splits))
            return shuffle.map_messages(splits, partial(encoder.read, reader))
        frame = config.spark.read.parquet(os.fspath(given))
    if not isinstance(frame, DataFrame):
        kind = type(given).__name__
        raise DataError(f"ratings must be Ratings, a data frame of Spark, or a path, got {kind}")
    rule = "'error' for ratings in no order (a data frame, or files that Spark reads)"
    ordered = config.read.rated and config.read.repeated != "error"  # not so for events
    require(not ordered, "duplicates", rule, config.read.duplicates)
    rule = "left out for a data frame, or files that Spark reads; leave such rows out first"
    for name in ("unrated", "where", "layout"):
        require(getattr(config.read, name) is None, name, rule, getattr(config.read, name))
    return shuffle.map_messages(_chosen_columns(frame, config.read), encoder.rows)


def _chosen_columns(frame: DataFrame, options: ReadOptions) -> DataFrame:
    from pyspark.sql.types import IntegralType, NumericType, StringType

    columns = find_columns(frame.columns, options.columns)
    types = {field.name: field.dataType for field in frame.schema.fields}
    for role, name in columns.by_role.items():
        if role in ("user", "item") and not isinstance(types[name], IntegralType | StringType):
            raise ColumnProblem(f"{columns.label(role)} must hold integers or text")
        if role in ("rating", "weight") and not isinstance(types[name], NumericType):
            raise ColumnProblem(f"{columns.label(role)} must hold numbers")
    ids = (f"`{name}` as {role}" for role, name in zip(ROLES[:2], columns.chosen, strict=False))
    valued = columns.rating or columns.weight
    value = "1" if valued is None else f"`{valued}`"
    return frame.selectExpr(*ids, f"cast({value} as double) as rating")


def reader_of(path: str, config: SparkConfig) -> WholeFile | PlainFiles | None:
    """Return how tasks read the files of a path; None where Spark has to: parquet of elsewhere, nested folders."""
    files = files_here(path, config)
    plain = plain_files(files, config.read) if config.read.unrated is None and config.read.where is None else None
    if plain is not None and plain.n_rows:
        most = min(config.memory // _BYTES_OF_A_RATING, -(-plain.n_rows // config.n_cores))
        return plain.joined(most)
    if len(files) == 1 and not Path(path).is_dir():
        return WholeFile(path=files[0], options=config.read)
    if files or "://" in path or not Path(path).is_file():
        return None
    with Path(path).open("rb") as file:
        if file.read(4) == b"PAR1":
            return None
    # Text on the disk of the driver: Spark copies it to the tasks.
    config.spark.sparkContext.addFile(str(Path(path).absolute()))
    return WholeFile(path=Path(path).name, options=config.read, copied=True)


def files_here(path: str, config: SparkConfig) -> list[str]:
    """Return the files that Spark would read, where all tasks can read them as this process can; otherwise none."""
    spark: Any = config.spark
    default = str(spark._jsc.hadoopConfiguration().get("fs.defaultFS"))
    if not (config.on_this_machine and default.startswith("file:")) or "://" in path:
        return []
    place = Path(path).absolute()
    if not place.is_dir():
        return [] if set(path) & set("*?[{") and not place.exists() else [str(place)]
    found = sorted(one for one in place.iterdir() if not one.name.startswith(("_", ".")))
    return [str(one) for one in found] if all(one.is_file() for one in found) else []


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeFile:
    """A file that one task reads as the local engine does: text, or parquet of unusual types."""

    path: str
    options: ReadOptions
    copied: bool = False  # whether Spark copies it to the machine of the task
    splits: tuple[None] = (None,)  # one: only the whole file says which ids are integers

    def read(self, _split: int) -> Batches:
        """Yield the columns user, item and rating."""
        from pyspark import SparkFiles

        path = SparkFiles.get(self.path) if self.copied else self.path
        table, columns = read_table(path, self.options)
        if columns.rating is not None:
            table = without_unrated(table, self.options.unrated, columns.label("rating"))
        if table.num_rows == 0:
            return
        role = next((one for one in ("rating", "weight") if one in columns.by_role), None)
        values = np.ones(table.num_rows)
        if role is not None:
            values = rating_values(table[role], columns.label(role))
        guessed = columns.rating is not None and columns.positional and self.options.rating is None
        if guessed and self.options.scale is None:
            check_grades(values, columns)
        with warnings.catch_warnings(action="ignore"):  # the driver looks at all ids itself
            coded = [code_ids(table[one], columns.label(one), f"{one}s") for one in ROLES[:2]]
        ids = [(pa.array(one.ids.values), one.codes) for one in coded]
        for own in (slice(*piece) for piece in ranges(len(values), _ROWS_AT_A_TIME)):
            arrays = [*(every.take(pa.array(codes[own])) for every, codes in ids), values[own]]
            yield pa.record_batch(arrays, names=list(ROLES))


@dataclass(frozen=True, eq=False, kw_only=True)
class PlainFiles:
    """Parquet files with the same columns, of plain types: tasks read their row groups."""

    names: tuple[str, ...]  # of user, item and rating; of events, user, item and perhaps the weight
    types: tuple[pa.DataType, ...]
    splits: tuple[tuple[dataset.ParquetFileFragment, ...], ...]  # row groups that each task reads

    @property
    def n_rows(self) -> int:
        """The number of rows of all files."""
        return sum(_n_rows(group) for split in self.splits for group in split)

    def read(self, split: int) -> Batches:
        """Yield user, item and rating as Spark has them: integers that are too large as the nearest double."""
        plain = [pa.string() if pa.types.is_large_string(one) else one for one in self.types]
        how = {"columns": list(self.names), "batch_size": _ROWS_AT_A_TIME, "use_threads": False}
        for batch in (batch for group in self.splits[split] for batch in group.to_batches(**how)):
            user, item, *valued = (batch.column(name) for name in self.names)
            rating = valued[0] if valued else pa.array(np.ones(batch.num_rows))
            if pa.types.is_dictionary(rating.type):
                rating = rating.dictionary_decode()
            ids = user.cast(plain[0]), item.cast(plain[1])
            yield pa.record_batch([*ids, rating.cast(pa.float64(), safe=False)], names=list(ROLES))

    def joined(self, n_rows: int) -> PlainFiles:
        """Return the same in splits of about `n_rows` rows each, or of one larger row group."""
        splits: list[list[dataset.ParquetFileFragment]] = []
        n_waiting = n_rows
        for group in (group for split in self.splits for group in split):
            if n_waiting >= n_rows:
                splits.append([])
                n_waiting = 0
            splits[-1].append(group)
            n_waiting += _n_rows(group)
        return replace(self, splits=tuple(map(tuple, splits)))


def _n_rows(group: dataset.ParquetFileFragment) -> int:
    return sum(one.num_rows for one in group.row_groups)


def plain_files(paths: Sequence[str], options: ReadOptions) -> PlainFiles | None:
    """Look at the ends of parquet files; None where they are not plain, or not alike."""
    try:
        files = list(dataset.dataset(list(paths), format="parquet").get_fragments())
        found = {_plain_columns(file.physical_schema, options) for file in files}
        splits = tuple((group,) for file in files for group in file.split_by_row_group())
    except (pa.ArrowException, OSError):
        return None  # whoever reads it then says what is wrong with it
    for names, types in found if len(found) == 1 else ():
        if {*types[:2]} <= {*_ID_TYPES} and {*types[2:]} <= {*_RATING_TYPES}:
            return PlainFiles(names=names, types=types, splits=splits)
    return None


def _plain_columns(schema: pa.Schema, options: ReadOptions) -> tuple[tuple[str, ...], tuple[pa.DataType, ...]]:
    """Return the names and the types of user, item and rating; the type null for a column that is not plain."""
    names = tuple(find_columns(schema.names, options.columns).chosen)
    alone = all(schema.names.count(name) == 1 and "." not in name for name in names)
    types = (schema.field(name).type if alone else pa.null() for name in names)
    return names, tuple(one.value_type if pa.types.is_dictionary(one) else one for one in types)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """How ratings become chunks."""

    most: int  # about how many bytes of ratings, as they come, make a chunk
    scale: Scale | None = None  # on which every rating must be, if it is declared
    weighted: bool = False  # whether these are weights of events, which are more than 0

    @classmethod
    def of(cls, config: SparkConfig) -> Encoder:
        """Return the encoder of a job."""
        scale = None if config.read.scale is None else Scale.of(config.read.scale)
        most = min(config.memory // _CHUNKS_IN_MEMORY, _LARGEST_CHUNK)
        return cls(most=most, scale=scale, weighted=config.read.weight is not None)

    def read(self, reader: WholeFile | PlainFiles, batches: Batches) -> Iterator[Message]:
        """Yield the chunks of the splits that a task reads, then what the reader warned of or raised."""
        for split in (split for batch in batches for split in batch.column("id").to_pylist()):
            error = None
            with warnings.catch_warnings(record=True, action="always") as notes:
                try:
                    yield from self.encode(reader.read(split), split)
                except errors.GoodfenceError as problem:  # its sentence holds no rating and no id
                    error = [type(problem).__name__, str(problem)]
                except (pa.ArrowException, OSError):
                    error = ["FileProblem", "a file must be whole, and is cut short or damaged"]
            told = [str(one.message) for one in notes if one.category is GoodfenceWarning]
            yield ChunkFacts(-1, split, notes=told, error=error)

    def rows(self, batches: Batches) -> Iterator[Message]:
        """Yield the chunks of a task that Spark gives the rows of a data frame."""
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        return self.encode(batches, context.partitionId())

    def encode(self, batches: Batches, split: int) -> Iterator[Message]:
        """Yield the chunks of one split; one in which something is wrong has facts and nothing else."""
        for number, table in enumerate(_gathered(batches, self.most)):
            facts, ratings = self.examine(table, split, number)
            if ratings is None:
                yield facts
                continue
            ids, codes = zip(*(coded(table.column(role)) for role in ROLES[:2]), strict=True)
            stamp, n_ids = stamp_of(*ids), [len(one) for one in ids]
            n_bytes, types = [one.nbytes for one in ids], [_ID_TYPES[one.type] for one in ids]
            yield replace(facts, id_bytes=n_bytes, id_types=types)
            yield ChunkIds(number, split, stamp, *ids)
            yield ChunkRatings(number, split, stamp, n_ids, codes[0], codes[1], ratings)

    def examine(self, table: pa.Table, split: int, number: int) -> tuple[ChunkFacts, AnyNumbers | None]:
        """Return the facts of a chunk, and its ratings in their smallest form; None where something is wrong."""
        missing = [_n_missing(table.column(role)) for role in ROLES]
        values = table.column("rating").drop_null().to_numpy()
        finite = values[np.isfinite(values)]
        n_off = 0 if self.scale is None else int((~self.scale.holds(finite)).sum())
        n_low = int((finite <= 0).sum()) if self.weighted else 0
        wrong = [*missing, len(values) - len(finite), n_off, n_low]
        facts = ChunkFacts(number, split, n_ratings=table.num_rows, n_wrong=wrong)
        if any(wrong):
            return facts, None
        ratings = smallest(values)
        return replace(facts, extremes=extremes_of(ratings)), ratings


def _gathered(batches: Batches, most: int) -> Iterator[pa.Table]:
    """Yield batches together, as soon as they have `most` bytes."""
    waiting: list[pa.RecordBatch] = []
    n_bytes = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            n_bytes += batch.nbytes
        if n_bytes >= most:
            yield pa.Table.from_batches(waiting)
            waiting, n_bytes = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _n_missing(column: pa.ChunkedArray) -> int:
    n_empty = pc.sum(pc.equal(column, "")).as_py() if column.type == pa.string() else 0
    return int(column.null_count) + (n_empty or 0)


def extremes_of(ratings: AnyNumbers) -> list[float]:
    """Return at most what minus a rating, the rating itself and its distance from each grid are."""
    off = [0.0] * len(FACTORS)
    if ratings.dtype != np.uint8:
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is on no grid
            scaled = (ratings.astype(np.float64) * factor for factor in FACTORS)
            off = [float(np.abs(one - np.rint(one)).max()) for one in scaled]
    return [-float(ratings.min()), float(ratings.max()), *off]


def smallest(values: Floats) -> AnyNumbers:
    """Return ratings in the smallest type that holds all of them exactly."""
    if bool(((values >= 0) & (values <= np.iinfo(np.uint8).max)).all()):
        integers = values.astype(np.uint8)
        if bool((integers == values).all()):
            return integers
    with np.errstate(over="ignore"):
        halves = values.astype(np.float32)
    return halves if bool((halves == values).all()) else values


def narrow(n: int) -> type[np.uint16 | np.int32]:
    """Return the smallest type that holds 0, ..., n - 1."""
    return np.uint16 if n <= 1 << 16 else np.int32


def coded(column: pa.ChunkedArray) -> tuple[pa.Array, AnyNumbers]:
    """Return the different ids of a column, sorted, and for each row the position of its id among them.

    >>> coded(pa.chunked_array([["bob", "ann"], ["bob"]]))[1]
    array([1, 0, 1], dtype=uint16)
    """
    found = column.combine_chunks().dictionary_encode()
    order = pc.sort_indices(found.dictionary)
    ranks = np.empty(len(order), dtype=narrow(len(order)))
    ranks[order.to_numpy()] = np.arange(len(order))
    return found.dictionary.take(order), ranks[found.indices.to_numpy()]


def stamp_of(*ids: pa.Array) -> int:
    """Return what tells the ids of a chunk from those that the chunk would have, were it cut otherwise."""
    stamp = 0
    for part in (part for one in ids for part in messages.arrays_of_ids(one)):
        stamp = zlib.crc32(part.data, stamp)
    return stamp


def facts_of(chunks: DataFrame, value: str = "rating") -> ChunkFacts:
    """Return the facts of all chunks, put together by a task; `value` is "rating", or "weight" of events, in errors."""
    facts = shuffle.resend(shuffle.of_kind(chunks, ChunkFacts), "0")
    return checked_facts(shuffle.collect(shuffle.shuffle(facts, 1, merge_facts), ChunkFacts), value)


def numbered(chunks: DataFrame, facts: ChunkFacts) -> DataFrame:
    """Return messages of chunks at the partition of their chunk: numbered by the split, then by the chunk."""
    n_chunks = np.bincount(facts.chunks)
    before = ",".join(map(str, (np.cumsum(n_chunks) - n_chunks).tolist()))
    return shuffle.resend(chunks, f"int(split('{before}', ',')[sender]) + partition")


def grid_factor(facts: ChunkFacts) -> int:
    """Return what makes every rating an integer small enough to be exact, 0 where nothing does."""
    below, above, *off = facts.extremes
    grids = (factor for factor, far in zip(FACTORS, off, strict=True) if far < ON_GRID)
    factor = next(grids, 0)
    units = max(below, above) * factor
    return factor if units * units * facts.n_ratings < EXACT else 0


def merge_facts(partition: int, inbox: shuffle.Inbox) -> Iterator[ChunkFacts]:
    """Send the facts of all chunks together."""
    every = inbox.every(ChunkFacts)
    found = [one for one in every if one.n_ratings]

    def joined(name: str, how: Callable[[Iterable[Any]], Any]) -> list[Any]:
        stated = (getattr(one, name) for one in found)
        return [how(each) for each in zip(*(one for one in stated if one), strict=True)]

    yield ChunkFacts(
        partition,
        partition,
        n_ratings=sum(one.n_ratings for one in found),
        n_wrong=joined("n_wrong", sum),
        extremes=joined("extremes", max),
        id_bytes=joined("id_bytes", sum),
        id_types=next((one.id_types for one in found if one.id_types), []),
        chunks=[one.sender for one in found],
        notes=sorted({note for one in every for note in one.notes}),
        error=next((one.error for one in every if one.error), None),
    )


def checked_facts(merged: Sequence[ChunkFacts], value: str = "rating") -> ChunkFacts:
    """Return the facts of all chunks; what is missing or not finite is an error that names no row's content."""
    for note in (note for one in merged for note in one.notes):
        warnings.warn(note, GoodfenceWarning, stacklevel=2)
    for kind, sentence in (one.error for one in merged if one.error):
        raise getattr(errors, kind)(sentence)
    if not any(one.n_ratings for one in merged):
        raise DataError("there must be at least one rating, and there is none")
    (found,) = merged
    for sentence, n in zip(_WRONG, found.n_wrong, strict=True):
        if n:
            raise ValueProblem(sentence.format(n=n).replace("rating", value))
    return found
