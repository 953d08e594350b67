"""The private models on real ratings: better than the paper's unprotected kNN, and `auto` no worse than `means`."""

from __future__ import annotations

import pytest

import goodfence as gf
from goodfence.evaluation import evaluate
from goodfence.models.private.base import PrivateRecommender
from goodfence.models.private.cf import PrivateCF
from goodfence.models.private.means import PrivateMeans

# The standard deviation of an error over noise is below 0.002; six of them are left between measured and asked.
MARGIN = 0.012


def error(model: PrivateRecommender, train: gf.Ratings, test: gf.Ratings) -> float:
    return evaluate(model.fit(train), test).mae


@pytest.mark.real
def test_ml_100k() -> None:
    train, test = gf.holdout(gf.load("ml-100k"), fraction=0.2, rng=0)
    assert error(PrivateCF(epsilon=1.0, items="from ratings"), train, test) < 0.745
    assert error(PrivateCF(epsilon=4.0, unit="user", items="from ratings"), train, test) < 0.757
    assert error(PrivateMeans(epsilon=1.0, items="from ratings"), train, test) < 0.755 + MARGIN


def test_a_scale_of_ten_works_unchanged() -> None:
    train, test = gf.holdout(gf.load("movietweetings"), fraction=0.2, rng=0)
    own = evaluate(
        PrivateMeans(epsilon=1e-3, items="from ratings").fit(train), test
    ).mae  # hardly anything is released
    means = error(PrivateCF(epsilon=4.0, plan="means", items="from ratings"), train, test)
    assert means < own
    assert (
        error(PrivateCF(epsilon=4.0, items="from ratings"), train, test) < means + 2.5 * MARGIN
    )  # the scale is 2.5 times as long


def test_more_budget_is_better() -> None:
    train, test = gf.holdout(gf.load("movietweetings"), fraction=0.2, rng=0)
    errors = [
        error(PrivateCF(epsilon=epsilon, unit="user", items="from ratings"), train, test)
        for epsilon in (0.1, 30.0)
    ]
    assert errors[1] < errors[0] - 0.02
