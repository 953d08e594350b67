"""Everybody is attacked unless that would take over a minute."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from goodfence.audit.audit import LONGEST, Pace, find_pace


def timed(once: float, each: float) -> tuple[Callable[[int], None], Callable[[], float]]:
    """Return an attack that takes this long, and its clock."""
    now = [0.0]

    def attack(n: int) -> None:
        now[0] += once + each * n

    return attack, lambda: now[0]


def pace_of(once: float, each: float, n_users: int) -> Pace:
    attack, clock = timed(once, each)
    return find_pace(attack, n_users, longest=LONGEST, clock=clock)


@pytest.mark.parametrize(("once", "each"), [(0.1, 0.001), (1.0, 0.01), (0.0, 0.05)])
def test_what_is_quick_is_done_for_everybody(once: float, each: float) -> None:
    assert pace_of(once, each, 1_000).n_targets == 1_000


@pytest.mark.parametrize(("once", "each"), [(0.0, 0.1), (1.0, 0.2), (3.0, 1.0), (0.0, 25.0)])
def test_what_is_slow_is_done_within_the_time(once: float, each: float) -> None:
    pace = pace_of(once, each, 10_000)
    assert pace.n_targets == 3 or once + each * pace.n_targets <= LONGEST
    assert pace.n_targets >= 3
    assert pace.seconds >= each * 10_000


def test_what_is_done_once_does_not_count_for_each() -> None:
    assert pace_of(1.5, 0.001, 10_000).n_targets == 10_000


def test_a_clock_that_stands_still_is_no_reason_to_sample() -> None:
    assert find_pace(lambda _: None, 1_000, longest=0.0, clock=lambda: 5.0).n_targets == 1_000


def test_few_people_are_all_attacked() -> None:
    assert pace_of(0.1, 0.1, 2).n_targets == 2
