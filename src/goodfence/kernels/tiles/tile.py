"""One tile: a block of rows against a block of columns, their dot products and offers, in one pass."""

from __future__ import annotations

import numpy as np

from goodfence.kernels.compiled import kernel
from goodfence.kernels.tiles.buffers import Buffers, Scratch
from goodfence.kernels.tiles.dots import add_popular, add_tail
from goodfence.kernels.tiles.layout import ColumnSide, RowSide
from goodfence.kernels.tiles.offers import CHUNK, LOG, Found, Log, offer_row, serve_log
from goodfence.kernels.tiles.strips import WIDTH
from goodfence.kernels.types import Ints


@kernel
def work_space(width: int, capacity: int) -> tuple[Found, Log, Scratch]:
    """Return what one thread needs for tiles of this width and buffers of this capacity."""
    flags = np.zeros(CHUNK, dtype=np.uint8)
    found = Found(
        flags,
        flags.view(np.uint64),
        np.empty(CHUNK + 8, dtype=np.uint32),
        np.empty(CHUNK + 1, dtype=np.uint64),
    )
    space = max(LOG, 2 * width) + 1
    log = Log(
        np.empty(space, dtype=np.uint32),
        np.empty(space, dtype=np.uint64),
        np.empty(width + 1, dtype=np.int64),
        np.empty(space, dtype=np.uint64),
    )
    scratch = Scratch(np.empty(capacity, dtype=np.uint64), np.empty(capacity, dtype=np.float32))
    return found, log, scratch


@kernel
def process_tile(
    first_row: int,
    last_row: int,
    first_column: int,
    symmetric: bool,
    tile: Ints,
    rows: RowSide,
    columns: ColumnSide,
    buffers: Buffers,
    space: tuple[Found, Log, Scratch],
) -> None:
    """Compare the positions first_row..last_row with a block of columns, and offer each pair to both lists.

    `symmetric`: where the two blocks overlap, only columns after the row, so that a pair is offered once.
    Otherwise the rows alone are served, with every column but themselves. `tile` is space for (rows, columns).
    """
    found, log, scratch = space
    depth, width = tile.shape
    logged = 0
    for start in range(first_row, last_row, depth):
        n_rows = min(depth, last_row - start)
        first_strip = max(0, start - first_column) // WIDTH if symmetric else 0
        offset = first_strip * WIDTH
        tile[:n_rows, offset:] = 0
        add_popular(tile, start, n_rows, first_strip, rows, columns)
        for local in range(n_rows):
            position = start + local
            sums = tile[local]
            low, high = rows.tail[position], rows.tail[position + 1]
            add_tail(sums, rows.tail_items[low:high], rows.tail_ratings[low:high], columns)
            own = position - first_column
            if 0 <= own < width:
                sums[offset if symmetric else own : own + 1] = 0
            if logged + width >= log.columns.size:
                serve_log(first_column, log, logged, buffers, scratch)
                logged = 0
            logged = offer_row(
                position,
                first_column + offset,
                sums[offset:],
                symmetric,
                found,
                log,
                logged,
                buffers,
                scratch,
            )
    serve_log(first_column, log, logged, buffers, scratch)
