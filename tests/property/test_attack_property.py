"""The fast path equals the long way on whatever ratings Hypothesis thinks of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import goodfence as gf
from goodfence.attack.knn_attack import KNNAttack
from tests.support.strategies import from_rows, rated_rows

KINDS = [gf.KNN(k=2), gf.PPNS(k=1, beta=2, epsilon=30.0), gf.NPNS(k=2), gf.PNCF(k=2, epsilon=30.0)]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    drawn=rated_rows(min_rows=4),
    mechanism=st.sampled_from(KINDS),
    known=st.integers(1, 3),
    fakes=st.integers(1, 4),
    ask=st.sampled_from(["one", "all"]),
)
def test_fast_equals_refit(drawn: Any, mechanism: Any, known: int, fakes: int, ask: Any) -> None:
    rows, n_columns = drawn
    ratings = from_rows(rows, n_columns)
    assume(max(len(row) for row in rows) > known)
    attack = KNNAttack(known=known, fakes=fakes, ask=ask, combine="mean")
    fast = attack.run(ratings, mechanism, targets=3, rng=1)
    slow = attack.run(ratings, gf.NeighbourCF(mechanism), targets=3, rng=1)
    assert fast.table().equals(slow.table())
    np.testing.assert_array_equal(fast.rows, slow.rows)
    assert fast.n_left_out == sum(len(row) <= known for row in rows)
