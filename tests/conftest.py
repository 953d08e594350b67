"""Shared by all tests: real ratings, the lanes of `scripts/test`, and a summary of what was skipped.

A `real` test names the data sets it needs, ``@pytest.mark.real("ml-100k")``; without a name it needs all of them.
A `hostile` test runs over a corpus: a part of it by default, all of it with ``--whole``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import settings

from goodfence.data.catalogue import DATASETS
from tests.support.postgres import NOT_THERE, Cluster, cluster, programs

REAL_FOLDERS = tuple(dict.fromkeys(data.folder for data in DATASETS.values() if not data.bundled))
REAL = "real ratings"
OTHER = "other"
_GROUP = "skip group"
SHARING = ("spark", "report")
"""Folders of tests with a Spark session or rendered pages in common."""

HOSTILE = (
    "test_bad_inputs.py",
    "test_fuzz_seeds.py",
    "test_hostile.py",
    "test_hostile_models.py",
    "test_readers_survive.py",
)
"""Files of tests that feed a corpus of bad input."""
SHARE = 8
"""The default lane takes one case in this many of a corpus."""

# Slow machines are no bug, and a test that fails today must fail tomorrow.
settings.register_profile("goodfence", deadline=None, derandomize=True)
settings.load_profile("goodfence")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """Return a PostgreSQL cluster for all tests of this process."""
    if programs() is None:
        pytest.skip(NOT_THERE)
    with cluster() as running:
        yield running


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="a skipped test is an error")
    parser.addoption("--whole", action="store_true", help="run every case of the long corpora")


def real_folder() -> Path | None:
    """Return the folder with real ratings, if one is named."""
    name = os.environ.get("GOODFENCE_DATA")
    return Path(name) if name else None


def missing_sets(names: tuple[str, ...]) -> list[str]:
    """Return which of these data sets (all, if none is named) are not there."""
    folder = real_folder()
    wanted = names or REAL_FOLDERS
    return [name for name in wanted if folder is None or not (folder / name).is_dir()]


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # What shares a costly fixture stays with one worker, so it begins first: no other worker waits for it in the end.
    items.sort(key=lambda item: worker_group(item) not in SHARING)
    for item in items:
        item.add_marker(pytest.mark.xdist_group(worker_group(item)))
        if item.path.parent.name == "statistical":
            item.add_marker(pytest.mark.statistical)
        if item.path.name in HOSTILE:
            item.add_marker(pytest.mark.hostile)
        names = [name for mark in item.iter_markers("real") for name in mark.args]
        if item.get_closest_marker("real") is None or not missing_sets(tuple(names)):
            continue
        missing = ", ".join(missing_sets(tuple(names)))
        item.user_properties.append((_GROUP, REAL))
        reason = f"set GOODFENCE_DATA to a folder with {missing}"
        item.add_marker(pytest.mark.skip(reason=reason))


def worker_group(item: pytest.Item) -> str:
    """Return whose tests share a worker of a parallel run: those of a file, or of a folder with a costly fixture."""
    folder = item.path.parent.name
    without_session = folder == "spark" and item.get_closest_marker("spark") is None
    return folder if folder in SHARING and not without_session else f"{folder}/{item.path.name}"


@pytest.fixture
def share(request: pytest.FixtureRequest) -> Callable[[int], int]:
    """How many of n cases to run: all of them with --whole, else one in SHARE."""
    whole = request.config.getoption("--whole")
    return lambda n: n if whole else max(n // SHARE, 1)


@pytest.fixture
def real_data() -> Path:
    """The folder with real ratings; only for tests marked `real`."""
    folder = real_folder()
    assert folder is not None, "only for tests marked real"
    return folder


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the cache of whoever runs it."""
    cache = tmp_path_factory.getbasetemp() / "cache"
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(cache))


def skipped_groups(reports: Sequence[pytest.TestReport | pytest.CollectReport]) -> dict[tuple[str, str], int]:
    """Return how many tests were skipped, by group and by what was missing."""
    groups: Counter[tuple[str, str]] = Counter()
    for report in reports:
        properties = dict(getattr(report, "user_properties", ()))  # a whole file has none
        group = str(properties.get(_GROUP, OTHER))
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        groups[group, reason.removeprefix("Skipped: ")] += 1
    return dict(groups)


def skip_lines(groups: dict[tuple[str, str], int]) -> list[str]:
    """Return one line for each group, with everything that it missed."""
    lines = []
    for group in dict.fromkeys(group for group, _ in groups):
        reasons = [reason for name, reason in groups if name == group]
        n_tests = sum(count for (name, _), count in groups.items() if name == group)
        if group == REAL:
            missing = missing_sets(())
            reasons = [f"set GOODFENCE_DATA to a folder with {', '.join(missing)}"]
        tests = "test" if n_tests == 1 else "tests"
        lines.append(f"skipped: {group} ({n_tests} {tests}): {'; '.join(reasons)}")
    return lines


def _skipped(config: pytest.Config) -> dict[tuple[str, str], int]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter is not None else []
    return skipped_groups(reports)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    strict = session.config.getoption("--no-skips")
    if strict and session.exitstatus == pytest.ExitCode.OK and _skipped(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = skip_lines(_skipped(config))
    if not lines:
        return
    strict = config.getoption("--no-skips")
    terminalreporter.section("skipped, and not allowed to be" if strict else "not everything was run")
    for line in lines:
        terminalreporter.line(line, red=strict, yellow=not strict)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes by their argument and position: what is packed holds the time, and workers must agree on names."""
    return argname if isinstance(val, bytes) else None
