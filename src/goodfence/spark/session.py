"""A session whose workers run this very Python, and how a job runs on it: its memory, its blocks, its bar."""

from __future__ import annotations

import heapq
import os
import secrets
import shutil
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from goodfence.data.frame import ReadOptions
from goodfence.errors import MissingExtra, SparkProblem, require
from goodfence.parallel import Advance, bar, shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batches: TypeAlias = Iterator[pa.RecordBatch]
BatchTask: TypeAlias = Callable[[Batches], Batches]
MEMORY = 1 << 30  # bytes that a task may take in Python by default
_LEAST_MEMORY = 16 << 20
_GROUPS_PER_CORE = 3  # at least, so that the last groups do not run alone
_BYTES_OF_A_RATING = 32  # as it came, as a sparse matrix, and once more while that is made
_IDLE = 1.15  # the tiles may take this many times as long as with all cores busy to the end
_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",  # of which most holds messages on their way
    "spark.python.unix.domain.socket.enabled": "true",  # by TCP a task waits 40 ms for an acknowledgement
}
_NEVER = str(4 << 30)
# With a master `local`, Java only hands work out, and its compiler would take cores from the kernels. A worker keeps
# the memory of a task for the next one, since taking it anew is slow. All workers are forked from one loaded module.
_ON_THIS_MACHINE = {
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:TieredStopAtLevel=1",
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": _NEVER,
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": _NEVER,
    "spark.executorEnv.PYTHONWARNINGS": "ignore::RuntimeWarning:runpy",
    "spark.python.daemon.module": "goodfence.spark.shuffle",
}
_LOOK_UP = 0.5  # seconds between two looks at how many tasks are done


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkConfig:
    """Settings of a job on Spark; those above `read` do not change the result.

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
        How ratings are read from a path or a data frame.
    """

    spark: SparkSession
    memory: int = MEMORY
    block_rows: int | None = None
    work: str | None = None
    progress: bool | None = None
    read: ReadOptions = field(default_factory=ReadOptions)

    def __post_init__(self) -> None:
        rule = f"at least {_LEAST_MEMORY:,} bytes"
        require(self.memory >= _LEAST_MEMORY, "memory", rule, self.memory)
        rows = self.block_rows
        require(rows is None or rows >= 1, "block_rows", "at least 1", rows)

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
        # A row's ratings are there as they came, as a sparse matrix, laid out for rows and for columns; its candidates
        # as a buffer of 1.75 n, and as what is sent.
        bytes_of_a_row = int(36 * (n_ratings / n_rows)) + 2000 + (14 + 16) * n
        fitting = max(1, self.memory // (2 * bytes_of_a_row))
        n_blocks = max(balanced_blocks(self.n_cores), -(-n_rows // fitting))
        return -(-n_rows // n_blocks)  # all of about one size

    def rows_of_a_group(self, n_rows: int, n_ratings: int, k: int) -> int:
        """Return for how many rows a task predicts: the ratings of all their neighbours must fit in the memory."""
        if self.block_rows is not None:
            return min(self.block_rows, n_rows)
        each = max(1.0, _BYTES_OF_A_RATING * n_ratings / n_rows)
        fitting = n_rows if each * n_rows <= self.memory else int(self.memory / (k * each))
        return max(1, min(fitting, -(-n_rows // (_GROUPS_PER_CORE * self.n_cores))))


def balanced_blocks(n_cores: int) -> int:
    """Return the least number of blocks whose tiles keep all cores busy nearly to the end."""

    def longest(n_blocks: int) -> int:
        cores = [0] * n_cores  # each takes the next tile as soon as it is free
        for work in [2] * (n_blocks * (n_blocks - 1) // 2) + [1] * n_blocks:
            heapq.heapreplace(cores, cores[0] + work)
        return max(cores)

    return next(n for n in count(1) if longest(n) <= _IDLE * n * n / n_cores)


def require_spark() -> None:
    """Raise unless PySpark and Java are there."""
    if find_spec("pyspark") is None:
        raise MissingExtra("the Spark engine needs pyspark; pip install 'goodfence[spark]'")
    if find_java() is None:
        raise MissingExtra(
            "the Spark engine needs Java 17 or later; install it (on Debian: apt-get install "
            "default-jre-headless) or set JAVA_HOME"
        )


def find_java() -> str | None:
    """Return the Java that Spark would start, if there is one."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")


def start(
    master: str = "local[*]",
    *,
    log: str | os.PathLike[str] | None = None,
    conf: Mapping[str, str] = MappingProxyType({}),
) -> SparkSession:
    """Return a session on `master` (`local[2]`, `yarn`, `spark://host:7077`, ...), or the one that runs already.

    `log` is a file for what Spark itself writes; None discards it, since its traces may quote ratings. `conf` holds
    settings of Spark itself, as in `{"spark.driver.memory": "4g"}`.
    """
    require_spark()
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("goodfence")
    local = _ON_THIS_MACHINE if master.startswith("local") else {}
    for name, value in {**_CONF, **local, **conf}.items():
        builder = builder.config(name, value)
    try:
        with _standard_error_to(log):
            return builder.getOrCreate()
    except (PySparkException, RuntimeError, OSError):
        raise SparkProblem(
            f"Spark did not start with the master {master!r}; see its log, and check for Java 17"
        ) from None


def config_of(spark: SparkSession | None, config: SparkConfig | None) -> SparkConfig:
    """Return `config`, or the default one of `spark`, of the active session, or of a new one on this machine."""
    if config is not None:
        return config
    require_spark()
    from pyspark.sql import SparkSession

    session = spark or SparkSession.getActiveSession() or start()
    context = session.sparkContext
    if "PYSPARK_PYTHON" not in os.environ and context.pythonExec == "python3":  # Spark's default
        context.pythonExec = sys.executable
    return SparkConfig(spark=session)


@contextmanager
def _standard_error_to(log: str | os.PathLike[str] | None) -> Iterator[None]:
    """Let a process that is started meanwhile write its standard error to a file, or nowhere."""
    sys.stderr.flush()
    saved = os.dup(2)
    with Path(os.devnull if log is None else log).open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


@contextmanager
def failures_in_one_sentence() -> Iterator[None]:
    """Turn what Spark raises into one sentence: its own message holds a trace, and a trace may hold ratings."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as problem:
        if "SPARK_JOB_CANCELLED" in str(problem):  # Spark may answer Ctrl-C before Python does
            raise KeyboardInterrupt from None
        raise SparkProblem(
            f"the job failed on the cluster ({type(problem).__name__}); Spark's own log says why. Where a task "
            "ran out of memory, lower memory= (--memory) or give the tasks more"
        ) from None


@contextmanager
def job(config: SparkConfig, what: str, n_tasks: int) -> Iterator[None]:
    """Run a job with a bar; an interrupt cancels it on the cluster, and a failure is one sentence."""
    context = config.spark.sparkContext
    group = f"goodfence-{secrets.token_hex(6)}"
    context.setJobGroup(group, f"goodfence: {what}", interruptOnCancel=True)
    over = threading.Event()

    def look(advance: Advance) -> None:
        told, tracker = 0, context.statusTracker()
        while not over.wait(_LOOK_UP):
            jobs = (tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group))
            stages = {stage for found in jobs if found is not None for stage in found.stageIds}
            infos = (tracker.getStageInfo(stage) for stage in stages)
            n_done = sum(int(info.numCompletedTasks) for info in infos if info is not None)
            advance(max(0, min(n_done, n_tasks) - told))
            told = max(told, min(n_done, n_tasks))

    try:
        with failures_in_one_sentence(), bar(what, n_tasks, show=config.progress) as advance:
            looking = threading.Thread(target=look, args=(advance,), daemon=True)
            if shown(config.progress):
                looking.start()
            try:
                yield
            finally:
                over.set()
                if looking.is_alive():
                    looking.join()
    except BaseException:
        context.cancelJobGroup(group)
        raise
    finally:
        unset: Any = None  # what Spark's types do not say
        for name in ("spark.jobGroup.id", "spark.job.description"):
            context.setLocalProperty(name, unset)


@contextmanager
def planned_once(spark: SparkSession) -> Iterator[None]:
    """Let Spark run all stages as one job: to plan anew after each takes longer than a stage, and changes nothing."""
    name = "spark.sql.adaptive.enabled"
    before = spark.conf.get(name)
    spark.conf.set(name, "false")
    try:
        yield
    finally:
        spark.conf.set(name, str(before))


@contextmanager
def without_pandas_advice() -> Iterator[None]:
    """Leave out what PySpark says about the version of pandas: no data frame of pandas is made here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*pandas", category=FutureWarning)
        yield


@without_pandas_advice()
def map_batches(frame: DataFrame, task: BatchTask, schema: str) -> DataFrame:
    """Return what `task` makes of the arrow batches of each partition."""
    return frame.mapInArrow(task, schema)
