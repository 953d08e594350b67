"""Jobs: what takes longer than an answer is done one after the other in a child process, and can be stopped."""

from __future__ import annotations

import json
import os
import queue
import secrets
import subprocess  # nosec
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from goodfence.errors import Conflict, ServiceProblem
from goodfence.service.store import Store

After: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""What the service does with a result before the job counts as done; it returns what is shown of it."""
_COLUMNS = ("id", "kind", "state", "done", "total", "result", "error", "begun", "ended")
_MOST_WAITING = 16
_OVER = ("done", "failed", "stopped")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Waiting:
    id: str
    request: dict[str, Any]
    after: After


class Jobs:
    """The queue of jobs, their records, and the child that does them.

    Parameters
    ----------
    store : Store
        Where they are recorded; what was under way when the service last stopped has failed.
    folder : Path
        That of the service, which the child is given.
    """

    def __init__(self, store: Store, folder: Path) -> None:
        self._store, self._folder = store, folder
        self._asked: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._child: subprocess.Popen[str] | None = None
        self._lock, self._current, self._stopped, self._closing = threading.Lock(), "", set[str](), False
        self._changed = threading.Condition()
        ended = (json.dumps(_error(ServiceProblem("the service stopped before the job ended"))), int(time.time()))
        sql = "UPDATE job SET state = 'failed', error = ?, ended = ? WHERE state IN ('waiting', 'running')"
        store.write(lambda writer: writer.run(sql, *ended))
        self._thread = threading.Thread(target=self._run_all, name="goodfence-jobs", daemon=True)
        self._thread.start()

    def begin(self, kind: str, request: dict[str, Any], after: After) -> str:
        """Queue a job and return its id."""
        waiting = self._store.read("SELECT count(*) FROM job WHERE state IN ('waiting', 'running')")[0][0]
        if waiting >= _MOST_WAITING:
            raise Conflict("too many jobs are waiting; stop one, or wait")
        job = secrets.token_hex(6)
        told = {name: value for name, value in request.items() if name not in ("data", "ledger")}  # may hold a password
        row = (job, kind, json.dumps(told), int(time.time()))
        sql = "INSERT INTO job (id, kind, state, done, total, request, begun) VALUES (?, ?, 'waiting', 0, 0, ?, ?)"
        self._store.write(lambda writer: writer.run(sql, *row))
        self._asked.put(_Waiting(id=job, request={"kind": kind, "job": job, **request}, after=after))
        return job

    def listed(self, n: int = 20) -> list[dict[str, Any]]:
        """Return the newest jobs."""
        sql = f"SELECT {', '.join(_COLUMNS)} FROM job ORDER BY begun DESC, rowid DESC LIMIT ?"  # noqa: S608
        return [_told(row) for row in self._store.read(sql, n)]

    def find(self, job: str) -> dict[str, Any] | None:
        """Return what is known of a job."""
        rows = self._store.read(f"SELECT {', '.join(_COLUMNS)} FROM job WHERE id = ?", job)  # noqa: S608
        return _told(rows[0]) if rows else None

    def request(self, job: str) -> dict[str, Any]:
        """Return what a job was asked to do."""
        [(text,)] = self._store.read("SELECT request FROM job WHERE id = ?", job)
        return dict(json.loads(text))

    def events(self, job: str, after: int = 0) -> list[dict[str, Any]]:
        """Return what a job reported after the event of a number."""
        rows = self._store.read("SELECT n, body FROM job_event WHERE job = ? AND n > ? ORDER BY n", job, after)
        return [{"n": n, **json.loads(body)} for n, body in rows]

    def wait(self, job: str, seconds: float) -> dict[str, Any] | None:
        """Return what is known of a job once it is over, or after so many seconds."""
        end = time.monotonic() + seconds
        while (found := self.find(job)) is not None and found["state"] not in _OVER:
            left = end - time.monotonic()
            if left <= 0:
                break
            with self._changed:
                self._changed.wait(min(left, 0.5))
        return found

    def stop(self, job: str) -> None:
        """Stop a job; one that is over stays as it is."""
        self._stopped.add(job)
        self._end(job, "stopped", None, None, only=("waiting", "running"))
        with self._lock:
            if self._current == job:
                self._kill()

    def close(self) -> None:
        """Stop what is under way."""
        self._closing = True
        self._asked.put(None)
        with self._lock:
            self._kill()
        self._thread.join()

    def _kill(self) -> None:
        if self._child is not None:
            self._child.kill()

    def _run_all(self) -> None:
        while (waiting := self._asked.get()) is not None and not self._closing:
            if waiting.id not in self._stopped:
                self._run(waiting)
        self._drop_child()

    def _drop_child(self) -> None:
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()

    def _run(self, waiting: _Waiting) -> None:
        begun = "UPDATE job SET state = 'running' WHERE id = ? AND state = 'waiting'"
        self._store.write(lambda writer: writer.run(begun, waiting.id))
        with self._lock:
            self._current = waiting.id
        try:
            result = waiting.after(self._worked(waiting))
        except ServiceProblem as problem:
            self._end(waiting.id, "failed", None, _error(problem), only=("running",))
        except Exception as fault:  # a job must never end the queue; only the kind of the fault is told
            self._end(waiting.id, "failed", None, _error(ServiceProblem(type(fault).__name__)), only=("running",))
        else:
            self._end(waiting.id, "done", result, None, only=("running",))
        finally:
            with self._lock:
                self._current = ""

    def _worked(self, waiting: _Waiting) -> dict[str, Any]:
        """Return the result of the child; its events are recorded as they come."""
        child, n = self._started(), 0
        try:
            assert child.stdin is not None and child.stdout is not None  # noqa: S101, PT018 - they are pipes
            child.stdin.write(json.dumps(waiting.request) + "\n")
            child.stdin.flush()
            for line in child.stdout:
                told = json.loads(line)
                if "result" in told:
                    return dict(told["result"])
                if "error" in told:
                    raise _failed(told["error"])
                n += 1
                self._progress(waiting.id, n, told)
        except (BrokenPipeError, ValueError):
            pass
        self._drop_child()
        raise ServiceProblem("the process of the job ended")

    def _started(self) -> subprocess.Popen[str]:
        if self._child is not None and self._child.poll() is None:
            return self._child
        self._drop_child()
        command = [sys.executable, "-m", "goodfence.service.worker", str(self._folder)]
        with self._lock:
            pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
            self._child = subprocess.Popen(command, text=True, env=environment, **pipes)  # noqa: S603 - ourselves
        return self._child

    def _progress(self, job: str, n: int, told: dict[str, Any]) -> None:
        done, total = told.get("progress", (None, None))
        sql = "UPDATE job SET done = coalesce(?, done), total = coalesce(?, total) WHERE id = ?"
        event = "INSERT INTO job_event (job, n, body) VALUES (?, ?, ?)"

        def work(writer: Any) -> None:
            writer.run(sql, done, total, job)
            if "event" in told:
                writer.run(event, job, n, json.dumps(told["event"]))

        self._store.write(work)
        with self._changed:
            self._changed.notify_all()

    def _end(self, job: str, state: str, result: Any, error: Any, *, only: tuple[str, ...]) -> None:
        told = [None if value is None else json.dumps(value) for value in (result, error)]
        states = ", ".join("?" * len(only))
        sql = f"UPDATE job SET state = ?, result = ?, error = ?, ended = ? WHERE id = ? AND state IN ({states})"  # noqa: S608
        values = (state, *told, int(time.time()), job, *only)
        with suppress(ServiceProblem):  # the service is stopping: the next start settles it
            self._store.write(lambda writer: writer.run(sql, *values))
        with self._changed:
            self._changed.notify_all()


def _told(row: tuple[Any, ...]) -> dict[str, Any]:
    found = dict(zip(_COLUMNS, row, strict=True))
    for name in ("result", "error"):
        found[name] = None if found[name] is None else json.loads(found[name])
    return found


def _error(problem: ServiceProblem) -> dict[str, str]:
    return {"code": problem.code, "message": str(problem)}


def _failed(error: dict[str, str]) -> ServiceProblem:
    problem = ServiceProblem(error["message"])
    problem.code = error["code"]
    return problem
