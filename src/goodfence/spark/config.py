"""How a job runs on a cluster: its session, the memory of a task, the size of a block, a work folder."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from goodfence.data.frame import ReadOptions
from goodfence.errors import require

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY = 1 << 30
"""The bytes that a task may take in Python, where nobody says otherwise."""
LEAST_MEMORY = 16 << 20
_GROUPS_PER_CORE = 3
"""Groups of rows for each core at least, so that the last ones do not run alone."""
_BYTES_OF_A_RATING = 32
"""As it came, as a sparse matrix, and once more while that is made."""
_IDLE = 1.15
"""How much longer than with all cores busy to the end the tiles may take."""
_MOST_BLOCKS_PER_CORE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkConfig:
    """Settings of a job on Spark; those above `read` change nothing in the result.

    Parameters
    ----------
    spark : SparkSession
        The session.
    memory : int, default 1 GiB
        The bytes that a task may take in Python: it sets the size of a block.
    block_rows : int, optional
        How many rows a block has; None for what the memory allows.
    work : str, optional
        A folder that every machine of the cluster reaches, for checkpoints; None to keep finished parts in Spark.
    progress : bool, optional
        Show a bar on standard error; None for a terminal only.
    read : ReadOptions
        How ratings are read from a path or a data frame: the names of their columns, their scale, repeated pairs.
    """

    spark: SparkSession
    memory: int = MEMORY
    block_rows: int | None = None
    work: str | None = None
    progress: bool | None = None
    read: ReadOptions = field(default_factory=ReadOptions)

    def __post_init__(self) -> None:
        rule = f"at least {LEAST_MEMORY:,} bytes"
        require(self.memory >= LEAST_MEMORY, "memory", rule, self.memory)
        if self.block_rows is not None:
            require(self.block_rows >= 1, "block_rows", "at least 1", self.block_rows)

    @property
    def n_cores(self) -> int:
        """How many tasks run at a time."""
        return int(self.spark.sparkContext.defaultParallelism)

    @property
    def on_this_machine(self) -> bool:
        """Whether all tasks run on the machine of the driver."""
        return str(self.spark.sparkContext.master).startswith("local")

    def rows_of_a_block(self, n_rows: int, n_ratings: int, n: int) -> int:
        """Return how many rows a block has: two of them, and their lists of n, must fit in the memory."""
        if self.block_rows is not None:
            return min(self.block_rows, n_rows)
        fitting = self.memory // (2 * bytes_of_a_row(n_ratings / n_rows, n))
        n_blocks = max(balanced_blocks(self.n_cores), -(-n_rows // max(1, fitting)))
        return -(-n_rows // n_blocks)  # all of about one size

    def rows_of_a_group(self, n_rows: int, n_ratings: int, k: int) -> int:
        """Return for how many rows a task predicts: the ratings of all their neighbours must fit in the memory."""
        if self.block_rows is not None:
            return min(self.block_rows, n_rows)
        each = max(1.0, _BYTES_OF_A_RATING * n_ratings / n_rows)
        fitting = n_rows if each * n_rows <= self.memory else int(self.memory / (k * each))
        return max(1, min(fitting, -(-n_rows // (_GROUPS_PER_CORE * self.n_cores))))


def bytes_of_a_row(n_rated: float, n: int) -> int:
    """Return about what a row takes in a task: its ratings four times over, and its candidates.

    Ratings are there as they came, as a sparse matrix, laid out for rows and laid out for columns; candidates as a
    buffer of 1.75 n, and as what is sent.

    Examples
    --------
    >>> bytes_of_a_row(100, 350)
    16100
    """
    return int(36 * n_rated) + 2000 + (14 + 16) * n


def balanced_blocks(n_cores: int) -> int:
    """Return the least number of blocks whose tiles keep all cores busy nearly to the end.

    Examples
    --------
    >>> [balanced_blocks(n_cores) for n_cores in (1, 2, 4, 16)]
    [1, 2, 4, 8]
    """
    return next(
        n
        for n in range(1, _MOST_BLOCKS_PER_CORE * n_cores)
        if _longest(n, n_cores) <= _IDLE * n * n / n_cores
    )


def _longest(n_blocks: int, n_cores: int) -> int:
    """Return when the last core is done: each takes the next tile as soon as it is free."""
    cores = [0] * n_cores
    for work in [2] * (n_blocks * (n_blocks - 1) // 2) + [1] * n_blocks:
        heapq.heapreplace(cores, cores[0] + work)
    return max(cores)
