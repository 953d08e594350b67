"""Made-up ratings: exact sizes, long tails, planted groups, kernels equal to slow twins."""

from __future__ import annotations

from itertools import permutations
from typing import TypedDict, cast

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import chisquare

import goodfence as gf
from goodfence.data.synthetic import _in_parts, plan
from goodfence.errors import SettingError
from goodfence.kernels.draw import Word
from goodfence.kernels.synthetic import Levels, Tastes, choose_items, noise_of, rate_items, two_uniforms
from goodfence.rng import Streams
from tests.support import reference
from tests.support.contracts import FALSE_ALARM


class Size(TypedDict):
    users: int
    items: int
    ratings: int


SIZE = Size(users=300, items=250, ratings=6_000)


def gini(counts: npt.NDArray[np.int64]) -> float:
    ordered = np.sort(counts)
    n = len(ordered)
    return float((2 * np.arange(1, n + 1) - n - 1) @ ordered / (n * ordered.sum()))


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("users", "items", "ratings"),
    [(300, 250, 6_000), (40, 30, 1_200), (40, 30, 1_199), (40, 30, 1), (7, 90, 7), (1, 1, 1)],
)
def test_there_are_exactly_as_many_as_asked_for(users: int, items: int, ratings: int) -> None:
    made = gf.synthetic(users=users, items=items, ratings=ratings, rng=3)
    assert made.shape == (users, items)
    assert made.n_ratings == ratings
    cells = made.csr.tocoo()
    assert len({*zip(cells.row.tolist(), cells.col.tolist(), strict=True)}) == ratings
    if ratings >= users:
        assert np.diff(made.csr.indptr).min() >= 1


def test_the_same_seed_gives_the_same_ratings_and_another_others() -> None:
    first, again = gf.synthetic(**SIZE, rng=3), gf.synthetic(**SIZE, rng=3)
    other = gf.synthetic(**SIZE, rng=4)
    assert np.array_equal(first.csr.indices, again.csr.indices)
    assert np.array_equal(first.csr.data, again.csr.data)
    assert not np.array_equal(first.csr.indices, other.csr.indices)


def test_users_rate_as_much_as_planned() -> None:
    made = gf.synthetic(**SIZE, rng=3)
    assert np.diff(made.csr.indptr).tolist() == plan(**SIZE, streams=Streams(3)).counts.tolist()


@pytest.mark.parametrize("scale", [(1, 5), (0, 10), (0.5, 5, 0.5)])
def test_ratings_use_the_whole_of_their_scale(scale: tuple[float, ...]) -> None:
    made = gf.synthetic(**SIZE, rng=3, scale=scale)
    assert made.scale == gf.Scale.of(scale)
    assert made.csr.data.min() == scale[0]
    assert made.csr.data.max() == scale[1]
    assert 0.5 < (made.csr.data.mean() - scale[0]) / (scale[1] - scale[0]) < 0.8


def test_any_value_of_a_scale_without_steps_can_come() -> None:
    made = gf.synthetic(**SIZE, rng=3, scale=gf.Scale(-1, 1, step=None))
    assert len(np.unique(made.csr.data)) > 5_000


def test_popularity_and_activity_have_long_tails() -> None:
    size = Size(users=4_000, items=3_000, ratings=120_000)
    planted = plan(**size, streams=Streams(3))
    expected_of_items = planted.weights * size["ratings"]
    assert 0.55 < gini(planted.counts) < 0.7  # lognormal of spread 1.25: 0.62; Netflix 0.61
    assert gini(np.round(expected_of_items * 100).astype(np.int64)) > 0.6
    assert np.quantile(planted.counts, 0.95) > 5 * np.median(planted.counts)


def test_the_most_popular_item_is_rated_by_about_three_users_in_ten() -> None:
    made = gf.synthetic(users=2_000, items=1_500, ratings=40_000, rng=3)
    most = np.bincount(made.csr.indices).max() / 2_000
    assert 0.2 < most < 0.4


def test_planted_groups_are_found() -> None:
    size = Size(users=600, items=600, ratings=18_000)
    made, groups = gf.synthetic(**size, rng=3), plan(**size, streams=Streams(3)).user_groups
    rows = made.csr.toarray()
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = unit @ unit.T
    same = groups[:, None] == groups[None, :]
    others = ~np.eye(600, dtype=bool)
    within, across = cosines[same & others], cosines[~same]
    assert within.mean() > 1.25 * across.mean()
    nearest = np.argmax(np.where(others, cosines, -1), axis=1)
    share = (groups[nearest] == groups).mean()
    assert share > 0.7 > same.mean() + 0.1, "the nearest neighbour is mostly of the same group"


def test_groups_differ_in_how_they_rate() -> None:
    size = Size(users=600, items=600, ratings=18_000)
    made, planted = gf.synthetic(**size, rng=3), plan(**size, streams=Streams(3))
    cells = made.csr.tocoo()
    pairs = planted.user_groups[cells.row] * planted.n_groups + planted.item_groups[cells.col]
    means = np.array([cells.data[pairs == pair].mean() for pair in np.unique(pairs)])
    assert len(means) == planted.n_groups**2
    assert means.max() - means.min() > 0.5


@pytest.mark.kernel
def test_kernels_equal_their_slow_twins() -> None:
    generator = np.random.default_rng(5)
    indptr = np.array([0, 3, 3, 4, 16, 20], dtype=np.int64)  # row 3 rates more than one item in 8
    groups = np.array([0, 1, 2, 1, 0], dtype=np.int64)
    starts = np.array([0, 9, 17, 27], dtype=np.int64)
    cumulative = np.concatenate(([0.0], np.cumsum(generator.random(27))))
    columns = generator.permutation(27).astype(np.int32)
    key = Word(0xABCDEF0123456789)
    chosen = np.empty(20, dtype=np.int32)
    choose_items(0, 5, indptr, Tastes(groups, starts, cumulative, columns, 0.4), key, chosen)
    expected = reference.choose_items(indptr, groups, starts, cumulative, columns, 0.4, int(key))
    assert chosen.tolist() == expected

    users, items = generator.normal(size=5), generator.normal(size=27)
    tastes = generator.normal(size=(3, 3))
    item_groups = np.repeat([0, 1, 2], 9)
    levels = np.empty(20)
    made_of = Levels(users, groups, items, item_groups, tastes, 0.2)
    rate_items(0, 5, indptr, chosen, made_of, key, levels)
    slow = reference.rate_items(indptr, chosen, users, groups, items, item_groups, tastes, 0.2, int(key))
    np.testing.assert_allclose(levels, slow, rtol=0, atol=1e-12)


@pytest.mark.kernel
@pytest.mark.parametrize("n_items", [3, 24])
def test_items_are_chosen_by_successive_sampling(n_items: int) -> None:
    """With 3 items a key for each decides; with 24, 21 of them next to weightless, tries."""
    weights = np.full(n_items, 1e-12)
    weights[:3] = (5.0, 3.0, 2.0)
    cumulative = np.concatenate(([0.0], np.cumsum(weights)))
    rows = 3_000
    indptr = 2 * np.arange(rows + 1, dtype=np.int64)
    groups = np.zeros(rows, dtype=np.int64)
    starts = np.array([0, n_items], dtype=np.int64)
    columns = np.arange(n_items, dtype=np.int32)
    chosen = np.empty(2 * rows, dtype=np.int32)
    tastes = Tastes(groups, starts, cumulative, columns, 0.3)
    choose_items(0, rows, indptr, tastes, Word(99), chosen)
    pairs = [tuple(pair) for pair in chosen.reshape(-1, 2).tolist()]
    expected = {(0, 1): 0.0, (0, 2): 0.0, (1, 2): 0.0}
    for first, second, _ in permutations(range(3)):
        chance = weights[first] / 10 * weights[second] / (10 - weights[first])
        expected[min(first, second), max(first, second)] += chance
    observed = [pairs.count(pair) for pair in expected]
    assert sum(observed) == rows
    assert chisquare(observed, [rows * chance for chance in expected.values()]).pvalue > FALSE_ALARM


@pytest.mark.kernel
def test_noise_has_mean_0_and_variance_1() -> None:
    drawn = np.array([noise_of(Word(12), 3, item) for item in range(4_000)])
    assert abs(drawn.mean()) < 5 / 4_000**0.5
    assert abs(drawn.var() - 1) < 0.12
    uniforms = np.array([two_uniforms(Word(12), 3, count) for count in range(4_000)])
    assert 0 < uniforms.min() < 0.01 < 0.99 < uniforms.max() < 1
    assert abs(np.corrcoef(uniforms.T)[0, 1]) < 0.08


@pytest.mark.parametrize("wrong", [{"users": 0}, {"items": 0}, {"ratings": 0}, {"ratings": 75_001}, {"users": 2**31}])
def test_impossible_sizes_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingError, match=f"{next(iter(wrong))} must be"):
        gf.synthetic(**cast("Size", {**SIZE, **wrong}), rng=3)


def test_the_parts_of_the_work_have_about_equally_many_ratings() -> None:
    indptr = np.cumsum([0, *[9, 11] * 3200])  # 64,000 ratings for 64 parts
    parts: list[tuple[int, int]] = []
    _in_parts(indptr, lambda first, last: parts.append((first, last)))
    parts.sort()
    assert [first for first, _ in parts] == [0, *(last for _, last in parts[:-1])]
    assert parts[-1][1] == 6400
    sizes = [int(indptr[last] - indptr[first]) for first, last in parts]
    assert all(abs(size - 1000) <= 20 for size in sizes)
