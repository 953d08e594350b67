"""For every release of `PrivateTopN`: look for neighbouring events that move it farther than is claimed."""

from __future__ import annotations

import numpy as np
import pytest

from goodfence.models.private.co_occurrence import co_occurrence_totals, count_totals
from goodfence.privacy.guarantee import Unit
from tests.support.event_sensitivity import RELEASES, UNITS, co_occurrence, profiles_of, random_enemy
from tests.support.sensitivity_hunt import LARGE, SMALL, USUAL


@pytest.mark.parametrize("mu", [SMALL, USUAL, LARGE])
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", RELEASES)
def test_nothing_moves_farther_than_is_claimed(name: str, unit: Unit, mu: float) -> None:
    found = RELEASES[name](unit, mu)
    print(f"{name}, {unit}, mu {mu:g}: largest ratio found {found:.4f}")  # noqa: T201 (the ratio is what one runs this for)
    assert found <= 1.0
    if mu > SMALL:  # there rounding, which the bound takes at its worst, leaves little to move
        assert found >= 0.95


@pytest.mark.parametrize("events", [2, 10, 100])
@pytest.mark.parametrize("name", RELEASES)
def test_events_of_one_user_move_it_by_the_root_of_their_number(name: str, events: int) -> None:
    release = RELEASES[name]
    assert 0.85 <= release("event", USUAL, events=events) / np.sqrt(events) <= 1.0


def test_a_bound_that_is_too_small_is_found_out() -> None:
    """The search itself: one event with the factor that is right for one user, larger by sqrt(2)."""
    assert co_occurrence("event", USUAL, of="user") > 1.3


def test_a_user_without_events_leaves_no_trace() -> None:
    enemy = random_enemy(np.random.default_rng(1))
    somebody, nobody = np.arange(5), np.arange(0)
    one, two = profiles_of(somebody), profiles_of(somebody, nobody)
    centre, chosen = enemy.centre(), np.arange(enemy.chosen)
    for unit in UNITS:
        assert (count_totals(one, unit, 1000) == count_totals(two, unit, 1000)).all()
        pair = [co_occurrence_totals(each, chosen, centre, unit, 1e5) for each in (one, two)]
        assert (pair[0] == pair[1]).all()
