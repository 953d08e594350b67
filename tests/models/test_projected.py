"""Half steps for the unit rating: directions, bound and posterior, once more by hand or in plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

import goodfence as gf
from goodfence.arrays import Integers
from goodfence.models.private.item_model import ItemBiases
from goodfence.models.private.projected import (
    DIRECTION_GRID,
    LONGEST,
    PROJECTED,
    FactorPosterior,
    Projected,
    find_directions,
    projected_bound,
    projected_size,
    release_projected,
    sharpen,
)
from goodfence.models.private.releases import COVARIANCE_GRID
from goodfence.privacy.fixed_point import Clamps, UserProfiles
from goodfence.privacy.noise import SIGMA, Publisher


class Silent:
    """No noise at all: what is released is what was computed."""

    private = False

    def draw(self, n: int) -> Integers:
        return np.zeros(n, dtype=np.int64)


def some_items(n_items: int, seed: int = 0) -> ItemBiases:
    rng = np.random.default_rng(seed)
    return ItemBiases(np.zeros(n_items), np.full(n_items, 0.1), rng.uniform(50, 500, n_items))


def test_the_bound_by_hand() -> None:
    """One direction, the same for four items: each row 1/2, the largest singular value 1.

    Clamps at 1/2 and a score of at most 0.1: the own row moves by 0.05. The others move by M(0.1 + 1) through the
    user bias, by 1/2 · 1/2 through the score and by 0.30029 · 0.05 through its denominator.
    """
    directions = np.full((4, 1), DIRECTION_GRID // 2)
    clamps = Clamps(near=1.0, prior=40, wide=0.5)
    move = clamps.others_move(COVARIANCE_GRID, 4) / COVARIANCE_GRID
    others = move * 1.1 + 0.25 + 0.30029 * 0.05
    found = projected_bound(clamps, 4, directions, 0.1) / COVARIANCE_GRID
    assert found == pytest.approx(math.hypot(0.05, others), rel=1e-5)
    assert found >= math.hypot(0.05, others)


def test_the_golden_constant_is_a_maximum() -> None:
    angles = np.linspace(0, math.pi / 2, 100_001)
    largest = (np.sin(angles) * np.cos(angles) / (1 + np.sin(angles))).max()
    assert 0.30028 < largest < 0.30029


def test_size_leaves_room_for_rounding() -> None:
    directions = np.full((4, 1), DIRECTION_GRID // 2)
    bound = projected_bound(PROJECTED, 4, directions, LONGEST)
    found = projected_size(PROJECTED, 4, directions, LONGEST, 1000)
    assert found * bound + 2 * (1 + 2**-11) == pytest.approx(1000)
    assert projected_size(PROJECTED, 4, directions, LONGEST, 2) == 0.0


def test_directions_are_even_short_and_of_popular_items() -> None:
    rng = np.random.default_rng(1)
    factors = rng.normal(size=(400, 3)) * [1.0, 0.3, 0.1]
    counts = np.concatenate([np.full(300, 100.0), np.full(100, 1.0)])
    found = find_directions(factors, counts) / DIRECTION_GRID
    values = np.linalg.svd(found, compute_uv=False)
    assert values[0] == pytest.approx(1.0, abs=1e-5)
    assert values[-1] > 0.7
    lengths = np.linalg.norm(found, axis=1)
    assert lengths[300:].mean() < 0.15 * lengths[:300].mean()
    assert lengths.max() < 1.6 * np.sqrt((lengths**2).mean())


@pytest.mark.parametrize("n_factors", [0, 2])
def test_directions_of_no_factors(n_factors: int) -> None:
    found = find_directions(np.zeros((5, n_factors)), np.zeros(5))
    assert found.shape == (5, n_factors)
    assert not found.any()


def test_what_is_released_is_the_covariance_along_the_directions() -> None:
    """Without noise and where no score is too long: rows are C Z, C the sum of x xᵀ/|x| off its diagonal."""
    ratings = gf.synthetic(users=80, items=30, ratings=600, rng=2)
    profiles = UserProfiles.of(ratings)
    directions = find_directions(np.random.default_rng(0).normal(size=(30, 2)), np.ones(30)) // 40
    found = release_projected(profiles, np.zeros(30), directions, 1.0, Publisher(Silent()))
    x = profiles.residuals(PROJECTED, np.zeros(30), COVARIANCE_GRID) / COVARIANCE_GRID
    covariance = np.zeros((30, 30))
    for row in range(80):
        own = slice(profiles.indptr[row], profiles.indptr[row + 1])
        user = np.zeros(30)
        user[profiles.indices[own]] = x[own]
        covariance += np.outer(user, user) / max(float(np.linalg.norm(user)), 1e-12)
    np.fill_diagonal(covariance, 0.0)
    assert found.rows == pytest.approx(covariance @ found.directions, abs=1e-5)
    size = projected_size(PROJECTED, 30, directions, LONGEST, SIGMA)
    assert found.noise == pytest.approx(SIGMA / (size * COVARIANCE_GRID))


def test_factors_after_half_steps_are_posterior_means() -> None:
    """Item by item: row_i = W_i K q_i plus noise; K by regression of the rows on what was known before."""
    rng = np.random.default_rng(3)
    items = some_items(12)
    chosen = np.array([0, 2, 3, 7, 8, 9, 11])
    spread = np.array([np.diag(rng.uniform(0.01, 0.05, 2)) + 0.004 for _ in chosen])
    means = np.zeros((12, 2))
    means[chosen] = rng.normal(0, 0.3, (7, 2))
    found = FactorPosterior(means, chosen, spread, np.array([0.05, 0.02]))
    steps = [Projected(rng.normal(0, 3, (12, 3)), 0.7, rng.normal(0, 0.1, (12, 3))) for _ in range(2)]
    q, done = means, []
    for step in steps:
        chance = [min(2 * items.shares @ column**2, LONGEST**2) for column in step.directions.T]
        variance = np.array([[0.49 + 0.18 * w * s for s in chance] for w in items.counts])
        left, right = np.zeros((2, 2)), np.zeros((2, 3))
        for i, w in enumerate(items.counts):
            left += w**2 / variance[i].mean() * np.outer(q[i], q[i])
            right += w / variance[i].mean() * np.outer(q[i], step.rows[i])
        done.append((np.linalg.solve(left, right).T, step.rows, variance))
        q = np.empty((12, 2))
        for i, w in enumerate(items.counts):
            own = spread[list(chosen).index(i)] if i in chosen else np.diag(found.variance)
            precision = np.linalg.inv(own)
            pull = precision @ means[i]
            for response, rows, noise in done:
                precision = precision + w**2 * response.T @ np.diag(1 / noise[i]) @ response
                pull = pull + w * response.T @ (rows[i] / noise[i])
            q[i] = np.linalg.solve(precision, pull)
    assert sharpen(found, steps, items) == pytest.approx(q, rel=1e-5, abs=1e-7)


def test_a_step_that_rounding_drowns_changes_nothing() -> None:
    items = some_items(6)
    factors = np.random.default_rng(1).normal(size=(6, 2))
    spread = np.tile(0.01 * np.eye(2), (6, 1, 1))
    found = FactorPosterior(factors, np.arange(6), spread, np.full(2, 0.1))
    drowned = Projected(np.zeros((6, 2)), math.inf, np.zeros((6, 2)))
    assert sharpen(found, [drowned], items) == pytest.approx(factors)


def test_half_steps_find_the_factors_that_made_the_ratings() -> None:
    """Made-up ratings with structure: with a large budget the half steps are nearer to the held-out ratings."""
    made = gf.synthetic(users=2000, items=150, ratings=120_000, rng=5)
    train, test = gf.holdout(made, fraction=0.2, rng=1)
    means, auto = (
        gf.evaluate(gf.PrivateCF(epsilon=4.0, plan=plan, items="from ratings", rng=1).fit(train), test).mae
        for plan in ("means", "auto")
    )
    assert auto < means - 0.01
