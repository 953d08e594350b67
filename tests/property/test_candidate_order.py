"""Candidate lists are those of the naive reference, index for index, on anything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import goodfence as gf
from goodfence.neighbours.candidate_lists import profile_candidates
from goodfence.neighbours.similarity import Centre
from tests.support import reference
from tests.support.strategies import SCALES, from_rows, rated_rows

pytestmark = pytest.mark.kernel


def naive(rows: list[dict[int, float]], target: int, name: str, centre: str = "all") -> list[float]:
    return [reference.similarity(rows[target], other, name, centre) for other in rows]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(rated_rows(), st.sampled_from(["cosine", "cosine_corated"]), st.integers(1, 14))
def test_cosines_equal_the_reference(data: tuple[list[dict[int, float]], int], name: str, n: int) -> None:
    rows, n_columns = data
    lists = gf.candidate_lists(from_rows(rows, n_columns), n=n, similarity=name, short_lists="shorten", threads=2)
    for target in range(len(rows)):
        similarities = naive(rows, target, name)
        expected = reference.candidate_list(similarities, target, n)
        assert lists.indices[target].tolist() == expected
        assert lists.similarities[target].tolist() == [similarities[row] for row in expected]


@settings(max_examples=100, deadline=None)
@given(rated_rows(values=SCALES["one to five"]), st.integers(1, 14))
def test_the_cosine_order_is_that_of_exact_fractions(data: tuple[list[dict[int, float]], int], n: int) -> None:
    rows, n_columns = data
    whole = [{column: int(rating) for column, rating in row.items()} for row in rows]
    lists = gf.candidate_lists(from_rows(rows, n_columns), n=n, short_lists="shorten")
    for target in range(len(rows)):
        assert lists.indices[target].tolist() == reference.exact_candidate_list(whole, target, n)


@settings(max_examples=100, deadline=None)
@given(rated_rows(), st.sampled_from(["all", "corated"]))
def test_pearson_equals_the_reference(data: tuple[list[dict[int, float]], int], centre: Centre) -> None:
    rows, n_columns = data
    similarity = gf.Similarity(name="pearson", centre=centre)
    n = len(rows) - 1
    lists = gf.candidate_lists(from_rows(rows, n_columns), n=n, similarity=similarity)
    for target in range(len(rows)):
        expected = np.array(naive(rows, target, "pearson", centre))
        by_row = dict(zip(lists.indices[target].tolist(), lists.similarities[target], strict=True))
        assert sorted(by_row) == [row for row in range(len(rows)) if row != target]
        for row, found in by_row.items():
            assert found == pytest.approx(expected[row], abs=1e-9)
        assert (np.diff(lists.similarities[target]) <= 0).all()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.dictionaries(st.integers(0, 5), st.floats(0.01, 10, allow_nan=False), max_size=6), min_size=2, max_size=10
    )
)
def test_real_values_follow_the_float_result(rows: list[dict[int, float]]) -> None:
    n = len(rows) - 1
    lists = gf.candidate_lists(from_rows(rows, 6), n=n)
    for target in range(len(rows)):
        expected = naive(rows, target, "cosine")
        found = lists.similarities[target]
        assert found == pytest.approx([expected[row] for row in lists.indices[target]], rel=1e-12)
        pairs = list(zip(-found, lists.indices[target].tolist(), strict=True))
        assert pairs == sorted(pairs)


@settings(max_examples=60, deadline=None)
@given(rated_rows(min_rows=3), st.data())
def test_a_profile_has_the_list_of_a_row_with_the_same_ratings(
    data: tuple[list[dict[int, float]], int], more: st.DataObject
) -> None:
    rows, n_columns = data
    target = more.draw(st.integers(0, len(rows) - 1))
    others = [row for i, row in enumerate(rows) if i != target]
    found = profile_candidates(from_rows(others, n_columns), rows[target])
    similarities = [reference.similarity(rows[target], other, "cosine") for other in others]
    expected = reference.candidate_list(similarities, -1, len(others))
    # A profile off the grid of the data is compared in its own units: equal up to rounding.
    assert found.similarities == pytest.approx([similarities[row] for row in found.indices], rel=1e-12)
    assert found.similarities == pytest.approx([similarities[row] for row in expected], rel=1e-12)
