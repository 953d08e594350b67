"""Lists that are not sure: the rows whose guessed threshold was too high are compared again, without one.

About one row in a thousand. Everything else stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from goodfence.engines.local.rows import RowsAgainstAll
from goodfence.engines.spark.blocks import Block, profiles_of
from goodfence.engines.spark.lists import merged
from goodfence.engines.spark.parcels import Arrays, Parcel
from goodfence.similarity.measure import Similarity

TOGETHER = 1024
"""About how many rows of different blocks are compared in one task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Compares single rows with all blocks."""

    n: int
    """The length of the lists."""
    factor: int
    n_blocks: int
    groups: tuple[int, ...]
    """(blocks,): which rows are compared together."""

    @classmethod
    def of(cls, unsure: list[int], *, n: int, factor: int) -> Again:
        """Plan for so many rows of each block."""
        before = np.cumsum([0, *unsure[:-1]])
        groups = tuple((before // TOGETHER).tolist())
        return cls(n=n, factor=factor, n_blocks=len(unsure), groups=groups)

    @property
    def n_groups(self) -> int:
        """How many groups of rows there are."""
        return max(self.groups) + 1

    def ask(self, place: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        """Send the rows of a block whose lists are not sure, to every block."""
        lists = next(one.arrays for one in parcels if "indices" in one.arrays)
        block = Block.of(next(one.arrays for one in parcels if "counts" in one.arrays))
        askers = lists["unsure"] + block.first
        if len(askers):
            arrays = {**block.rows(askers).arrays(), "askers": askers}
            for other in range(self.n_blocks):
                yield Parcel(self.groups[place] * self.n_blocks + other, place, arrays)

    def answer(self, place: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        """Compare all askers that came here with the one block that came here."""
        askers = [one for one in parcels if "askers" in one.arrays]
        block = Block.of(next(one.arrays for one in parcels if "askers" not in one.arrays))
        engine = RowsAgainstAll(profiles_of([block], self.factor), Similarity())
        for parcel in askers:
            own = profiles_of([Block.of(parcel.arrays)], self.factor)
            numbers = parcel.arrays["askers"]
            n = min(self.n + 1, block.n_rows)  # one more: a row may find itself
            every = np.arange(len(numbers))
            indices, similarities = engine.nearest(own, every, n, themselves=False, threads=1)
            rows = indices + np.int32(block.first)
            others = rows != numbers[:, np.newaxis]
            found = {
                "askers": numbers,
                "lengths": others.sum(axis=1, dtype=np.int32),
                "rows": rows[others],
                "similarities": similarities[others],
            }
            yield Parcel(parcel.part, place, found)

    def settle(self, place: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        """Send the lists of a block with those that were made again in their places."""
        lists: Arrays = dict(next(one.arrays for one in parcels if "indices" in one.arrays))
        found = [one.arrays for one in parcels if "askers" in one.arrays]
        if found:
            own = found[0]["askers"] - lists["first"][0]
            indices, similarities, _ = merged(found, len(own), self.n)
            lists["indices"] = lists["indices"].copy()
            lists["similarities"] = lists["similarities"].copy()
            lists["indices"][own], lists["similarities"][own] = indices, similarities
        yield Parcel(place, 0, lists)
