"""How a job runs on a cluster: its session, the memory of a task, the size of a block, a work folder."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import goodfence
from goodfence.data.frame import ReadOptions
from goodfence.errors import SettingError, require
from goodfence.spark.messages import SCHEMA
from goodfence.spark.session import failures_in_one_sentence

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


if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FINGERPRINT = "fingerprint"
_FINISHED = "_SUCCESS"


class PersistedFrames:
    """Data frames that Spark keeps on its disks until they are released."""

    def __init__(self) -> None:
        self._frames: list[DataFrame] = []

    def persist(self, frame: DataFrame) -> DataFrame:
        """Return the frame, which Spark keeps as soon as it has made it."""
        from pyspark import StorageLevel

        self._frames.append(frame.persist(StorageLevel.DISK_ONLY))
        return frame

    def release(self) -> None:
        """Let Spark forget them."""
        for frame in self._frames:
            frame.unpersist()
        self._frames.clear()


@contextmanager
def checkpoints(config: SparkConfig, fingerprint: Mapping[str, object]) -> Iterator[Checkpoint]:
    """Keep the finished parts of a job while it runs, or longer where there is a work folder."""
    with failures_in_one_sentence():
        checkpoint = Checkpoint(config, fingerprint)
    try:
        yield checkpoint
    finally:
        checkpoint.release()


class Checkpoint(PersistedFrames):
    """The finished parts of one job; `fingerprint` is what they depend on."""

    def __init__(self, config: SparkConfig, fingerprint: Mapping[str, object]) -> None:
        super().__init__()
        self._spark = config.spark
        self._root = None if config.work is None else address(config.work)
        if self._root is not None:
            stated = {"goodfence": goodfence.__version__, **fingerprint}
            self._check(self._root, json.dumps(stated, sort_keys=True))

    def __repr__(self) -> str:
        return f"Checkpoint({'in Spark' if self._root is None else 'in a folder'})"

    @property
    def in_folder(self) -> bool:
        """Whether finished parts outlive the session."""
        return self._root is not None

    def keep(self, name: str, make: Callable[[], DataFrame]) -> DataFrame:
        """Return the messages called `name`: as they were written, or as `make` makes them, which are then kept."""
        if self._root is None:
            return self.persist(make())
        path = f"{self._root}/{name}"
        if not self._exists(f"{path}/{_FINISHED}"):  # Spark writes that last
            make().write.mode("overwrite").parquet(path)
        return self._spark.read.schema(SCHEMA).parquet(path)

    def _check(self, root: str, fingerprint: str) -> None:
        """Make sure that the folder holds parts of this job and no other."""
        path = f"{root}/{_FINGERPRINT}"
        if self._exists(f"{path}/{_FINISHED}"):
            if self._spark.read.text(path).first() != (fingerprint,):
                raise SettingError(
                    "work must be the folder of this very job, and it holds parts of one with other ratings, "
                    "settings or version; name another folder, or remove it"
                )
            return
        frame = self._spark.createDataFrame([(fingerprint,)], "value string").coalesce(1)
        frame.write.mode("overwrite").text(path)

    def _exists(self, path: str) -> bool:
        """Ask the file system of the cluster: it need not be the one of this machine."""
        spark: Any = self._spark
        place = spark._jvm.org.apache.hadoop.fs.Path(path)
        return bool(place.getFileSystem(spark._jsc.hadoopConfiguration()).exists(place))


def address(work: str) -> str:
    """Return where a work folder is: as it says, or below the folder that this process works in.

    Examples
    --------
    >>> address("hdfs://lake/work"), address("/mnt/work")
    ('hdfs://lake/work', '/mnt/work')
    """
    return work if "://" in work else str(Path(work).absolute())
