"""The sentences of a finding: every attacker is told, every figure has its interval, nothing is called safe."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import goodfence as gf
from goodfence.attack.attack import RatingAttack, Subject
from goodfence.attack.report import AttackReport, Finding, LeakReport, NotTried, Tried
from goodfence.attack.scoring import UNKNOWN, Estimate
from goodfence.attack.strongest import strongest
from goodfence.privacy.guarantee import Guarantee
from goodfence.report.wording import (
    above,
    advantage,
    attacked,
    beside,
    cards_of,
    dashed,
    guarantee_cell,
    interval,
    not_tried,
    of_100,
    people,
    recommendation,
    recovered,
    scope,
    tried_rows,
    verdict,
    verdict_line,
    who_attacks,
)
from tests.support.frontiers import known_frontier
from tests.support.made_up import make_ratings

FILMS = gf.load("movietweetings")


@pytest.fixture(scope="module")
def report() -> LeakReport:
    """What the strongest of two attackers found."""
    attackers = (gf.KNNAttack(known=8), gf.KNNAttack(known=8, fakes=1))
    return strongest(Subject(FILMS, gf.KNN(k=20)), attackers, targets=60, rng=7)


@pytest.mark.parametrize(
    ("attack", "says"),
    [
        (gf.KNNAttack(known=8), "knows 8 ratings of a user and opens 20 accounts: one asks"),
        (gf.KNNAttack(known=2, fakes=1), "knows 2 ratings of a user and opens 1 account: one asks"),
        (gf.KNNAttack(known=8, choose="rarest"), "knows the 8 rarest ratings of a user and"),
        (gf.KNNAttack(known=8, choose="most_popular"), "knows the 8 most popular ratings of a user"),
        (gf.KNNAttack(known=8, ask="all"), "all ask; the most frequent answer counts"),
        (gf.KNNAttack(known=8, ask="all", combine="mean"), "all ask; the mean answer counts"),
        (gf.KNNAttack(known=8, rounds=3), "one asks; repeated for 3 refits"),
        (gf.CoverAttack(known=8), "opens 20 accounts: all ask;"),
        (gf.AdaptiveAttack(known=8), "one asks; the others rate the hidden item"),
    ],
)
def test_the_attacker(attack: RatingAttack, says: str) -> None:
    report = attack.run(FILMS, gf.KNN(k=20), targets=3, rng=7)
    assert who_attacks(report).startswith("an attacker who knows ")
    assert says in who_attacks(report)


def test_named_items_stay_unnamed() -> None:
    ratings = make_ratings()
    attack = gf.KNNAttack(known=2, choose=["secret-item-0", "secret-item-1"])
    report = attack.run(ratings, gf.KNN(k=20), targets=5, rng=7)
    told = who_attacks(report) + verdict_line(report, "it", "x")
    assert "2 named ratings" in told
    assert "(of named items)" in told
    assert "secret" not in told


def test_every_figure_has_its_interval(report: LeakReport) -> None:
    assert people(report).count("(95%: ") == 3
    assert recovered(report).count("(95%: ") == 3
    assert advantage(report).count("(95%: ") == 1
    found = report.estimates
    assert people(report).startswith(
        f"{of_100(found['fully_recovered'].value)}% (95%: {interval(found['fully_recovered'])}) of the users are fully"
    )
    raw = of_100(found["raw_recovery"].value)
    assert f"The answers alone recover {raw}% " in beside(report)


def test_the_verdict_line_has_finding_date_scope_neighbourhood_and_assumptions(report: LeakReport) -> None:
    line = verdict_line(report, "kNN k=20", "the 20 nearest of all users")
    assert line.startswith("kNN k=20 leaks. ")
    for part in (
        report.date,
        "the 20 nearest of all users",
        "knows 8 ratings of each target (drawn at random)",
        "60 of about 1,200 users, drawn at random; 2 attackers were compared on 60, and each user is judged by the",
        "The recommender is fitted with these accounts and shows predicted ratings",
    ):
        assert part in line
    assert scope(report, "the 20 nearest of all users") in line


@pytest.mark.parametrize(
    ("finding", "says"),
    [
        (Finding("leaks", "", 0.1), "it leaks."),
        (Finding("none found", "", 0.1), "it: none of the 2 attacks tried found a leak. An advantage of "),
        (Finding("cannot tell", "x", 0.1), "it: cannot tell, because x."),
    ],
)
def test_the_verdict_is_about_the_attackers_tried(
    finding: Finding, says: str, report: LeakReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LeakReport, "finding", finding)
    assert verdict(report, "it").startswith(says)


def test_what_was_cut_short_is_said_first(report: LeakReport) -> None:
    assert verdict(replace(report, cut="the time limit"), "it").startswith("Incomplete: the time limit. it leaks.")


def test_what_is_not_all_is_never_called_all() -> None:
    assert [of_100(share) for share in (1.0, 0.9985, 0.9951, 0.9949, 0.0003, -0.0003, 0.0)] == [
        *("100", "99.8", "99.5", "99", "<0.1", "0", "0")
    ]


def test_what_leaks_is_decided_by_the_whole_interval(report: LeakReport) -> None:
    assert report.leaks is True
    private = gf.KNNAttack(known=8, fakes=5).run(FILMS, gf.PrivateMeans(epsilon=0.1), targets=2, rng=7)
    assert private.leaks is not True
    assert isinstance(report, AttackReport)
    same = replace(report, informed=replace(report.informed, with_target=report.informed.without_target))
    assert same.estimates["advantage"] == Estimate(0.0, 0.0, 0.0)
    assert same.leaks is False


def test_who_was_tried(report: LeakReport) -> None:
    rows = tried_rows(report)
    assert [(row.what, row.accounts, row.chosen) for row in rows] == [("one asks", "20 (also 1)", True)]
    unknown = (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
    failed = Tried("X()", "x", 0, 0, *unknown, strongest=False, failed="its own error")
    told = tried_rows(replace(report, tried=(*report.tried, failed)))
    assert (told[-1].advantage, told[-1].fully_recovered) == ("failed", "")
    assert tried_rows(replace(report, tried=())) == []


def test_who_was_not_tried(report: LeakReport) -> None:
    some = replace(report, not_tried=(NotTried("timing", "not looked at"), NotTried("a", "b")))
    assert not_tried(some) == "timing (not looked at); a (b)."


def test_what_is_above_a_limit_is_named_with_its_figure(report: LeakReport) -> None:
    told = above(report, 10, report.above(0.1))
    share = of_100(report.fully_recovered.value)
    assert told.startswith("above the limit of 10%: ")
    assert f" and {share}% (" in told


def test_who_was_attacked(report: LeakReport) -> None:
    assert attacked(report, 1_238).startswith("60 of about 1,200 users, drawn at random; ")
    assert attacked(report, 60).startswith("all 60 users; 2 attackers were compared on 60")
    some = replace(report, n_left_out=4)
    assert attacked(some, 64).startswith("all users except 4 with too few ratings; ")


def test_a_recommendation_says_why() -> None:
    found = known_frontier()
    none = recommendation(found, None, None, 1)
    assert none.startswith("No recommender with an error of at most 1 stops the attacks tried.")
    cut, quiet = found.points[4], found.points[3]
    assert found.recommended() is cut
    assert "at least 10 times less than from the leakiest" in recommendation(found, "it", cut)
    assert "and more than 4.0% would have been seen" in recommendation(found, "it", quiet)


@pytest.mark.parametrize(
    ("share", "text"), [(0.9168, "92"), (0.0, "0"), (1.0, "100"), (0.0995, "10"), (0.0994, "9.9"), (-0.004, "-0.4")]
)
def test_shares_are_told_of_a_hundred(share: float, text: str) -> None:
    assert of_100(share) == text


def test_what_is_not_known_is_said() -> None:
    nothing = float("nan")
    assert of_100(nothing) == "?"
    assert interval(Estimate(0.5, nothing, nothing)) == "not known"


def test_dates_keep_their_hyphens() -> None:
    assert dashed("5-9 on 2026-11-17, 1-2") == "5–9 on 2026-11-17, 1–2"


def test_equal_guarantees_share_a_card() -> None:
    budget: dict[str, Any] = {"unit": "rating", "adjacency": "add/remove", "delta": 0.0}
    one = Guarantee(status="refuted", epsilon=1.0, reason="First.", **budget)
    two = Guarantee(status="refuted", epsilon=1.0, reason="Second.", **budget)
    other = Guarantee(status="proved", epsilon=1.0, reason="Proof.", **budget)
    cards = cards_of(["A", "B", "C", "D"], [one, two, other, one])
    assert [(card.status, card.names) for card in cards] == [("proved", "C"), ("refuted", "A · B · D")]
    assert cards[1].reasons == ("A, D: First.", "B: Second.")
    assert cards[0].reasons == ("Proof.",)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"status": "none"}, "none"),
        ({"status": "refuted", "unit": "rating"}, "refuted (counterexample): one rating, eps=1.5"),
        ({"status": "claimed", "unit": "rating"}, "claimed: one rating, eps=1.5"),
        ({"status": "proved", "unit": "user"}, "proved: one user, eps=1.5, any number of fakes"),
    ],
)
def test_the_promise(settings: dict[str, Any], text: str) -> None:
    budget: dict[str, Any] = {"adjacency": "add/remove", "epsilon": 1.5, "delta": 1e-5}
    stated = {**settings, **budget} if "unit" in settings else settings
    assert guarantee_cell(Guarantee(**stated, reason="So it is.")) == text
