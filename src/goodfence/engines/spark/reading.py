"""Parquet files of this machine: tasks that run here too read them by arrow, and no rating passes through Java.

Spark hands the rows of a data frame to Python one by one, which takes longer than everything else that is done with
them here. Whatever is not plain (other machines, nested folders, unusual kinds) is left to Spark's own reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from goodfence.data.columns import ROLES, find_columns
from goodfence.engines.spark.encoding import CHUNKS_IN_MEMORY, SCHEMA, encode
from goodfence.engines.spark.parcels import _DEPOT, without_advice
from goodfence.engines.spark.running import Names, Running

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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


def encoded_files(path: str, running: Running) -> DataFrame | None:
    """Return the ratings of a parquet path as chunks; None where Spark has to read them."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    files = files_of(files_here(path, running.spark), running.names)
    if files is None or files.n_rows == 0:
        return None
    n_cores: int = running.spark.sparkContext.defaultParallelism
    most = running.memory // CHUNKS_IN_MEMORY
    pieces = pieces_of(files, min(most // _BYTES_OF_A_RATING, -(-files.n_rows // n_cores)))
    depot = _DEPOT.get()

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for piece in (row for batch in batches for row in batch.to_pylist()):
            yield from encode(ratings_of(piece, files), piece["place"], most, depot)

    schema = SCHEMA.format(user=_IDS[files.kinds[0]], item=_IDS[files.kinds[1]])
    with without_advice():
        places = running.spark.createDataFrame(pieces)
        return places.repartitionById(len(pieces), F.col("place")).mapInArrow(task, schema)


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
    user, item, rating = names
    layouts, groups = set(), []
    for path in paths:
        try:
            with parquet.ParquetFile(path) as file:
                schema, metadata = file.schema_arrow, file.metadata
        except (pa.ArrowException, OSError):
            return None
        columns = find_columns(schema.names, user=user, item=item, rating=rating)
        found = tuple(map(schema.get_all_field_indices, columns.chosen))
        if any(len(places) != 1 for places in found) or "." in "".join(columns.chosen):
            return None
        kinds = tuple(plain(schema.field(places[0]).type) for places in found)
        layouts.add((tuple(columns.chosen), kinds))
        rows = (metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
        groups.append((path, tuple(rows)))
    if len(layouts) != 1:
        return None
    chosen, kinds = layouts.pop()
    fine = kinds[0] in _IDS and kinds[1] in _IDS and kinds[2] in _RATINGS
    return Files(chosen=chosen, kinds=kinds, groups=tuple(groups)) if fine else None


def plain(kind: pa.DataType) -> pa.DataType:
    """Return the kind of the values, where a column is a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def pieces_of(files: Files, n_rows: int) -> pa.Table:
    """Return which groups of which file are read together: about `n_rows` rows, or the one group that has more."""
    pieces: list[dict[str, Any]] = []
    for path, rows in files.groups:
        first, waiting = 0, 0
        for group, n_own in enumerate(rows):
            waiting += n_own
            if waiting >= n_rows or (waiting and group == len(rows) - 1):
                place = len(pieces)
                pieces.append({"place": place, "path": path, "first": first, "last": group + 1})
                first, waiting = group + 1, 0
    kinds = {"place": pa.int32(), "path": pa.string(), "first": pa.int32(), "last": pa.int32()}
    return pa.Table.from_pylist(pieces, pa.schema(kinds))


def ratings_of(piece: dict[str, Any], files: Files) -> Iterator[pa.RecordBatch]:
    """Yield the columns user, item and rating of a piece."""
    kinds = [pa.string() if pa.types.is_large_string(kind) else kind for kind in files.kinds[:2]]
    groups = list(range(piece["first"], piece["last"]))
    with parquet.ParquetFile(piece["path"]) as file:
        batches = file.iter_batches(
            _TOGETHER, row_groups=groups, columns=list(files.chosen), use_threads=False
        )
        for batch in batches:
            user, item, rating = (batch.column(name) for name in files.chosen)
            columns = [user.cast(kinds[0]), item.cast(kinds[1]), _doubles(rating)]
            yield pa.record_batch(columns, names=list(ROLES))


def _doubles(ratings: pa.Array) -> pa.Array:
    """Return ratings as Spark's cast has them: the nearest, where a whole number is too large to be exact."""
    values = ratings.dictionary_decode() if pa.types.is_dictionary(ratings.type) else ratings
    return values.cast(pa.float64(), safe=False)
