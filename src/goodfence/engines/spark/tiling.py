"""Tiles by number: which pair of blocks each one is, and which tiles a block is part of.

Two different blocks are twice the work of one with itself. They come first: (0, 1), (0, 2), ..., (1, 2), ..., then
(0, 0), (1, 1), ...; so the last tasks are short ones.
"""

from __future__ import annotations

import heapq

_IDLE = 1.15
"""How much longer than with all cores busy to the end the tiles may take."""
_MANY = 64
"""With so many blocks for each core no search is needed."""


def tiles_of_block(n_blocks: int) -> str:
    """Return, in Spark's SQL, the numbers of the tiles that the block at `place` is part of."""
    own, a, b = "bigint(place)", "least(bigint(place), other)", "greatest(bigint(place), other)"
    pair = f"{a} * {n_blocks} - {a} * ({a} + 1) div 2 + {b} - {a} - 1"
    others = f"filter(sequence(0L, {n_blocks - 1}L), other -> other != {own})"
    alone = f"array({own} + {n_blocks * (n_blocks - 1) // 2})"
    return f"concat(transform({others}, other -> {pair}), {alone})"


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
