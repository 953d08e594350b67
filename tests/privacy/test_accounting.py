"""What releases cost: against OpenDP, against Google's accountant, and on the safe side."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from goodfence.errors import SettingError
from goodfence.privacy.accounting import (
    Account,
    FitRecord,
    Release,
    gaussian_delta,
    gaussian_epsilon,
    group_epsilon,
    lattice_distance,
    total_epsilon,
    total_mu,
    zcdp_epsilon,
)

dp.enable_features("contrib")
# Both packages come without types.
dp_accounting: Any = import_module("dp_accounting")
PLDAccountant: Any = import_module("dp_accounting.pld").PLDAccountant


def release(sensitivity: int, sigma: int = 2**24, dimension: int = 10) -> Release:
    return Release(name="test", sensitivity=sensitivity, sigma=sigma, dimension=dimension)


@pytest.mark.parametrize("sensitivity", [1_000, 400_000, 4_000_000, 20_000_000])
def test_rho_and_epsilon_are_those_of_opendp(sensitivity: int) -> None:
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l2_distance(T=dp.f64)
    measurement: Any = dp.m.make_gaussian(*space, scale=float(2**24))
    account = Account((release(sensitivity),))
    assert account.rho == pytest.approx(measurement.map(float(sensitivity)), rel=1e-12)
    converted: Any = dp.c.make_zCDP_to_approxDP(measurement)
    curve = converted.map(float(sensitivity))
    for delta in (1e-4, 1e-5, 1e-8):
        # OpenDP searches its order too, so the two agree closely, not exactly.
        assert zcdp_epsilon(account.rho, delta) == pytest.approx(curve.epsilon(delta), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("mu", [0.1, 0.25, 0.5, 1.0, 2.0])
def test_the_gaussian_epsilon_is_that_of_dp_accounting(mu: float) -> None:
    accountant = PLDAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(1 / mu))
    found = accountant.get_epsilon(1e-5)
    assert gaussian_epsilon(mu, 1e-5) == pytest.approx(found, rel=1e-3)


def test_adaptive_releases_compose_as_dp_accounting_says() -> None:
    parts = [release(2_000_000), release(3_000_000), release(1_000_000)]
    accountant = PLDAccountant()
    for part in parts:
        accountant.compose(dp_accounting.GaussianDpEvent(part.sigma / part.sensitivity))
    found = accountant.get_epsilon(1e-5)
    assert Account(tuple(parts)).epsilon(1e-5) == pytest.approx(found, rel=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "concentrated", "gaussian"),
    [(0.5, 0.1304, 0.1422), (1, 0.2472, 0.2681), (4, 0.8639, 0.9249), (8, 1.5683, 1.6660)],
)
def test_known_values(epsilon: float, concentrated: float, gaussian: float) -> None:
    assert total_mu(epsilon, 1e-5, 0.0) == pytest.approx(gaussian, abs=6e-5)
    # A distance this large makes the Gaussian bound useless; the concentrated one needs none.
    assert total_mu(epsilon, 1e-5, 1.0) == pytest.approx(concentrated, abs=6e-5)


@given(epsilon=st.floats(0.01, 30), delta=st.floats(1e-12, 1e-2), distance=st.sampled_from([0.0, 1e-12, 1e-9]))
def test_calibration_is_on_the_safe_side_and_tight(epsilon: float, delta: float, distance: float) -> None:
    mu = total_mu(epsilon, delta, distance)
    assert total_epsilon(mu, distance, delta) <= epsilon
    assert total_epsilon(mu * 1.001, distance, delta) > epsilon


@given(mu=st.floats(0.01, 5), delta=st.floats(1e-10, 1e-2))
def test_the_gaussian_bound_is_never_worse_than_the_concentrated_one(mu: float, delta: float) -> None:
    assert gaussian_epsilon(mu, delta) <= zcdp_epsilon(mu**2 / 2, delta) + 1e-9


def test_the_gaussian_delta_is_the_defining_difference() -> None:
    mu, epsilon = 0.8, 2.0
    worst = norm.sf(epsilon / mu - mu / 2) - math.exp(epsilon) * norm.sf(epsilon / mu + mu / 2)
    assert worst <= gaussian_delta(mu, epsilon) <= worst * (1 + 1e-8)


@pytest.mark.parametrize("sigma", [16, 32, 64])
@pytest.mark.parametrize("dimension", [1, 2])
def test_the_lattice_distance_bounds_the_real_one(sigma: int, dimension: int) -> None:
    k = np.arange(-12 * sigma, 12 * sigma + 1)
    integer = np.exp(-(k**2) / (2 * sigma**2))
    integer /= integer.sum()
    rounded = norm.cdf((k + 0.5) / sigma) - norm.cdf((k - 0.5) / sigma)
    if dimension == 2:
        integer, rounded = np.outer(integer, integer), np.outer(rounded, rounded)
    distance = np.abs(integer - rounded).sum() / 2
    assert 0 < distance <= lattice_distance(dimension, sigma)


def test_the_distance_is_paid_for() -> None:
    near, far = total_epsilon(0.25, 0.0, 1e-5), total_epsilon(0.25, 1e-6, 1e-5)
    assert near < far <= zcdp_epsilon(0.25**2 / 2, 1e-5)
    assert total_epsilon(0.25, 1e-3, 1e-5) == zcdp_epsilon(0.25**2 / 2, 1e-5)


@pytest.mark.parametrize("size", [1, 2, 10, 100])
def test_what_several_units_cost_is_what_dp_accounting_says(size: int) -> None:
    """More than `size` times epsilon at the same delta: 10 give 14.4, and 100 give 473."""
    accountant = PLDAccountant(value_discretization_interval=1e-4 * size)
    accountant.compose(dp_accounting.GaussianDpEvent(1 / (size * total_mu(1.0, 1e-5, 0.0))))
    found = group_epsilon(1.0, 1e-5, size)
    assert found == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-3)
    assert found == pytest.approx({1: 1.0, 2: 2.15, 10: 14.43, 100: 472.65}[size], rel=0.005)
    assert size == 1 or found > size


def test_events_of_one_user_cost_less_than_as_many_users() -> None:
    """mu grows by the root: ten give 3.6 instead of 14.4, an exchange 1.5 instead of 2.2."""
    events = {size: group_epsilon(1.0, 1e-5, size, unit="event") for size in (1, 2, 10, 100)}
    assert events == pytest.approx({1: 1.0, 2: 1.47, 10: 3.62, 100: group_epsilon(1.0, 1e-5, 10)}, rel=0.005)


def test_nothing_released_costs_nothing() -> None:
    assert Account().epsilon(1e-5) == 0.0


@pytest.mark.parametrize("bad", [{"sensitivity": -1}, {"sigma": 3}, {"dimension": -1}])
def test_a_release_is_checked(bad: dict[str, Any]) -> None:
    settings: dict[str, Any] = {"name": "test", "sensitivity": 1, "sigma": 32, "dimension": 1}
    with pytest.raises(SettingError):
        Release(**{**settings, **bad})


def test_nothing_at_all_may_be_released_and_costs_what_is_stated() -> None:
    nothing = Release(name="no items", sensitivity=0, sigma=16, dimension=0)
    assert (nothing.mu_squared, nothing.dimension) == (0.0, 0)


def test_a_record_says_that_the_items_were_those_of_the_ratings_unless_told() -> None:
    account = Account((Release(name="a", sensitivity=1, sigma=32, dimension=1),))
    record = FitRecord(unit="rating", epsilon=1.0, delta=1e-5, account=account, private=True)
    assert (record.catalogue_given, record.n_fits) == (False, 1)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, float("nan")])
def test_delta_is_checked(delta: float) -> None:
    with pytest.raises(SettingError):
        total_epsilon(0.1, 0.0, delta)


def test_a_budget_beyond_floating_point_is_refused_and_not_searched_for_ever() -> None:
    assert total_mu(1e100, 1e-5, 0.0) == pytest.approx(math.sqrt(2e100), rel=1e-4)
    for epsilon in (1.1e100, 1e308, math.inf, math.nan):
        with pytest.raises(SettingError, match="epsilon must be positive, at most 1e\\+100"):
            total_mu(epsilon, 1e-5, 0.0)
