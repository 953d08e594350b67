"""Kernels of co-counts beside their slow, obvious twins."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from goodfence.kernels.attack import RatedSoFar, count_ratings, count_risen, nearest_items

pytestmark = pytest.mark.kernel


def random_log(seed: int, n_users: int = 9, n_items: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct pairs of user and item in an order of chance."""
    generator = np.random.default_rng(seed)
    cells = generator.permutation(n_users * n_items)[: generator.integers(1, 60)]
    return cells // n_items, cells % n_items


def empty(users: np.ndarray, n_users: int, n_items: int, n_watched: int) -> RatedSoFar:
    lengths = np.bincount(users, minlength=n_users)
    return RatedSoFar(
        starts=np.cumsum(lengths) - lengths,
        lengths=np.zeros(n_users, dtype=np.int64),
        items=np.empty(len(users), dtype=np.int32),
        n_raters=np.zeros(n_items, dtype=np.int64),
        co_counts=np.zeros((n_watched, n_items), dtype=np.int32),
    )


@pytest.mark.parametrize("seed", range(12))
def test_counts_in_parts_are_those_of_the_matrix(seed: int) -> None:
    users, items = random_log(seed)
    generator = np.random.default_rng(seed + 100)
    watched = np.sort(generator.permutation(12)[:5])
    watch = np.full(12, -1)
    watch[watched] = np.arange(5)
    so_far = empty(users, 9, 12, 5)
    cuts = np.sort(generator.integers(0, len(users) + 1, size=3))
    for first, last in zip([0, *cuts], [*cuts, len(users)], strict=True):
        count_ratings(users[first:last], items[first:last], watch, so_far)
        rated = np.zeros((9, 12), dtype=np.int64)
        rated[users[:last], items[:last]] = 1
        both = rated.T @ rated
        np.fill_diagonal(both, 0)
        np.testing.assert_array_equal(so_far.co_counts, both[watched])
        np.testing.assert_array_equal(so_far.n_raters, rated.sum(axis=0))


def slow_list(co_counts: list[int], n_raters: list[int], n: int) -> list[int]:
    """Sort all items with a common rater by the square of the cosine, as fractions, then by column."""
    listed = [item for item, common in enumerate(co_counts) if common]
    listed.sort(key=lambda item: (-Fraction(co_counts[item] ** 2, n_raters[item]), item))
    return listed[:n] + [-1] * (n - len(listed[:n]))


@pytest.mark.parametrize("n", [1, 3, 8, 20])
@pytest.mark.parametrize("seed", range(8))
def test_nearest_items_are_those_of_a_full_sort(seed: int, n: int) -> None:
    """Few values make ties, also between different counts: 1²/1 = 2²/4."""
    generator = np.random.default_rng(seed)
    raters = generator.choice([1, 4, 9, 8], size=15)
    co_counts = np.minimum(generator.integers(0, 4, size=(6, 15)), raters).astype(np.int32)
    so_far = RatedSoFar(
        *(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int32)), raters, co_counts
    )
    lists = np.full((4, n), 99, dtype=np.int32)
    rows = np.array([5, 0, 3, 3])
    nearest_items(rows, so_far, np.empty(n), lists)
    for row, found in zip(rows, lists.tolist(), strict=True):
        assert found == slow_list(co_counts[row].tolist(), raters.tolist(), n)


@pytest.mark.parametrize("seed", range(8))
def test_what_rose_is_what_is_higher_than_before(seed: int) -> None:
    generator = np.random.default_rng(seed)
    before, after = (np.stack([generator.permutation(9)[:4] for _ in range(5)]).astype(np.int32) for _ in range(2))
    before[0, 2:], after[1, 1:], after[2] = -1, -1, -1
    scores = np.zeros(9, dtype=np.int64)
    count_risen(before, after, np.empty(9, dtype=np.int64), scores)
    for item in range(9):
        risen = 0
        for old, new in zip(before.tolist(), after.tolist(), strict=True):
            risen += item in new and (item not in old or new.index(item) < old.index(item))
        assert scores[item] == risen
