"""A standalone Spark cluster on this machine: a master and worker processes of their own, which may be killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark

_PATIENCE = 60.0  # seconds until a process must have begun


@dataclass
class Cluster:
    """A master and its workers; each worker is a process group, which holds its executors."""

    folder: Path
    port: int
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def master(self) -> str:
        """What a session names."""
        return f"spark://127.0.0.1:{self.port}"

    def begin(self, name: str, kind: str, *words: str) -> None:
        """Start a process of Spark, and wait until it says that it runs."""
        home = Path(pyspark.__file__).parent
        log = self.folder / f"{name}.log"
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *words]
        env = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
        with log.open("wb") as file:
            how: Any = {"stdout": file, "stderr": file, "start_new_session": True, "env": env}
            self.processes[name] = subprocess.Popen(command, **how)
        told = "Successfully registered with master" if kind == "worker.Worker" else "I have been elected leader"
        end = time.monotonic() + _PATIENCE
        while told not in log.read_text(errors="replace"):
            if time.monotonic() > end:
                raise RuntimeError(f"{name} of the cluster did not start")
            time.sleep(0.1)

    def kill(self, name: str) -> None:
        """Kill a process with everything that it has started."""
        process = self.processes.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def worker_of(self, host: str) -> str:
        """Return the name of the worker with this address."""
        return f"worker {host}"


@contextmanager
def standalone(folder: Path, n_workers: int = 2) -> Iterator[Cluster]:
    """Run a cluster whose workers have one core each, and addresses of their own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        cluster = Cluster(folder, free.getsockname()[1])
    port = str(cluster.port)
    try:
        cluster.begin("master", "master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0")
        for number in range(n_workers):
            host = f"127.0.0.{number + 2}"
            own = ("--host", host, "--cores", "1", "--memory", "2g", "--webui-port", "0")
            work = ("--work-dir", str(folder / f"work{number}"))
            cluster.begin(cluster.worker_of(host), "worker.Worker", *own, *work, cluster.master)
        yield cluster
    finally:
        for name in list(cluster.processes):
            cluster.kill(name)
