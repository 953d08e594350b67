"""An audit as a test: it passes below the limit, and says above it who read how much."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import goodfence as gf
from goodfence.adapters.black_box import BlackBox
from goodfence.auditing.leak_limit import assert_leak_below
from goodfence.errors import SettingError
from tests.attack_worlds import tied_ratings

pytest_plugins = ["pytester"]

FILMS = gf.load("movietweetings")


def test_the_report_is_that_of_the_attack() -> None:
    report = assert_leak_below(gf.KNN(k=20), FILMS, 100, targets=40)
    attack = gf.KNNAttack(known=8).run(FILMS, gf.KNN(k=20), targets=40, rng=0)
    assert report.table().equals(attack.table())


def test_the_limit_itself_is_allowed_and_a_hair_less_is_not() -> None:
    found = 100 * assert_leak_below(gf.KNN(k=20), FILMS, 100, targets=40).recovery
    assert_leak_below(gf.KNN(k=20), FILMS, found, targets=40)
    with pytest.raises(AssertionError):
        assert_leak_below(gf.KNN(k=20), FILMS, found - 1e-9, targets=40)


def test_the_failure_says_who_read_how_much() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_leak_below(gf.KNN(k=20), FILMS, 5, known=4, fakes=20, targets=40)
    found = gf.KNNAttack(known=4, fakes=20).run(FILMS, gf.KNN(k=20), targets=40, rng=0)
    value, low, high = (100 * one for one in found.estimates["recovery"])
    guess = 100 * found.guess
    message = str(caught.value)
    assert message.startswith(
        "Someone who knows 4 of a person's ratings and opens 20 accounts reads "
        f"{value:.1f} of 100 (95%: {low:.1f}-{high:.1f}) of her other ratings exactly, more than the limit of 5. "
        f"Someone who never saw her data guesses {guess:.1f} of 100 (95%: "
    )
    assert message.endswith("(40 people attacked, KNN(k=20).)")


def test_judged_by_the_upper_end() -> None:
    estimate = assert_leak_below(gf.KNN(k=20), FILMS, 100, targets=40).estimates["recovery"]
    between = 50 * (estimate.value + estimate.high)
    assert_leak_below(gf.KNN(k=20), FILMS, between, targets=40)
    with pytest.raises(AssertionError, match="not surely within the limit"):
        assert_leak_below(gf.KNN(k=20), FILMS, between, targets=40, judged="high")
    with pytest.raises(AssertionError, match="not surely"):  # one target has no interval
        assert_leak_below(gf.KNN(k=20), FILMS, 100, targets=1, judged="high")


def test_a_black_box_meets_fifty_accounts_and_its_users_stay_unnamed() -> None:
    ratings = tied_ratings(3)

    def train(known: gf.Ratings) -> Any:
        means = known.csr.sum(axis=0) / np.maximum(np.diff(known.transposed.csr.indptr), 1)
        return lambda _, items: means[known.columns(items)]

    with pytest.raises(AssertionError, match="opens 50 accounts") as caught:
        assert_leak_below(BlackBox(train), ratings, 0, known=3, targets=5)
    assert "user " not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "rule"),
    [({"limit": 101}, "limit must be"), ({"limit": 5, "judged": "low"}, "judged must be")],
)
def test_settings_are_checked(settings: Any, rule: str) -> None:
    with pytest.raises(SettingError, match=rule):
        assert_leak_below(gf.KNN(k=20), FILMS, **settings)


def test_the_pytest_plugin_notes_what_was_found(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import goodfence as gf

        def test_knn(assert_leak_below):
            assert_leak_below(gf.KNN(k=20), gf.load("movietweetings"), 90, targets=20)

        def test_limit(assert_leak_below):
            assert_leak_below(gf.KNN(k=20), gf.load("movietweetings"), 1, targets=20)
        """
    )
    done = pytester.runpytest_inprocess("-p", "goodfence.auditing.pytest_plugin")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*AssertionError: Someone who knows 8 of a person's ratings*"])
    done.stdout.fnmatch_lines(["=* goodfence *=", "test_knn: * of 100 read, limit 90"])
