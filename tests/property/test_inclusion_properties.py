"""Inclusion probabilities of any weights: enumeration, order, sum."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from goodfence.selection.inclusion import pool_inclusion
from tests.support import reference

log_weights = st.lists(
    st.one_of(st.just(-np.inf), st.floats(-30, 30), st.sampled_from([0.0, 1.0])), min_size=1, max_size=6
)


@settings(max_examples=60, deadline=None)
@given(weights=log_weights, data=st.data())
def test_any_pool_has_the_inclusion_probabilities_of_its_law(weights: list[float], data: st.DataObject) -> None:
    take = data.draw(st.integers(0, len(weights)))
    exact = reference.inclusion([Fraction(float(np.exp(one))) for one in weights], take)
    included = pool_inclusion(np.array(weights), take)
    assert np.abs(included - exact).max() < 1e-12
    assert abs(included.sum() - take) < 1e-11


@settings(max_examples=60, deadline=None)
@given(weights=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40), shift=st.floats(-1e6, 1e6), data=st.data())
def test_a_larger_weight_is_never_included_less(weights: list[float], shift: float, data: st.DataObject) -> None:
    take = data.draw(st.integers(1, len(weights)))
    ordered = -np.sort(-np.array(weights))
    for method in ("exact", "manly"):
        included = pool_inclusion(ordered, take, method=method)
        assert (np.diff(included) <= 1e-10).all()
        assert abs(included.sum() - take) < 1e-8
    moved = pool_inclusion(ordered + shift, take)
    assert np.abs(moved - pool_inclusion(ordered, take)).max() < 1e-6
