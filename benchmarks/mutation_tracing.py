"""Run tests and record which test executes which lines of the source.

python -m benchmarks.mutation_tracing DATA TESTS...     with the arguments of pytest; the record is written to DATA
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import coverage
import pytest

FEW = 5
"""Examples of Hypothesis."""
LONGEST = 5.0
"""Seconds of processor; a test that takes longer is ended, and left out."""
CASES = 3
"""Of a test with many cases the first are run: one that is like them would be asked after them."""
SHARED = "::*"
"""What stands for all tests of a file: lines that a fixture of all of them executes."""


class Recorder:
    """Names the lines that are executed by the test that executes them."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self.measured = measured
        self.seconds: dict[str, float] = {}
        """Of processor."""
        self.times: dict[str, float] = {}
        """How many times as long a test takes as it took here."""
        self.shared: dict[str, float] = defaultdict(float)
        """What is done once for all tests of a file, in seconds of processor."""
        self.unfit: set[str] = set()
        """Tests that did not pass: they cannot notice anything."""
        self.marked: dict[str, list[str]] = {}
        self._now = "none"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Name what a test executes."""
        self._now = item.nodeid
        self.marked[item.nodeid] = sorted({mark.name for mark in item.iter_markers()})
        self.measured.switch_context(item.nodeid)
        file = item.nodeid.partition("::")[0]
        before = _spent() - self.shared[file]
        signal.setitimer(signal.ITIMER_PROF, LONGEST)
        done = yield
        signal.setitimer(signal.ITIMER_PROF, 0)
        self.measured.switch_context("none")
        own = max(0.0, _spent() - self.shared[file] - before)
        self.seconds[item.nodeid] = own * self.times.get(item.nodeid, 1.0)
        return done

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Run a few cases of a test, and a few examples of Hypothesis: they execute the lines that many do."""
        from hypothesis import settings  # not earlier: pytest wants to load it itself

        n_cases = Counter[str]()
        for item in items:
            n_cases[item.nodeid.partition("[")[0]] += 1
            if n_cases[item.nodeid.partition("[")[0]] > CASES:
                item.add_marker(pytest.mark.skip(reason="one more case"))
            written: Any = getattr(item, "obj", None)
            function: Any = getattr(written, "__func__", written)
            asked = getattr(function, "_hypothesis_internal_use_settings", None)
            if asked is not None and asked.max_examples > FEW:
                few = settings(asked, max_examples=FEW)
                function._hypothesis_internal_use_settings = few
                self.times[item.nodeid] = asked.max_examples / FEW

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object]
    ) -> Generator[None, object, object]:
        """Name what all tests of a file have executed for them."""
        if fixturedef.scope == "function":
            return (yield)
        file = self._now.partition("::")[0]
        self.measured.switch_context(file + SHARED)
        before = _spent()
        done = yield
        self.shared[file] += _spent() - before
        self.measured.switch_context(self._now)
        return done

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what did not pass."""
        if not report.passed:
            self.unfit.add(report.nodeid)


class TooLong(Exception):
    """A test that takes longer than a mutation is given."""


def _end(_signal: int, _frame: object) -> None:
    raise TooLong


def _spent() -> float:
    """Return the seconds of processor of this process and of those that it started and that ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main(data: str, *arguments: str) -> int:
    measured = coverage.Coverage(
        data_file=data, config_file=False, source_pkgs=["goodfence"], messages=False
    )
    signal.signal(signal.SIGPROF, _end)
    measured.start()
    recorder = Recorder(measured)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    ended = pytest.main([*options, *arguments], plugins=[recorder])
    measured.stop()
    measured.save()
    kept = {
        test: {
            "seconds": round(seconds, 4),
            "shared": round(recorder.shared[test.partition("::")[0]], 4),
            "marks": recorder.marked.get(test, []),
        }
        for test, seconds in recorder.seconds.items()
        if test not in recorder.unfit
    }
    Path(f"{data}.json").write_text(json.dumps(kept), encoding="utf-8")
    return int(ended)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
