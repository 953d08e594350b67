"""Tiles by number: which pair of blocks each one is, and which tiles a block is part of.

Two different blocks are twice the work of one with itself. They come first: (0, 1), (0, 2), ..., (1, 2), ..., then
(0, 0), (1, 1), ...; so the last tasks are short ones.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

_IDLE = 1.15
"""How much longer than with all cores busy to the end the tiles may take."""
_MANY = 64
"""With so many blocks for each core no search is needed."""


def tiles_of_block(n_blocks: int) -> Column:
    """Return the numbers of the tiles that a block is part of."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    block = F.col("place").cast("long")
    every = F.sequence(F.lit(0).cast("long"), F.lit(n_blocks - 1).cast("long"))
    pairs = F.transform(
        F.filter(every, lambda other: other != block),
        lambda other: _pair(F.least(block, other), F.greatest(block, other), n_blocks),
    )
    return F.concat(pairs, F.array(block + n_blocks * (n_blocks - 1) // 2))


def tile_number(a: int, b: int, n_blocks: int) -> int:
    """Return the number of tile (a, b), a <= b.

    Examples
    --------
    >>> [tile_number(a, b, 3) for a, b in [(0, 1), (0, 2), (1, 2), (0, 0), (1, 1), (2, 2)]]
    [0, 1, 2, 3, 4, 5]
    """
    if a == b:
        return n_blocks * (n_blocks - 1) // 2 + a
    return a * n_blocks - a * (a + 1) // 2 + b - a - 1


def balanced(n_cores: int) -> int:
    """Return the least number of blocks whose tiles keep all cores busy nearly to the end.

    Examples
    --------
    >>> [balanced(n_cores) for n_cores in (1, 2, 4, 16)]
    [1, 2, 4, 8]
    """
    return next(
        n for n in range(1, _MANY * n_cores) if _longest(n, n_cores) <= _IDLE * n * n / n_cores
    )


def _longest(n_blocks: int, n_cores: int) -> int:
    """Return when the last core is done: each takes the next tile as soon as it is free."""
    cores = [0] * n_cores
    for work in [2] * (n_blocks * (n_blocks - 1) // 2) + [1] * n_blocks:
        heapq.heapreplace(cores, cores[0] + work)
    return max(cores)


def _pair(a: Column, b: Column, n_blocks: int) -> Column:
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    return a * n_blocks - F.floor(a * (a + 1) / 2) + b - a - 1
