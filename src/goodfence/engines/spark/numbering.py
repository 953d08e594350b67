"""Ids as row and column numbers, on the cluster: in the order in which `Ratings` numbers them.

Integers stand by value and text by code point, which is how Spark and arrow both sort. Numbers, not ids, then
decide ties, so the lists are those of one machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from goodfence.errors import SizeProblem

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MARK_BITS = 33
_MOST = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False, kw_only=True)
class Numbered:
    """Ids and their numbers."""

    frame: DataFrame
    """Columns `id` and `number`. Spark holds them as long as the session: results refer to them."""
    n: int

    def __repr__(self) -> str:
        return f"Numbered({self.n:,} ids)"


def number_ids(chunks: DataFrame, name: str) -> Numbered:
    """Return the ids in the lists of a column with the numbers 0, 1, ... in their order.

    The ids are sorted over the cluster; only how many each partition holds comes to the driver.
    """
    from pyspark import StorageLevel
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    ids = chunks.select(F.explode(name).alias("id")).distinct().orderBy("id")
    # The mark is the number of the partition, then the place in it; what Spark holds does not change.
    marked = ids.withColumn("mark", F.monotonically_increasing_id())
    held = marked.persist(StorageLevel.DISK_ONLY)
    partition = F.shiftright("mark", _MARK_BITS).cast("int")
    counted = held.groupBy(partition.alias("partition")).count().collect()
    counts = np.zeros(max((row[0] for row in counted), default=-1) + 1, dtype=np.int64)
    for row in counted:
        counts[row[0]] = row[1]
    total = int(counts.sum())
    if total > _MOST:
        raise SizeProblem(f"there must be at most {_MOST:,} ids of each kind, and there are more")
    place = F.col("mark").bitwiseAND(F.lit((1 << _MARK_BITS) - 1))
    # Were the ids sorted anew, in other partitions, then some partition would hold more than were counted.
    same = place < looked_up(counts, partition)
    number = looked_up(np.cumsum(counts) - counts, partition) + place
    number = F.when(same, number).otherwise(F.raise_error(F.lit("the ids were forgotten")))
    return Numbered(frame=held.select("id", number.cast("int").alias("number")), n=total)


def placed(chunks: DataFrame, n_chunks: npt.NDArray[np.int64]) -> DataFrame:
    """Return chunks with a `place` each: they are numbered by their partition, then by their number in it."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    before = looked_up(np.cumsum(n_chunks) - n_chunks, F.col("partition"))
    return chunks.withColumn("place", (before + F.col("number")).cast("int")).drop("number")


def numbers_of_codes(chunks: DataFrame, users: Numbered, items: Numbered) -> DataFrame:
    """Return `place`, `stamp`, `code` and `number` for each id of each chunk; items' codes go on after the users'.

    Spark chooses how to join; it sends a table to every machine only where that is small (its own limit).
    """
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    def joined(name: str, first: Column, numbered: Numbered) -> DataFrame:
        each = F.posexplode(name).alias("code", "id")
        ids = chunks.select("place", "stamp", first.alias("first"), each)
        code = (F.col("first") + F.col("code")).alias("code")
        return ids.join(numbered.frame, "id").select("place", "stamp", code, "number")

    return joined("users", F.lit(0), users).union(joined("items", F.size("users"), items))


def looked_up(values: npt.NDArray[np.int64], index: Column) -> Column:
    """Return the value at an index, where the values are few enough to be part of the plan."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    # One text rather than many literals, each of which would be a call to Java.
    listed = F.split(F.lit(",".join(map(str, values.tolist()))), ",").cast("array<bigint>")
    return F.element_at(listed, index + 1)
