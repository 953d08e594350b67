"""A pytest plugin: the fixture `assert_leak_below`, whose findings stand at the end of the run, passed or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

_FINDINGS = pytest.StashKey[list[str]]()


@pytest.fixture(name="assert_leak_below")
def leak_below_fixture(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Return `goodfence.auditing.leak_limit.assert_leak_below`, which also notes what it found."""

    def audited(recommender: Any, ratings: Any, limit: float, **settings: Any) -> Any:
        # Every run of pytest loads this file; what it needs, only those that ask.
        from goodfence.auditing.leak_limit import assert_leak_below as judge

        report = judge(recommender, ratings, limit, **settings)
        gained, fully = 100 * report.advantage, 100 * report.fully_recovered.value
        found = f"advantage {gained:.1f} of 100, {fully:.1f} of 100 users fully recovered"
        line = f"{request.node.name}: {found}, limit {limit:g}"
        request.config.stash.setdefault(_FINDINGS, []).append(line)
        return report

    return audited


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say how near to their limits the audits came."""
    findings = config.stash.get(_FINDINGS, [])
    if findings:
        terminalreporter.section("goodfence")
    for line in findings:
        terminalreporter.line(line)
