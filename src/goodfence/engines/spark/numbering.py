"""Ids as row and column numbers, on the cluster: in the order in which `Ratings` numbers them.

Integers stand by value and text by code point. Ids are shared out in ranges, of users and of items; a task for each
range puts the ids of all chunks in order, and says to each chunk where in the range its own ones stand. Numbers, not
ids, then decide ties, so the lists are those of one machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from goodfence.engines.spark import parcels
from goodfence.engines.spark.encoding import Chunks, Facts, coded
from goodfence.engines.spark.ids import as_arrays, as_ids, cut_at
from goodfence.engines.spark.parcels import Arrays, Parcel
from goodfence.errors import SizeProblem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Borders: TypeAlias = tuple[int | str, ...]
KINDS = ("users", "items")
_MOST = np.iinfo(np.int32).max
_TIMES = 8
"""So many times the ids of a range are in the memory of a task, about, while they are put in order."""
_MARKS = 32
"""So many ids for each range say where its borders are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """How ids are shared out: the ranges of the users, then those of the items."""

    borders: tuple[Borders, Borders]
    """Of users and of items: the lowest id of each range but the first."""

    def __repr__(self) -> str:
        return f"Ranges({self.n_users} of users, {self.n} in all)"

    @property
    def n_users(self) -> int:
        """The number of ranges of users."""
        return len(self.borders[0]) + 1

    @property
    def n(self) -> int:
        """The number of ranges."""
        return self.n_users + len(self.borders[1]) + 1

    def share(self, place: int, arrived: list[Parcel]) -> Iterator[Parcel]:
        """Send the ids of one chunk to their ranges."""
        (chunk,) = arrived
        for first, name, borders in zip((0, self.n_users), KINDS, self.borders, strict=True):
            for number, ids in enumerate(cut_at(as_ids(name, chunk.arrays), borders)):
                if len(ids):
                    sent = {"stamp": chunk.arrays["stamp"], **as_arrays("ids", ids)}
                    yield Parcel(first + number, place, sent)

    def number(self, place: int, arrived: list[Parcel]) -> Iterator[Parcel]:
        """Send the ids of one range, in order, as part `-n`; and to each chunk where its own stand among them."""
        parts = [as_ids("ids", parcel.arrays) for parcel in arrived]
        found = coded(pa.chunked_array(parts))
        yield Parcel(place, -len(found.ids), as_arrays("ids", found.ids))
        ends = np.cumsum([0, *map(len, parts)])
        for parcel, own in zip(arrived, pairwise(ends.tolist()), strict=True):
            sent = {"stamp": parcel.arrays["stamp"], "standing": found.codes[slice(*own)]}
            yield Parcel(parcel.part, place, sent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marking:
    """How the borders of the ranges are found."""

    n_ranges: tuple[int, int]
    """Of users and of items."""
    id_bytes: tuple[int, int]
    """What the ids of all chunks take."""

    def mark(self, place: int, arrived: list[Parcel]) -> Iterator[Parcel]:
        """Send ids of one chunk, the same number apart from each other, and more of a larger chunk."""
        sent: Arrays = {}
        for name, n_ranges, n_bytes in zip(KINDS, self.n_ranges, self.id_bytes, strict=True):
            ids = as_ids(name, arrived[0].arrays)
            n = min(len(ids), -(-_MARKS * n_ranges * ids.nbytes // n_bytes))
            sent |= as_arrays(name, ids.take((2 * np.arange(n) + 1) * len(ids) // (2 * n)))
        yield Parcel(0, place, sent)

    def borders(self, marks: Sequence[Parcel]) -> tuple[Borders, Borders]:
        """Return the borders that share out what the chunks sent in equal parts."""
        users, items = (
            self._borders([as_ids(name, parcel.arrays) for parcel in marks], n_ranges)
            for name, n_ranges in zip(KINDS, self.n_ranges, strict=True)
        )
        return users, items

    def _borders(self, marks: list[pa.Array], n_ranges: int) -> Borders:
        every = sorted(one for part in marks for one in part.to_pylist())
        chosen = {every[len(every) * number // n_ranges] for number in range(1, n_ranges)}
        return tuple(sorted(chosen))


@dataclass(frozen=True, eq=False, kw_only=True)
class Numbered:
    """The ids of one kind and their numbers."""

    ranges: DataFrame
    """One parcel for each range, its ids in order."""
    firsts: tuple[int, ...]
    """(ranges of both kinds,): the number of the first id of each."""
    n: int
    """How many ids there are."""
    kind: str
    """What Spark calls the kind of the ids."""

    def __repr__(self) -> str:
        return f"Numbered({self.n:,} ids)"

    @property
    def frame(self) -> DataFrame:
        """Columns `id` and `number`."""
        firsts = self.firsts

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for parcel in (parcel for batch in batches for parcel in parcels.opened(batch)):
                ids = as_ids("ids", parcel.arrays)
                numbers = pa.array(firsts[parcel.place] + np.arange(len(ids)), pa.int32())
                yield pa.record_batch([ids, numbers], names=["id", "number"])

        with parcels.without_advice():
            return self.ranges.mapInArrow(task, f"id {self.kind}, number int")

    def sent_to_blocks(self, block_rows: int) -> DataFrame:
        """Return ids on their way to the blocks of their rows."""
        return parcels.each(self.ranges, Sending(firsts=self.firsts, block_rows=block_rows).send)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """How ids come to the blocks of their rows."""

    firsts: tuple[int, ...]
    """The number of the first id of each range."""
    block_rows: int

    def send(self, place: int, arrived: list[Parcel]) -> Iterator[Parcel]:
        """Send the ids of one range."""
        ids = as_ids("ids", arrived[0].arrays)
        first, size = self.firsts[place], self.block_rows
        last = first + len(ids)
        for block in range(first // size, -(-last // size)):
            begin, end = max(first, block * size), min(last, (block + 1) * size)
            yield Parcel(block, place, as_arrays("ids", ids[begin - first : end - first]))


@dataclass(frozen=True, eq=False, kw_only=True)
class Numbers:
    """The numbers of all ids."""

    users: Numbered
    items: Numbered
    standing: DataFrame
    """Parcels for the chunks: where the ids of each stand in each range."""
    firsts: tuple[int, ...]
    """(ranges of both kinds,): the number of the first id of each."""
    n_user_ranges: int

    def __repr__(self) -> str:
        return f"Numbers({self.users.n:,} users, {self.items.n:,} items)"


def number_ids(chunks: Chunks, facts: Facts, memory: int, held: list[DataFrame]) -> Numbers:
    """Return the numbers of all ids of the chunks; what Spark holds of that is added to `held`.

    Only how many ids each range has comes to the driver, and the borders of the ranges where there are several.
    """
    from pyspark import StorageLevel

    ids = chunks.ids(facts.n_chunks)
    ranges = Ranges(borders=_borders(ids, facts, memory))
    shared = parcels.exchange(parcels.each(ids, ranges.share), ranges.n, ranges.number)
    numbered = shared.persist(StorageLevel.DISK_ONLY)
    held.append(numbered)
    in_order = numbered.where("part < 0")
    counts = np.zeros(ranges.n, dtype=np.int64)
    for place, part in in_order.select("place", "part").collect():
        counts[place] = -part
    by_kind = np.split(counts, [ranges.n_users])
    n_users, n_items = (_checked(int(one.sum())) for one in by_kind)
    firsts = tuple(np.concatenate([np.cumsum(one) - one for one in by_kind]).tolist())
    users, items = (in_order.where(f"place {which} {ranges.n_users}") for which in ("<", ">="))
    return Numbers(
        users=Numbered(ranges=users, firsts=firsts, n=n_users, kind=chunks.kinds[0]),
        items=Numbered(ranges=items, firsts=firsts, n=n_items, kind=chunks.kinds[1]),
        standing=numbered.where("part >= 0"),
        firsts=firsts,
        n_user_ranges=ranges.n_users,
    )


def _borders(ids: DataFrame, facts: Facts, memory: int) -> tuple[Borders, Borders]:
    most = min(memory, _MOST)  # of text arrow joins no more in one array
    users, items = (-(-_TIMES * n_bytes // most) for n_bytes in facts.id_bytes)
    if users == items == 1:
        return (), ()
    marking = Marking(n_ranges=(users, items), id_bytes=facts.id_bytes)
    return marking.borders(parcels.collected(parcels.each(ids, marking.mark)))


def _checked(n: int) -> int:
    if n > _MOST:
        raise SizeProblem(f"there must be at most {_MOST:,} ids of each kind, and there are more")
    return n
