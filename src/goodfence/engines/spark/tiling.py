"""Tiles by number: which pair of blocks each one is, and which tiles a block is part of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column


def tiles_of_block(n_blocks: int) -> Column:
    """Return the numbers of the tiles that a block is part of.

    Tiles are numbered (0, 0), (0, 1), ..., (1, 1), (1, 2), ...: tile (a, b) is a n - a (a - 1) / 2 + b - a.
    """
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    block = F.col("place").cast("long")
    before = F.transform(
        F.sequence(F.lit(0).cast("long"), block), lambda a: _tile(a, block, n_blocks)
    )
    after = F.transform(
        F.sequence(block, F.lit(n_blocks - 1).cast("long")), lambda b: _tile(block, b, n_blocks)
    )
    return F.array_distinct(F.concat(before, after))


def tile_number(a: int, b: int, n_blocks: int) -> int:
    """Return the number of tile (a, b), a <= b.

    Examples
    --------
    >>> [tile_number(a, b, 3) for a, b in [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]]
    [0, 1, 2, 3, 4, 5]
    """
    return a * n_blocks - a * (a - 1) // 2 + b - a


def _tile(a: Column, b: Column, n_blocks: int) -> Column:
    return a * n_blocks - ((a * (a - 1)) / 2).cast("long") + b - a
