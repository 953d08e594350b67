"""A first threshold for each row, from its similarities to a sample of rows."""

from __future__ import annotations

import numpy as np
from numba import float32

from goodfence.kernels.compiled import kernel
from goodfence.kernels.tiles.buffers import MARGIN, cut_near
from goodfence.kernels.tiles.dots import dot_tile
from goodfence.kernels.tiles.layout import ColumnSide, RowSide
from goodfence.kernels.types import Floats, Ints

SMALLEST = np.float32(1e-30)
"""The threshold of a row that takes any positive similarity."""


@kernel
def sample_thresholds(
    first: int,
    last: int,
    rank: int,
    tile: Ints,
    rows: RowSide,
    sample: ColumnSide,
    inverses: Floats,
    sample_inverses: Floats,
    sampled: Ints,
    thresholds: Floats,
) -> None:
    """Write about the rank-th best similarity to the sample for each position, or SMALLEST if there are fewer.

    `sampled[c]` is the position that stands in column c of the sample: a row is not compared with itself.
    """
    depth, width = tile.shape
    values = np.empty(width, dtype=np.float32)
    for start in range(first, last, depth):
        n_rows = min(depth, last - start)
        dot_tile(tile, start, n_rows, 0, rows, sample)
        for local in range(n_rows):
            position = start + local
            for column in range(width):
                values[column] = float32(tile[local, column]) * (
                    sample_inverses[column] * inverses[position]
                )
                if sampled[column] == position:
                    values[column] = float32(0.0)
            cut = float32(cut_near(values, rank) * MARGIN)
            thresholds[position] = max(SMALLEST, cut)
