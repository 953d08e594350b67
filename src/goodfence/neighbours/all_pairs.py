"""All pairs by tiles: the fast engine of candidate lists, for the cosine of non-negative integer ratings.

Rows are in positions of ascending norm, cut in blocks. A tile is a block against a block; each pair of rows is in one
tile only, and is offered to both lists. Each row keeps a buffer of its best candidates, in the memory of the result.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from goodfence.arrays import Float32s, Floats, Integers, Rows
from goodfence.kernels.tiles.buffers import Buffers, Space, find_unsure, work_space
from goodfence.kernels.tiles.layout import ColumnSide, RowSide, Stored, count_rows, lay_out_rows, list_tail
from goodfence.kernels.tiles.lists import drop_hopeless, finish_rows, write_found
from goodfence.kernels.tiles.strips import UNROLL, WIDTH
from goodfence.kernels.tiles.tile import (
    ROW_BITS,
    SMALLEST,
    Bounds,
    Ordered,
    Sample,
    dot_tile,
    key_rows,
    key_touched,
    list_keyed,
    process_tile,
    sample_thresholds,
)
from goodfence.neighbours.similarity import Profiles, Similarity
from goodfence.parallel import Advance, ranges, run, run_pairs, thread_count

BLOCK = 4096  # the most rows of a block: what a tile reads of its columns stays in the cache
DEPTH = 1024  # rows of a tile whose popular items are added in one go
SAMPLE = 2048  # rows that give every row its first threshold
ROWS_AT_ONCE = 512  # what a thread compares with all columns in one go
IN_COMMON = 3.0  # items that two rows share on average: below it rows may visit only those they share one with
VISITS = 7e8  # and so many visits in all
FEW_SAMPLED = 512  # columns that guess a row's threshold
EXTRA_BYTES = 384 << 20  # the most memory for buffers beyond the result
DOT_LIMIT = 1 << 32  # dot products are kept in 32 bits
POPULAR = 0.0165  # items that more rows rated are dense: only time changes (`./scripts/bench border`)
DENSE_BYTES = 320 << 20  # the most memory that dense items may take
LARGEST_DENSE = 31  # above this rating 8-bit sums hold too few items to pay
MOST_POPULAR = 65_000  # they are numbered with 16 bits


def fits(profiles: Profiles, similarity: Similarity) -> bool:
    """Return whether the tiles can compare these rows: cosine, non-negative integer ratings, dots in 32 bits."""
    if not similarity.is_plain_cosine or not profiles.factor or profiles.n_rows < 2:
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
) -> tuple[Rows, Floats]:
    """Return for every row its n nearest other rows and their similarities; `fits` must hold."""
    pairs = AllPairs.of(profiles, n, thread_count(threads))
    pairs.estimate()
    guesses = pairs.buffers.thresholds.copy()
    run_pairs(pairs.compare, len(pairs.layout.blocks), threads=threads, advance=advance)
    pairs.repeat_unsure(guesses)
    return pairs.finish()


def nearest_by_rows(
    profiles: Profiles, n: int, *, threads: int | None = None, advance: Advance | None = None
) -> tuple[Rows, Floats]:
    """Return the same for few rows, or rows with little in common: all columns of some rows at a time."""
    order = np.argsort(profiles.squared_norms, kind="stable").astype(np.int32)
    n_rows, norms, apart = len(order), profiles.squared_norms[order], are_apart(profiles)
    padded = -(-n_rows // WIDTH) * WIDTH
    layout = lay_out_blocks(profiles, order, ItemNumbers.of(profiles, dense=not apart), padded, threads=threads)
    inverses, positions = np.zeros(padded, dtype=np.float32), np.empty(n_rows, dtype=np.int32)
    inverses[:n_rows], positions[order] = _inverses(norms), np.arange(n_rows)
    sampled = np.arange(min(FEW_SAMPLED, n_rows)) * n_rows // min(FEW_SAMPLED, n_rows)
    rank = sample_rank(len(sampled), n, n_rows)
    rows = Ordered(inverses, norms, order, positions, sampled, rank)
    lists = np.empty((n_rows, n), dtype=np.int32), np.empty((n_rows, n))
    columns, spaces = layout.columns(0), threading.local()
    most = min(ROWS_AT_ONCE // 16 if apart else ROWS_AT_ONCE, -(-n_rows // (4 * thread_count(threads))))

    def work(piece: tuple[int, int]) -> None:
        first, depth = piece[0], piece[1] - piece[0]
        element = _element(norms[piece[1] - 1], norms[-1])
        held = spaces.__dict__
        if "keys" not in held:
            held["keys"] = np.empty((most, n_rows), dtype=np.uint64), np.empty(most, dtype=np.int64)
        if element not in held:
            held[element] = np.zeros((1 if apart else most, padded), dtype=element)
        tile, keyed = held[element], held["keys"]
        if apart:
            width = key_touched(first, depth, n, tile[0], (layout.row_side, columns), rows, keyed)
        else:
            dot_tile(tile, first, depth, layout.row_side, columns)
            width = key_rows(first, depth, n, tile, rows, keyed)
        keyed[0][:depth, :width].sort(axis=1)
        list_keyed(first, depth, rows, keyed, lists)
        if advance is not None:
            advance(depth)

    run(work, ranges(n_rows, most), threads=threads)
    return lists


def are_few(profiles: Profiles, n: int) -> bool:
    """Return whether rows are compared with all columns in one go: few rows, long lists, or little in common."""
    few = profiles.n_rows <= min(11_000 + 16 * n, 15_000)
    return bool(few or (profiles.n_rows <= 1 << ROW_BITS and are_apart(profiles)))


def are_apart(profiles: Profiles) -> bool:
    """Return whether rows have so few items in common that each visits only columns it shares an item with."""
    counts = np.bincount(profiles.rows.indices, minlength=profiles.n_columns)
    visits = float((counts * counts).sum())  # a product by BLAS would leave its threads spinning
    return bool(visits < min(IN_COMMON * float(profiles.n_rows) ** 2, VISITS))


class Found(NamedTuple):
    """The candidates of some rows, those of one row after those of another."""

    lengths: Rows
    rows: Rows
    similarities: Floats


@dataclass(frozen=True, eq=False)
class AllPairs:
    """One run over all pairs of rows."""

    profiles: Profiles
    items: ItemNumbers
    layout: Layout
    buffers: Buffers
    indices: Rows
    similarities: Floats
    threads: int
    space: threading.local = field(default_factory=threading.local)

    @classmethod
    def of(cls, profiles: Profiles, n: int, threads: int) -> AllPairs:
        """Lay every row out, by ascending norm, and make room for the lists."""
        rows = np.argsort(profiles.squared_norms, kind="stable").astype(np.int32)
        return cls.over(profiles, rows, n, block_size(len(rows), threads), threads)

    @classmethod
    def over(cls, profiles: Profiles, rows: Rows, n: int, block: int, threads: int) -> AllPairs:
        """Lay `rows` of the profiles out in that order, and make room for the lists of all rows."""
        items, n_rows = ItemNumbers.of(profiles), profiles.n_rows
        layout = lay_out_blocks(profiles, rows, items, block, threads=threads)
        ordered = np.zeros(layout.padded)
        ordered[: len(rows)] = profiles.squared_norms[rows]
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
        return cls(profiles, items, layout, buffers, indices, similarities, threads)

    def estimate(self) -> None:
        """Set a first threshold for each row, from its similarities to a sample of all norms."""
        n_rows = len(self.layout.rows)
        if n_rows <= 4 * SAMPLE:
            return
        chosen = np.arange(SAMPLE) * n_rows // SAMPLE
        rank = sample_rank(SAMPLE, self.indices.shape[1], n_rows)
        self.estimate_from(self.layout.rows[chosen], chosen, rank)

    def estimate_from(self, rows: Rows, chosen: Integers, rank: int) -> None:
        """Set the first thresholds from a sample: SAMPLE rows of the profiles, and their positions or -1."""
        layout = lay_out_blocks(self.profiles, rows, self.items, SAMPLE, threads=self.threads)
        norms = self.profiles.squared_norms[rows]
        sample = Sample(layout.columns(0), _inverses(norms), chosen)

        def work(number: int) -> None:
            first, last = self.layout.blocks[number]
            tile = self._tile(_element(self._largest(number), norms.max()), SAMPLE)
            sample_thresholds(first, last, rank, tile, self.layout.row_side, sample, self.buffers)

        run(work, range(len(self.layout.blocks)), threads=self.threads)

    def compare(self, a: int, b: int) -> None:
        """Compare the rows of block a with those of block b, and offer each pair to both lists."""
        first, last = self.layout.blocks[a]
        element = _element(self._largest(a), self._largest(b))
        bounds = Bounds(first, last, b * self.layout.block, True)
        self._process(bounds, b, self._tile(element, self.layout.width(b)))

    def repeat_unsure(self, guesses: Float32s) -> None:
        """Compare again, without a threshold, the rows whose first threshold may have been too high."""
        guessed = guesses[: len(self.layout.rows)]
        unsure = np.zeros(len(guessed), dtype=np.bool_)
        find_unsure(guessed, self.buffers, unsure)
        unsure &= guessed > SMALLEST

        def work(position: int) -> None:
            self.buffers.counts[self.layout.rows[position]] = 0
            self.buffers.thresholds[position] = SMALLEST
            for block in range(len(self.layout.blocks)):
                element = _element(self.buffers.squared_norms[position], self._largest(block))
                tile = np.empty((1, self.layout.width(block)), dtype=element)
                bounds = Bounds(position, position + 1, block * self.layout.block, False)
                self._process(bounds, block, tile)

        run(work, np.flatnonzero(unsure).tolist(), threads=self.threads)

    def finish(self) -> tuple[Rows, Floats]:
        """Sort the lists, and return them."""
        lists = self.indices, self.similarities
        blocks = self.layout.blocks
        run(lambda piece: finish_rows(*piece, self.buffers, *lists), blocks, threads=self.threads)
        return lists

    def shorten(self) -> None:
        """Leave to the rows little more than the n best that they have found so far."""

        def work(piece: tuple[int, int]) -> None:
            drop_hopeless(*piece, self.buffers, self._space(self.layout.block))

        run(work, self.layout.blocks, threads=self.threads)

    def found(self, first: int, last: int, numbers: Rows) -> Found:
        """Return what the rows first..last have found so far, in no order, by `numbers`."""
        lengths = self.buffers.counts[first:last].copy()
        starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        rows, similarities = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1])
        positions = np.empty(self.profiles.n_rows, dtype=np.int64)
        positions[self.layout.rows] = np.arange(len(self.layout.rows))
        own = positions[first:last]
        write_found(first, own, self.buffers, numbers, starts, rows, similarities)
        return Found(lengths, rows, similarities)

    def _process(self, bounds: Bounds, block: int, tile: Any) -> None:
        columns, space = self.layout.columns(block), self._space(tile.shape[1])
        process_tile(bounds, tile, self.layout.row_side, columns, self.buffers, space)

    def _space(self, width: int) -> Space:
        spaces: dict[int, Space] = self.space.__dict__.setdefault("spaces", {})
        if width not in spaces:
            capacity = self.buffers.kept.shape[1] + self.buffers.extra.shape[1]
            spaces[width] = work_space(width, capacity)
        return spaces[width]

    def _tile(self, element: Any, width: int) -> Any:
        tiles = self.space.__dict__.setdefault("tiles", {})
        if (element, width) not in tiles:
            depth = min(DEPTH, self.layout.block)
            tiles[element, width] = np.empty((depth, width), dtype=element)
        return tiles[element, width]

    def _largest(self, block: int) -> float:
        return float(self.buffers.squared_norms[slice(*self.layout.blocks[block])].max())


def _element(squared_norm: float, other_squared_norm: float) -> Any:
    """Return the smallest type that holds every dot product of rows of at most these norms."""
    product = int(squared_norm) * int(other_squared_norm)
    return np.uint16 if product < DOT_LIMIT else np.uint32


def sample_rank(n_sample: int, n: int, n_rows: int, *, deviations: float = 3.1) -> int:
    """Return the rank in the sample that few rows have fewer than n rows above: one in a thousand by default."""
    expected = n_sample * n / n_rows
    return min(n_sample, math.ceil(expected + deviations * math.sqrt(expected) + 1))


def _inverses(squared_norms: Floats) -> Float32s:
    inverses = np.zeros(len(squared_norms), dtype=np.float32)
    np.divide(1, np.sqrt(squared_norms), out=inverses, where=squared_norms > 0, casting="same_kind")
    return inverses


class ItemNumbers(NamedTuple):
    """Which items are popular: 0, 1, ... by popularity, and -1, -2, ... for those of the tail."""

    numbers: Rows
    n_popular: int

    @classmethod
    def of(cls, profiles: Profiles, *, dense: bool = True) -> ItemNumbers:
        """Choose the items whose dense sums (count x rows) cost less than their sparse updates (count squared)."""
        counts = np.bincount(profiles.rows.indices, minlength=profiles.n_columns)
        n_popular = int((counts > POPULAR * profiles.n_rows).sum())
        n_popular = min(n_popular, DENSE_BYTES // max(profiles.n_rows, 1), MOST_POPULAR)
        if not dense or profiles.rows.data.max(initial=0) > LARGEST_DENSE:
            n_popular = 0
        popular = np.argsort(-counts, kind="stable")[:n_popular]
        numbers = np.zeros(profiles.n_columns, dtype=np.int32)
        numbers[popular] = 1
        numbers[numbers == 0] = -np.arange(1, profiles.n_columns - n_popular + 1)
        numbers[popular] = np.arange(n_popular)
        return cls(numbers, n_popular)


@dataclass(frozen=True, eq=False)
class Layout:
    """Some rows in some order ("positions"), cut in blocks."""

    block: int
    rows: Rows  # (positions,): which row is there
    row_side: RowSide
    strips: npt.NDArray[np.uint8]
    list_starts: npt.NDArray[np.uint32]
    list_columns: npt.NDArray[np.uint16]
    list_ratings: npt.NDArray[Any]

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """Where each block begins and ends."""
        return ranges(len(self.rows), self.block)

    @property
    def padded(self) -> int:
        """The number of positions, made a multiple of a strip's width."""
        return len(self.strips) * WIDTH

    def columns(self, block: int) -> ColumnSide:
        """Return the column side of a block."""
        first, n_strips = block * self.block // WIDTH, self.block // WIDTH
        strips = self.strips[first : first + n_strips]
        return ColumnSide(strips, self.list_starts[block], self.list_columns, self.list_ratings)

    def width(self, block: int) -> int:
        """Return how many columns a block has, padding included."""
        return min(self.block, self.padded - block * self.block)


def lay_out_blocks(
    profiles: Profiles, rows: Rows, items: ItemNumbers, block: int, *, threads: int | None = None
) -> Layout:
    """Lay out `rows` of the profiles in that order; `block` is a multiple of a strip's width."""
    csr, largest = profiles.rows, int(profiles.rows.data.max(initial=0))
    kind = np.uint8 if largest <= np.iinfo(np.uint8).max else np.uint32
    longest = max(UNROLL, 255 // max(largest, 1) // UNROLL * UNROLL)
    ratings = csr.data.astype(kind)
    stored = Stored(rows, csr.indptr, csr.indices, ratings, items.numbers, longest, largest)
    counts = np.zeros((3, len(rows) + 1), dtype=np.int64)
    blocks = ranges(len(rows), block)
    run(lambda piece: count_rows(*piece, stored, counts), blocks, threads=threads)
    segments, first_items, tail = np.cumsum(counts, axis=1)
    side = RowSide(
        segments,
        np.full(segments[-1] + 1, first_items[-1]),
        np.empty(segments[-1], dtype=np.uint8),
        np.empty(first_items[-1], dtype=np.uint16),
        tail,
        np.empty(tail[-1], dtype=np.uint32),
        np.empty(tail[-1], dtype=kind),
    )
    strips = np.zeros((-(-len(rows) // WIDTH), items.n_popular + 1, WIDTH), dtype=np.uint8)
    n_tail = len(items.numbers) - items.n_popular
    list_starts = np.empty((len(blocks), n_tail + 1), dtype=np.uint32)
    list_columns = np.empty(tail[-1], dtype=np.uint16)
    list_ratings = np.empty(tail[-1], dtype=kind)

    def work(number: int) -> None:
        first, last = blocks[number]
        lay_out_rows(first, last, stored, first_items, side, strips)
        list_tail(first, last, side, list_starts[number], list_columns, list_ratings)

    run(work, range(len(blocks)), threads=threads)
    return Layout(block, rows, side, strips, list_starts, list_columns, list_ratings)
