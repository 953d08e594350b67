"""Tasks, the shuffle between them, and checkpoints: every message comes to its partition, where one task works.

A task is a pure function of what arrived, in a fixed order, so that one that is tried again, or runs twice, sends the
same. With a master `local` payloads lie in files of a spill directory, and only their paths pass through Spark.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import pyarrow as pa

import goodfence
from goodfence.errors import SettingError
from goodfence.spark.messages import SCHEMA, Message, from_arrow, to_arrow
from goodfence.spark.session import Batches, SparkConfig, failures_in_one_sentence, map_batches, without_pandas_advice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

M = TypeVar("M", bound=Message)
SPILL: ContextVar[str | None] = ContextVar("spill directory", default=None)
_LOADED = [0]  # how many modules were loaded when this process last froze its memory


class Inbox:
    """The messages that arrived at one partition, by kind and in the order of their senders."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self._messages = sorted(messages, key=lambda one: one.sender)

    def every(self, kind: type[M]) -> list[M]:
        """Return all messages of a kind."""
        return [one for one in self._messages if isinstance(one, kind)]

    def only(self, kind: type[M]) -> M:
        """Return the one message of a kind."""
        (one,) = self.every(kind)
        return one


# A task turns the messages that came to a partition into messages for others. A combiner keeps waiting messages few.
Task: TypeAlias = Callable[[int, Inbox], Iterable[Message]]
Combiner: TypeAlias = Callable[[list[Message]], list[Message]]
Persist: TypeAlias = Callable[["DataFrame"], "DataFrame"]


@contextmanager
def spill_directory(config: SparkConfig) -> Iterator[None]:
    """Leave payloads in files on the way, where all tasks are on this machine and no checkpoint must hold them."""
    if config.work is not None or not config.on_this_machine:
        yield
        return
    with TemporaryDirectory(prefix="goodfence-", ignore_cleanup_errors=True) as folder, _in(folder):
        yield


@contextmanager
def released_early() -> Iterator[Callable[[], None]]:
    """Let what is sent in the block lie in files of its own; what is handed out removes them, before all others."""
    directory = SPILL.get()
    if directory is None:
        yield lambda: None
        return
    folder = mkdtemp(dir=directory)
    with _in(folder):
        yield partial(shutil.rmtree, folder, ignore_errors=True)


@contextmanager
def _in(folder: str) -> Iterator[None]:
    before = SPILL.set(folder)
    try:
        yield
    finally:
        SPILL.reset(before)


def shuffle(frame: DataFrame, n_partitions: int, task: Task, combine: Combiner | None = None) -> DataFrame:
    """Bring every message to its partition, and return what `task` sends from there."""
    return run_tasks(frame.repartitionById(n_partitions, "partition"), task, combine)


def run_tasks(frame: DataFrame, task: Task, combine: Combiner | None = None) -> DataFrame:
    """Run a task for each partition where its messages are already."""
    return map_messages(frame, partial(run_partitions, task=task, combine=combine))


def map_messages(frame: DataFrame, sent: Callable[[Batches], Iterator[Message]]) -> DataFrame:
    """Return the messages that `sent` makes of the batches of each partition."""
    directory = SPILL.get()

    def mapped(batches: Batches) -> Batches:
        yield from (to_arrow([one], directory) for one in sent(batches))
        freeze_memory()

    return map_batches(frame, mapped, SCHEMA)


def run_partitions(batches: Batches, task: Task, combine: Combiner | None = None) -> Iterator[Message]:
    """Yield what `task` sends, one partition after the other."""
    arrived: dict[int, list[Message]] = {}
    for one in from_arrow(batches):
        waiting = arrived.setdefault(one.partition, [])
        waiting.append(one)
        if combine is not None:
            arrived[one.partition] = combine(waiting)
    for partition in sorted(arrived):
        yield from task(partition, Inbox(arrived.pop(partition)))


def freeze_memory() -> None:
    """Take loaded modules out of the garbage collector: Spark runs it after each task, longer than most tasks take."""
    if len(sys.modules) > _LOADED[0]:
        _LOADED[0] = len(sys.modules)
        gc.collect()
        gc.freeze()


@without_pandas_advice()
def frame_of(spark: SparkSession, messages: Iterable[Message]) -> DataFrame:
    """Return messages of this process as a data frame."""
    return spark.createDataFrame(pa.Table.from_batches([to_arrow(messages, SPILL.get())]))


@without_pandas_advice()
def collect(frame: DataFrame, kind: type[M]) -> list[M]:
    """Return the messages of a data frame, which are all of one kind, in this process, by partition and sender."""
    found = [one for one in from_arrow(frame.toArrow().to_batches()) if isinstance(one, kind)]
    return sorted(found, key=lambda one: (one.partition, one.sender))


def counts(frame: DataFrame, n_partitions: int) -> list[int]:
    """Return the `count` of the one message of each partition, 0 where there is none, without the payloads."""
    found = [0] * n_partitions
    for partition, count in frame.select("partition", "count").collect():
        found[partition] = count
    return found


def resend(frame: DataFrame, partition: str, n: int | None = None) -> DataFrame:
    """Return messages with another partition, in Spark's SQL; with `n`, n copies, of which each is `one` in it."""
    if n is not None:
        partition = f"explode(transform(sequence(0, {n - 1}), one -> {partition}))"
    return frame.selectExpr(f"{partition} as partition", "sender", "kind", "count", "payload")


def of_kind(frame: DataFrame, kind: type[Message]) -> DataFrame:
    """Return the messages of one kind."""
    return frame.where(f"kind = '{kind.__name__}'")


def rows_of_messages(frame: DataFrame, kind: type[M], arrays_of: Callable[[M], list[Any]], schema: str) -> DataFrame:
    """Return the rows that `arrays_of` makes of each message of a kind, as a data frame of this schema."""
    names = [column.split()[0] for column in schema.split(", ")]

    def mapped(batches: Batches) -> Batches:
        for one in Inbox(from_arrow(batches)).every(kind):
            yield pa.record_batch(arrays_of(one), names=names)

    return map_batches(frame, mapped, schema)


@contextmanager
def persisting() -> Iterator[Persist]:
    """Hand out what lets Spark keep a data frame on its disks, as soon as it has made it, until the block ends."""
    with ExitStack() as stack:

        def persist(frame: DataFrame) -> DataFrame:
            from pyspark import StorageLevel

            stack.callback(frame.persist(StorageLevel.DISK_ONLY).unpersist)
            return frame

        yield persist


@contextmanager
def checkpoints(config: SparkConfig, fingerprint: Mapping[str, object]) -> Iterator[Checkpoint]:
    """Keep the finished parts of a job while it runs, or longer in a work folder, which is of one `fingerprint`."""
    with persisting() as persist:
        checkpoint = Checkpoint(config.spark, config.work and root_of(config.work), persist)
        if checkpoint.root is not None:
            checkpoint.check({"goodfence": goodfence.__version__, **fingerprint})
        yield checkpoint


def root_of(folder: str | os.PathLike[str]) -> str:
    """Return a folder as Spark names it: on this machine, unless it says where."""
    path = os.fspath(folder)
    return path if "://" in path else str(Path(path).absolute())


@dataclass(frozen=True, eq=False, repr=False)
class Checkpoint:
    """The finished parts of one job."""

    spark: SparkSession
    root: str | None  # the work folder, perhaps of another machine; None where Spark keeps the parts
    persist: Persist

    def keep(self, name: str, make: Callable[[], DataFrame]) -> DataFrame:
        """Return the messages called `name`: as they were written, or as `make` makes them, which are then kept."""
        if self.root is None:
            return self.persist(make())
        path = f"{self.root}/{name}"
        if not self.holds(f"{name}/_SUCCESS"):
            make().write.mode("overwrite").parquet(path)
        return self.spark.read.schema(SCHEMA).parquet(path)

    @failures_in_one_sentence()
    def check(self, fingerprint: Mapping[str, object]) -> None:
        """Raise where the folder holds parts of another job."""
        known, stated = self.text("fingerprint"), json.dumps(fingerprint, sort_keys=True)
        if known is None:
            self.write("fingerprint", stated)
        elif known != stated:
            raise SettingError("work holds parts of a job with other ratings, settings or version; name another folder")

    def text(self, name: str) -> str | None:
        """Return the text that `write` left; None unless it was written to the end."""
        if not self.holds(f"{name}/_SUCCESS"):  # Spark writes it last
            return None
        return str(self.spark.read.text(f"{self.root}/{name}").collect()[0][0])

    def write(self, name: str, text: str) -> None:
        """Leave one line of text."""
        frame = self.spark.createDataFrame([(text,)], "value string").coalesce(1)
        frame.write.mode("overwrite").text(f"{self.root}/{name}")

    def remove_others(self, prefix: str, kept: Iterable[str]) -> None:
        """Remove what the folder holds by names that begin so, but for some."""
        place, files = self._at("")
        for name in [str(one.getPath().getName()) for one in files.listStatus(place)]:
            if name.startswith(prefix) and name not in {*kept}:
                files.delete(self._at(name)[0], True)

    def holds(self, name: str) -> bool:
        """Return whether the folder has a file or a folder of this name; the empty name is the folder itself."""
        place, files = self._at(name)
        return bool(files.exists(place))

    def _at(self, name: str) -> tuple[Any, Any]:
        spark: Any = self.spark
        place = spark._jvm.org.apache.hadoop.fs.Path(f"{self.root}/{name}".rstrip("/"))
        return place, place.getFileSystem(spark._jsc.hadoopConfiguration())


if __name__ == "__main__":  # Spark forks its workers from here, with numba and arrow loaded
    from pyspark.daemon import manager

    gc.freeze()
    manager()
