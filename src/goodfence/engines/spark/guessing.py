"""A first threshold for every row, from a sample of all rows: so a tile sends no more than may be listed.

Without it every tile would send n candidates for each of its rows, and most of what moves between the tasks would
be thrown away. The sample has the same number of rows whatever the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.engines.local import tiles
from goodfence.engines.spark.blocks import Block, profiles_of
from goodfence.engines.spark.comparing import block_size
from goodfence.engines.spark.parcels import Parcel
from goodfence.similarity.measure import Similarity

_DEVIATIONS = 5.5
"""So far below what is expected a threshold stands that by the law of the sample fewer than one row in five thousand
has to be compared again: that would take three more exchanges, and what is sent in vain takes less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guessing:
    """Thresholds from every so-manieth row."""

    n: int
    """The length of the lists."""
    n_rows: int
    """How many rows there are in all."""
    n_blocks: int
    factor: int

    @property
    def pays(self) -> bool:
        """Whether there are enough rows for a sample to be small beside them."""
        return self.n_rows > 4 * tiles.SAMPLE

    @property
    def sample(self) -> npt.NDArray[np.int64]:
        """The numbers of the rows of the sample."""
        return np.arange(tiles.SAMPLE) * self.n_rows // tiles.SAMPLE

    def take(self, _place: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        """Send the rows of the sample that are in this block to one place."""
        for parcel in parcels:
            block = Block.of(parcel.arrays)
            chosen = self.sample
            chosen = chosen[(chosen >= block.first) & (chosen < block.first + block.n_rows)]
            if len(chosen):
                yield Parcel(0, parcel.part, block.rows(chosen).arrays())

    def taken_from(self, matrix: sparse.csr_array) -> Iterator[Parcel]:
        """Yield the sample of rows that are all on this machine, for every block."""
        return self.spread(0, [Parcel(0, 0, Block.of_rows(-1, matrix[self.sample]).arrays())])

    def spread(self, _place: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        """Send the whole sample to every block."""
        together = profiles_of([Block.of(parcel.arrays) for parcel in parcels], 0)
        sample = Block.of_rows(-1, together.rows).arrays()
        for number in range(self.n_blocks):
            yield Parcel(number, -1, sample)

    def guess(self, place: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        """Send on the block with a threshold for each of its rows."""
        sample, block = (Block.of(parcel.arrays) for parcel in parcels)
        profiles = profiles_of([block, sample], self.factor)
        if not tiles.fits(profiles, Similarity()):
            yield Parcel(place, place, block.arrays())
            return
        order = np.argsort(profiles.squared_norms[: block.n_rows], kind="stable").astype(np.int32)
        pairs = tiles.AllPairs.over(profiles, order, 1, block_size(block.n_rows), threads=1)
        rows = np.arange(block.n_rows, profiles.n_rows, dtype=np.int32)
        pairs.estimate_from(rows, self._positions(block, order), self._rank)
        thresholds = np.empty(block.n_rows, dtype=np.float32)
        thresholds[order] = pairs.buffers.thresholds[: block.n_rows]
        yield Parcel(place, place, replace(block, thresholds=thresholds).arrays())

    def _positions(self, block: Block, order: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Return where the rows of the sample stand in this block, -1 for those elsewhere."""
        standing = np.empty(block.n_rows, dtype=np.int64)
        standing[order] = np.arange(block.n_rows)
        own = self.sample - block.first
        inside = (own >= 0) & (own < block.n_rows)
        return np.where(inside, standing[np.where(inside, own, 0)], -1)

    @property
    def _rank(self) -> int:
        return tiles.sample_rank(tiles.SAMPLE, self.n, self.n_rows, deviations=_DEVIATIONS)
