"""No error, and no number out of bounds, may depend on what somebody rated."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from goodfence.arrays import Csr
from goodfence.data.ratings import Ratings
from goodfence.errors import SettingError
from goodfence.kernels.private import HalfStepLimits, ItemFeatures, add_half_steps
from goodfence.models.private.cf import PrivateCF, largest_distance
from goodfence.models.private.estimation import public_factors
from goodfence.models.private.item_model import FARTHEST, ItemBiases, ItemModel
from goodfence.models.private.releases import COVARIANCE_GRID, chosen_residuals, sum_pairs
from goodfence.papers.mcsherry_mironov import LEAST_CLAMP, THEOREM, McSherryMironov
from goodfence.privacy.fixed_point import SPAN, Clamps, UserProfiles, to_grid
from tests.support.published_theorem import bound, moves, search, worst

N_ITEMS = 50


def neighbours() -> tuple[Ratings, Ratings]:
    """Return two data sets: 200 users who did not rate item 0, and one more who did."""
    rng = np.random.default_rng(0)
    rated = np.zeros((201, N_ITEMS))
    for row in rated[:200]:
        row[rng.choice(np.arange(1, N_ITEMS), 10, replace=False)] = rng.integers(1, 6, 10)
    rated[200, [0, 3]] = 5.0, 1.0

    def made(matrix: npt.NDArray[np.float64]) -> Ratings:
        return Ratings(sparse.csr_array(matrix), range(len(matrix)), range(N_ITEMS), scale=(1, 5))

    return made(rated[:200]), made(rated)


def release_days() -> npt.NDArray[np.float64]:
    """Return a column of seconds since 1970, unknown (0) for item 0."""
    days = 1.5e9 + np.random.default_rng(1).normal(0, 1e7, (N_ITEMS, 1))
    days[0] = 0
    return days


@pytest.mark.parametrize("copies", [1, 2])
def test_public_features_of_any_size_never_raise(copies: int) -> None:
    features = np.tile(release_days(), (1, copies))
    for ratings in neighbours():
        for _ in range(10):
            model = PrivateCF(epsilon=1.0, unit="user", plan="half_step", features=features, items="from ratings")
            assert np.abs(model.fit(ratings).model_.features).max() <= FARTHEST


@pytest.mark.parametrize("value", [1e308, -1e308, 1e-308, 0.0])
def test_public_factors_are_bounded(value: float) -> None:
    table = np.array([[1.0, value], [0.0, -value], [3.0, 0.0], [3.0, 5.0]])
    factors = public_factors(table, 4)
    assert np.isfinite(factors).all()
    assert np.abs(factors).max() < 1.3
    assert (public_factors(np.full((4, 1), 1.5e9), 4) == 0).all()
    assert public_factors(np.zeros((4, 0)), 4).shape == (4, 0)


def test_the_unit_of_a_public_feature_does_not_matter() -> None:
    table = np.random.default_rng(2).normal(size=(30, 3))
    moved = table * np.array([1e-6, 60.0, 1e9]) + np.array([0.0, 3.0, -1e9])
    assert public_factors(moved, 30) == pytest.approx(public_factors(table, 30), abs=1e-9)


USERS = ({0: 1.0}, {1: -1.0, 2: 0.5}, {0: 1.0, 1: -2.0, 2: 0.0})
"""Ratings of three items; only the second user did not rate item 0."""


def half_step(users: Any, features: npt.NDArray[np.float64], weights: Any = (1, 1, 1)) -> Any:
    """Return what these users add to the half step, items and scores side by side."""
    indptr = np.cumsum([0, *(len(user) for user in users)])
    indices = np.array([item for user in users for item in user])
    values = np.array([value for user in users for value in user.values()])
    items, scores = np.zeros((3, 2), dtype=np.int64), np.zeros((2, 2), dtype=np.int64)
    weighed = np.array(weights, dtype=np.float64)
    known = ItemFeatures(np.zeros(3), features, weighed, np.array([2.0, 0.85]))
    limits = HalfStepLimits(1.5, 1.0, 1000, 1000)
    # Compiled arithmetic overflows in silence; NumPy's scalars, with the compiler off, would warn.
    with np.errstate(all="ignore"):
        add_half_steps(Csr(indptr, indices, values), known, limits, items, scores)
    return np.concatenate([items, scores]).tolist()


@pytest.mark.kernel
@pytest.mark.parametrize("value", [-4e8, 1e200, np.nan, np.inf])
def test_who_rated_an_item_out_of_bounds_is_left_out_without_an_error(value: float) -> None:
    features = np.array([[1.0, 0.1], [1.0, -0.1], [1.0, 0.3]])
    second = half_step(USERS[1:2], features)
    assert half_step(USERS, features) != second
    assert half_step(USERS, features, weights=(value, 1, 1)) == second
    features[0, 1] = value
    assert half_step(USERS, features) == second


@pytest.mark.kernel
def test_a_leverage_of_one_is_left_out() -> None:
    """The trace may pass where the leverage rounds to one: then the prediction without the rating has no value."""
    features = np.array([[1.0, 3.1e4], [1.0, -0.1], [1.0, 0.3]])
    assert half_step(USERS, features) == half_step(USERS[1:2], features)


def test_a_model_is_made_of_bounded_numbers_only() -> None:
    wild = np.array([np.nan, np.inf, -1e300, 0.5])
    model = ItemModel.of(ItemBiases(wild, wild, np.ones(4)), wild[:, None])
    for array in (model.bias, model.features, model.weights):
        assert (np.abs(array) <= FARTHEST).all()
    assert ((model.weights >= 0) & (model.weights <= 1)).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, 3e18])
def test_nothing_beyond_61_bits_is_put_on_the_grid(value: float) -> None:
    with pytest.raises(SettingError, match="61 bits"):
        to_grid(np.array([0.5, value]), 1)


def test_public_features_enter_the_distance() -> None:
    assert largest_distance(3000, 500) > largest_distance(3000)
    model = PrivateCF(epsilon=1.0, features=np.eye(300), items="from ratings")
    assert model._distance(300) == largest_distance(300, 300)
    # Every release of a half step is within what was set aside for one of nine.
    n_features = 1 + 2 + 300
    one = math.sqrt(max(300 * n_features, n_features**2) / 32) / (1 << 48)
    assert 1.01 * one < largest_distance(300, 300) / 9


@pytest.mark.parametrize("prior", [1, 20])
@pytest.mark.parametrize("clamp", [LEAST_CLAMP, 1.0, 4.0])
def test_the_papers_constant_holds_at_the_clamps_that_are_allowed(clamp: float, prior: int) -> None:
    found, proved = search(clamp, prior), bound(clamp, prior)
    assert 0.7 * proved < found.covariance <= proved < 0.82
    assert found.together <= 1
    assert McSherryMironov(epsilon=1.0, clamp=clamp, user_prior=prior).clamp == clamp


@pytest.mark.parametrize("clamp", [0.1, 0.25])
def test_the_papers_constant_is_exceeded_at_smaller_ones(clamp: float) -> None:
    """The search takes item averages as the enemy's, so a rating may lie 4 from its item's."""
    assert search(clamp, 1).covariance > 1.1
    with pytest.raises(SettingError, match=r"clamp must be at least 0\.5"):
        McSherryMironov(epsilon=1.0, clamp=clamp)


@pytest.mark.parametrize("clamp", [0.5, 1.0])
def test_the_search_moves_what_is_really_released(clamp: float) -> None:
    """The worst user that it found moves the model's own integers as far as it says."""
    prior, size = 1, 1e9
    users = worst(clamp, prior)
    count = int(users.n_ratings[0])
    first = int(users.first[0])
    apart = np.repeat(users.apart[:, 0], [first, count - first, 1])
    chosen = np.arange(count + 1 if users.chosen[0] else first + 1)
    order = np.r_[np.arange(first), count, np.arange(first, count)]  # the new rating after the first block
    biases = np.where(apart > 0, -2.5, 1.5)
    clamps = Clamps(near=SPAN, prior=prior, wide=clamp)

    def total(n: int) -> Any:
        kept = np.sort(np.flatnonzero(order < n))
        values = (biases + apart)[order][kept]
        profiles = UserProfiles(np.array([0, len(kept)]), kept, values, count + 1)
        rows = chosen_residuals(profiles, biases[order], chosen, clamps)
        return sum_pairs(rows, np.array([size / math.sqrt(n) / (clamp * COVARIANCE_GRID) ** 2]), toward_zero=False)

    moved = np.sqrt((((total(count + 1) - total(count)) / size) ** 2).sum()) / THEOREM
    assert moved == pytest.approx(moves(users, clamp, prior)[0][0], rel=1e-3)
