"""Everybody is attacked unless that would take over a minute."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Self

import pytest

import goodfence as gf
from goodfence.attack.attack import Subject
from goodfence.attack.knn_attack import AdaptiveAttack
from goodfence.attack.strongest import TOO_LONG, strongest, usual_attackers, within_time
from goodfence.auditing.audit import LONGEST, Pace, find_pace
from tests.support.attack_worlds import tied_ratings


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


class Slow(gf.PrivateMeans):
    """A private model of which a fit takes a second, by a clock of its own."""

    fits = 0

    def fit(self, ratings: gf.Ratings) -> Self:
        Slow.fits += 1
        return super().fit(ratings)


@pytest.mark.parametrize(
    ("seconds", "n_kept", "fakes"),
    [(1e6, 16, {1, 10, 20, 50}), (5.0, 1, {10}), (11.0, 5, {10}), (59.0, 10, {10, 20})],
)
def test_attackers_for_whom_there_is_no_time_are_named(
    seconds: float, n_kept: int, fakes: set[int]
) -> None:
    """A plain attacker needs two fits for a target, one whose fakes help four for all items. Five targets choose.

    Four attackers with as many helpers ask the same, and differ in what they conclude.
    """
    ratings = tied_ratings(3, values=(1, 2, 3, 4, 5))
    subject = Subject(ratings, Slow(epsilon=1.0, items="from ratings"))
    attackers = usual_attackers(subject, known=3)
    kept, left_out = within_time(subject, attackers, seconds, clock=lambda: float(Slow.fits))
    assert (len(kept), {one.fakes for one in kept}) == (n_kept, fakes)
    slow = [one for one in left_out if one.reason.startswith(TOO_LONG)]
    assert bool(slow) is (n_kept < len(attackers))
    assert sum(one.attack.split(", with ")[1].count(",") + 1 for one in slow) == 16 - n_kept
    report = strongest(subject, kept, targets=4, rng=1, not_tried=left_out)
    assert set(left_out) < set(report.not_tried)


def test_a_private_model_is_attacked_by_all_in_ten_fits_for_each_world() -> None:
    """Four numbers of plain fakes, and three of helpers, twice each: however many hidden items are asked for."""
    ratings = tied_ratings(3, values=(1, 2, 3, 4, 5))
    subject = Subject(ratings, Slow(epsilon=1.0, items="from ratings"))
    attackers = usual_attackers(subject, known=3)
    helping = [one for one in attackers if isinstance(one, AdaptiveAttack)]
    assert {(one.fakes, one.centred, one.helpers) for one in helping} == {
        (n, centred, helpers)
        for n in (10, 20, 50)
        for centred in (False, True)
        for helpers in ("measured", "equal")
    }
    before = Slow.fits
    for one in attackers:
        one.run_on(subject, targets=1, rng=1)
    assert Slow.fits - before == 2 * (4 + 3 * 2)


def test_an_audit_hands_on_the_time_that_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    def leak(*_: Any, seconds: float | None = None, **__: Any) -> None:
        told.append(seconds)
        raise InterruptedError

    monkeypatch.setattr(import_module("goodfence.auditing.audit"), "leak", leak)
    films = gf.synthetic(users=30, items=20, ratings=240, rng=7)
    for seconds in (500.0, None):
        with pytest.raises(InterruptedError):
            gf.audit(films, gf.KNN(k=3), known=3, seconds=seconds)
    assert told == [500.0, None]
