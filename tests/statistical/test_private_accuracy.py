"""The private models on real ratings: better than the paper's unprotected kNN, and `auto` no worse than `means`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import goodfence as gf
from goodfence.evaluation import evaluate
from goodfence.models.private.base import PrivateRecommender
from goodfence.models.private.cf import PrivateCF, PrivateMeans
from goodfence.privacy.guarantee import Unit

# The standard deviation of an error over noise is below 0.002; six of them are left between measured and asked.
MARGIN = 0.012
# What a larger budget may cost. A fit at epsilon 1 has a standard deviation of .0015 here, a mean of five .0007.
SETTLED = 0.006


def error(model: PrivateRecommender, train: gf.Ratings, test: gf.Ratings) -> float:
    return evaluate(model.fit(train), test).mae


@pytest.mark.real
def test_ml_100k() -> None:
    train, test = gf.holdout(gf.load("ml-100k"), fraction=0.2, rng=0)
    assert error(PrivateCF(epsilon=1.0, items="from ratings"), train, test) < 0.737
    assert error(PrivateCF(epsilon=4.0, unit="user", items="from ratings"), train, test) < 0.754
    assert error(PrivateMeans(epsilon=1.0, items="from ratings"), train, test) < 0.755 + MARGIN


def test_a_scale_of_ten_works_unchanged() -> None:
    train, test = gf.holdout(gf.load("movietweetings"), fraction=0.2, rng=0)
    own = evaluate(PrivateMeans(epsilon=1e-3, items="from ratings").fit(train), test).mae  # hardly anything is released
    means = error(PrivateCF(epsilon=4.0, plan="means", items="from ratings"), train, test)
    assert means < own
    assert (
        error(PrivateCF(epsilon=4.0, items="from ratings"), train, test) < means + 2.5 * MARGIN
    )  # the scale is 2.5 times as long


def test_more_budget_never_costs_error() -> None:
    """Few users and many ratings each: where noise vanishes chance is taken for structure if anywhere."""
    train, test = gf.holdout(gf.synthetic(users=400, items=250, ratings=25_000, rng=11), fraction=0.2, rng=0)
    units: tuple[Unit, ...] = ("rating", "user")
    for unit in units:
        errors = [
            np.mean([error(PrivateCF(epsilon=budget, unit=unit, items="from ratings"), train, test) for _ in range(5)])
            for budget in (0.1, 1.0, 4.0, 16.0, 64.0)
        ]
        least = np.minimum.accumulate(errors)
        assert (np.array(errors) <= least + SETTLED).all(), errors


def test_few_ratings_a_person_are_no_worse_than_a_noisy_mean() -> None:
    for users in (300, 1000, 3000):
        made = gf.synthetic(users=users, items=200, ratings=12 * users, rng=users)
        train, test = gf.holdout(made, fraction=0.2, rng=0)
        for settings in ({"epsilon": 1.0}, {"epsilon": 4.0, "unit": "user"}):
            budget: Any = {**settings, "items": "from ratings"}
            means, auto = (
                np.mean([error(kind(**budget), train, test) for _ in range(3)]) for kind in (PrivateMeans, PrivateCF)
            )
            assert auto <= means + MARGIN


def test_more_budget_is_better() -> None:
    train, test = gf.holdout(gf.load("movietweetings"), fraction=0.2, rng=0)
    errors = [
        error(PrivateCF(epsilon=epsilon, unit="user", items="from ratings"), train, test) for epsilon in (0.1, 30.0)
    ]
    assert errors[1] < errors[0] - 0.02
