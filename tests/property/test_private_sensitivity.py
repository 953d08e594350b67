"""For every released quantity: look for neighbouring data whose integers differ by more than is claimed.

Each test fails if a pair breaks the bound, and also if the largest ratio found is so small that the search (or the
bound) is no good. Run with `-s` to see the ratios; `./scripts/bench sensitivity_hunt` writes them down.
"""

from __future__ import annotations

import numpy as np
import pytest

from goodfence.models.private.cf import COVARIANCE, RESIDUALS
from goodfence.models.private.item_model import ItemModel
from goodfence.models.private.projected import PROJECTED, projected_totals
from goodfence.models.private.releases import (
    SUMS,
    half_step_totals,
    overlap_totals,
    pair_totals,
    rating_totals,
    residual_totals,
    user_totals,
)
from tests.support.sensitivity_search import (
    MU,
    N_ITEMS,
    Search,
    Totals,
    nobody,
    profiles_of,
    searches,
    without_the_user_bias,
)


@pytest.mark.slow
@pytest.mark.parametrize("search", tuple(searches()), ids=lambda search: search.name)
def test_nothing_moves_farther_than_is_claimed(search: Search) -> None:
    found = search.ratio()
    print(f"{search.name}: largest ratio found {found:.4f}")  # noqa: T201 (the ratio is what one runs this for)
    assert search.at_least <= found <= 1.0


def test_user_without_ratings_leaves_no_trace() -> None:
    model = ItemModel(np.zeros(N_ITEMS), np.ones((N_ITEMS, 1)), np.ones(N_ITEMS))
    somebody = np.arange(5), np.array([1.5, 0.5, -0.5, -2.5, 1.5])
    one, two = profiles_of(somebody), profiles_of(somebody, nobody())
    nothing = np.zeros(N_ITEMS)
    chosen, along = np.arange(N_ITEMS), np.full((N_ITEMS, 1), 1 << 16)
    every: list[Totals] = [
        lambda p: rating_totals(p, nothing, SUMS["rating"], MU)[0],
        lambda p: user_totals(p, nothing, SUMS["user"], MU)[0],
        lambda p: residual_totals(p, nothing, RESIDUALS, MU)[0],
        lambda p: pair_totals(p, nothing, chosen, COVARIANCE, "rating", 1.0),
        lambda p: projected_totals(p, nothing, along, PROJECTED, 0.1, 1.0),
        lambda p: overlap_totals(p.counts, "rating", 1000),
        lambda p: half_step_totals(p, model, 0.0, 1000, 1000)[1],
    ]
    for totals in every:
        assert (totals(one) == totals(two)).all()


def test_a_bound_that_is_too_small_is_found_out() -> None:
    """The search itself: with the user bias's part left out of the bound, it finds a violation."""
    assert without_the_user_bias() > 1.0
