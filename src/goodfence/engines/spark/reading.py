"""Parquet files of this machine: tasks that run here too read them by arrow, and no rating passes through Java.

Spark hands the rows of a data frame to Python one by one, which takes longer than everything else that is done with
them here. Whatever is not plain (other machines, nested folders, unusual kinds) is left to Spark's own reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from goodfence.data.columns import ROLES, find_columns
from goodfence.engines.spark.encoding import SCHEMA, Chunks, bytes_of_a_chunk, encode
from goodfence.engines.spark.parcels import DEPOT, without_advice
from goodfence.engines.spark.running import Names, Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_IDS = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.string(): "string",
    pa.large_string(): "string",
}
"""Kinds of ids, and what Spark calls them."""
_RATINGS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64())
_BYTES_OF_A_RATING = 24
_TOGETHER = 1 << 16
"""So many rows are read at a time."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Files:
    """Plain files with the same columns."""

    chosen: tuple[str, ...]
    """What user, item and rating are called."""
    kinds: tuple[pa.DataType, ...]
    """What they hold."""
    groups: tuple[tuple[str, tuple[int, ...]], ...]
    """The path of each file, and how many rows each of its groups has."""

    @property
    def n_rows(self) -> int:
        """The number of rows of all files."""
        return sum(sum(rows) for _, rows in self.groups)


class Piece(NamedTuple):
    """A group of rows of a file, and where it is read."""

    place: int
    path: str
    group: int


def encoded_files(path: str, running: Running) -> Chunks | None:
    """Return the ratings of a parquet path as chunks; None where Spark has to read them."""
    files = files_of(files_here(path, running.spark), running.names)
    if files is None or files.n_rows == 0:
        return None
    n_cores: int = running.spark.sparkContext.defaultParallelism
    most = bytes_of_a_chunk(running.memory)
    most_rows = min(running.memory // _BYTES_OF_A_RATING, -(-files.n_rows // n_cores))
    pieces = pieces_of(files, most_rows)
    columns = replace(files, groups=())  # a task knows its own pieces
    depot = DEPOT.get()

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for place in (place for batch in batches for place in batch.column("id").to_pylist()):
            own = (piece for piece in pieces if piece.place == place)
            ratings = (batch for piece in own for batch in ratings_of(piece, columns))
            yield from encode(ratings, place, most, depot)

    with without_advice():
        n_places = 1 + pieces[-1].place
        chunks = running.spark.range(0, n_places, 1, n_places).mapInArrow(task, SCHEMA)
    user, item, _ = files.kinds
    return Chunks(frame=chunks, kinds=(_IDS[user], _IDS[item]))


def files_here(path: str, session: SparkSession) -> list[str]:
    """Return the files that Spark would read, where all tasks can read them as this process can; otherwise none."""
    spark: Any = session
    usual = str(spark._jsc.hadoopConfiguration().get("fs.defaultFS"))
    here = str(spark.sparkContext.master).startswith("local") and usual.startswith("file:")
    place = Path(path).absolute()
    if not here or "://" in path or not place.exists():
        return []
    if place.is_file():
        return [str(place)]
    found = sorted(one for one in place.iterdir() if not one.name.startswith(("_", ".")))
    return [str(one) for one in found] if all(one.is_file() for one in found) else []


def files_of(paths: Sequence[str], names: Names) -> Files | None:
    """Look at the ends of parquet files; None where they are not plain, or not alike."""
    try:
        found = [file_of(path, names) for path in paths]
    except (pa.ArrowException, OSError):
        return None  # Spark says what is wrong with it
    if len({(file.chosen, file.kinds) for file in found}) != 1:
        return None
    user, item, rating = found[0].kinds
    if user not in _IDS or item not in _IDS or rating not in _RATINGS:
        return None
    return replace(found[0], groups=tuple(group for file in found for group in file.groups))


def file_of(path: str, names: Names) -> Files:
    """Look at the end of one parquet file; columns that are not plain hold nothing that is known here."""
    with parquet.ParquetFile(path) as file:
        schema, metadata = file.schema_arrow, file.metadata
    user, item, rating = names
    chosen = find_columns(schema.names, user=user, item=item, rating=rating).chosen
    alone = all(schema.names.count(name) == 1 and "." not in name for name in chosen)
    kinds = (plain(schema.field(name).type) if alone else pa.null() for name in chosen)
    rows = (metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    return Files(chosen=tuple(chosen), kinds=tuple(kinds), groups=((path, tuple(rows)),))


def plain(kind: pa.DataType) -> pa.DataType:
    """Return the kind of the values, where a column is a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def pieces_of(files: Files, n_rows: int) -> list[Piece]:
    """Return which group of which file is read at which place: about `n_rows` rows at each, or one larger group."""
    pieces: list[Piece] = []
    place = n_waiting = 0
    for path, rows in files.groups:
        for group, n_own in enumerate(rows):
            if n_waiting >= n_rows:
                place, n_waiting = place + 1, 0
            pieces.append(Piece(place, path, group))
            n_waiting += n_own
    return pieces


def ratings_of(piece: Piece, files: Files) -> Iterator[pa.RecordBatch]:
    """Yield the columns user, item and rating of a piece."""
    kinds = [pa.string() if pa.types.is_large_string(kind) else kind for kind in files.kinds[:2]]
    names = list(files.chosen)
    with parquet.ParquetFile(piece.path) as file:
        for batch in file.iter_batches(
            _TOGETHER, row_groups=[piece.group], columns=names, use_threads=False
        ):
            user, item, rating = (batch.column(name) for name in names)
            columns = [user.cast(kinds[0]), item.cast(kinds[1]), _doubles(rating)]
            yield pa.record_batch(columns, names=list(ROLES))


def _doubles(ratings: pa.Array) -> pa.Array:
    """Return ratings as Spark's cast has them: the nearest, where a whole number is too large to be exact."""
    values = ratings.dictionary_decode() if pa.types.is_dictionary(ratings.type) else ratings
    return values.cast(pa.float64(), safe=False)
