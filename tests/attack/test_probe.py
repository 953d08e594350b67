"""Probing finds how accounts must look, and an audit of a black box finds what an attacker would."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

import goodfence as gf
from benchmarks.black_boxes import (
    AmongRaters,
    ColdStart,
    Delayed,
    ItemMean,
    Mixed,
    OnceEach,
    Shrunk,
    Supported,
    UserKNN,
)
from benchmarks.list_boxes import Pool
from goodfence.attack.attack import Subject
from goodfence.attack.fakes import Catalogue, Copied, Design, plans_of
from goodfence.attack.probe import Probe
from goodfence.attack.strongest import Effort, probed, strongest
from tests.support.attack_worlds import OwnMean

FILMS = gf.load("movietweetings")


def found(box: Any) -> Probe:
    return probed(Subject(FILMS, gf.BlackBox(box)), 8)


@pytest.mark.slow
@pytest.mark.parametrize("k", [5, 20, 150])
def test_the_number_of_neighbours_is_found(k: int) -> None:
    assert any(design.fakes == k for design in found(UserKNN(k=k).train).designs)


@pytest.mark.slow
def test_a_cold_start_asks_for_padding_and_a_bot_filter_for_accounts_that_differ() -> None:
    assert found(ColdStart(least=20).train).designs[0].padding >= 12
    assert found(OnceEach().train).designs[0].distinct != "no"
    plain = found(UserKNN().train).designs[0]
    assert (plain.padding, plain.distinct) == (0, "no")


@pytest.mark.slow
@pytest.mark.parametrize(
    "box",
    [
        UserKNN(k=150),
        ColdStart(least=20),
        Shrunk(constant=5.0),
        Mixed(share=0.3),
        OnceEach(),
        Delayed(),
        Supported(),
        AmongRaters(centred=True, k=20, similarity="centred_cosine"),
    ],
    ids=["k=150", "cold start", "shrunk", "mixed", "bot filter", "delayed", "two raters", "centred"],
)
def test_what_hid_the_leak_of_a_neighbourhood_hides_it_no_more(box: Any) -> None:
    """Each of these was once called no better than guessing, or nearly; an attacker recovers two thirds."""
    report = strongest(Subject(FILMS, gf.BlackBox(box.train)), targets=60, rng=7)
    assert report.finding.verdict == "leaks"
    assert report.advantage > 0.5


@pytest.mark.slow
def test_items_that_lists_never_show_are_lifted_into_them() -> None:
    report = strongest(Subject(FILMS.likes(8), gf.BlackBox(Pool().train, asks="lists")), targets=40, rng=7)
    assert report.advantage > 0.6
    assert any("lift 100 items" in one.what for one in report.tried)


@pytest.mark.slow
def test_nothing_is_found_where_there_is_nothing_and_the_report_says_what_would_have_been() -> None:
    report = strongest(Subject(FILMS, gf.BlackBox(ItemMean().train)), targets=60, rng=7)
    assert report.finding.verdict == "none found"
    assert report.finding.detectable < 0.1
    assert report.probe.influence


class ShrunkAndRounded(Shrunk):
    """Shrunk towards the item mean, then rounded to half a step."""

    def answers(self, matrix: Any, row: int) -> Any:
        return np.floor(super().answers(matrix, row) * 2 + 0.5) / 2


@pytest.mark.slow
def test_planted_ratings_that_show_and_that_no_attacker_reads_are_cannot_tell() -> None:
    """Somebody who moves the item means reads this box, so it is not one in which nothing was found."""
    assert found(ShrunkAndRounded(constant=10.0).train).unread
    assert not found(ItemMean().train).unread
    assert not found(UserKNN().train).unread


@pytest.mark.slow
def test_accounts_without_influence_are_cannot_tell() -> None:
    """A service that never learns answers as if nobody had opened an account."""
    report = strongest(Subject(FILMS, gf.BlackBox(OwnMean())), targets=40, rng=7)
    assert report.finding.verdict == "cannot tell"
    assert report.finding.reason == "accounts do not influence the answers"


def test_the_same_seed_gives_the_same_figures_whatever_the_clock_says(monkeypatch: pytest.MonkeyPatch) -> None:
    def figures() -> str:
        report = strongest(Subject(FILMS, gf.PrivateMeans(epsilon=1.0, items="from ratings")), targets=40, rng=3)
        return repr(report)

    first = figures()
    ticks = iter(range(0, 10**9, 1000))
    monkeypatch.setattr(time, "monotonic", lambda: next(ticks))  # a machine a thousand seconds slower at each look
    assert figures() == first


def test_the_same_seed_gives_the_same_figures_on_a_busy_machine_and_on_any_number_of_threads() -> None:
    def figures(attacked: Any, threads: int) -> str:
        return repr(strongest(Subject(FILMS, attacked, threads=threads), targets=40, rng=3))

    attacked = [gf.KNN(k=20), gf.BlackBox(UserKNN(k=5).train)]
    quiet = [figures(one, 1) for one in attacked]
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        assert [figures(one, 3) for one in attacked] == quiet
    finally:
        for other in others:
            other.kill()
            other.wait()


def test_a_time_limit_cuts_and_says_so() -> None:
    subject = Subject(FILMS, gf.KNN(k=20))
    cut = strongest(subject, targets=60, effort=Effort(max_seconds=0.0), rng=7)
    assert cut.cut.startswith("the time limit cut this audit short: 1 of ")
    assert strongest(subject, targets=60, rng=7).cut == ""


def test_sample_sizes_follow_from_the_precision() -> None:
    subject = Subject(FILMS, gf.BlackBox(UserKNN(k=5).train))
    rough, fine = (strongest(subject, effort=Effort(precision=one), rng=7) for one in (0.1, 0.03))
    assert rough.n_targets < fine.n_targets
    for report, precision in ((rough, 0.1), (fine, 0.03)):
        gained = report.estimates["advantage"]
        assert (gained.high - gained.low) / 2 <= precision


def test_accounts_hold_what_their_design_says() -> None:
    catalogue = Catalogue(FILMS)
    known = np.array([3, 10, 50, 200]), np.array([8.0, 6.0, 9.0, 7.0])
    asked = np.array([5, 6])
    design = Design(fakes=5, padding=3, distinct="low")
    [plan] = plans_of(design, known, asked, catalogue, 0)
    assert len({cells.tobytes() for cells, _ in plan.accounts}) == 5
    for cells, ratings in plan.accounts:
        assert set(known[0]) <= set(cells.tolist())
        assert len(cells) == 4 + 3 + 1
        assert (np.diff(cells) > 0).all()
        assert sorted(ratings[~np.isin(cells, known[0])].tolist()) == [catalogue.low] * 4
    pairs = plans_of(Design(fakes=4, copied="two"), known, asked, catalogue, 0)[0]
    assert len(pairs.accounts) == 6
    assert {len(cells) for cells, _ in pairs.accounts} == {2}
    helped = plans_of(Design(fakes=3, helping="all"), known, asked, catalogue, 0)
    assert [len(plan.accounts) for plan in helped] == [3, 3]
    assert len(helped[0].accounts[1][0]) == FILMS.shape[1]
    each = plans_of(Design(fakes=3, helping="each"), known, asked, catalogue, 0)[0]
    assert len(each.accounts) == 1 + 2 * 4  # two helpers for each of two hidden and two held back


def test_small_accounts_stand_at_the_ends_of_the_scale_or_at_all_levels_and_helpers_rate_what_is_asked() -> None:
    catalogue = Catalogue(FILMS)
    known, asked = (np.array([3, 10, 50, 200]), np.array([8.0, 6.0, 9.0, 2.0])), np.array([5, 6])
    opposed: tuple[Copied, list[float]] = "opposed", [10.0, 0.0, 10.0, 0.0]
    for copied, own in (opposed, ("agreeing", [8.0, 6.0, 9.0, 2.0])):
        [plan] = plans_of(Design(fakes=4, copied=copied), known, asked, catalogue, 0)
        held = [ratings[np.isin(cells, known[0])].tolist() for cells, ratings in plan.accounts]
        assert held == [[one] for one in own]
        assert {ratings.sum() for _, ratings in plan.accounts} == {10.0}
    plain, *helped = plans_of(Design(fakes=4, copied="levels", helping="each"), known, asked, catalogue, 0)
    assert len(plain.accounts) == plain.n_asking == 4 * 11
    assert [len(one.accounts) for one in helped] == [4 * 11 + 2] * 2
    assert set(helped[0].accounts[-1][0].tolist()) == {5, 6, 50, 10, 200}
    some = plans_of(Design(fakes=5, helping="some", lifters=2), known, asked, catalogue, 0)
    assert [len(one.accounts) for one in some] == [5 + 2] * 2
    assert [len(cells) for cells, _ in some[0].accounts] == [4] * 5 + [6] * 2


def test_contrary_accounts_ask_about_every_item_that_half_of_them_rate() -> None:
    catalogue = Catalogue(FILMS)
    known = np.array([3, 10]), np.array([8.0, 6.0])
    every = np.setdiff1d(np.arange(FILMS.shape[1]), known[0])
    plans = plans_of(Design(fakes=2, contrary=20), known, every, catalogue, 0)
    free = [~np.isin(every, plan.accounts[0][0]) for plan in plans]
    assert len(plans) == 2
    assert (free[0] | free[1]).all()
