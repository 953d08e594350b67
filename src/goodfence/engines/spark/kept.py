"""What is kept of a job: in Spark while it runs, or in a work folder, from which a second run goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import goodfence
from goodfence.engines.spark.parcels import SCHEMA
from goodfence.engines.spark.problem import failing_plainly
from goodfence.engines.spark.running import Running
from goodfence.errors import SettingError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TERMS = "terms"
_FINISHED = "_SUCCESS"


@contextmanager
def kept_by(running: Running, terms: dict[str, Any]) -> Iterator[Kept]:
    """Keep the finished parts of a job while it runs, or longer where there is a work folder."""
    with failing_plainly():
        kept = Kept(running, terms)
    try:
        yield kept
    finally:
        kept.release()


class Kept:
    """The finished parts of one job."""

    def __init__(self, running: Running, terms: dict[str, Any]) -> None:
        self.running = running
        self._held: list[DataFrame] = []
        self._root = running.work if running.work is None else address(running.work)
        if running.work is not None:
            self._agree(json.dumps({"goodfence": goodfence.__version__, **terms}, sort_keys=True))

    def __repr__(self) -> str:
        return f"Kept({'in a folder' if self.running.work else 'in Spark'})"

    @property
    def in_folder(self) -> bool:
        """Whether finished parts outlive the session."""
        return self.running.work is not None

    def keep(self, name: str, make: Callable[[], DataFrame]) -> DataFrame:
        """Return the part called `name`: as it was written, or as `make` makes it, which is then kept."""
        spark = self.running.spark
        if self.running.work is None:
            from pyspark import StorageLevel

            frame = make().persist(StorageLevel.DISK_ONLY)
            self._held.append(frame)
            return frame
        path = f"{self._root}/{name}"
        if not self._exists(f"{path}/{_FINISHED}"):  # Spark writes that last
            make().write.mode("overwrite").parquet(path)
        return spark.read.schema(SCHEMA).parquet(path)

    def release(self) -> None:
        """Let Spark forget what it held."""
        for frame in self._held:
            frame.unpersist()
        self._held.clear()

    def _agree(self, terms: str) -> None:
        """Make sure that the folder holds parts of this job and no other."""
        path = f"{self._root}/{_TERMS}"
        spark = self.running.spark
        if self._exists(f"{path}/{_FINISHED}"):
            if spark.read.text(path).first() != (terms,):
                raise SettingError(
                    "work must be the folder of this very job, and it holds parts of one with other ratings, "
                    "settings or version; name another folder, or remove it"
                )
            return
        frame = spark.createDataFrame([(terms,)], "value string").coalesce(1)
        frame.write.mode("overwrite").text(path)

    def _exists(self, path: str) -> bool:
        """Ask the file system of the cluster: it need not be the one of this machine."""
        spark: Any = self.running.spark
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
