"""What a task does with one tile: a block of rows against a block of rows, with the kernels of the local engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.engines.local import tiles
from goodfence.engines.local.rows import RowsAgainstAll
from goodfence.engines.local.threads import ranges
from goodfence.engines.spark.blocks import Block, profiles_of
from goodfence.engines.spark.parcels import Parcel
from goodfence.kernels.tiles.strips import WIDTH
from goodfence.kernels.tiles.thresholds import SMALLEST
from goodfence.selection.sensitivity import Sensitivity, sensitivities
from goodfence.similarity.measure import Similarity
from goodfence.similarity.profiles import Profiles

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]
Find: TypeAlias = Callable[[int, int], tiles.Found]
"""From the first and the last of some rows of a block, counted in the block, to what they have found."""

_SLICE = 1 << 19
"""About so many candidates are sent together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How rows are compared: the same for every tile, and small."""

    n: int
    """The length of the lists."""
    n_rows: int
    """How many rows there are in all."""
    similarity: Similarity
    factor: int
    """What makes every rating a whole number, 0 where nothing does."""
    by_kernel: bool
    """Whether the kernels of the tiles can be used: the cosine of whole, non-negative ratings."""
    bounds: Sensitivity | None = None
    """Which sensitivity of each row is wanted beside its list, if any."""

    def tile(self, place: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        """Compare the one or two blocks that came to `place`; send each one what it found."""
        blocks = [Block.of(parcel.arrays) for parcel in parcels]
        profiles = profiles_of(blocks, self.factor, spare=True)
        if self.by_kernel and tiles.fits(profiles, self.similarity):
            found = _by_kernel(blocks, profiles, self.n)
        else:
            found = [self._by_rows(blocks[0], blocks[-1])]
            found += [self._by_rows(blocks[1], blocks[0])] if len(blocks) > 1 else []
        bounds = self._bounds(blocks, profiles)
        for number, (parcel, block, find) in enumerate(zip(parcels, blocks, found, strict=True)):
            for first, last in ranges(block.n_rows, rows_of_a_slice(self.n)):
                one = find(first, last)._asdict()
                one["first"] = np.array([block.first + first])
                if bounds is not None:
                    one["bounds"] = bounds[number][first:last]
                if len(blocks) == 1:  # once is enough
                    one["thresholds"] = block.thresholds[first:last]
                yield Parcel(parcel.part, place, one)

    def _by_rows(self, block: Block, other: Block) -> Find:
        """Return the nearest rows in `other` for every row of `block`, one row at a time."""
        own, candidates = (profiles_of([one], self.factor) for one in (block, other))
        same = block.first == other.first
        n = min(self.n, other.n_rows - same)
        engine = RowsAgainstAll(candidates, self.similarity)
        rows = np.arange(block.n_rows)
        indices, similarities = engine.nearest(own, rows, n, themselves=same, threads=1)
        indices += np.int32(other.first)

        def find(first: int, last: int) -> tiles.Found:
            lengths = np.full(last - first, n, dtype=np.int32)
            return tiles.Found(
                lengths, indices[first:last].ravel(), similarities[first:last].ravel()
            )

        return find

    def _bounds(self, blocks: list[Block], profiles: Profiles) -> list[Floats] | None:
        """Return RS of every row, among the rows of this tile: the largest of all tiles is RS among all rows."""
        if self.bounds is None:
            return None
        values = sensitivities(profiles.rows, self.bounds)
        ends = np.cumsum([block.n_rows for block in blocks])
        return np.split(values, ends)[: len(blocks)]


def _by_kernel(blocks: list[Block], profiles: Profiles, n: int) -> list[Find]:
    """Return what each block found in the other, or the one block in itself; similarities above 0 only."""
    starts = np.cumsum([0, *(block.n_rows for block in blocks)])
    size = block_size(max(block.n_rows for block in blocks))
    order, owners = positions(profiles, starts, size)
    length = min(n, profiles.n_rows - 2) or 1
    pairs = tiles.AllPairs.over(profiles, order, length, size, threads=1)
    guesses = np.full(profiles.n_rows, SMALLEST)
    for block, start in zip(blocks, starts, strict=False):
        if len(block.thresholds):
            guesses[start : start + block.n_rows] = block.thresholds
    pairs.buffers.thresholds[: len(order)] = guesses[order]
    for a, b in combinations_with_replacement(range(len(owners)), 2):
        if len(blocks) == 1 or owners[a] != owners[b]:
            pairs.compare(a, b)
    pairs.shorten()
    numbers = np.concatenate([block.numbers for block in blocks]).astype(np.int32)

    def from_row(start: int) -> Find:
        return lambda first, last: pairs.found(start + first, start + last, numbers)

    return [from_row(start) for start in starts[:-1].tolist()]


def rows_of_a_slice(n: int) -> int:
    """Return of how many rows the lists of n are sent, and later merged, together.

    A part of a block: so that memory for all the candidates of a block is taken once, and not at every step.
    """
    return max(1, _SLICE // n)


def block_size(n_rows: int) -> int:
    """Return how many rows the kernels take at a time, of a block of so many: about equal parts of it."""
    n_parts = -(-n_rows // tiles.BLOCK)
    return -(-n_rows // (n_parts * WIDTH)) * WIDTH


def positions(
    profiles: Profiles, starts: npt.NDArray[np.int64], size: int
) -> tuple[Rows, list[int]]:
    """Return the rows in parts of one block each, by ascending norm, and the block of each part.

    A pair costs what the ratings of the row that stands first cost, so the parts of all blocks stand by norm. The
    spare row fills a part up before the next begins.
    """
    norms, spare = profiles.squared_norms, profiles.n_rows - 1
    parts: list[tuple[int, npt.NDArray[np.int64]]] = []
    for owner, (start, end) in enumerate(pairwise(starts.tolist())):
        rows = start + np.argsort(norms[start:end], kind="stable")
        parts += [(owner, rows[slice(*piece)]) for piece in ranges(end - start, size)]
    parts.sort(key=lambda part: norms[part[1][-1]])
    order = np.full(len(parts) * size, spare, dtype=np.int32)
    for number, (_, rows) in enumerate(parts):
        order[number * size : number * size + len(rows)] = rows
    return order[: (len(parts) - 1) * size + len(parts[-1][1])], [owner for owner, _ in parts]
