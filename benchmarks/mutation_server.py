"""Run chosen tests in a fresh process, again and again, without loading the libraries again.

One line of JSON comes in for each run and one goes out. The libraries are loaded once; each run is a fork that
loads goodfence itself anew, as it is on the disk at that moment.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import pytest

LOADED = (
    "numpy",
    "scipy.sparse",
    "scipy.stats",
    "scipy.special",
    "scipy.optimize",
    "numba",
    "pyarrow",
    "pyarrow.csv",
    "pyarrow.parquet",
    "narwhals",
    "typer",
    "rich",
    "jinja2",
)
"""No plugin of pytest: it would say that it can no longer rewrite their assertions."""
MOST_MEMORY = 8 * 2**30


class Chosen:
    """Keeps these tests, in this order, and remembers the first that failed."""

    def __init__(self, tests: list[str]) -> None:
        self.order = {test: at for at, test in enumerate(tests)}
        self.failed = ""
        self.n_run = 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Choose, and let Hypothesis stop at the first failing example: a smaller one tells nothing more here."""
        from hypothesis import Phase, settings  # not earlier: pytest wants to load it itself

        for item in items:
            written: Any = getattr(item, "obj", None)
            function: Any = getattr(written, "__func__", written)
            asked = getattr(function, "_hypothesis_internal_use_settings", None)
            if asked is not None:
                short = settings(asked, phases=[Phase.explicit, Phase.generate])
                function._hypothesis_internal_use_settings = short
        wanted = [item for item in items if item.nodeid in self.order]
        items[:] = sorted(wanted, key=lambda item: self.order[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember."""
        self.n_run += report.when == "call"
        if report.failed and not self.failed:
            self.failed = report.nodeid


def run(asked: dict[str, Any], answer: int) -> None:
    """Run the tests in this process and write to `answer` what came of it."""
    resource.setrlimit(resource.RLIMIT_CPU, (asked["seconds"], asked["seconds"] + 5))
    nowhere = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    chosen = Chosen(asked["tests"])
    files = list(dict.fromkeys(test.partition("::")[0] for test in asked["tests"]))
    options = ["-x", "-q", "-p", "no:cacheprovider", "--tb=short", *files]
    if any(file.startswith("src/") for file in files):
        options.append("--doctest-modules")
    code = int(pytest.main(options, plugins=[chosen]))
    told = {"code": code, "failed": chosen.failed, "n_run": chosen.n_run}
    os.write(answer, json.dumps(told).encode())


def forked(asked: dict[str, Any]) -> dict[str, Any]:
    """Return what came of a run in a process of its own."""
    start = time.monotonic()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        os.close(reading)
        try:
            run(asked, writing)
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(writing)
    ended, status, used = os.wait4(child, os.WNOHANG)
    while ended == 0:
        if time.monotonic() - start > asked["longest"] or _resident(child) > MOST_MEMORY:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.02)
        ended, status, used = os.wait4(child, os.WNOHANG)
    with contextlib.suppress(ProcessLookupError):  # what it started itself
        os.killpg(child, signal.SIGKILL)
    with os.fdopen(reading, "rb") as answer:
        told = answer.read()
    ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if not told and not ended_by:
        raise RuntimeError(f"the run itself failed; see {asked['log']}")
    result = json.loads(told) if told else {"code": -1, "failed": "", "n_run": 0}
    result["signal"] = ended_by
    result["processor"] = round(used.ru_utime + used.ru_stime, 2)
    return dict(result)


def _resident(process: int) -> int:
    """Return how many bytes of memory a process holds. What it reserves does not count: that is more by far."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1]) * 4096
    except (OSError, IndexError):
        return 0


def main() -> None:
    for name in LOADED:
        importlib.import_module(name)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(forked(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
