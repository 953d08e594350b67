"""No error, and no number out of bounds, may depend on what somebody rated."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from goodfence.data.ratings import Ratings
from goodfence.errors import SettingError
from goodfence.kernels.half_step import add_half_steps
from goodfence.models.mcsherry_mironov import LEAST_CLAMP, McSherryMironov
from goodfence.models.private.empirical_bayes import ItemEffects
from goodfence.models.private.item_features import public_directions
from goodfence.models.private.local_ridge import FARTHEST, ItemModel
from goodfence.models.private.plans import largest_distance
from goodfence.models.private_cf import PrivateCF
from goodfence.privacy.fixed_point import to_grid
from tests.published_theorem import one_rating_more

N_ITEMS = 50


def neighbours() -> tuple[Ratings, Ratings]:
    """Return two data sets: 200 people who did not rate item 0, and one more who did."""
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
            model = PrivateCF(epsilon=1.0, unit="user", plan="half_step", features=features)
            assert np.abs(model.fit(ratings).model_.features).max() <= FARTHEST


@pytest.mark.parametrize("value", [1e308, -1e308, 1e-308, 0.0])
def test_public_directions_are_bounded(value: float) -> None:
    table = np.array([[1.0, value], [0.0, -value], [3.0, 0.0], [3.0, 5.0]])
    directions = public_directions(table, 4)
    assert np.isfinite(directions).all()
    assert np.abs(directions).max() < 1.3
    assert (public_directions(np.full((4, 1), 1.5e9), 4) == 0).all()
    assert public_directions(np.zeros((4, 0)), 4).shape == (4, 0)


def test_the_unit_of_a_public_feature_does_not_matter() -> None:
    table = np.random.default_rng(2).normal(size=(30, 3))
    moved = table * np.array([1e-6, 60.0, 1e9]) + np.array([0.0, 3.0, -1e9])
    assert public_directions(moved, 30) == pytest.approx(public_directions(table, 30), abs=1e-9)


PEOPLE = ({0: 1.0}, {1: -1.0, 2: 0.5}, {0: 1.0, 1: -2.0, 2: 0.0})
"""Ratings of three items; only the second person did not rate item 0."""


def half_step(people: Any, features: npt.NDArray[np.float64], weights: Any = (1, 1, 1)) -> Any:
    """Return what these people add to the half step, items and scores side by side."""
    indptr = np.cumsum([0, *(len(person) for person in people)])
    indices = np.array([item for person in people for item in person])
    values = np.array([value for person in people for value in person.values()])
    items, scores = np.zeros((3, 2), dtype=np.int64), np.zeros((2, 2), dtype=np.int64)
    known = (np.zeros(3), features, np.array(weights, dtype=np.float64), np.array([2.0, 0.85]))
    # Compiled arithmetic overflows in silence; NumPy's scalars, with the compiler off, would warn.
    with np.errstate(all="ignore"):
        add_half_steps(indptr, indices, values, *known, 1.5, 1.0, 1000, 1000, items, scores)
    return np.concatenate([items, scores]).tolist()


@pytest.mark.kernel
@pytest.mark.parametrize("value", [-4e8, 1e200, np.nan, np.inf])
def test_who_rated_an_item_out_of_bounds_is_left_out_without_an_error(value: float) -> None:
    features = np.array([[1.0, 0.1], [1.0, -0.1], [1.0, 0.3]])
    second = half_step(PEOPLE[1:2], features)
    assert half_step(PEOPLE, features) != second
    assert half_step(PEOPLE, features, weights=(value, 1, 1)) == second
    features[0, 1] = value
    assert half_step(PEOPLE, features) == second


@pytest.mark.kernel
def test_a_leverage_of_one_is_left_out() -> None:
    """The trace may pass where the leverage rounds to one: then the prediction without the rating has no value."""
    features = np.array([[1.0, 3.1e4], [1.0, -0.1], [1.0, 0.3]])
    assert half_step(PEOPLE, features) == half_step(PEOPLE[1:2], features)


def test_a_model_is_made_of_bounded_numbers_only() -> None:
    wild = np.array([np.nan, np.inf, -1e300, 0.5])
    model = ItemModel.of(ItemEffects(wild, wild, np.ones(4)), wild[:, None])
    for array in (model.effects, model.features, model.weights):
        assert (np.abs(array) <= FARTHEST).all()
    assert ((model.weights >= 0) & (model.weights <= 1)).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, 3e18])
def test_nothing_beyond_61_bits_is_put_on_the_grid(value: float) -> None:
    with pytest.raises(SettingError, match="61 bits"):
        to_grid(np.array([0.5, value]), 1)


def test_public_features_enter_the_distance() -> None:
    assert largest_distance(3000, 500) > largest_distance(3000)
    model = PrivateCF(epsilon=1.0, features=np.eye(300))
    assert model._distance(300) == largest_distance(300, 300)
    # Every release of a half step is within what was set aside for one of nine.
    n_features = 1 + 2 + 300
    one = math.sqrt(max(300 * n_features, n_features**2) / 32) / (1 << 48)
    assert 1.01 * one < largest_distance(300, 300) / 9


@pytest.mark.parametrize("prior", [1, 20])
@pytest.mark.parametrize(("clamp", "holds"), [(LEAST_CLAMP, True), (0.05, False), (0.02, False)])
def test_the_papers_theorem_is_used_only_where_no_counter_example_is_known(
    clamp: float, holds: bool, prior: int
) -> None:
    worst = max(one_rating_more(count, clamp, prior)[0] for count in range(2, 400, 3))
    assert (worst <= 1) is holds
    if not holds:
        with pytest.raises(SettingError, match="clamp must be at least"):
            McSherryMironov(epsilon=1.0, clamp=clamp)
