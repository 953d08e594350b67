"""All pairs by tiles: the fast way to candidate lists, for the cosine of whole, non-negative ratings.

Rows stand in positions of ascending norm, cut in blocks. A tile is a block against a block; each pair of rows is
in one tile only, and is offered to the lists of both. Never is there an n x n matrix: each row keeps a buffer of
its best candidates so far, in the very memory of the result.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from goodfence.engines.local.layout import Items, Layout, lay_out
from goodfence.engines.local.threads import run, run_pairs, thread_count
from goodfence.engines.progress import Advance
from goodfence.kernels.tiles.buffers import Buffers
from goodfence.kernels.tiles.finish import finish_rows
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
    pairs.repeat_short(guesses)
    return pairs.finish()


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
        """Lay the rows out and make room for the lists."""
        norms = profiles.squared_norms
        rows = np.argsort(norms, kind="stable").astype(np.int32)
        items = Items.of(profiles, int(profiles.rows.data.max(initial=0)))
        block = block_size(len(rows), threads)
        layout = lay_out(profiles, rows, items, block, threads=threads)
        ordered = np.zeros(layout.padded)
        ordered[: len(rows)] = norms[rows]
        similarities = np.empty((len(rows), n))
        more = max(16, min(max(n * 3 // 4, 64), EXTRA_BYTES // (8 * len(rows))))
        buffers = Buffers(
            similarities.view(np.uint64),
            np.empty((len(rows), more), dtype=np.uint64),
            np.zeros(len(rows), dtype=np.int32),
            np.full(layout.padded, SMALLEST, dtype=np.float32),
            _inverses(ordered),
            ordered,
            rows,
        )
        indices = np.empty((len(rows), n), dtype=np.int32)
        return cls(
            profiles, items, layout, buffers, indices, similarities, threads, threading.local()
        )

    def estimate(self) -> None:
        """Set a first threshold for each row, from its similarities to a sample of all norms."""
        n_rows = self.layout.n_positions
        if n_rows <= 4 * SAMPLE:
            return
        chosen = np.arange(SAMPLE) * n_rows // SAMPLE
        sample = lay_out(
            self.profiles, self.layout.rows[chosen], self.items, SAMPLE, threads=self.threads
        )
        inverses = self.buffers.inverses[chosen]
        rank = sample_rank(SAMPLE, self.indices.shape[1], n_rows)
        last_block = len(self.layout.blocks) - 1

        def work(number: int) -> None:
            first, last = self.layout.blocks[number]
            tile = self._tile(self._element(number, last_block), SAMPLE)
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
        tile = self._tile(self._element(a, b), self.layout.width(b))
        self._process(first, last, b, True, tile)

    def repeat_short(self, guesses: npt.NDArray[np.float32]) -> None:
        """Compare again, without a threshold, the rows whose first threshold was set too high."""
        n_rows = self.layout.n_positions
        thresholds = self.buffers.thresholds[:n_rows]
        short = self.buffers.counts[self.layout.rows] < self.indices.shape[1]
        guessed = (thresholds == guesses[:n_rows]) & (thresholds > SMALLEST)

        def work(position: int) -> None:
            self.buffers.counts[self.layout.rows[position]] = 0
            self.buffers.thresholds[position] = SMALLEST
            for block in range(len(self.layout.blocks)):
                element = self._element(position // self.layout.block, block)
                tile = np.empty((1, self.layout.width(block)), dtype=element)
                self._process(position, position + 1, block, False, tile)

        run(work, np.flatnonzero(short & guessed).tolist(), threads=self.threads)

    def finish(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Sort the lists, and return them."""

        def work(piece: tuple[int, int]) -> None:
            finish_rows(*piece, self.buffers, self.indices, self.similarities)

        run(work, self.layout.blocks, threads=self.threads)
        return self.indices, self.similarities

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

    def _element(self, a: int, b: int) -> Any:
        """Return the smallest type that holds every dot product of two blocks; norms ascend."""
        ends = (self.layout.blocks[block][1] - 1 for block in (a, b))
        product = math.prod(int(self.buffers.squared_norms[end]) for end in ends)
        return np.uint16 if product < DOT_LIMIT else np.uint32


def sample_rank(n_sample: int, n: int, n_rows: int) -> int:
    """Return the rank in the sample that about one row in a thousand has fewer than n rows above."""
    expected = n_sample * n / n_rows
    return min(n_sample, math.ceil(expected + 3.1 * math.sqrt(expected) + 1))


def _inverses(squared_norms: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    inverses = np.zeros(len(squared_norms), dtype=np.float32)
    np.divide(1, np.sqrt(squared_norms), out=inverses, where=squared_norms > 0, casting="same_kind")
    return inverses
