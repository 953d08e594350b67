"""The attacker who knows all ratings but one: what one row adds is what the whole data would show, and the bound."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.special import ndtr

import goodfence as gf
from benchmarks.last_rating import Fit, bound_of, expected_gain, recovered, remembering
from goodfence.auditing.dp_audit import Replayer
from goodfence.models.private.base import PrivateRecommender
from goodfence.privacy.fixed_point import centred
from goodfence.privacy.noise import SIGMA

MODELS = [
    gf.PrivateMeans(epsilon=1.0, items="from ratings"),
    gf.PrivateMeans(epsilon=4.0, unit="user", items="from ratings"),
    gf.PrivateCF(epsilon=4.0, plan="covariance", items="from ratings"),
    gf.PrivateCF(epsilon=4.0, unit="user", plan="half_step", items="from ratings"),
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_one_row_moves_the_releases_as_the_whole_data_would(model: PrivateRecommender) -> None:
    """The shortcut (one user's row, remembered post-processing) against replays of all users' ratings without it."""
    ratings = gf.synthetic(users=40, items=30, ratings=500, rng=7)
    row, place = 5, 1
    whole = Fit(ratings, model)
    cell = int(ratings.csr.indptr[row]) + place
    values = np.array([1.0, 3.0, 5.0])
    expected = []
    for value in [float(ratings.csr.data[cell]), *values.tolist()]:
        changed = whole.profiles.values.copy()
        changed[cell] = centred(np.array([value]), ratings.scale)[0]
        replayer = Replayer(whole.noise, released=whole.recorder.noisy)
        profiles = dataclasses.replace(whole.profiles, values=changed)
        model._learn(profiles, whole.mu, replayer)
        expected.append(np.concatenate([each.ravel() for each in replayer.totals]))
    with remembering():
        moved, drawn = whole.shifts(row, place, values)
    apart = np.stack(expected[1:]) - expected[0]
    touched = apart.any(axis=0)
    assert touched.any()
    assert np.array_equal(moved * SIGMA, apart[:, touched])
    released = np.concatenate([each.ravel() for each in whole.recorder.noisy])
    assert np.array_equal(drawn * SIGMA, (released - expected[0])[touched])


def test_the_bound_of_two_values_is_that_of_a_test_between_them() -> None:
    mu = np.array([0.1, 0.5, 2.0])
    even = [float(bound_of(np.array([[0.5, 0.5]]), each)[0]) for each in mu]
    assert np.allclose(even, ndtr(mu) - 0.5, atol=1e-9)
    assert bound_of(np.array([[0.999999, 0.000001]]), 0.1)[0] < 1e-6


def test_the_bound_is_below_the_total_variation_and_grows_with_mu() -> None:
    priors = np.random.default_rng(7).dirichlet(np.ones(5), size=200)
    before = np.zeros(200)
    for mu in (0.05, 0.2681, 0.9249, 3.0):
        found = bound_of(priors, mu)
        assert (found <= 2 * ndtr(mu / 2) - 1 + 1e-9).all()
        assert (found >= before - 1e-9).all()
        before = found


def test_what_is_expected_is_what_happens_and_below_the_bound() -> None:
    """Five values that each move a release of their own by mu from nothing: near the bound, and never above it."""
    mu, prior, chance = 0.9, np.array([0.1, 0.15, 0.2, 0.25, 0.3]), np.random.default_rng(7)
    moved, n = mu * np.eye(5), 2000
    values = chance.choice(5, size=n, p=prior)
    noise = chance.standard_normal((n, 5))
    right = [
        recovered(prior, value, moved - moved[value], drawn)
        for value, drawn in zip(values.tolist(), noise, strict=True)
    ]
    gained = expected_gain(prior, moved, chance)
    assert abs(np.mean(right) - prior.max() - gained) < 5 * 0.5 / np.sqrt(n) + 0.02
    bound = float(bound_of(prior[np.newaxis], mu)[0])
    assert 0.5 * bound < gained < bound
