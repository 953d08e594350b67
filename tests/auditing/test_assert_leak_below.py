"""An audit as a test: it passes below the limit, and says above it who read how much."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.adapters.black_box import BlackBox
from goodfence.auditing.leak_limit import assert_leak_below
from goodfence.errors import SettingError
from tests.support.attack_worlds import tied_ratings

pytest_plugins = ["pytester"]

FILMS = gf.load("movietweetings")
KNN_50 = gf.KNNAttack(known=8, fakes=50)


def test_the_report_is_that_of_the_audit() -> None:
    report = assert_leak_below(gf.KNN(k=20), FILMS, 100, targets=40)
    audited = gf.audit(FILMS, gf.KNN(k=20), targets=40, trials=0, rng=0).leakage
    assert report.table().equals(audited.table())
    alone = assert_leak_below(gf.KNN(k=20), FILMS, 100, attack=gf.KNNAttack(known=8, fakes=20), targets=40)
    attack = gf.KNNAttack(known=8, fakes=20).run(FILMS, gf.KNN(k=20), targets=40, rng=0)
    assert alone.table().equals(attack.table())


def test_a_neighbourhood_is_attacked_without_a_refit_and_a_private_one_too() -> None:
    listed = assert_leak_below(gf.NeighbourCF(gf.KNN(k=20)), FILMS, 100, targets=40)
    assert listed.table().equals(assert_leak_below(gf.KNN(k=20), FILMS, 100, targets=40).table())
    small = gf.Ratings(FILMS.csr[:60], FILMS.users[:60], FILMS.items, FILMS.scale)
    private = assert_leak_below(
        gf.PrivateMeans(epsilon=1.0, items="from ratings"),
        small,
        100,
        attack=gf.KNNAttack(known=8, fakes=5),
        targets=30,
    )
    assert (private.n_fakes, private.n_targets) == (5, 30)


def test_what_cannot_be_told_fails_unless_it_is_accepted() -> None:
    few: dict[str, Any] = {"attack": gf.KNNAttack(known=8, fakes=5), "targets": 3}
    with pytest.raises(AssertionError, match="cannot tell whether the leak is below 100%: only 3 users were judged"):
        assert_leak_below(gf.NPNS(k=20), FILMS, 100, **few)
    report = assert_leak_below(gf.NPNS(k=20), FILMS, 100, undecided="pass", **few)
    assert report.finding.verdict == "cannot tell"


@pytest.mark.slow
def test_the_limit_itself_is_allowed_and_a_hair_less_is_not() -> None:
    report = assert_leak_below(gf.KNN(k=20), FILMS, 100, targets=40)
    found = 100 * max(report.advantage, report.fully_recovered.value)
    assert_leak_below(gf.KNN(k=20), FILMS, found, targets=40)
    with pytest.raises(AssertionError):
        assert_leak_below(gf.KNN(k=20), FILMS, found - 1e-9, targets=40)


def test_the_failure_says_who_recovered_how_much() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_leak_below(gf.KNN(k=20), FILMS, 5, attack=gf.KNNAttack(known=4, fakes=20), targets=40)
    found = gf.KNNAttack(known=4, fakes=20).run(FILMS, gf.KNN(k=20), targets=40, rng=0)
    value, low, high = (100 * one for one in found.estimates["recovery"])
    gained = 100 * found.advantage
    message = str(caught.value)
    assert message.startswith("advantage and fully recovered above the limit of 5%. ")
    assert "knows 4 ratings of each target and opens 20 accounts" in message
    assert f"recovery {value:.1f}% (95%: {low:.1f} to {high:.1f})" in message
    assert f"advantage {gained:.1f}% " in message
    assert message.endswith("(40 users attacked, KNN(k=20).)")


def test_judged_by_the_upper_end() -> None:
    report = assert_leak_below(gf.KNN(k=20), FILMS, 100, attack=gf.KNNAttack(known=8, fakes=20), targets=40)
    estimate = report.estimates["fully_recovered"]
    assert estimate.value > report.estimates["advantage"].high
    between = 50 * (estimate.value + estimate.high)
    assert_leak_below(gf.KNN(k=20), FILMS, between, attack=gf.KNNAttack(known=8, fakes=20), targets=40)
    with pytest.raises(AssertionError, match="not surely within the limit"):
        assert_leak_below(
            gf.KNN(k=20), FILMS, between, attack=gf.KNNAttack(known=8, fakes=20), targets=40, judged="high"
        )
    with pytest.raises(AssertionError, match="not surely"):  # one target has no interval
        assert_leak_below(gf.KNN(k=20), FILMS, 100, attack=gf.KNNAttack(known=8, fakes=20), targets=1, judged="high")


@pytest.mark.slow
def test_a_box_that_hides_its_k_meets_attackers_of_several_sizes() -> None:
    box = BlackBox(gf.NeighbourCF(gf.KNN(k=10), progress=False))
    fifty = assert_leak_below(box, FILMS, 0, attack=KNN_50, targets=3, undecided="pass")
    assert fifty.estimates["raw_recovery"].value == 0  # they crowd the target out of each other's neighbourhoods
    with pytest.raises(AssertionError, match=r"opens \d+ account"):
        assert_leak_below(box, FILMS, 5, targets=4)
    several = [KNN_50, gf.KNNAttack(known=8, fakes=10)]
    most = assert_leak_below(box, FILMS, 100, targets=4, attack=several, undecided="pass")
    assert (most.n_fakes, most.n_targets) == (10, 4)


def few_answers() -> gf.Ratings:
    """Return ratings like those of an anime site: many light users, a few heavy ones, and rarely an answer.

    Forty have ten ratings of titles that nobody else rated. Sixty rated fifty of the same sixty titles. Four hundred
    rated fifteen of these: whoever knows eight ratings of one of the sixty finds one of the four hundred nearer, who
    rated little of what is hidden.
    """
    rng = np.random.default_rng(5)
    cells = np.zeros((500, 460))
    for user in range(500):
        own, popular = 60 + 10 * user + np.arange(10), 50 if user < 100 else 15
        rated = own if user < 40 else rng.choice(60, popular, replace=False)
        cells[user, rated] = rng.integers(1, 11, len(rated))
    users = [f"user {number}" for number in range(500)]
    return gf.Ratings(sparse.csr_array(cells), users, range(460), scale=(1, 10))


def test_a_low_pooled_rate_does_not_hide_people_who_are_fully_recovered() -> None:
    """40 of 100 people are fully recovered; of all their ratings few are, for the heavy users have most of them."""
    ratings = few_answers()
    people = [f"user {number}" for number in range(100)]
    report = gf.KNNAttack(known=8).run(ratings, gf.KNN(k=5), targets=people, rng=0)
    assert 0.4 <= report.fully_recovered.value < 0.45
    assert report.coverage < 0.5
    assert report.raw_recovery < 0.2
    assert report.advantage < 0.2
    assert report.above(0.3) == ("fully_recovered",)
    assert report.above(0.45) == ()
    with pytest.raises(AssertionError, match=r"^fully recovered above the limit of 30%"):
        assert_leak_below(gf.KNN(k=5), ratings, 30, attack=gf.KNNAttack(known=8, fakes=5), targets=people)
    with pytest.raises(AssertionError, match="fully recovered above"):  # the usual attackers, too
        assert_leak_below(gf.KNN(k=5), ratings, 30, targets=people)


@pytest.mark.slow
def test_the_users_of_a_black_box_stay_unnamed() -> None:
    box = BlackBox(gf.NeighbourCF(gf.KNN(k=4), progress=False))
    with pytest.raises(AssertionError, match=r"opens \d+ account") as caught:
        assert_leak_below(box, tied_ratings(3), 0, known=3, targets=8, judged="high")
    assert "user " not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"limit": 101}, "limit must be"),
        ({"limit": 5, "judged": "low"}, "judged must be"),
        ({"limit": 5, "attack": []}, "attack must be"),
    ],
)
def test_settings_are_checked(settings: Any, rule: str) -> None:
    with pytest.raises(SettingError, match=rule):
        assert_leak_below(gf.KNN(k=20), FILMS, **settings)


@pytest.mark.slow
def test_the_pytest_plugin_notes_what_was_found(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import goodfence as gf

        def test_knn(assert_leak_below):
            assert_leak_below(gf.KNN(k=20), gf.load("movietweetings"), 100, targets=40)

        def test_limit(assert_leak_below):
            assert_leak_below(gf.KNN(k=20), gf.load("movietweetings"), 1, targets=20)
        """
    )
    done = pytester.runpytest_inprocess()  # the installed package brings the plugin
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*AssertionError: advantage*above the limit of 1%*"])
    done.stdout.fnmatch_lines(
        ["=* goodfence *=", "test_knn: advantage * of 100, * of 100 users fully recovered, limit 100"]
    )


def test_one_account_is_one_account() -> None:
    with pytest.raises(AssertionError, match="opens 1 account has"):
        assert_leak_below(gf.KNN(k=1), FILMS, 0, attack=gf.KNNAttack(known=4, fakes=1), targets=20)
