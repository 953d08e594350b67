"""A Spark session whose workers run this very Python; jobs on it that show a bar, and fail in one sentence."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from goodfence.errors import MissingExtra, SparkProblem
from goodfence.neighbours.threads import Advance, bar, shown
from goodfence.spark.config import SparkConfig

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_ANY_PYTHON = "python3"
"""What Spark runs its workers with where nobody says otherwise."""
_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",  # of which most holds messages on their way
}
"""What a session is started with where nobody says otherwise."""
_NEVER = str(4 << 30)
_ON_THIS_MACHINE = {
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:TieredStopAtLevel=1",
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": _NEVER,
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": _NEVER,
    "spark.python.daemon.module": "goodfence.spark.daemon",
}
"""With a master `local`: Java only hands work out, and its compiler would take cores from the kernels. A worker keeps
the memory that a task took for the next one, until it has had nothing to do for a minute: taken anew, it is slow."""
_NOTHING_MORE: Mapping[str, str] = MappingProxyType({})
_CANCELLED = "SPARK_JOB_CANCELLED"
_LOOK_UP = 0.5
_UNSET: Any = None
"""What unsets a property, though Spark's types do not say so."""


def require_spark() -> None:
    """Raise unless PySpark and Java are there."""
    if find_spec("pyspark") is None:
        raise MissingExtra(
            "pyspark must be installed for the Spark engine; pip install 'goodfence[spark]'"
        )
    if find_java() is None:
        raise MissingExtra(
            "Java 17 or later must be installed for the Spark engine, and none was found; install it "
            "(on Debian: apt-get install default-jre-headless) or set JAVA_HOME"
        )


def find_java() -> str | None:
    """Return the Java that Spark would start, if there is one."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")


def start(
    master: str = "local[*]",
    *,
    log: str | os.PathLike[str] | None = None,
    conf: Mapping[str, str] = _NOTHING_MORE,
) -> SparkSession:
    """Return a session on `master`, or the one that runs already.

    Parameters
    ----------
    master : str, default "local[*]"
        Where: `local[2]`, `yarn`, `spark://host:7077`, ...
    log : path, optional
        A file for what Spark itself writes; None throws it away, since its traces may quote ratings.
    conf : mapping of str to str
        Settings of Spark itself, as in `{"spark.driver.memory": "4g"}`.
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
            f"Spark must start with the master {master!r}, and did not; Java 17 or later is needed, and "
            "Spark's own log says more"
        ) from None


def config_of(spark: SparkSession | None, config: SparkConfig | None) -> SparkConfig:
    """Return the configuration that was given, or the usual one of a session.

    That is the one given, or the one that runs, or a new one on this machine. Its workers run this Python, unless
    PYSPARK_PYTHON says otherwise.
    """
    if config is not None:
        return config
    require_spark()
    from pyspark.sql import SparkSession

    session = spark or SparkSession.getActiveSession() or start()
    context = session.sparkContext
    if "PYSPARK_PYTHON" not in os.environ and context.pythonExec == _ANY_PYTHON:
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
        if _CANCELLED in str(problem):  # Spark answers Ctrl-C itself, perhaps before Python does
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
    try:
        with failures_in_one_sentence(), bar(what, n_tasks, show=config.progress) as advance:
            looking = threading.Thread(
                target=_advance_until, args=(over, context, group, n_tasks, advance), daemon=True
            )
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
        for name in ("spark.jobGroup.id", "spark.job.description"):
            context.setLocalProperty(name, _UNSET)


def _advance_until(
    over: threading.Event, context: SparkContext, group: str, n_tasks: int, advance: Advance
) -> None:
    """Advance the bar by the tasks that are done."""
    told, tracker = 0, context.statusTracker()
    while not over.wait(_LOOK_UP):
        jobs = (tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group))
        stages = {stage for found in jobs if found is not None for stage in found.stageIds}
        infos = (tracker.getStageInfo(stage) for stage in stages)
        n_done = sum(int(info.numCompletedTasks) for info in infos if info is not None)
        advance(max(0, min(n_done, n_tasks) - told))
        told = max(told, min(n_done, n_tasks))


@contextmanager
def without_pandas_advice() -> Iterator[None]:
    """Leave out what PySpark says about the version of pandas: no data frame of pandas is made here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*pandas", category=FutureWarning)
        yield
