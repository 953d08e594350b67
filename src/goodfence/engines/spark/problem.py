"""What can go wrong on a cluster, in one sentence and without what Spark's own traces quote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from goodfence.errors import GoodfenceError

_CANCELLED = "SPARK_JOB_CANCELLED"


class SparkProblem(GoodfenceError, RuntimeError):
    """A job failed on the cluster."""

    code = "GF402"
    exit_code = 4


@contextmanager
def failing_plainly() -> Iterator[None]:
    """Turn what Spark raises into one sentence: its own message holds a trace, and a trace may hold ratings."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as problem:
        if _CANCELLED in str(
            problem
        ):  # Spark answers Ctrl-C itself, and may do so before Python does
            raise KeyboardInterrupt from None
        raise SparkProblem(
            f"the job failed on the cluster ({type(problem).__name__}); Spark's own log says why. Where a task "
            "ran out of memory, lower memory= (--memory) or give the tasks more"
        ) from None
