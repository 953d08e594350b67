"""The sentences of a finding: every attacker is told as he is."""

from __future__ import annotations

from typing import Any

import pytest

import goodfence as gf
from goodfence.attack.attack import Attack
from goodfence.attack.scoring import Estimate
from goodfence.privacy.guarantee import Guarantee
from goodfence.report.wording import (
    attacked,
    attacker,
    because,
    finding,
    interval,
    of_100,
    promise,
    strategy,
)

FILMS = gf.load("movietweetings")


@pytest.mark.parametrize(
    ("attack", "says"),
    [
        (gf.KNNAttack(known=8), "knows 8 of a person's ratings and opens 20 accounts"),
        (gf.KNNAttack(known=2, fakes=1), "knows 2 of a person's ratings and opens 1 account"),
        (gf.KNNAttack(known=8, choose="rarest"), "knows the 8 rarest of a person's ratings and"),
        (gf.KNNAttack(known=8, choose="most_popular"), "knows the 8 most popular of a person's"),
        (gf.KNNAttack(known=8, ask="all"), "opens 20 accounts, all of which ask,"),
        (gf.KNNAttack(known=8, rounds=3), "opens 20 accounts again after each of 3 refits,"),
        (gf.CoverAttack(known=8), "opens 20 accounts, all of which ask,"),
        (gf.AdaptiveAttack(known=8), "opens 20 accounts that also rate the item in question"),
    ],
)
def test_the_attacker(attack: Attack, says: str) -> None:
    report = attack.run(FILMS, gf.KNN(k=20), targets=3, rng=7)
    assert attacker(report).startswith("Someone who ")
    assert says in attacker(report)
    assert finding(report).startswith(attacker(report) + " reads ")


@pytest.mark.parametrize(
    ("attack", "says"),
    [
        (gf.KNNAttack(known=8), "20 accounts, one asks"),
        (gf.KNNAttack(known=2, fakes=1), "one account"),
        (
            gf.KNNAttack(known=8, choose="rarest"),
            "20 accounts; he knows the rarest items she rated",
        ),
        (gf.KNNAttack(known=8, choose="most_popular"), "he knows the most popular items she rated"),
        (gf.KNNAttack(known=8, ask="all"), "all ask and he takes the most frequent answer"),
        (gf.KNNAttack(known=8, ask="all", combine="mean"), "all ask and he takes the mean"),
        (gf.KNNAttack(known=8, rounds=3), "20 accounts, one asks, after each of 3 refits"),
        (gf.AdaptiveAttack(known=8), "20 accounts, which also rate the item in question"),
    ],
)
def test_an_attacker_among_others(attack: Attack, says: str) -> None:
    assert says in strategy(attack.run(FILMS, gf.KNN(k=20), targets=3, rng=7))


def test_every_figure_has_its_interval() -> None:
    report = gf.KNNAttack(known=8).run(FILMS, gf.KNN(k=20), targets=30, rng=7)
    for text in (finding(report), because(report)):
        assert text.count(" of 100") - text.count("of 100 of") <= text.count("(95%: ") + 1
        assert text.count("(95%: ") == 2
    assert attacked(report, 1_238).startswith("30 of 1,238 people, drawn by chance; ")


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.9168, "92"), (0.0, "0"), (1.0, "100"), (0.0995, "10"), (0.0994, "9.9"), (-0.004, "-0.4")],
)
def test_shares_are_told_of_a_hundred(share: float, text: str) -> None:
    assert of_100(share) == text


def test_what_is_not_known_is_said() -> None:
    nothing = float("nan")
    assert of_100(nothing) == "?"
    assert interval(Estimate(0.5, nothing, nothing)) == "not known"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"status": "none"}, "none"),
        ({"status": "refuted", "unit": "rating"}, "refuted (witness): one rating, eps=1.5"),
        ({"status": "claimed", "unit": "rating"}, "claimed: one rating, eps=1.5"),
        ({"status": "proved", "unit": "user"}, "proved: one person, eps=1.5, any number of fakes"),
    ],
)
def test_the_promise(settings: dict[str, Any], text: str) -> None:
    budget: dict[str, Any] = {"adjacency": "add/remove", "epsilon": 1.5, "delta": 1e-5}
    stated = {**settings, **budget} if "unit" in settings else settings
    assert promise(Guarantee(**stated, reason="So it is.")) == text
