"""What is expected of a user and an item before neighbours are asked: by hand, and for fold-in as for the data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from goodfence.data.ratings import Ratings
from goodfence.neighbours.all_pairs import block_size, n_tiles
from goodfence.neighbours.baseline import Baseline
from goodfence.neighbours.similarity import Similarity

CELLS = np.array([[4.0, 2.0, 0.0], [5.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
"""User 2 and item 2 have no ratings; the mean is 3."""


@pytest.fixture
def ratings() -> Ratings:
    return Ratings(sparse.csr_array(CELLS), range(4), range(3), scale=(1, 5))


def test_means_by_hand(ratings: Ratings) -> None:
    users, items = (Baseline.of(ratings, base) for base in ("user_mean", "item_mean"))
    assert (users.rows.tolist(), users.columns.tolist()) == ([3, 5, 3, 1], [0, 0, 0])
    assert (items.rows.tolist(), items.columns.tolist()) == ([0] * 4, [4.5, 1.5, 3])
    overall = Baseline.of(ratings, "global_mean")
    assert overall.at(np.array([0, 2]), np.array([0, 2])).tolist() == [3, 3]
    assert items.at(np.array([2, 0]), np.array([0, 1])).tolist() == [4.5, 1.5]


def test_somebody_else_has_the_mean_of_their_own_ratings(ratings: Ratings) -> None:
    users, items = (Baseline.of(ratings, base) for base in ("user_mean", "item_mean"))
    assert users.own(np.array([2, 0]), np.array([5.0, 2.0])) == 3.5
    assert users.own(np.array([], dtype=int), np.array([])) == 3
    assert items.own(np.array([2, 0]), np.array([5.0, 2.0])) == 0
    assert users.for_own(3.5, np.array([1, 2])).tolist() == [3.5, 3.5]
    assert items.for_own(0.0, np.array([1, 2])).tolist() == [1.5, 3]
    assert users.transposed.own(np.array([0]), np.array([4.0])) == 0


def test_biases_in_plain_loops(ratings: Ratings) -> None:
    """Ten sweeps of item biases with 10 ratings at the mean, then user biases with 15 [Koren 2010]."""
    found = Baseline.of(ratings, "bias")
    users, items = np.zeros(4), np.zeros(3)
    rated = [(u, i, CELLS[u, i] - 3) for u in range(4) for i in range(3) if CELLS[u, i]]
    for _ in range(10):
        for i in range(3):
            own = [left - users[u] for u, item, left in rated if item == i]
            items[i] = sum(own) / (10 + len(own))
        for u in range(4):
            own = [left - items[i] for user, i, left in rated if user == u]
            users[u] = sum(own) / (15 + len(own))
    assert found.overall == 3
    assert found.rows == pytest.approx(users)
    assert found.columns == pytest.approx(items)
    # Somebody with a user's ratings has that user's bias; and with one rating of 5, of an item without a bias, 2 / 16.
    assert found.own(np.array([1, 0]), np.array([2.0, 4.0])) == pytest.approx(users[0])
    assert found.own(np.array([2]), np.array([5.0])) == pytest.approx(2 / 16)
    assert found.for_own(0.5, np.array([0])) == pytest.approx([3.5 + items[0]])
    assert found.transposed.own(np.array([0, 1]), np.array([4.0, 5.0])) == pytest.approx(
        (4 - 3 - users[0] + 5 - 3 - users[1]) / 12
    )


def test_deviations_are_what_is_not_expected(ratings: Ratings) -> None:
    found = Baseline.of(ratings, "user_mean").deviations(ratings.csr)
    assert found.toarray().tolist() == [[1, -1, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert not found.data.flags.writeable


def test_tiles_are_counted_as_pairs_of_blocks() -> None:
    """Three blocks make six tiles: each with itself and each with each other."""
    for threads, n_rows in ((1, 10), (1, 20_000), (2, 20_001), (3, 250_000)):
        size = block_size(n_rows, threads)
        n_blocks = len(range(0, n_rows, size))
        assert n_tiles(n_rows, threads) == sum(range(1, n_blocks + 1))


@pytest.mark.parametrize("least", [1, 100, 2**31 - 1])
def test_as_many_in_common_as_fit_in_32_bits(least: int) -> None:
    assert Similarity.of("cosine", min_common=least).min_common == least
