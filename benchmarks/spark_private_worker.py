"""Private models of a parquet file in one way, in its own process: prints times and checksums as JSON.

local     on this machine
spark     with a master local[2]
cluster   with a standalone master and two worker processes; then once more while a task is so slow that it is run
          twice (speculation), and once more while a worker is killed in the middle of a task

With `short` at the end only the means are fitted.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import goodfence as gf
from benchmarks.spark_cluster import standalone
from goodfence import spark as engine
from goodfence.data.frame import ReadOptions
from goodfence.spark import shuffle

SHOWN = "fit PrivateCF, rating"
SHORT = "short"  # the last word for data where the other jobs take too long
LISTED = "recommend to everybody" + ", PrivateMeans" * (SHORT in sys.argv)
N = 10
_SLOW = 12.0  # seconds: longer than everything else of a stage
_CONF = {
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
}
_SPECULATING = {
    "spark.executor.memory": "1g",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "1000ms",
    "spark.sql.shuffle.partitions": "4",
}


def jobs(seed):
    """Return what is fitted, by name."""
    rated = {"items": "from ratings", "rng": seed}
    if SHORT in sys.argv:
        return {
            "fit PrivateMeans, rating": lambda: gf.PrivateMeans(epsilon=1.0, **rated),
            "fit PrivateMeans, user": lambda: gf.PrivateMeans(epsilon=1.0, unit="user", **rated),
        }
    return {
        "fit PrivateMeans, rating": lambda: gf.PrivateMeans(epsilon=1.0, **rated),
        SHOWN: lambda: gf.PrivateCF(epsilon=4.0, **rated),
        "fit PrivateCF, user": lambda: gf.PrivateCF(epsilon=8.0, unit="user", **rated),
        "fit PrivateTopN, event": lambda: gf.PrivateTopN(epsilon=4.0, **rated),
    }


def options_for(model, scale):
    return {"likes": 4.0} if model.learns_from == "implicit" else {"scale": scale}


def checksum(model):
    digest = hashlib.sha256()
    for name, array in sorted(model._arrays().items()):
        digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()[:16]


def sum_of(table):
    """Return what tells lists from others, whatever their order."""
    rows = zip(*(table[name].to_pylist() for name in ("user", "rank", "item", "score")), strict=True)
    return hashlib.sha256(repr(sorted(rows)).encode()).hexdigest()[:16]


def timed(call):
    start = time.perf_counter()
    found = call()
    return found, time.perf_counter() - start


def local(path, scale):
    found = {}
    for name, make in jobs(1).items():
        listing = name == (SHOWN if SHORT not in sys.argv else next(iter(jobs(1))))
        options = options_for(make(), scale)
        model, seconds = timed(lambda make=make, options=options: make().fit(gf.load(path, **options)))
        found[name] = {"seconds": seconds, "checksum": checksum(model)}
        if listing:
            lists, seconds = timed(
                lambda model=model: model.recommend_many(gf.load(path, scale=scale).users, N).table()
            )
            found[LISTED] = {"seconds": seconds, "checksum": sum_of(lists)}
    return found


def config_of(session, model, scale):
    return engine.SparkConfig(spark=session, read=ReadOptions(**options_for(model, scale)), progress=False)


def fitted(session, make, path, scale):
    return engine.fit(make(), path, config=config_of(session, make(), scale))


def there(session, path, scale):
    found = {}
    for name, make in jobs(1).items():
        listing = name == (SHOWN if SHORT not in sys.argv else next(iter(jobs(1))))
        model, seconds = timed(lambda make=make: fitted(session, make, path, scale))
        found[name] = {"seconds": seconds, "checksum": checksum(model)}
        if listing:
            with tempfile.TemporaryDirectory() as folder:

                def write(model=model, make=make, folder=folder):
                    lists = engine.recommend(path, model, n=N, config=config_of(session, make(), scale))
                    lists.write.parquet(f"{folder}/lists")
                    return lists

                lists, seconds = timed(write)
                found[LISTED] = {"seconds": seconds, "checksum": sum_of(lists.toArrow())}
                lists.unpersist()
    return found


def slow_once(marks):
    """Let the first attempt at the sums of one block note where it runs, and wait; return what undoes that."""
    run_tasks, folder = shuffle.run_tasks, str(marks)

    def delaying(frame, task, combine=None):
        def delayed(partition, inbox):
            from pyspark import TaskContext

            for number, sent in enumerate(task(partition, inbox)):
                if type(sent).__name__ == "Totals" and sent.sender == 1 and number == 0:
                    known = list(Path(folder).iterdir())
                    Path(folder, f"{TaskContext.get().taskAttemptId()}").write_text(str(os.getpid()))
                    if not known:
                        time.sleep(_SLOW)
                yield sent

        return run_tasks(frame, delayed, combine)

    shuffle.run_tasks = delaying
    return lambda: setattr(shuffle, "run_tasks", run_tasks)


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def worker_with(cluster, pid):
    """Return the worker of the cluster that has begun this process."""
    names = {process.pid: name for name, process in cluster.processes.items()}
    while pid not in names:
        pid = parent(pid)
    return names[pid]


def kill_the_slow(cluster, marks, killed):
    while not (found := [one for one in marks.iterdir() if one.read_text()]):
        time.sleep(0.05)
    name = worker_with(cluster, int(found[0].read_text()))
    cluster.kill(name)
    killed.append(name)


def with_faults(cluster, session, path, scale):
    """Fit while a task runs twice, and while a worker is killed in the middle of a task."""
    found, make = {}, jobs(1)[SHOWN]
    for name in ("a task runs twice", "a worker is killed"):
        with tempfile.TemporaryDirectory() as folder:
            marks, killed = Path(folder), []
            undo = slow_once(marks)
            if name == "a worker is killed":
                threading.Thread(target=kill_the_slow, args=(cluster, marks, killed), daemon=True).start()
            model, seconds = timed(lambda: fitted(session, make, path, scale))
            undo()
            attempts = len(list(marks.iterdir()))
        found[f"{SHOWN}; {name}"] = {"seconds": seconds, "checksum": checksum(model), "attempts": attempts}
        found[f"{SHOWN}; {name}"]["killed"] = len(killed)
    return found


def main() -> None:
    way, path, low, high, step = sys.argv[1:6]
    scale, rounds = (float(low), float(high), float(step)), 4 if SHORT in sys.argv else 2
    log = Path(tempfile.gettempdir()) / "goodfence-spark-private.log"
    if way == "local":
        found = [local(path, scale) for _ in range(rounds)]
    elif way == "spark":
        session = engine.start("local[2]", log=log, conf=_CONF)
        found = [there(session, path, scale) for _ in range(rounds)]
        session.stop()
    else:
        with tempfile.TemporaryDirectory() as folder, standalone(Path(folder)) as cluster:
            session = engine.start(cluster.master, log=log, conf={**_CONF, **_SPECULATING})
            found = [there(session, path, scale) for _ in range(2 if way == "cluster" else 0)]
            found.append(with_faults(cluster, session, path, scale))
            session.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
