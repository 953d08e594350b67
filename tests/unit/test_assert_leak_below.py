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


def test_a_neighbourhood_is_attacked_without_a_refit_and_a_private_one_too() -> None:
    listed = assert_leak_below(gf.NeighbourCF(gf.KNN(k=20)), FILMS, 100, targets=40)
    assert listed.table().equals(assert_leak_below(gf.KNN(k=20), FILMS, 100, targets=40).table())
    small = gf.Ratings(FILMS.csr[:60], FILMS.users[:60], FILMS.items, FILMS.scale)
    private = assert_leak_below(gf.PrivateMeans(epsilon=1.0), small, 100, fakes=5, targets=3)
    assert (private.n_fakes, private.n_targets) == (5, 3)


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


def test_a_box_that_hides_its_k_meets_attackers_of_several_sizes() -> None:
    box = BlackBox(gf.NeighbourCF(gf.KNN(k=10), progress=False))
    known = gf.NeighbourCF(gf.KNN(k=10), progress=False)
    fifty = assert_leak_below(box, FILMS, 0, fakes=50, targets=3)
    assert fifty.recovery == 0  # they crowd her out of each other's neighbourhoods
    with pytest.raises(AssertionError, match=r"opens \d+ accounts") as caught:
        assert_leak_below(box, FILMS, 5, targets=3)
    with pytest.raises(AssertionError) as told:
        assert_leak_below(known, FILMS, 5, targets=3)
    assert str(caught.value).replace("BlackBox", "KNN(k=10)") == str(told.value)
    most = assert_leak_below(box, FILMS, 100, targets=3, fakes=[50, 10])
    assert (most.n_fakes, most.n_targets) == (10, 3)


def test_the_users_of_a_black_box_stay_unnamed() -> None:
    ratings = tied_ratings(3)

    def train(known: gf.Ratings) -> Any:
        means = known.csr.sum(axis=0) / np.maximum(np.diff(known.transposed.csr.indptr), 1)
        return lambda _, items: means[known.columns(items)]

    with pytest.raises(AssertionError, match=r"opens \d+ accounts") as caught:
        assert_leak_below(BlackBox(train), ratings, 0, known=3, targets=5)
    assert "user " not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"limit": 101}, "limit must be"),
        ({"limit": 5, "judged": "low"}, "judged must be"),
        ({"limit": 5, "fakes": []}, "fakes must be"),
    ],
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
    done = pytester.runpytest_inprocess()  # the installed package brings the plugin
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*AssertionError: Someone who knows 8 of a person's ratings*"])
    done.stdout.fnmatch_lines(["=* goodfence *=", "test_knn: * of 100 read, limit 90"])
