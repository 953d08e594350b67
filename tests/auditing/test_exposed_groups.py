"""Who is exposed: groups add up, are never small, and tell no extreme."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import goodfence as gf
from goodfence.attack.report import AttackReport
from goodfence.attack.scoring import Outcomes, combination
from goodfence.auditing.survey import SMALLEST, Group, _grouped, by_activity, by_popularity
from goodfence.errors import DataError

ROUND = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}


@pytest.fixture(scope="module")
def report() -> AttackReport:
    films = gf.load("movietweetings")
    report: AttackReport = gf.KNNAttack(known=8).run(films, gf.KNN(k=20), targets=300, rng=7)
    return report


def test_outcomes_are_what_the_tallies_count(report: AttackReport) -> None:
    found = report.outcomes
    assert found is not None
    for happened, tally in (
        (found.recovered, report.informed.with_target),
        (found.recovered_without, report.informed.without_target),
        (found.guessed, report.informed.guessed),
    ):
        counted = np.bincount(found.owners, weights=happened, minlength=report.n_targets)
        np.testing.assert_array_equal(counted, tally.recovered)


def test_people_are_in_one_group_and_their_ratings_in_one_of_items(report: AttackReport) -> None:
    people, items = by_activity(report), by_popularity(report)
    assert sum(group.n_users for group in people) == report.n_targets
    for groups in (people, items):
        assert sum(group.n_hidden for group in groups) == report.n_hidden
        read = sum(group.recovery.value * group.n_hidden for group in groups) / report.n_hidden
        assert read == pytest.approx(report.recovery)
        guessed = sum(group.guess.value * group.n_hidden for group in groups) / report.n_hidden
        assert guessed == pytest.approx(report.guess)


def test_a_group_is_what_its_bounds_say(report: AttackReport) -> None:
    lengths = np.diff(report.ratings.csr.indptr)[report.rows]
    for group in by_activity(report):
        inside = (lengths >= group.least) & (lengths < (group.below or np.inf))
        assert int(inside.sum()) == group.n_users
        hidden = report.with_target.hidden[inside].sum()
        recovered = report.informed.with_target.recovered[inside].sum()
        assert recovered / hidden == pytest.approx(group.recovery.value)


def test_the_intervals_of_a_table_hold_together(report: AttackReport) -> None:
    """A group alone would have Student's 95%; g groups have 1 - 0.05/g each, so all hold with 95% at least."""
    groups = by_activity(report)
    assert len(groups) > 1
    lengths = np.diff(report.ratings.csr.indptr)[report.rows]
    with_target, without = report.informed.with_target, report.informed.without_target
    for group in groups:
        inside = (lengths >= group.least) & (lengths < (group.below or np.inf))
        gained = (with_target.recovered - without.recovered)[inside]
        hidden = with_target.hidden[inside]
        found = combination([(1.0, gained, hidden)])
        half = found.half_width(1 - 0.05 / len(groups))
        assert half > found.half_width()
        assert group.advantage.value == pytest.approx(found.value)
        assert group.advantage.high == pytest.approx(min(found.value + half, 1.0))


def made_up(owners: list[int]) -> Outcomes:
    n = len(owners)
    columns = np.arange(n)
    half: Any = columns % 2 == 0
    return Outcomes(
        owners=np.array(owners, dtype=np.int64), columns=columns, recovered=half, recovered_without=~half, guessed=half
    )


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 3000)), min_size=1, max_size=120))
def test_no_group_is_small_and_none_is_lost(cells: list[tuple[int, int]]) -> None:
    owners = [owner for owner, _ in cells]
    sizes = np.array([size for _, size in cells])
    groups = _grouped(sizes, made_up(owners))
    if len(set(owners)) < SMALLEST:
        assert groups == ()
        return
    assert sum(group.n_hidden for group in groups) == len(cells)
    assert min(group.n_users for group in groups) >= SMALLEST
    assert groups[0].least == 1
    assert groups[-1].below is None
    for one, following in pairwise(groups):
        assert one.below == following.least
    assert {group.least for group in groups} <= ROUND


def test_counts_alone_cannot_be_grouped(report: AttackReport) -> None:
    with pytest.raises(DataError, match="each hidden rating"):
        by_activity(replace(report, outcomes=None))


def test_a_group_holds_no_id() -> None:
    assert not [name for name in Group._fields if name in ("users", "items", "rows", "columns")]


def test_groups_begin_and_end_at_round_numbers(report: AttackReport) -> None:
    """1, 2 and 5 of every power of ten: who has most ratings is not told."""
    round_numbers = {step * 10**power for step in (1, 2, 5) for power in range(8)}
    for groups in (by_activity(report), by_popularity(report)):
        ends = [group.below for group in groups]
        assert ends[-1] is None
        assert set(ends[:-1]) <= round_numbers
        assert len(ends) > 1
