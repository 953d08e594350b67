"""What a first trial found on ml-100k, kept: k = 50, beta = 7, eight random ratings known, every user attacked."""

from __future__ import annotations

import pytest

import goodfence as gf
from goodfence.attack.knn_attack import CoverAttack, KNNAttack
from tests.support.attack_worlds import ItemMeans

pytestmark = pytest.mark.real("ml-100k")
KNN, PPNS = gf.KNN(k=50), gf.PPNS(k=50, beta=7)


def test_the_target_is_chosen_for_two_thirds_to_three_quarters() -> None:
    ratings = gf.load("ml-100k")
    for mechanism in (KNN, PPNS):
        report = KNNAttack(known=8).run(ratings, mechanism, targets=943, rng=7)
        assert report.n_targets == 943
        assert report.n_left_out == 0
        assert 2 / 3 < report.target_chosen < 3 / 4
        assert report.estimates["raw_advantage"].low > 0.3
        assert 0.2 < report.advantage < report.raw_advantage  # a guess would have been right, too


def test_ppns_asked_by_all_fakes_recovers_no_less_than_knn() -> None:
    ratings, attack = gf.load("ml-100k"), KNNAttack(known=8, ask="all")
    nearest = attack.run(ratings, KNN, targets=100, rng=7)
    private = attack.run(ratings, PPNS, targets=100, rng=7)
    assert private.raw_recovery > nearest.raw_recovery


def test_covering_the_partitions_makes_ppns_as_leaky_as_knn() -> None:
    """Nobody real but the target is within reach; some of 350 fakes draw them, but for one chance in a thousand."""
    ratings = gf.load("ml-100k")
    nearest = KNNAttack(known=8).run(ratings, KNN, targets=100, rng=7)
    covered = CoverAttack(known=8).run(ratings, PPNS, targets=100, rng=7)
    assert covered.n_fakes == 350
    assert covered.advantage == pytest.approx(nearest.advantage, abs=0.02)


def test_item_means_hold_a_little_of_everybody() -> None:
    """A rarely rated item's mean moves with each of its ratings: a small advantage, and a real one."""
    report = KNNAttack(known=8, fakes=50).run(gf.load("ml-100k"), ItemMeans(), targets=200, rng=7)
    assert report.estimates["raw_advantage"].low > 0
    assert report.raw_advantage < 0.01
    assert report.estimates["advantage"].high < 0.01  # the informed attacker guesses instead
