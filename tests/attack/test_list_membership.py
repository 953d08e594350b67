"""Membership through lists: who is in the data is told by what comes back, and nobody is where nothing does."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pytest

import goodfence as gf
from goodfence.attack.membership import list_scores
from tests.support.list_recommenders import MostPopular, NaiveLists, make_events

LIKES = gf.load("movietweetings").likes(8)


def test_members_are_told_from_others_where_neighbours_answer() -> None:
    found = gf.MembershipAttack(known=8, left_out=4).run(LIKES, gf.KNN(k=20), targets=80, rng=7)
    assert found.auc.low > 0.9
    assert found.at(0.05).true_positives.low > 0.5
    assert found.points[0].bound is None
    assert "nothing bounds" in found.bound_in_words
    assert 0 < found.precision_of_all.value < 1


def test_nobody_is_told_from_others_where_all_get_one_list() -> None:
    attack = gf.MembershipAttack(known=6, left_out=3, fakes=3, n=10)
    found = attack.run(make_events(3, n_users=60, n_items=40), MostPopular(), targets=40, rng=5)
    assert found.auc.low < 0.5 < found.auc.high


def test_the_scores_are_those_of_a_stranger_with_the_same_lists() -> None:
    """The fast worlds and refits of a stranger give the same scores."""
    events, attack = make_events(8), gf.MembershipAttack(known=4, left_out=2, fakes=4, n=6)
    ours = attack.run(events, gf.NPNS(k=4), targets=6, rng=3)
    theirs = attack.run(events, NaiveLists(gf.NPNS(k=4)), targets=6, rng=3)
    np.testing.assert_array_equal(ours.scores, theirs.scores)
    np.testing.assert_array_equal(ours.scores_without, theirs.scores_without)


class Released:
    """Lists what most have, with a guarantee for a user: no user alone weighs."""

    traits = gf.PrivateCF(epsilon=1.0, items="from ratings", unit="user").traits
    rng: Any = None

    def fit(self, events: gf.Ratings) -> Self:
        self.box_, self.events_ = MostPopular().fit(events), events
        return self

    def recommend(self, user: Any, n: int) -> Any:
        row = self.events_.row(user)
        csr = self.events_.csr
        held = self.events_.items[csr.indices[csr.indptr[row] : csr.indptr[row + 1]]]
        return self.box_.recommend(held.tolist(), n)

    def guarantee(self) -> gf.Guarantee:
        return gf.PrivateCF(epsilon=1.0, items="from ratings", unit="user").guarantee()


def test_a_proved_guarantee_bounds_the_true_positives() -> None:
    """One fit for all questions about a target: the bound is that of one release."""
    events = make_events(3, n_users=60, n_items=40)
    found = gf.MembershipAttack(known=6, left_out=3, n=10).run(events, Released(), targets=20, rng=5)
    assert (found.n_fits, found.n_fakes) == (1, 1)
    assert found.bound(0.05) == pytest.approx(np.e * 0.05 + 1e-5)


def test_the_place_of_the_left_out_item_counts() -> None:
    lists = np.array([[4, 2, 9, -1], [4, 2, 9, -1], [-1, -1, -1, -1]], dtype=np.int32)
    assert list_scores(lists, np.array([4, 9, 9])).tolist() == [1.0, 0.5, 0.0]
