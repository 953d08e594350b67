"""The four mechanisms: the contract of each, and answers derived by hand."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats

from goodfence.errors import SettingError
from goodfence.neighbours.draw import draw_neighbours
from goodfence.selection.knn import KNN
from goodfence.selection.mechanism import Pool, log_omega
from goodfence.selection.npns import NPNS
from goodfence.selection.pncf import PNCF
from goodfence.selection.ppns import PPNS
from goodfence.selection.sensitivity import Sensitivity
from tests.support.contracts import MechanismContract


class TestKNN(MechanismContract):
    mechanism = KNN(k=3)


class TestNPNS(MechanismContract):
    mechanism = NPNS(k=3)


class TestUniformNPNS(MechanismContract):
    mechanism = NPNS(k=3, weights="uniform", within=2)


class TestExponentialNPNS(MechanismContract):
    mechanism = NPNS(k=2, weights="exponential", rate=0.5)


class TestWeibullNPNS(MechanismContract):
    mechanism = NPNS(k=2, weights="weibull", shape=1.5, scale=2.0)


class TestFoldedNormalNPNS(MechanismContract):
    mechanism = NPNS(k=2, weights="folded_normal", mean=1.0, deviation=2.0, within=3)


class TestPNCF(MechanismContract):
    mechanism = PNCF(k=3, epsilon=2.0)


class TestTruncatedPNCF(MechanismContract):
    mechanism = PNCF(k=2, epsilon=3.0, reading="truncated")


class TestPNCFWithin(MechanismContract):
    mechanism = PNCF(k=2, within=2)


class TestPairwisePNCF(MechanismContract):
    mechanism = PNCF(k=2, sensitivity=Sensitivity(scope="pair"))


class TestPPNS(MechanismContract):
    mechanism = PPNS(k=3, beta=2, epsilon=4.0)


class TestPPNSOfOnePartition(MechanismContract):
    mechanism = PPNS(k=3, beta=1)


class TestPPNSOfOneNeighbour(MechanismContract):
    mechanism = PPNS(k=1, beta=8, epsilon=0.1)


class TestPPNSWithAllocation(MechanismContract):
    mechanism = PPNS(k=2, beta=4, allocation=(0, 1, 1, 0))


class TestPairwisePPNS(MechanismContract):
    mechanism = PPNS(k=4, beta=2, sensitivity=Sensitivity(scope="pair", reading="derived"))


LIST = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])


def test_the_weight_is_the_papers() -> None:
    """epsilon sim / (4 k RS) = 2 * 0.9 / (4 * 3 * 0.05) = 3."""
    weights = PPNS(k=3, beta=2, epsilon=2.0).log_weights(LIST, 0.05)
    assert weights[0] == pytest.approx(3.0)
    assert np.array_equal(weights, PNCF(k=3, epsilon=2.0).log_weights(LIST, 0.05))


def test_ppns_takes_from_the_first_and_the_last_partition() -> None:
    assert PPNS(k=2, beta=3).pools(LIST) == (Pool(0, 2, take=1), Pool(4, 6, take=1))
    assert PPNS(k=2, beta=1).pools(LIST) == KNN(k=2).pools(LIST)
    assert PPNS(k=1, beta=4).pools(LIST) == (Pool(3, 4, take=1),)


def test_ppns_of_one_partition_is_knn_without_a_sensitivity() -> None:
    lists, rows = np.tile(LIST, (9, 1)), np.tile(np.arange(6), (9, 1))
    chosen = draw_neighbours(PPNS(k=4, beta=1), lists, rows, np.arange(9), 1)
    assert np.array_equal(chosen, draw_neighbours(KNN(k=4), lists, rows, np.arange(9), 2))


def test_npns_draws_zero_last() -> None:
    weights = NPNS(k=2).log_weights(np.array([0.5, 0.0, -0.25]))
    assert weights[0] == math.log(0.5)
    assert (weights[1:] == -np.inf).all()


def test_the_rank_laws_are_densities_at_rank_over_k() -> None:
    x = np.arange(1, 7) / 2
    exponential = NPNS(k=2, weights="exponential", rate=3.0).log_weights(LIST)
    weibull = NPNS(k=2, weights="weibull", shape=1.5, scale=2.0).log_weights(LIST)
    folded = NPNS(k=2, weights="folded_normal", mean=1.0, deviation=0.5).log_weights(LIST)
    assert exponential == pytest.approx(-3.0 * x)
    assert np.exp(weibull) == pytest.approx((x / 2) ** 0.5 * np.exp(-((x / 2) ** 1.5)))
    both = np.exp(-2 * (x - 1) ** 2) + np.exp(-2 * (x + 1) ** 2)
    assert np.exp(folded) == pytest.approx(both)


def test_the_rank_laws_are_the_standard_ones_unless_told_otherwise() -> None:
    """Of rate 1, of shape 2 and scale 1, of a standard normal: at rank over k, up to a factor."""
    x = np.arange(1, 7) / 2
    laws = {
        "exponential": stats.expon(scale=1.0),
        "weibull": stats.weibull_min(2.0, scale=1.0),
        "folded_normal": stats.foldnorm(0.0, scale=1.0),
        "uniform": stats.uniform(0.0, 10.0),
    }
    for name, law in laws.items():
        told = NPNS(k=2, weights=name).log_weights(LIST)  # type: ignore[arg-type]
        assert told - told[0] == pytest.approx(law.logpdf(x) - law.logpdf(x[0])), name


def test_a_weight_beyond_every_float_is_a_large_one_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weights = PPNS(k=2, beta=2, epsilon=1e300).log_weights(np.array([1.0, 0.5, 0.0]), 1e-30)
    assert weights[0] == weights.max()
    assert not np.isnan(weights).any()


def test_epsilon_is_1_and_rho_one_half_unless_told_otherwise() -> None:
    assert (PNCF(k=2).epsilon, PNCF(k=2).rho, PPNS(k=2, beta=2).epsilon) == (1.0, 0.5, 1.0)
    assert PNCF(k=2).guarantee().epsilon == PNCF(k=2, epsilon=1.0).guarantee().epsilon


def test_far_ranks_keep_a_finite_weight() -> None:
    weights = NPNS(k=1, weights="weibull", shape=400.0).log_weights(np.zeros(2000))
    assert np.isfinite(weights).all()


def test_the_band_is_sim_k_plus_and_minus_lambda() -> None:
    """Lambda = (4 k RS / epsilon) ln(k (n-k) / rho)."""
    mechanism, n, rs = PNCF(k=2, epsilon=1.0, rho=0.5), 6, 0.01
    width = 4 * 2 * rs * math.log(2 * (n - 2) / 0.5)
    lower, upper = mechanism.edges(LIST, rs)
    assert (float(lower), float(upper)) == pytest.approx((0.8 - width, 0.8 + width))
    assert mechanism.pools(LIST, rs) == (Pool(0, 0, take=0), Pool(0, 4, take=2))
    narrow = PNCF(k=2, epsilon=1000.0, rho=0.5)
    assert narrow.pools(LIST, rs) == (Pool(0, 1, take=1), Pool(1, 2, take=1))


def test_lambda_is_at_most_sim_k_and_then_everybody_is_in_the_band() -> None:
    lower, upper = PNCF(k=2).edges(LIST, 1.0)
    assert (float(lower), float(upper)) == (0.0, 1.6)


def test_lambda_of_a_list_that_is_taken_whole_is_sim_k() -> None:
    lower, upper = PNCF(k=6).edges(LIST, 1e-9)
    assert (float(lower), float(upper)) == (0.0, 0.8)


def test_the_bands_edges_hold_their_ties() -> None:
    tied = np.array([0.9, 0.5, 0.5, 0.3, 0.1, 0.1, 0.1, 0.0])
    for reading in (0.1, 0.3):
        lower, _ = PNCF(k=2, within=3 if reading == 0.1 else 2).edges(tied)
        assert float(lower) == reading
    assert PNCF(k=2, within=3).pools(tied) == (Pool(0, 0, take=0), Pool(0, 7, take=2))
    assert PNCF(k=2, within=2).pools(tied) == (Pool(0, 1, take=1), Pool(1, 4, take=1))


def test_the_lower_edge_within_is_the_similarity_itself() -> None:
    """In floats 0.07 - (0.07 - 0.01) is not 0.01, and the one at the edge would fall out."""
    similarities = np.array([0.08, 0.07, 0.03, 0.01])
    assert 0.07 - (0.07 - 0.01) > 0.01
    assert PNCF(k=2, within=2).pools(similarities)[-1].stop == 4


def test_truncated_lifts_far_scores_to_the_lower_edge() -> None:
    mechanism = PNCF(k=2, epsilon=1.0, reading="truncated")
    lower, _ = mechanism.edges(LIST, 0.01)
    weights = mechanism.log_weights(LIST, 0.01)
    assert weights[-1] == weights[-2] == pytest.approx(float(lower) / 0.08)
    assert weights[0] == pytest.approx(0.9 / 0.08)
    assert mechanism.pools(LIST, 0.01) == (Pool(0, 6, take=2),)


def test_negative_similarities_leave_a_band() -> None:
    pools = PNCF(k=2).pools(np.array([0.5, -0.1, -0.2]), 0.1)
    assert pools == (Pool(0, 1, take=1), Pool(1, 2, take=1))


def test_only_pncf_adds_noise() -> None:
    assert PNCF(k=2, epsilon=4.0).noise_scale(0.1) == pytest.approx(0.05)
    assert PNCF(k=2).noise_scale(np.array([0.1, 0.2])) == pytest.approx([0.2, 0.4])
    for mechanism in (KNN(k=2), NPNS(k=2), PPNS(k=2, beta=2), PNCF(k=2, noise=False)):
        assert mechanism.noise_scale(0.1) is None


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("rs", [0.0, 1e-9, 1e-310, 1.0])
@pytest.mark.parametrize("reading", ["band", "truncated"])
def test_weights_never_overflow(epsilon: float, rs: float, reading: Any) -> None:
    similarities = np.array([1.0, 1.0, 0.5, 1e-9, 0.0, 0.0])
    for mechanism in (PPNS(k=2, beta=3, epsilon=epsilon), PNCF(k=2, epsilon=epsilon, reading=reading)):
        weights = mechanism.log_weights(similarities, rs)
        assert np.isfinite(weights).all()
        assert np.isfinite(weights[0] - weights[-1])
        assert (np.diff(weights) <= 0).all()
        assert weights[0] == weights[1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KNN(k=0), "k must be an integer of at least 1, got 0"),
        (lambda: KNN(k=True), "k must be an integer"),
        (lambda: KNN(k=2.5), "k must be an integer"),  # type: ignore[arg-type]
        (lambda: PPNS(k=2, beta=0), "beta must be an integer of at least 1, got 0"),
        (lambda: PPNS(k=2**31, beta=2), "k must be an integer of at most 2,147,483,647"),
        (lambda: PNCF(k=2, within=10**400), "within must be an integer of at most 2,147,483,647"),
        (lambda: PPNS(k=2, beta=2, epsilon=0.0), "epsilon must be a positive, finite number"),
        (lambda: PPNS(k=2, beta=2, epsilon=math.inf), "epsilon must be"),
        (lambda: PPNS(k=2, beta=2, epsilon=math.nan), "epsilon must be"),
        (lambda: PPNS(k=3, beta=2, allocation=(1, 1)), "allocation must be 2 counts"),
        (lambda: PPNS(k=3, beta=2, allocation=(1, 1, 1)), "allocation must be 2 counts"),
        (lambda: PPNS(k=3, beta=2, allocation=(4, -1)), "allocation must be an integer"),
        (lambda: PNCF(k=2, rho=1.0), "rho must be strictly between 0 and 1"),
        (lambda: PNCF(k=2, reading="both"), "reading must be one of"),  # type: ignore[arg-type]
        (lambda: PNCF(k=2, within=0), "within must be"),
        (lambda: PNCF(k=2, reading="truncated", sensitivity=Sensitivity(scope="pair")), "scope must be 'target'"),
        (lambda: NPNS(k=2, weights="linear"), "weights must be one of"),  # type: ignore[arg-type]
        (lambda: NPNS(k=2, rate=2.0), "rate must be None with 'similarity'"),
        (lambda: NPNS(k=2, weights="weibull", shape=0.0), "shape must be a positive"),
        (lambda: NPNS(k=2, weights="folded_normal", mean=math.nan), "mean must be a finite"),
        (lambda: Sensitivity(reading="other"), "reading must be one of"),  # type: ignore[arg-type]
        (lambda: Sensitivity(scope="all"), "scope must be one of"),  # type: ignore[arg-type]
        (lambda: Sensitivity(clamp=1), "clamp must be True or False"),  # type: ignore[arg-type]
        (lambda: PPNS(k=2, beta=2, sensitivity={"scop": 1}), "sensitivity must be"),  # type: ignore[arg-type]
    ],
)
def test_wrong_settings_are_refused_by_name(make: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        make()


def test_the_sensitivity_must_be_given_and_fit() -> None:
    mechanism = PPNS(k=2, beta=2)
    for wrong in (None, -0.1, math.nan, np.zeros(3)):
        with pytest.raises(SettingError, match="sensitivity must"):
            mechanism.log_weights(LIST, wrong)
    with pytest.raises(SettingError, match="sensitivity must"):
        PNCF(k=2).noise_scale()


def test_numpy_integers_are_kept_as_integers() -> None:
    assert type(KNN(k=np.int64(3)).k) is int  # type: ignore[arg-type]


def test_the_reach_is_as_small_as_the_rule_allows() -> None:
    assert KNN(k=3).reach(100) == 3
    assert PPNS(k=3, beta=7).reach(100) == 21
    assert NPNS(k=3, within=7).reach(100) == 21
    assert NPNS(k=3).reach(100) == PNCF(k=3, within=7).reach(100) == 100
    for mechanism in (PPNS(k=3, beta=7), NPNS(k=3, within=7), PNCF(k=3, within=7)):
        with pytest.raises(SettingError, match="length 20, got beta=7, k=3"):
            mechanism.reach(20)


def test_a_weight_whose_sensitivity_is_0_is_1() -> None:
    """epsilon s / (4 k RS) is 1 * 0.8 / (4 * 2 * 0.1) for the first; nothing is known of the second."""
    found = log_omega(np.array([0.8, 0.4]), np.array([0.1, 0.0]), epsilon=1.0, k=2)
    assert found.tolist() == pytest.approx([1.0, 0.0])


def test_npns_needs_k_candidates_or_within_times_k() -> None:
    assert NPNS(k=3).reach(3) == 3
    assert NPNS(k=3).reach(10) == 10
    assert NPNS(k=3, within=2).reach(6) == 6
    assert NPNS(k=3, within=2).reach(10) == 6
    for mechanism, too_few in ((NPNS(k=3), 2), (NPNS(k=3, within=2), 5)):
        with pytest.raises(SettingError):
            mechanism.reach(too_few)


def test_settings_that_are_not_given() -> None:
    assert (PNCF(k=3).rho, PNCF(k=3).epsilon, PNCF(k=3).within, PNCF(k=3).reading) == (0.5, 1.0, None, "band")
    assert (PPNS(k=3, beta=2).epsilon, PPNS(k=3, beta=2).allocation) == (1.0, None)


@pytest.mark.parametrize("mechanism", [KNN(k=2), NPNS(k=2), PNCF(k=2), PPNS(k=2, beta=2)], ids=str)
@pytest.mark.parametrize("lists", ["0.9", None, True, 3.0, np.array(0.5), np.zeros((1, 1, 4)), [0.9, np.nan], {0.9: 1}])
def test_what_is_no_list_of_similarities_is_refused_in_one_sentence(mechanism: Any, lists: Any) -> None:
    for method in (mechanism.pools, mechanism.log_weights):
        with pytest.raises(SettingError, match="similarities must be finite numbers in an array"):
            method(lists, 0.1)


@pytest.mark.parametrize("mechanism", [KNN(k=2), NPNS(k=2), PNCF(k=2), PPNS(k=2, beta=2)], ids=str)
@pytest.mark.parametrize("n_candidates", ["4", None, True, 4.0, -1, [4]])
def test_a_length_that_is_no_integer_is_refused(mechanism: Any, n_candidates: Any) -> None:
    with pytest.raises(SettingError, match="n_candidates must be an integer of at least 0"):
        mechanism.reach(n_candidates)


@pytest.mark.parametrize("sensitivity", ["0.1", True, object(), [None], [[1.0], [1.0, 2.0]]])
def test_what_is_no_sensitivity_is_refused(sensitivity: Any) -> None:
    listed = np.array([0.9, 0.5, 0.3, 0.1])
    for method in (PNCF(k=2).log_weights, PNCF(k=2).pools, PPNS(k=2, beta=2).log_weights):
        with pytest.raises(SettingError, match="sensitivity must be a number or an array"):
            method(listed, sensitivity)
    with pytest.raises(SettingError, match="sensitivity must be a number or an array"):
        PNCF(k=2).noise_scale(sensitivity)


def test_one_sensitivity_may_serve_all_pairs() -> None:
    listed, pairs = np.array([0.9, 0.4, 0.3, 0.0]), Sensitivity(scope="pair")
    for method in ("pools", "log_weights"):
        by_pair = getattr(PNCF(k=2, sensitivity=pairs), method)
        np.testing.assert_array_equal(by_pair(listed, 0.5), by_pair(listed, np.full(4, 0.5)))
