"""The optimum [FINAL]: no feasible allocation has a larger alpha than (k-1, 0, ..., 0, 1)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodfence.errors import SettingError
from goodfence.registry import made_of, settings_of
from goodfence.selection.inclusion import alpha, inclusion_probabilities, pool_inclusion
from goodfence.selection.knn import KNN
from goodfence.selection.ppns import PPNS, Shape, allocated
from goodfence.selection.sensitivity import Sensitivity


def feasible(k: int, beta: int) -> Iterator[tuple[int, ...]]:
    """Give every allocation of [FINAL]: at least 1 from partition beta, at most k-1 from another."""

    def counts(parts: int, left: int) -> Iterator[tuple[int, ...]]:
        if parts == 1:
            yield (left,)
            return
        for first in range(left + 1):
            for rest in counts(parts - 1, left - first):
                yield (first, *rest)

    for allocation in counts(beta, k):
        if allocation[-1] >= 1 and all(count <= k - 1 for count in allocation[:-1]):
            yield allocation


def test_there_are_as_many_allocations_as_there_should_be() -> None:
    assert sorted(feasible(2, 2)) == [(0, 2), (1, 1)]
    assert len(list(feasible(4, 3))) == 10


@pytest.mark.parametrize("method", ["exact", "manly"])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 30.0, 1e6])
@pytest.mark.parametrize(("k", "beta"), [(1, 3), (2, 4), (3, 3), (4, 3), (5, 2)])
def test_no_feasible_allocation_is_better(k: int, beta: int, epsilon: float, method: Any) -> None:
    generator = np.random.default_rng(k * 10 + beta)
    for shape in (1.0, 8.0):
        similarities = -np.sort(-(generator.random(k * beta) ** shape))
        best = alpha(PPNS(k=k, beta=beta, epsilon=epsilon), similarities, 0.1, method=method)
        for counts in feasible(k, beta):
            other = PPNS(k=k, beta=beta, epsilon=epsilon, allocation=counts)
            assert alpha(other, similarities, 0.1, method=method) <= best + 1e-9


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_it_holds_for_any_weights(data: st.DataObject) -> None:
    """Also where weights do not follow similarity, as with one RS for each pair."""
    k, beta = data.draw(st.integers(1, 4)), data.draw(st.integers(2, 3))
    size = k * beta
    numbers = st.lists(st.floats(0, 1), min_size=size, max_size=size)
    similarities = -np.sort(-np.array(data.draw(numbers)))
    rs = np.array(data.draw(st.lists(st.floats(1e-3, 1), min_size=size, max_size=size)))
    pairwise = Sensitivity(scope="pair")
    best = alpha(PPNS(k=k, beta=beta, epsilon=5.0, sensitivity=pairwise), similarities, rs)
    for counts in feasible(k, beta):
        other = PPNS(k=k, beta=beta, epsilon=5.0, allocation=counts, sensitivity=pairwise)
        assert alpha(other, similarities, rs) <= best + 1e-10


def test_each_further_draw_adds_a_similarity_of_its_partition() -> None:
    """The step of the argument: the gain lies between the partition's smallest and largest."""
    similarities = np.array([0.9, 0.7, 0.4, 0.2])
    for log_weights in (np.zeros(4), 5 * similarities, -20 * similarities):
        sums = [similarities @ pool_inclusion(log_weights, take) for take in range(5)]
        gains = np.diff(sums)
        assert (gains >= 0.2 - 1e-12).all()
        assert (gains <= 0.9 + 1e-12).all()


def test_with_equal_similarities_every_allocation_is_as_good() -> None:
    same = np.full(6, 0.5)
    values = {round(alpha(PPNS(k=3, beta=2, allocation=counts), same, 0.1), 12) for counts in feasible(3, 2)}
    assert values == {1.5}


def test_it_is_the_optimum_of_its_own_problem_only() -> None:
    """To take the k-1 nearest for sure is also across beta partitions, and has a larger alpha."""
    similarities = np.array([0.9, 0.5, 0.1, 0.05, 0.04, 0.03])
    ppns = alpha(PPNS(k=3, beta=2), similarities, 1.0)
    nearest = alpha(KNN(k=2), similarities)
    last = similarities[3:] @ pool_inclusion(similarities[3:] / 12, 1)
    assert nearest + last > ppns + 0.1


@pytest.mark.parametrize(
    ("name", "counts"),
    [("halving", (25, 12, 6, 3, 2, 1, 1)), ("linear", (16, 10, 8, 7, 5, 3, 1)), ("equal", (8, 7, 7, 7, 7, 7, 7))],
)
def test_allocations_by_name(name: Shape, counts: tuple[int, ...]) -> None:
    fence = PPNS(k=50, beta=7, allocation=name)
    assert fence.counts == counts
    assert made_of(settings_of(fence)) == fence
    assert sum(pool.take for pool in fence.pools(np.linspace(1, 0, 942))) == 50


@given(name=st.sampled_from(get_args(Shape)), k=st.integers(1, 80), beta=st.integers(1, 20))
def test_a_named_allocation_falls_and_sums_to_k(name: Shape, k: int, beta: int) -> None:
    try:
        counts = allocated(name, k, beta)
    except SettingError:
        assert k < 2 * beta or name == "halving"
        return
    assert sum(counts) == k
    assert len(counts) == beta
    assert all(near >= far >= 1 for near, far in pairwise([*counts, 1]))


def test_an_unknown_allocation_is_refused() -> None:
    with pytest.raises(SettingError, match=r"one of halving, linear, equal.*got 'even'"):
        PPNS(k=50, beta=7, allocation="even")  # type: ignore[arg-type]


def test_the_target_is_drawn_as_often_as_its_partition_is() -> None:
    """In a first partition of equals each is drawn with f(1)/k."""
    shares: dict[Shape, float] = {"halving": 0.5, "linear": 0.32, "equal": 0.16}
    for name, share in shares.items():
        fence = PPNS(k=50, beta=7, allocation=name)
        lists = np.concatenate([np.ones(50), np.full(892, 0.3)])
        included = inclusion_probabilities(fence, lists, sensitivity=0.1)
        assert included[:50] == pytest.approx(np.full(50, share), abs=1e-9)
