"""How far a job is: the tasks that Spark says are done, as a bar."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from goodfence.engines.progress import Advance, bar, shown
from goodfence.engines.spark.problem import failing_plainly
from goodfence.engines.spark.running import Running

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOOK_UP = 0.5
_NOTHING: Any = None
"""What unsets a property, though Spark's types do not say so."""


@contextmanager
def watched(running: Running, what: str, n_tasks: int) -> Iterator[None]:
    """Run jobs with a bar; an interrupt cancels them on the cluster, and a failure is one sentence."""
    context = running.spark.sparkContext
    group = f"goodfence-{secrets.token_hex(6)}"
    context.setJobGroup(group, f"goodfence: {what}", interruptOnCancel=True)
    over = threading.Event()
    try:
        with failing_plainly(), bar(what, n_tasks, show=running.progress) as advance:
            watching = threading.Thread(
                target=_watch, args=(context, group, n_tasks, advance, over), daemon=True
            )
            if shown(running.progress):
                watching.start()
            try:
                yield
            finally:
                over.set()
                if watching.is_alive():
                    watching.join()
    except BaseException:
        context.cancelJobGroup(group)
        raise
    finally:
        for name in ("spark.jobGroup.id", "spark.job.description"):
            context.setLocalProperty(name, _NOTHING)


def _watch(
    context: SparkContext, group: str, n_tasks: int, advance: Advance, over: threading.Event
) -> None:
    """Advance the bar by what is done, until it is over."""
    told = 0
    while not over.wait(_LOOK_UP):
        done = min(tasks_done(context, group), n_tasks)
        if done > told:
            advance(done - told)
            told = done


def tasks_done(context: SparkContext, group: str) -> int:
    """Return how many tasks of a group of jobs are done."""
    tracker = context.statusTracker()
    jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group))
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    infos = (tracker.getStageInfo(stage) for stage in stages)
    return sum(int(info.numCompletedTasks) for info in infos if info is not None)
