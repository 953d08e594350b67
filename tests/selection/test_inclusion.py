"""Inclusion probabilities and alpha: enumeration, Wallenius, simulation, extremes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import nchypergeom_wallenius

from goodfence.errors import SettingError
from goodfence.kernels.inclusion import others_below
from goodfence.selection.inclusion import (
    alpha,
    drawn_probability,
    inclusion_probabilities,
    list_metrics,
    pool_inclusion,
)
from goodfence.selection.knn import KNN
from goodfence.selection.mechanism import Mechanism
from goodfence.selection.npns import NPNS
from goodfence.selection.pncf import PNCF
from goodfence.selection.ppns import PPNS
from tests.support import reference


@pytest.mark.kernel
@pytest.mark.parametrize("spread", [0.1, 2.0, 20.0])
@pytest.mark.parametrize(("n", "take"), [(3, 2), (5, 2), (5, 4), (6, 3)])
def test_exact_is_what_enumeration_gives(n: int, take: int, spread: float) -> None:
    log_weights = np.random.default_rng(n * 10 + take).normal(size=n) * spread
    weights = [Fraction(float(np.exp(one))) for one in log_weights]
    wanted = reference.inclusion(weights, take)
    assert pool_inclusion(log_weights, take) == pytest.approx(wanted, abs=1e-13)


@pytest.mark.parametrize(("n", "heavy", "take"), [(50, 10, 7), (400, 50, 60), (300, 290, 100)])
@pytest.mark.parametrize("odds", [1.5, 8.0, 40.0])
def test_two_groups_have_the_mean_of_wallenius(n: int, heavy: int, take: int, odds: float) -> None:
    log_weights = np.where(np.arange(n) < heavy, np.log(odds), 0.0)
    included = pool_inclusion(log_weights, take)
    wallenius = nchypergeom_wallenius(n, heavy, take, odds)
    support = np.arange(max(0, take - (n - heavy)), min(heavy, take) + 1)
    mean = float((support * wallenius.pmf(support)).sum() / wallenius.pmf(support).sum())
    assert included[:heavy].sum() == pytest.approx(mean, abs=1e-6)
    assert included.sum() == pytest.approx(take, abs=1e-11)
    assert np.ptp(included[:heavy]) < 1e-14


@pytest.mark.parametrize(("n", "take"), [(700, 100), (942, 50), (100, 99), (1000, 3)])
@pytest.mark.parametrize("spread", [0.01, 3.0, 1000.0])
def test_large_pools_sum_to_the_draws_and_keep_the_order(n: int, take: int, spread: float) -> None:
    log_weights = -np.sort(-np.random.default_rng(n).normal(size=n) * spread)
    included = pool_inclusion(log_weights, take)
    assert included.sum() == pytest.approx(take, abs=1e-10)
    assert (np.diff(included) <= 1e-13).all()
    assert (included >= 0).all()
    assert (included <= 1).all()


def test_twenty_thousand_races_agree() -> None:
    generator = np.random.default_rng(11)
    log_weights = generator.normal(size=60) * 1.5
    races = generator.gumbel(size=(20_000, 60)) + log_weights
    chosen = np.argpartition(-races, 20, axis=1)[:, :20]
    counts = np.bincount(chosen.ravel(), minlength=60)
    included = pool_inclusion(log_weights, 20)
    deviations = (counts - 20_000 * included) / np.sqrt(20_000 * included * (1 - included))
    assert np.abs(deviations).max() < 5.8  # 60 normal tails of 1e-8 each


def test_one_draw_is_proportional_to_the_weights() -> None:
    assert pool_inclusion(np.log([4.0, 3.0, 1.0]), 1) == pytest.approx([0.5, 0.375, 0.125])


def test_a_whole_pool_is_certain_and_an_empty_draw_is_not() -> None:
    assert pool_inclusion(np.array([5.0, 0.0]), 2).tolist() == [1.0, 1.0]
    assert pool_inclusion(np.array([5.0, 0.0]), 0).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("method", ["exact", "manly"])
def test_equal_weights_give_equal_chances_exactly(method: Any) -> None:
    assert pool_inclusion(np.full(7, 3.3), 3, method=method).tolist() == [3 / 7] * 7


@pytest.mark.parametrize("method", ["exact", "manly"])
def test_weight_0_is_included_last_and_uniformly(method: Any) -> None:
    log_weights = np.array([0.0, -np.inf, 1.0, -np.inf, -np.inf])
    assert pool_inclusion(log_weights, 2, method=method).tolist() == [1, 0, 1, 0, 0]
    more = pool_inclusion(log_weights, 3, method=method)
    assert more == pytest.approx([1, 1 / 3, 1, 1 / 3, 1 / 3])
    fewer = pool_inclusion(log_weights, 1, method=method)
    assert fewer[[1, 3, 4]].tolist() == [0, 0, 0]


@pytest.mark.parametrize("method", ["exact", "manly"])
@pytest.mark.parametrize("gap", [1e3, 1e14, 1e300])
def test_extreme_ratios_become_a_certain_order(method: Any, gap: float) -> None:
    log_weights = np.array([2.0, 2.0, 1.0, 0.0, 0.0, 0.0]) * (gap / 2)
    included = pool_inclusion(log_weights, 4, method=method)
    assert included == pytest.approx([1, 1, 1, 1 / 3, 1 / 3, 1 / 3], abs=1e-9)
    assert pool_inclusion(log_weights, 1, method=method) == pytest.approx([0.5, 0.5, 0, 0, 0, 0], abs=1e-9)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-2, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("rs", [1e-9, 1e-3, 1.0])
@pytest.mark.parametrize("method", ["exact", "manly"])
def test_any_budget_and_sensitivity(epsilon: float, rs: float, method: Any) -> None:
    similarities = np.concatenate([np.full(40, 1.0), np.linspace(0.9, 0, 100), np.zeros(60)])
    for mechanism in (PPNS(k=20, beta=9, epsilon=epsilon), PNCF(k=20, epsilon=epsilon)):
        included = inclusion_probabilities(mechanism, similarities, rs, method=method)
        assert included.sum() == pytest.approx(20, abs=1e-8)
        assert ((included >= 0) & (included <= 1)).all()


def test_manly_is_near_the_exact_mean() -> None:
    log_weights = np.random.default_rng(4).normal(size=80)
    for take in (1, 10, 40, 79):
        manly = pool_inclusion(log_weights, take, method="manly")
        assert manly.sum() == pytest.approx(take, abs=1e-9)
        assert np.abs(manly - pool_inclusion(log_weights, take)).max() < 0.02


def test_alpha_by_hand() -> None:
    """One of two by weight 0.5 and 0.25: two thirds and one third."""
    similarities = np.array([0.5, 0.25])
    assert alpha(NPNS(k=1), similarities) == pytest.approx(0.5 * 2 / 3 + 0.25 / 3)
    assert alpha(KNN(k=2), similarities) == 0.75


def test_k_equal_to_the_list_and_beta_times_k_equal_to_the_list() -> None:
    similarities = np.array([0.9, 0.6, 0.3, 0.1])
    for mechanism in (KNN(k=4), NPNS(k=4), PNCF(k=4), PPNS(k=4, beta=1)):
        included = inclusion_probabilities(mechanism, similarities, 0.1)
        assert included.tolist() == [1, 1, 1, 1]
    last = inclusion_probabilities(PPNS(k=2, beta=2), similarities, 0.1)
    assert last[:2].sum() == pytest.approx(1)
    assert last[2:].sum() == pytest.approx(1)


@pytest.mark.parametrize("wrong", [[0.1, 0.2], [[0.2, 0.1]], [np.nan, 0.0]])
def test_a_list_out_of_order_is_refused_without_its_values(wrong: Any) -> None:
    with pytest.raises(SettingError, match=r"descending$"):
        inclusion_probabilities(KNN(k=1), np.array(wrong))


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(SettingError, match=r"^method must be .*exact, manly.*got 'quick'"):
        alpha(KNN(k=1), np.array([0.1]), method="quick")  # type: ignore[arg-type]


def test_a_choice_without_a_weighted_candidate_is_impossible() -> None:
    log_weights = np.array([0.0, -np.inf, -np.inf, -np.inf])
    assert drawn_probability(log_weights, [1, 2]) == 0.0
    assert drawn_probability(log_weights, [0, 2]) == pytest.approx(1 / 3)
    assert drawn_probability(np.array([0.0, 1.0, -np.inf]), [0, 2]) == 0.0


def test_beta_of_any_mechanism_is_the_farthest_partition_it_can_reach() -> None:
    listed = np.linspace(0.9, 0.0, 40)
    mechanisms: dict[str, Mechanism] = {
        "kNN": KNN(k=5),
        "PPNS": PPNS(k=5, beta=4),
        "nPNS": NPNS(k=5, within=3),
        "PNCF": PNCF(k=5, within=3),
        "all": PPNS(k=5, beta=4, allocation=(1, 2, 2, 0)),
    }
    found = {name: list_metrics(one, listed, 0.1) for name, one in mechanisms.items()}
    assert {name: one[1] for name, one in found.items()} == {**{"kNN": 1, "PPNS": 4, "nPNS": 3, "PNCF": 3, "all": 3}}
    assert found["kNN"][0] == pytest.approx(listed[:5].sum())
    assert found["PPNS"][0] == alpha(PPNS(k=5, beta=4), listed, 0.1)


@pytest.mark.kernel
def test_a_probability_is_never_above_one_by_rounding() -> None:
    """Of three, 0.1 and 0.2 may have fired, and one never: fewer than two of the others have, almost surely."""
    fired = np.array([0.1, 0.2, 0.0])
    below = others_below(fired, 1 - fired, 2)
    assert below.max() == 1.0
    assert below == pytest.approx([1.0, 1.0, 1 - 0.1 * 0.2], abs=1e-15)
