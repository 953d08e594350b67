"""How the budget is spent: shares that add up, and decisions worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import goodfence as gf
from goodfence.models.private.cf import (
    COVARIANCE,
    FIRST_SHARE,
    MEANS,
    MOST_SPENT,
    Plan,
    chance_of,
    choose_stages,
    largest_distance,
    longest_score,
    reach_of,
)
from goodfence.models.private.item_model import ItemBiases
from goodfence.models.private.releases import covariance_noise, most_rated
from goodfence.privacy.accounting import lattice_distance
from goodfence.privacy.guarantee import Unit
from goodfence.privacy.noise import SIGMA


def items_of(counts: np.ndarray, variance: float = 0.01) -> ItemBiases:
    return ItemBiases(np.zeros(len(counts)), np.full(len(counts), variance), counts)


@pytest.mark.parametrize("unit", ["rating", "user"])
@pytest.mark.parametrize("mu", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("variance", [1e-4, 1.0])
def test_every_plan_spends_all_of_the_budget(unit: Unit, mu: float, variance: float) -> None:
    plans: tuple[Plan, ...] = get_args(Plan)
    for plan in plans:
        if plan == "half_step" and unit == "rating":
            continue
        stages = choose_stages(plan, unit, items_of(np.full(300, 500.0), variance), 2e6, mu)
        assert FIRST_SHARE[unit] + stages.total == pytest.approx(1.0)
        assert (stages.n_chosen > 0) == (stages.covariance > 0)


def test_what_noise_would_drown_is_not_bought() -> None:
    """Little budget: item biases only. Much: a covariance of all items, where they fit one of its sizes."""
    units: tuple[Unit, ...] = ("rating", "user")
    for unit in units:
        few = choose_stages("auto", unit, items_of(np.full(300, 5.0), 0.3), 2e4, 0.01)
        assert few == MEANS[unit]
    rich = choose_stages("auto", "rating", items_of(np.full(300, 50_000.0), 1e-4), 2e8, 20.0)
    assert (rich.covariance, rich.half_steps, rich.n_chosen) == (0.35, (0.2, 0.15), 300)
    both = choose_stages("auto", "user", items_of(np.full(300, 50_000.0), 1e-4), 3e8, 20.0)
    assert (both.covariance, both.half_steps, both.n_chosen) == (0.3, (0.2, 0.2), 300)
    unsure = choose_stages("auto", "user", items_of(np.full(300, 50_000.0), 0.03), 3e8, 20.0)
    assert (unsure.covariance, unsure.half_steps) == (0.0, (0.25, 0.25))


def test_as_many_items_as_stand_out_of_the_noise() -> None:
    """Counts fall fast: the leading eigenvalue to be expected, over the edge of the noise, by the formula."""
    counts = 1e6 / np.arange(1, 1001) ** 1.5
    mu, overlap = 0.6, 12 * counts.sum()
    stages = choose_stages("covariance", "rating", items_of(counts), overlap, mu)
    expected = 0
    reach = counts / counts.sum() * math.sqrt(overlap / 0.42) * 0.4
    for n in (100, 200, 400, 800, 1000):
        noise = covariance_noise(COVARIANCE, "rating", 1000, n, mu * math.sqrt(0.35))
        if 0.0625 * (reach[:n] ** 2).sum() / (noise * math.sqrt(n)) >= 1.2:
            expected = n
    assert stages.n_chosen == max(expected, 100)


def test_reach_by_hand() -> None:
    """Counts 1 and 3 of 4, overlap 16: shares 1/4 and 3/4 times sqrt(16 / 0.42) * 0.4; the unit user has 0.42²."""
    counts = np.array([1.0, 3.0])
    assert reach_of(counts, 16.0, "rating") == pytest.approx(counts * 0.4 / math.sqrt(0.42))
    assert reach_of(counts, 16.0, "user") == pytest.approx(counts * 0.4 / 0.42)
    assert reach_of(counts, 0.0, "user") == pytest.approx(counts * 0.1 / 0.42)


def test_chance_by_hand() -> None:
    """Two ratings by users of four, overlap 2 * 8 / 4: a mean root of 2; nobody has less than one rating."""
    counts = np.array([1.0, 1.0])
    assert chance_of(counts, 4.0, "rating") == pytest.approx(0.5)
    assert chance_of(counts, 0.0, "rating") == 1.0
    assert chance_of(counts, 4.0, "user") == 0.007


def test_the_most_rated_come_in_the_order_of_their_columns() -> None:
    assert most_rated(np.array([1.0, 5.0, 3.0, 5.0, 3.0]), 3).tolist() == [1, 2, 3]


def test_scores_are_longer_with_more_factors() -> None:
    assert [longest_score(n) for n in (0, 2, 3, 40)] == [0.6, 0.6, 2.0, 2.0]


def test_nine_releases_of_the_largest_size() -> None:
    """The pairs of 3,200 items, and for each item and each other 40 + 4 features, with 10 public ones 54."""
    pairs = 3200 * 3199 // 2
    for n_public, n_features in ((0, 44), (10, 54)):
        largest = pairs + 1000 * n_features + n_features**2
        assert largest_distance(1000, n_public) == 9 * lattice_distance(largest, SIGMA)


def test_no_more_is_spent_than_is_useful_and_the_model_says_so_after_loading(tmp_path: Path) -> None:
    """An epsilon of 64 spends what an epsilon of about 16 allows; its guarantee holds all the more."""
    made = gf.synthetic(users=60, items=40, ratings=900, rng=3)
    allowed, asked = (gf.PrivateCF(epsilon=epsilon, items="from ratings").fit(made) for epsilon in (4.0, 64.0))
    assert allowed.account_.mu < MOST_SPENT
    assert 0.9 * MOST_SPENT <= asked.account_.mu <= MOST_SPENT * (1 + 1e-6)
    asked.save(tmp_path / "model.gf")
    loaded = gf.load_model(tmp_path / "model.gf")
    assert loaded.guarantee().epsilon == 64.0
    user = gf.PrivateCF(epsilon=64.0, unit="user", items="from ratings").fit(made)
    assert user.account_.mu <= MOST_SPENT * (1 + 1e-6)
