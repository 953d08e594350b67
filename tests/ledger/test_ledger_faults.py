"""Power cuts, failing calls, kills, races and planted faults, in short forms of `./scripts/bench ledger`."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.ledger_faults import (
    POINTS,
    SCENARIOS,
    WAYS,
    calls_of,
    failing_calls,
    kills,
    power_cuts,
    put_back,
    race,
)
from tests.support.ledgers import sqlite_store
from tests.support.planted_faults import FAULTS, caught

# The children do their work and end; no thread of the parent matters to them.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


def test_no_power_cut_loses_a_charge_or_an_artefact() -> None:
    n_calls = sum(calls_of(scenario) for scenario in SCENARIOS)
    assert sum(power_cuts(np.random.default_rng(7), n_calls // 2, SCENARIOS[1:]).values()) > 200


def test_a_call_that_fails_is_told_and_releases_nothing() -> None:
    found = failing_calls(every=7)
    assert found["refused"] > 100


@pytest.mark.parametrize("point", [*POINTS, None])
def test_a_killed_fit_is_resumed_and_every_draw_is_paid(point: str | None) -> None:
    rng = np.random.default_rng(7)
    with sqlite_store() as store:
        assert kills(store, rng, point) == 1 or point is None


def test_processes_that_race_get_exactly_the_cap() -> None:
    with sqlite_store() as store:
        race(store)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_put_back_is_noticed(way: str) -> None:
    with sqlite_store() as store:
        assert put_back(store, np.random.default_rng(7), way)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_is_planted_is_caught(name: str) -> None:
    assert caught(name)
