"""Checkpoints: the finished parts of a job, in Spark while it runs, or in a work folder from which it resumes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import goodfence
from goodfence.errors import SettingError
from goodfence.spark.config import SparkConfig
from goodfence.spark.messages import SCHEMA
from goodfence.spark.session import failures_in_one_sentence

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
