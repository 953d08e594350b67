"""A pool: how many are taken from which stretch of the sorted candidate list."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Ranks: TypeAlias = "int | npt.NDArray[np.int64]"


class Pool(NamedTuple):
    """Take `take` candidates of ranks `start` to `stop` - 1 of the sorted list (0 is the nearest).

    Each field is an integer, or for a batch of targets an array of shape (rows,).

    Examples
    --------
    >>> Pool(0, 50, take=49)
    Pool(start=0, stop=50, take=49)
    """

    start: Ranks
    stop: Ranks
    take: Ranks


def pool_arrays(
    pools: tuple[Pool, ...], n_rows: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the starts, stops and takes of `pools`, each of shape (n_rows, number of pools).

    Examples
    --------
    >>> pool_arrays((Pool(0, 2, take=1), Pool(2, 4, take=1)), n_rows=1)[0]
    array([[0, 2]])
    """
    columns = (
        [np.broadcast_to(np.asarray(part, dtype=np.int64), (n_rows,)) for part in parts]
        for parts in zip(*pools, strict=True)
    )
    starts, stops, takes = (np.ascontiguousarray(np.stack(parts, axis=1)) for parts in columns)
    return starts, stops, takes


def takes_all(pools: tuple[Pool, ...]) -> bool:
    """Return whether every pool is taken whole, so that nothing is left to chance.

    Examples
    --------
    >>> takes_all((Pool(0, 5, take=5),))
    True
    """
    return all(
        bool(np.all(np.subtract(pool.stop, pool.start) == np.asarray(pool.take))) for pool in pools
    )
