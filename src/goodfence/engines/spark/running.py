"""How a job runs on a cluster: its session, its memory, what is kept of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from goodfence.engines.spark.tiling import balanced
from goodfence.errors import require

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Names: TypeAlias = tuple[str | None, str | None, str | None]
"""The columns of user, item and rating in a data frame; None finds one by its name."""

MEMORY = 1 << 30
"""The bytes that a task may take in Python, where nobody says otherwise."""
LEAST_MEMORY = 16 << 20
_GROUPS_A_CORE = 3
"""So many groups for each core at least, so that the last ones do not run alone."""

_BYTES_OF_A_RATING = 32
"""As it came, as a sparse matrix, and once more while that is made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Settings that change how a job runs, and never what it gives."""

    spark: SparkSession
    memory: int = MEMORY
    """The bytes that a task may take in Python: it sets the size of a block."""
    block_rows: int | None = None
    """How many rows a block has; None for what the memory allows."""
    work: str | None = None
    """A folder that every machine of the cluster can reach, for finished parts; None to keep them in Spark."""
    progress: bool | None = None
    """Show a bar on standard error; None for a terminal only."""
    names: Names = (None, None, None)
    """How a data frame calls user, item and rating, where that is not found by itself."""

    def __post_init__(self) -> None:
        rule = f"at least {LEAST_MEMORY:,} bytes"
        require(self.memory >= LEAST_MEMORY, "memory", rule, self.memory)
        if self.block_rows is not None:
            require(self.block_rows >= 1, "block_rows", "at least 1", self.block_rows)

    def rows_of_a_block(self, n_rows: int, n_ratings: int, n: int) -> int:
        """Return how many rows a block has: two of them, and their lists of n, must fit in the memory."""
        if self.block_rows is not None:
            return min(self.block_rows, n_rows)
        fitting = self.memory // (2 * bytes_of_a_row(n_ratings / n_rows, n))
        n_cores: int = self.spark.sparkContext.defaultParallelism
        n_blocks = max(balanced(n_cores), -(-n_rows // max(1, fitting)))
        return -(-n_rows // n_blocks)  # all of about one size

    def rows_of_a_group(self, n_rows: int, n_ratings: int, k: int) -> int:
        """Return how many rows ask together: the ratings of all their neighbours must fit in the memory."""
        if self.block_rows is not None:
            return min(self.block_rows, n_rows)
        each = max(1.0, _BYTES_OF_A_RATING * n_ratings / n_rows)
        fitting = n_rows if each * n_rows <= self.memory else int(self.memory / (k * each))
        n_cores: int = self.spark.sparkContext.defaultParallelism
        return max(1, min(fitting, -(-n_rows // (_GROUPS_A_CORE * n_cores))))


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
