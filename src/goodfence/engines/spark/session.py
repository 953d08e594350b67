"""A Spark session whose workers run this very Python, and which says in one sentence what is missing."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from goodfence.engines.spark.problem import SparkProblem
from goodfence.errors import MissingExtra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ANY_PYTHON = "python3"
"""What Spark runs its workers with where nobody says otherwise."""

_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",  # of which most holds parcels on their way
}
"""What a session is started with where nobody says otherwise."""
_KEPT = str(4 << 30)
_ON_THIS_MACHINE = {
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:TieredStopAtLevel=1",
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": _KEPT,
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": _KEPT,
}
"""With a master `local`: Java only hands work out, and its compiler would take cores from the kernels. A worker keeps
the memory that a task took for the next one, until it has had nothing to do for a minute: taken anew, it is slow."""
_NOTHING_MORE: Mapping[str, str] = MappingProxyType({})


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
    master
        Where: `local[2]`, `yarn`, `spark://host:7077`, ...
    log
        A file for what Spark itself writes; None throws it away, since its traces may quote ratings.
    conf
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
        with _writing_to(log):
            return builder.getOrCreate()
    except (PySparkException, RuntimeError, OSError):
        raise SparkProblem(
            f"Spark must start with the master {master!r}, and did not; Java 17 or later is needed, and "
            "Spark's own log says more"
        ) from None


def session_of(spark: SparkSession | None) -> SparkSession:
    """Return the session that was given, or the one that runs, or a new one on this machine.

    Its workers run this Python, unless PYSPARK_PYTHON says otherwise.
    """
    require_spark()
    from pyspark.sql import SparkSession

    session = spark or SparkSession.getActiveSession() or start()
    context = session.sparkContext
    if "PYSPARK_PYTHON" not in os.environ and context.pythonExec == _ANY_PYTHON:
        context.pythonExec = sys.executable
    return session


@contextmanager
def _writing_to(log: str | os.PathLike[str] | None) -> Iterator[None]:
    """Let a process that is started meanwhile write its standard error to a file, or nowhere."""
    sys.stderr.flush()
    kept = os.dup(2)
    with Path(os.devnull if log is None else log).open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
