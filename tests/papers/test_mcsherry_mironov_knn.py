"""McSherry and Mironov with Laplace noise and neighbours: sums by hand, the bounds, the noise, the neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from scipy.stats import kstest

import goodfence as gf
from goodfence.errors import SettingError
from goodfence.papers.published import mcsherry_mironov_knn
from goodfence.papers.published.mcsherry_mironov_knn import (
    OWN,
    McSherryMironovKNN,
    covariance_l1_bound,
    interpolate,
    pair_sums,
    weights_bound,
)
from goodfence.privacy.fixed_point import Clamps, UserProfiles, centred
from tests.support import reference
from tests.support.contracts import FALSE_ALARM, RecommenderContract

NOISELESS = 1e12
SMALL = gf.synthetic(users=60, items=40, ratings=900, rng=3)


class TestMcSherryMironovKNN(RecommenderContract):
    def made(self) -> Any:
        return gf.papers.McSherryMironovKNN(epsilon=20.0, rank=4, k=5, rng=1)


def one_user(values: npt.NDArray[np.float64], n_rated: int) -> UserProfiles:
    """Return one user, who rated the first items so, as distances from the centre."""
    return UserProfiles(np.array([0, n_rated]), np.arange(n_rated), values[:n_rated], len(values))


def upper(matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = matrix[np.triu_indices(len(matrix))]
    return found


@pytest.mark.parametrize("n_chosen", [40, 13])
def test_sums_over_users_are_the_paper_s(n_chosen: int) -> None:
    averages = np.random.default_rng(1).uniform(-1, 1, 40)
    chosen = np.arange(n_chosen, dtype=np.int64)
    found = pair_sums(UserProfiles.of(SMALL), averages, chosen, Clamps(near=4, prior=20, wide=1.0))
    expected = reference.weighted_pairs(
        SMALL.csr.toarray(), centred(SMALL.csr.toarray(), SMALL.scale), averages, prior=20, clamp=1
    )
    for own, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(upper(own), upper(theirs[:n_chosen, :n_chosen]), atol=1e-3)


def test_one_rating_moves_covariance_and_weights_by_less_than_the_bound() -> None:
    """Random users, and one whose own bias moves as far as it can: the bound is met nearly, and never passed."""
    generator = np.random.default_rng(5)
    farthest = 0.0
    for trial in range(60):
        n, prior = int(generator.integers(1, 150)), int(generator.integers(1, 40))
        clamps = Clamps(near=4, prior=prior, wide=float(generator.uniform(0.3, 2.0)))
        values = generator.uniform(-2.5, 1.5, n + 1)
        averages = generator.uniform(-2.5, 1.5, n + 1)
        if trial % 2:  # all others far below their items' averages, the new one far above
            values[:-1], averages[:-1] = -2.5, 1.5
            values[-1], averages[-1] = 1.5, -2.5
        chosen = np.arange(n + 1, dtype=np.int64)
        after = pair_sums(one_user(values, n + 1), averages, chosen, clamps)
        before = pair_sums(one_user(values, n), averages, chosen, clamps)
        bounds = covariance_l1_bound(clamps, n + 1), weights_bound(n + 1)
        for one, other, bound in zip(after, before, bounds, strict=True):
            assert np.abs(upper(one) - upper(other)).sum() <= bound
        moved = float(np.abs(upper(after[0]) - upper(before[0])).sum())
        farthest = max(farthest, moved / bounds[0])
    assert farthest > 0.5  # a bound without the user bias would be passed, twice over


def test_noise_has_the_distribution_and_the_width_of_each_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """2, 19 and 79 % of epsilon; the last in halves, for covariance and weights."""
    seen: list[tuple[float, npt.NDArray[np.float64]]] = []
    plain = mcsherry_mironov_knn._noisy

    def noisy(totals: Any, scale: float, generator: Any) -> Any:
        found = plain(totals, scale, generator)
        seen.append((scale, (found - totals).ravel()))
        return found

    monkeypatch.setattr(mcsherry_mironov_knn, "_noisy", noisy)
    McSherryMironovKNN(epsilon=2.0).fit(gf.synthetic(users=50, items=120, ratings=900, rng=3))
    scales = [scale for scale, _ in seen]
    clamps = Clamps(near=4, prior=20, wide=1.0)
    expected = [OWN / 0.04, OWN / 0.38, covariance_l1_bound(clamps, 120) / 0.79, weights_bound(120) / 0.79]
    assert scales == pytest.approx(expected)
    for scale, noise in seen[1:]:
        assert kstest(noise, "laplace", args=(0, scale)).pvalue > FALSE_ALARM


def test_own_covers_a_rating_and_its_count() -> None:
    ends = centred(np.array([1.0, 5.0]), gf.Scale(1, 5))
    assert np.abs(ends).max() + 1 == OWN


@pytest.mark.parametrize("seed", range(5))
def test_interpolation_is_the_best_linear_prediction_from_the_nearest(seed: int) -> None:
    generator = np.random.default_rng(seed)
    factors = np.round(generator.normal(0, 0.4, (30, 3)), 1)  # rounded, so that there are ties
    unexplained = generator.uniform(0.1, 1.0, 30)
    columns = np.sort(generator.choice(30, int(generator.integers(0, 25)), replace=False))
    residuals = generator.uniform(-1, 1, len(columns))
    wanted, out = np.arange(30), np.empty(30)
    interpolate(columns, residuals, wanted, factors, unexplained, 6, out)
    expected = [reference.interpolated(columns, residuals, item, factors, unexplained, 6) for item in range(30)]
    np.testing.assert_allclose(out, expected, atol=1e-10)


def test_without_noise_correlated_items_predict_each_other() -> None:
    """Two halves of the items, rated alike within each: an item's own half says what its rating is."""
    generator = np.random.default_rng(2)
    taste = generator.choice([-1.0, 1.0], (200, 2))
    halves = np.repeat([0, 1], 10)
    table = np.where(generator.random((200, 20)) < 0.6, 3.0 + taste[:, halves], 0.0)
    ratings = gf.Ratings(sparse.csr_array(table), list(range(200)), list(range(20)), (1, 5))
    model = gf.papers.McSherryMironovKNN(epsilon=NOISELESS, rank=2, rng=1).fit(ratings)
    profile = {0: 4.0, 1: 4.0, 2: 4.0, 10: 2.0, 11: 2.0, 12: 2.0}
    told = model.predict(profile, [5, 15])
    assert told[0] > 3.4
    assert told[1] < 2.6


def test_an_answer_is_average_user_bias_and_what_the_nearest_items_say() -> None:
    model = gf.papers.McSherryMironovKNN(epsilon=50.0, rank=3, k=4, rng=1).fit(SMALL)
    columns, values = np.array([1, 6, 9, 20, 33]), np.array([1.0, 5.0, 2.0, 1.0, 4.0])
    told = model.predict(dict(zip(SMALL.items[columns].tolist(), values, strict=True)), SMALL.items)
    left = centred(values, SMALL.scale) - model._averages[columns]
    bias = left.sum() / 25
    residuals = np.clip(left - bias, -1, 1)
    assert np.abs(left - bias).max() > 1  # the clamp has something to do
    nearest = [
        reference.interpolated(columns, residuals, item, model._factors, model._unexplained, 4) for item in range(40)
    ]
    np.testing.assert_allclose(told, np.clip(model._averages + bias + nearest + 3.5, 1, 5))


def test_nobody_is_answered_from_others_than_the_release_and_themselves() -> None:
    model = gf.papers.McSherryMironovKNN(epsilon=20.0, rank=4, rng=1).fit(SMALL)
    columns = SMALL.csr.indices[: SMALL.csr.indptr[1]]
    values = SMALL.csr.data[: SMALL.csr.indptr[1]]
    profile = dict(zip(SMALL.items[columns].tolist(), values.tolist(), strict=True))
    inside = model.predict(np.repeat(SMALL.users[0], 40), SMALL.items)
    np.testing.assert_array_equal(inside, model.predict(profile, SMALL.items))
    assert model.traits.released
    assert model.traits.n_neighbours == 0


def test_the_guarantee_is_claimed_and_a_seed_loses_it() -> None:
    stated = gf.papers.McSherryMironovKNN(epsilon=0.5).guarantee()
    assert (stated.status, stated.unit, stated.epsilon, stated.delta) == ("claimed", "rating", 0.5, 0)
    assert gf.papers.McSherryMironovKNN(epsilon=0.5, rng=1).guarantee().status == "none"
    with pytest.raises(SettingError, match="clamp must be at most 4"):
        gf.papers.McSherryMironovKNN(epsilon=1.0, clamp=5.0)


def test_it_has_a_point_on_the_frontier() -> None:
    listed: list[Any] = [gf.KNN(k=5), gf.papers.McSherryMironovKNN(epsilon=1.0, rank=2)]
    points = gf.frontier(SMALL, listed, attacks=[gf.KNNAttack(known=5, fakes=5)], targets=5, rng=1)
    (row,) = [point for point in points.points if "Mironov" in point.family]
    assert row.status == "claimed"
    assert np.isfinite(row.mae)


def test_without_noise_averages_are_those_with_so_many_ratings_at_the_global_one() -> None:
    """On the scale from -2.5 to 1.5; five ratings at the global average are added to each item's."""
    model = gf.papers.McSherryMironovKNN(epsilon=NOISELESS, item_prior=5.0, rng=1).fit(SMALL)
    table = SMALL.csr.toarray()
    rated, values = table > 0, centred(table, SMALL.scale)
    everything = values[rated].mean()
    sums, counts = np.where(rated, values, 0.0).sum(axis=0), rated.sum(axis=0)
    expected = (sums + 5 * everything) / (counts + 5)
    assert model._averages == pytest.approx(expected, abs=1e-6)
