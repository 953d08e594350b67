"""Decoders give back the ratings that a recommender shrank, moved, averaged or mixed with helpers'."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodfence.attack.decoders import Helped, agreed_on, alone, off_grid, rescaled, solved, voted
from goodfence.attack.trained import logistic, without_each
from goodfence.data.scale import Scale

SCALE = Scale(1, 5)


def people(seed: int, n_targets: int = 6, n_each: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ratings, what controls are told, and whose each rating is."""
    generator = np.random.default_rng(seed)
    ratings = generator.integers(1, 6, size=n_targets * n_each).astype(float)
    controls = generator.uniform(2.2, 4.4, size=len(ratings))
    return ratings, controls, np.repeat(np.arange(n_targets), n_each)


@given(st.integers(0, 1000))
def test_one_unknown_factor_for_each_target_is_found(seed: int) -> None:
    ratings, controls, owners = people(seed)
    factors = np.random.default_rng(seed + 1).uniform(0.15, 0.95, size=6)[owners]
    found, _ = rescaled(controls + factors * (ratings - controls), controls, owners, np.zeros(6), SCALE)
    steps = np.array([np.median((found - ratings)[owners == at]) for at in range(6)])[owners]
    assert (np.round(found - steps) == ratings).mean() > 0.95


def test_nothing_is_concluded_where_controls_are_told_the_same() -> None:
    _, controls, owners = people(1)
    alike = np.full(len(controls), 3.3), np.full(len(controls), 3.3), owners, np.zeros(6)
    assert np.isnan(rescaled(*alike, SCALE)[0]).all()
    assert np.isnan(rescaled(controls + 0.1, controls, owners, np.zeros(6), Scale(1, 5, step=None))[0]).all()


def test_an_unknown_factor_and_mean_are_found_up_to_whole_steps() -> None:
    ratings, controls, owners = people(2)
    factors = np.array([0.3, 1.0, 1.6, 0.72, 0.11, 0.9])
    offsets = np.array([0.3, -0.41, 0.07, 1.26, -0.9, 0.5])
    for part in (0.0, 1.0):
        answers = factors[owners] * ratings + offsets[owners] + part * controls
        found, means = rescaled(answers, controls, owners, 2.5 * factors + offsets, SCALE)
        steps = np.array([np.median((found - ratings)[owners == at]) for at in range(6)])
        assert (np.abs(found - steps[owners] - ratings) < 0.02).mean() > 0.9
        assert np.isnan(means).all() if part else np.median(np.abs(means - steps - 2.5)) < 0.02
    few, _ = rescaled(ratings[:3] + 0.3, controls[:3], np.zeros(3, dtype=int), np.zeros(1), SCALE)
    assert np.isnan(few).all()  # three answers settle nothing


def test_two_equations_give_the_rating_and_the_weight_of_who_is_no_helper() -> None:
    rating, weight, helpers = np.array([4.0, 2.0]), np.array([0.3, 1.7]), 9.0

    def asked(given: float, each: float) -> Helped:
        total = helpers * each
        answers = (total * given + weight * rating) / (total + weight)
        return Helped(answers, np.full(2, given), np.full(2, total))

    found = solved(asked(1.0, 0.9), asked(2.0, 0.8))
    assert found.values == pytest.approx(rating)
    assert found.weights == pytest.approx(weight)
    alone = Helped(np.ones(2), np.ones(2), np.full(2, 9.0)), Helped(np.full(2, 2.0), np.full(2, 2.0), np.full(2, 9.0))
    assert np.isnan(solved(*alone).values).all()  # nobody but helpers


def test_an_answer_on_the_grid_votes_and_a_mean_does_not() -> None:
    answers = np.array([[4.0, 3.37, np.nan], [4.0, 2.5, np.nan], [2.0, 5.0, np.nan]])
    values, shares = voted(answers, np.ones(3), SCALE)
    assert values[:2].tolist() == [4.0, 5.0]
    assert shares[:2] == pytest.approx([2 / 3, 1 / 3])
    assert np.isnan(values[2])
    assert np.isnan(voted(answers, np.ones(3), Scale(1, 5, step=None))[0]).all()


def test_what_is_outside_the_scale_is_far_from_the_grid() -> None:
    assert off_grid(np.array([1.0, 2.25, 5.6, -3.0]), SCALE).tolist() == [0.0, 0.25, 1.0, 1.0]


def test_folds_from_one_fit_are_those_fitted_one_by_one() -> None:
    chance = np.random.default_rng(3)
    features = chance.normal(size=(400, 6))
    happened = chance.random(400) < 1 / (1 + np.exp(1 - features[:, 0]))
    groups = np.arange(400) % 5
    found = without_each(features, happened, groups)
    assert sorted(found) == list(range(5))
    for group, weights in found.items():
        refitted = logistic(features[groups != group], happened[groups != group])
        np.testing.assert_allclose(weights, refitted, atol=1e-4)


def test_the_only_user_of_a_level_is_found_by_inverting_the_similarity() -> None:
    generator, levels = np.random.default_rng(4), np.arange(5.0)
    kernel = 1 / (1 + (levels[:, np.newaxis] - levels) ** 2)
    counts = generator.integers(0, 3, size=(5, 40))
    counts[2, :20] = 1
    sums = np.where(counts > 0, generator.integers(1, 6, size=counts.shape) * counts, 0)
    weights, totals = kernel @ counts, kernel @ sums
    answers, helped = totals / weights, (totals + kernel[:, [2]]) / (weights + kernel[:, [2]])
    found = alone(answers, helped, np.ones(40), kernel, 2)
    one = (counts[2] == 1) & (np.abs(answers - helped) > 1e-9).all(axis=0)
    np.testing.assert_allclose(found[one], sums[2, one])
    assert one[:20].any()
    assert np.isnan(found[counts[2] != 1]).all()
    assert agreed_on(np.array([0.5, np.nan, 2.0, 0.5])) == 0.5
    assert np.isnan(agreed_on(np.array([np.nan])))
