"""All pairs by tiles: the fast way to candidate lists, for the cosine of whole, non-negative ratings.

Rows stand in positions of ascending norm, cut in blocks. A tile is a block against a block; each pair of rows is
in one tile only, and is offered to the lists of both. Never is there an n x n matrix: each row keeps a buffer of
its best candidates so far, in the very memory of the result.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from goodfence.engines.local.layout import Items, Layout, lay_out
from goodfence.engines.local.threads import run, run_pairs, thread_count
from goodfence.engines.progress import Advance
from goodfence.kernels.tiles.buffers import Buffers, find_unsure
from goodfence.kernels.tiles.finish import drop_hopeless, finish_rows, write_found
from goodfence.kernels.tiles.strips import WIDTH
from goodfence.kernels.tiles.thresholds import SMALLEST, sample_thresholds
from goodfence.kernels.tiles.tile import process_tile, work_space
from goodfence.similarity.measure import Similarity
from goodfence.similarity.profiles import Profiles

BLOCK = 4096
"""The most rows of a block: what a tile reads of its columns stays in the cache."""
DEPTH = 1024
"""Rows of a tile whose popular items are added in one go."""
SAMPLE = 2048
"""Rows that give every row its first threshold."""
EXTRA_BYTES = 384 << 20
"""The most memory for buffers beyond the result."""
DOT_LIMIT = 1 << 32
"""Dot products are kept in 32 bits."""


def fits(profiles: Profiles, similarity: Similarity) -> bool:
    """Return whether the tiles can compare these rows: cosine, whole non-negative ratings, dots in 32 bits."""
    if similarity.name != "cosine" or not profiles.are_whole or profiles.n_rows < 2:
        return False
    lowest = profiles.rows.data.min(initial=0.0)
    return bool(lowest >= 0 and profiles.squared_norms.max(initial=0.0) < DOT_LIMIT)


def n_tiles(n_rows: int, threads: int | None) -> int:
    """Return how many tiles there are, for a progress bar."""
    n_blocks = -(-n_rows // block_size(n_rows, thread_count(threads)))
    return n_blocks * (n_blocks + 1) // 2


def block_size(n_rows: int, threads: int) -> int:
    """Return a size that gives the threads enough blocks to share, and none larger than BLOCK."""
    wanted = -(-n_rows // (8 * threads))
    return min(BLOCK, max(WIDTH, -(-wanted // WIDTH) * WIDTH))


def nearest_by_tiles(
    profiles: Profiles, n: int, *, threads: int | None = None, advance: Advance | None = None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Return for every row its n nearest other rows and their similarities; `fits` must hold."""
    pairs = AllPairs.of(profiles, n, thread_count(threads))
    pairs.estimate()
    guesses = pairs.buffers.thresholds.copy()
    run_pairs(pairs.compare, len(pairs.layout.blocks), threads=threads, advance=advance)
    pairs.repeat_unsure(guesses)
    return pairs.finish()


class Found(NamedTuple):
    """The candidates of some rows, those of one row after those of another."""

    lengths: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int32]
    similarities: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AllPairs:
    """One run over all pairs of rows."""

    profiles: Profiles
    items: Items
    layout: Layout
    buffers: Buffers
    indices: npt.NDArray[np.int32]
    similarities: npt.NDArray[np.float64]
    threads: int
    space: threading.local

    @classmethod
    def of(cls, profiles: Profiles, n: int, threads: int) -> AllPairs:
        """Lay every row out, by ascending norm, and make room for the lists."""
        rows = np.argsort(profiles.squared_norms, kind="stable").astype(np.int32)
        return cls.over(profiles, rows, n, block_size(len(rows), threads), threads)

    @classmethod
    def over(
        cls,
        profiles: Profiles,
        rows: npt.NDArray[np.int32],
        n: int,
        block: int,
        threads: int,
    ) -> AllPairs:
        """Lay `rows` of the profiles out in that order, and make room for the lists of all rows."""
        norms = profiles.squared_norms
        items = Items.of(profiles, int(profiles.rows.data.max(initial=0)))
        layout = lay_out(profiles, rows, items, block, threads=threads)
        ordered = np.zeros(layout.padded)
        ordered[: len(rows)] = norms[rows]
        n_rows = profiles.n_rows
        similarities = np.empty((n_rows, n))
        more = max(16, min(max(n * 3 // 4, 64), EXTRA_BYTES // (8 * n_rows)))
        buffers = Buffers(
            similarities.view(np.uint64),
            np.empty((n_rows, more), dtype=np.uint64),
            np.zeros(n_rows, dtype=np.int32),
            np.full(layout.padded, SMALLEST, dtype=np.float32),
            _inverses(ordered),
            ordered,
            rows,
        )
        indices = np.empty((n_rows, n), dtype=np.int32)
        return cls(
            profiles, items, layout, buffers, indices, similarities, threads, threading.local()
        )

    def estimate(self) -> None:
        """Set a first threshold for each row, from its similarities to a sample of all norms."""
        n_rows = self.layout.n_positions
        if n_rows <= 4 * SAMPLE:
            return
        chosen = np.arange(SAMPLE) * n_rows // SAMPLE
        rank = sample_rank(SAMPLE, self.indices.shape[1], n_rows)
        self.estimate_from(self.layout.rows[chosen], chosen, rank)

    def estimate_from(
        self, rows: npt.NDArray[np.int32], chosen: npt.NDArray[np.int64], rank: int
    ) -> None:
        """Set the first thresholds from a sample: SAMPLE rows of the profiles, and their positions or -1."""
        sample = lay_out(self.profiles, rows, self.items, SAMPLE, threads=self.threads)
        norms = self.profiles.squared_norms[rows]
        inverses = _inverses(norms)

        def work(number: int) -> None:
            first, last = self.layout.blocks[number]
            tile = self._tile(_element(self._largest(number), norms.max()), SAMPLE)
            sample_thresholds(
                first,
                last,
                rank,
                tile,
                self.layout.row_side,
                sample.columns(0),
                self.buffers.inverses,
                inverses,
                chosen,
                self.buffers.thresholds,
            )

        run(work, range(len(self.layout.blocks)), threads=self.threads)

    def compare(self, a: int, b: int) -> None:
        """Compare the rows of block a with those of block b, and offer each pair to both lists."""
        first, last = self.layout.blocks[a]
        element = _element(self._largest(a), self._largest(b))
        self._process(first, last, b, True, self._tile(element, self.layout.width(b)))

    def repeat_unsure(self, guesses: npt.NDArray[np.float32]) -> None:
        """Compare again, without a threshold, the rows whose first threshold may have been too high."""
        guessed = guesses[: self.layout.n_positions]
        unsure = np.zeros(len(guessed), dtype=np.bool_)
        find_unsure(guessed, self.buffers, unsure)
        unsure &= guessed > SMALLEST

        def work(position: int) -> None:
            self.buffers.counts[self.layout.rows[position]] = 0
            self.buffers.thresholds[position] = SMALLEST
            for block in range(len(self.layout.blocks)):
                own = self.buffers.squared_norms[position]
                element = _element(own, self._largest(block))
                tile = np.empty((1, self.layout.width(block)), dtype=element)
                self._process(position, position + 1, block, False, tile)

        run(work, np.flatnonzero(unsure).tolist(), threads=self.threads)

    def finish(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Sort the lists, and return them."""

        def work(piece: tuple[int, int]) -> None:
            finish_rows(*piece, self.buffers, self.indices, self.similarities)

        run(work, self.layout.blocks, threads=self.threads)
        return self.indices, self.similarities

    def shorten(self) -> None:
        """Leave to the rows little more than the n best that they have found so far."""
        blocks = self.layout.blocks
        run(lambda piece: drop_hopeless(*piece, self.buffers), blocks, threads=self.threads)

    def found(self, first: int, last: int, numbers: npt.NDArray[np.int32]) -> Found:
        """Return what the rows first..last have found so far, in no order, by `numbers`."""
        lengths = self.buffers.counts[first:last].copy()
        starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        rows, similarities = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1])
        own = self._positions[first:last]
        write_found(first, own, self.buffers, numbers, starts, rows, similarities)
        return Found(lengths, rows, similarities)

    @cached_property
    def _positions(self) -> npt.NDArray[np.int64]:
        """Where each row stands."""
        positions = np.empty(self.profiles.n_rows, dtype=np.int64)
        positions[self.layout.rows] = np.arange(self.layout.n_positions)
        return positions

    def _process(self, first: int, last: int, block: int, symmetric: bool, tile: Any) -> None:
        capacity = self.buffers.kept.shape[1] + self.buffers.extra.shape[1]
        width = tile.shape[1]
        spaces = self.space.__dict__.setdefault("spaces", {})
        if width not in spaces:
            spaces[width] = work_space(width, capacity)
        process_tile(
            first,
            last,
            block * self.layout.block,
            symmetric,
            tile,
            self.layout.row_side,
            self.layout.columns(block),
            self.buffers,
            spaces[width],
        )

    def _tile(self, element: Any, width: int) -> Any:
        """Return this thread's space for a tile."""
        tiles = self.space.__dict__.setdefault("tiles", {})
        depth = min(DEPTH, self.layout.block)
        if (element, width) not in tiles:
            tiles[element, width] = np.empty((depth, width), dtype=element)
        return tiles[element, width]

    def _largest(self, block: int) -> float:
        """Return the largest squared norm of a block."""
        return float(self.buffers.squared_norms[slice(*self.layout.blocks[block])].max())


def _element(squared_norm: float, other_squared_norm: float) -> Any:
    """Return the smallest type that holds every dot product of rows of at most these norms."""
    product = int(squared_norm) * int(other_squared_norm)
    return np.uint16 if product < DOT_LIMIT else np.uint32


def sample_rank(n_sample: int, n: int, n_rows: int, *, deviations: float = 3.1) -> int:
    """Return the rank in the sample that few rows have fewer than n rows above: one in a thousand by default."""
    expected = n_sample * n / n_rows
    return min(n_sample, math.ceil(expected + deviations * math.sqrt(expected) + 1))


def _inverses(squared_norms: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    inverses = np.zeros(len(squared_norms), dtype=np.float32)
    np.divide(1, np.sqrt(squared_norms), out=inverses, where=squared_norms > 0, casting="same_kind")
    return inverses
