"""Post-processing of private releases: known answers, worked out by hand or by a plain twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from scipy.stats import norm

from goodfence.models.private import estimation
from goodfence.models.private.estimation import (
    MOST_PUBLIC,
    curved_factors,
    estimate_biases,
    expected_variance,
    factorise,
    free_factors,
    public_factors,
    refine,
    update_biases,
)
from goodfence.models.private.item_model import NOISE, ItemBiases, ItemModel
from goodfence.models.private.releases import HalfStep, ItemSums, Noisy, residual_grid
from goodfence.privacy.fixed_point import Clamps
from goodfence.privacy.noise import SIGMA


def biases_of(biases: list[float], counts: list[float], variance: float = 0.1) -> ItemBiases:
    return ItemBiases(np.array(biases), np.full(len(biases), variance), np.array(counts))


def test_free_factors_are_standardised_over_ratings() -> None:
    """Shares 1/4, 1/4, 1/2; biases of mean 1/2 lie -3/2, 1/2, 1/2 off, which is sqrt(3)/2 in the mean square.

    Logarithms of counts are 0, 0, log 2: half of them on either side of their mean, one standard deviation off.
    """
    found = free_factors(biases_of([-1.0, 1.0, 1.0], [1.0, 1.0, 2.0]))
    assert found[:, 0] == pytest.approx(0.25 * np.array([-3, 1, 1]) / np.sqrt(3), rel=1e-5)
    assert found[:, 1] == pytest.approx(0.25 * np.array([-1, -1, 1]), rel=1e-5)


def test_curved_factors_are_products_of_the_free_ones() -> None:
    """In standard deviations the biases are -sqrt(3) once and 1/sqrt(3), the popularities -1, -1 and 1."""
    found = curved_factors(biases_of([-1.0, 1.0, 1.0], [1.0, 1.0, 2.0]))
    assert found[:, 0] == pytest.approx(0.053 * np.array([2, -2 / 3, -2 / 3]), rel=1e-4)
    assert found[:, 1] == pytest.approx(0.053 * np.array([3, -1, 1]) / np.sqrt(3), rel=1e-4)


def test_free_factors_are_cut_at_four_standard_deviations() -> None:
    found = free_factors(biases_of([0.0, 1.0], [10_000.0, 1.0]))
    assert found[1].tolist() == [1.0, -1.0]
    assert abs(found[0]).max() < 0.003


def test_an_item_without_ratings_is_the_least_popular() -> None:
    """The others' biases are half a standard deviation from each other's mean; its own is three off."""
    found = free_factors(biases_of([0.0, 1.0, 2.0], [50.0, 50.0, 0.0]))
    assert found[2] == pytest.approx([0.75, -1.0], rel=1e-5)


def test_as_many_public_features_as_there_may_be() -> None:
    columns = np.tile([[1.0], [-1.0]], MOST_PUBLIC)
    assert public_factors(columns, 2)[0] == pytest.approx(np.full(MOST_PUBLIC, 0.3 / 30))


def test_public_features_are_cut_at_four_standard_deviations_on_both_sides() -> None:
    column = np.zeros((102, 1))
    column[0], column[1] = 1.0, -1.0
    assert public_factors(column, 102)[:3].ravel().tolist() == pytest.approx([1.2, -1.2, 0.0])


def test_factors_of_a_clear_covariance_are_found() -> None:
    """Items' factors q and reach a, no noise to speak of: the covariance off its diagonal is a_i a_j q_i q_j."""
    n_items = 40
    q = 0.2 + 0.01 * (np.arange(n_items) % 7)
    reach = np.array([5.0, 6.0, 7.0, 6.0] * 10)
    matrix = np.outer(reach * q, reach * q)
    np.fill_diagonal(matrix, 0.0)
    found = factorise(Noisy(matrix.astype(np.float32), 1e-3), reach, 0.0)[0]
    assert found @ found.T == pytest.approx(np.outer(q, q), rel=0.02)


def test_noise_alone_gives_no_factors_to_speak_of() -> None:
    noise = np.random.default_rng(3).normal(size=(40, 40))
    found = factorise(Noisy(((noise + noise.T) / np.sqrt(2)).astype(np.float32), 1.0), np.ones(40), 0.0)[0]
    assert np.abs(found @ found.T).max() < 0.5


def test_factors_are_the_fixed_point_of_variational_bayes() -> None:
    """Once more by the equations, item by item, from what was found: it stays where it is."""
    chance = np.random.default_rng(5)
    n_items, noise = 30, 0.3
    q, reach = chance.normal(size=(n_items, 2)), chance.uniform(1.0, 2.0, n_items)
    loaded = reach[:, None] * q
    off = np.triu(chance.normal(size=(n_items, n_items)), 1) * noise
    matrix = loaded @ loaded.T + off + off.T
    np.fill_diagonal(matrix, 0.0)
    found = factorise(Noisy(matrix.astype(np.float32), noise), reach, 0.0)[0]
    assert found @ found.T == pytest.approx(twin_of_factorise(matrix, reach, noise), abs=2e-3)


def twin_of_factorise(matrix: np.ndarray, reach: np.ndarray, noise: float) -> np.ndarray:
    """The same iteration in plain loops, over entries brought to unit noise; returns the factors' products."""
    n_items = len(reach)
    scale = 1 / np.sqrt(noise)
    even, a = matrix * scale * scale, reach * scale
    values, vectors = np.linalg.eigh(even)
    edge = 2 * np.sqrt(n_items)
    rank = min(n_items - 1, int((values > edge).sum()) + 4)
    q = np.zeros((n_items, rank))
    for f in range(rank):
        value = max(values[-1 - f], 1e-9)
        shrunk = max(value**2 - edge**2, (0.2 * value) ** 2) ** 0.5
        q[:, f] = vectors[:, -1 - f] * shrunk**0.5 / a
        limit = 3 * np.sqrt((a**2 * q[:, f] ** 2).sum() / (a**2).sum())
        q[:, f] = np.clip(q[:, f], -limit, limit)
    spread = np.zeros((n_items, rank, rank))
    strength = 1 / ((a[:, None] ** 2 * q**2).sum(axis=0) / (a**2).sum() + 1e-6)
    for _ in range(25):
        moments = [a[i] ** 2 * (np.outer(q[i], q[i]) + spread[i]) for i in range(n_items)]
        new, spread = np.empty_like(q), np.empty_like(spread)
        for i in range(n_items):
            others = sum(moments[j] for j in range(n_items) if j != i)
            spread[i] = np.linalg.inv(np.diag(strength) + a[i] ** 2 * others)
            new[i] = spread[i] @ sum(a[i] * even[i, j] * a[j] * q[j] for j in range(n_items))
        q = 0.5 * q + 0.5 * new
        strength = n_items / ((q**2).sum(axis=0) + sum(np.diag(s) for s in spread) + 1e-9)
    return np.asarray(q @ q.T)


def test_a_half_step_is_the_posterior_of_the_changes() -> None:
    """Item by item: row_i = W_i P theta_i + noise, theta_i = (bias, factors); the prior of factors is learnt."""
    chance = np.random.default_rng(2)
    n_items, n_factors = 12, 2
    items = ItemBiases(chance.normal(size=n_items), chance.uniform(0.05, 0.2, n_items), chance.uniform(5, 60, n_items))
    factors = chance.normal(size=(n_items, n_factors))
    scores = np.array([[200.0, 10.0, 0.0], [10.0, 30.0, 4.0], [0.0, 4.0, 20.0]])
    rows = chance.normal(scale=6.0, size=(n_items, n_factors + 1))
    step = HalfStep(items=rows, scores=scores, items_noise=2.0)
    found, moved = refine(step, items, factors)

    p = scores / 200.0
    shares = items.counts / items.counts.sum()
    variance = 0.15**2 * np.eye(n_factors)
    for _ in range(15):
        learnt = 1e-6 * np.eye(n_factors)
        change, spread = np.empty((n_items, 3)), np.empty((n_items, 3, 3))
        for i in range(n_items):
            design = 1.9 * items.counts[i] * p
            noise = np.linalg.inv(4.0 * np.eye(3) + 0.7 * 0.11 * design)
            prior = np.zeros((3, 3))
            prior[0, 0], prior[1:, 1:] = 1 / items.variances[i], np.linalg.inv(variance)
            spread[i] = np.linalg.inv(design @ noise @ design + prior)
            change[i] = spread[i] @ design @ noise @ rows[i]
            learnt += shares[i] * (np.outer(change[i, 1:], change[i, 1:]) + spread[i, 1:, 1:])
        variance = learnt
    assert found.biases == pytest.approx(np.clip(items.biases + change[:, 0], -2.5, 2.5))
    assert found.variances == pytest.approx(spread[:, 0, 0])
    assert moved == pytest.approx(factors + change[:, 1:])


def test_residuals_move_biases_by_their_precision() -> None:
    """Sum 6 of an item rated 20 times; clamped at 0.5 it follows its bias by 2 Phi(0.5 / 0.93) - 1."""
    slope = 20 * (2 * norm.cdf(0.5 / 0.93) - 1)
    variance = 3.0**2 + 20 * 0.7 * 0.25
    precision = slope**2 / variance + 1 / 0.1
    items = biases_of([0.2], [20.0])
    found = update_biases(Noisy(np.array([6.0]), 3.0), items, 0.5)
    assert found.biases[0] == pytest.approx(0.2 + slope * 6.0 / variance / precision)
    assert found.variances[0] == pytest.approx(1 / precision)
    wide = update_biases(Noisy(np.array([6.0]), 3.0), items, 2.0)
    assert wide.variances[0] == pytest.approx(1 / ((20 * (2 * norm.cdf(2 / 0.93) - 1)) ** 2 / (9 + 20 * 0.75) + 10))


def test_the_variance_to_expect_is_that_of_the_update() -> None:
    items = biases_of([0.2, -0.4], [20.0, 60.0])
    clamps = Clamps(near=1.0, prior=20, wide=0.5)
    noise = SIGMA / residual_grid(clamps, 2, 0.4)
    left = update_biases(Noisy(np.zeros(2), noise), items, 0.5).variances
    assert expected_variance(items, clamps, 0.4) == pytest.approx(left @ [0.25, 0.75])


@pytest.mark.parametrize(("wide", "weight", "counts_noise"), [(1.0, 1.0, 5.0), (2.0, 0.06, 40.0)])
def test_biases_are_posterior_means(wide: float, weight: float, counts_noise: float) -> None:
    """Once more in plain loops: a prior on a grid of counts and biases by expectation-maximisation."""
    sums = ItemSums(
        sums=np.array([-40.0, 3.0, 25.0, 60.0]),
        counts=np.array([80.0, 20.0, 50.0, 90.0]),
        sums_noise=6.0,
        counts_noise=counts_noise,
    )
    slope = 2 * norm.cdf(wide / 1.05) - 1
    variance = min(0.95, 0.7 * wide**2) * weight
    largest = max(90.0, 4 * counts_noise)
    axis = [0.0, *np.geomspace(min(counts_noise / 2, largest / 100), largest, 29)]
    gaps = np.gradient(axis) / 2.5
    biases = np.linspace(-2.2, 2.2, 31)
    points = [(n, gap, b) for n, gap in zip(axis, gaps, strict=True) for b in biases]
    likelihood = np.array(
        [
            [
                norm.pdf(count, n, np.hypot(counts_noise, gap))
                * norm.pdf(total, slope * n * b, np.sqrt(36.0 + n * variance))
                for n, gap, b in points
            ]
            for total, count in zip(sums.sums, sums.counts, strict=True)
        ]
    )
    prior = np.array([norm.pdf(b, 0.0, 0.6) for _, _, b in points])
    prior /= prior.sum()
    for _ in range(30):
        posterior = likelihood * prior
        prior = (posterior / posterior.sum(axis=1, keepdims=True)).mean(axis=0)
    posterior = likelihood * prior
    posterior /= posterior.sum(axis=1, keepdims=True)
    of_counts, of_biases = (np.array([point[at] for point in points]) for at in (0, 2))
    found = estimate_biases(sums, wide=wide, weight=weight)
    assert found.biases == pytest.approx(posterior @ of_biases, rel=1e-3)
    assert found.counts == pytest.approx(posterior @ of_counts, rel=1e-3)
    spread = posterior @ of_biases**2 - (posterior @ of_biases) ** 2
    assert found.variances == pytest.approx(spread, rel=1e-2, abs=1e-6)


def test_sums_that_are_noise_tell_nothing() -> None:
    sums = ItemSums(sums=np.zeros(50), counts=np.zeros(50), sums_noise=100.0, counts_noise=100.0)
    found = estimate_biases(sums, wide=1.0, weight=1.0)
    assert np.abs(found.biases).max() < 0.05
    assert found.variances.min() > 0.05


def test_a_rating_of_an_unsure_item_says_less() -> None:
    items = ItemBiases(np.zeros(2), np.array([0.0, NOISE]), np.ones(2))
    assert ItemModel.of(items, np.zeros((2, 0))).weights.tolist() == [1.0, 0.5]


@pytest.mark.parametrize("size", [1, 5, 40])
def test_eigenvectors_are_found_the_slow_way_where_the_fast_one_fails(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error would come after something was released."""
    matrix = np.random.default_rng(3).normal(size=(size, size)).astype(np.float32)
    matrix += matrix.T
    usual = estimation.leading_eigenvectors(matrix, min(size, 3))
    fast: Any = scipy.linalg.eigh

    def failing(matrix: Any, **how: Any) -> Any:
        if "subset_by_index" in how:
            raise np.linalg.LinAlgError
        return fast(matrix, **how)

    monkeypatch.setattr(estimation, "eigh", failing)
    slow = estimation.leading_eigenvectors(matrix, min(size, 3))
    assert slow[0] == pytest.approx(usual[0], rel=1e-4)
    assert np.abs((slow[1] * usual[1]).sum(axis=0)) == pytest.approx(1.0, abs=1e-4)
