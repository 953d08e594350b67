"""The kernels of the private models are their plain twins."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from scipy.special import ndtr

from goodfence.arrays import Csr
from goodfence.kernels.co_occurrence import add_projected, user_scales
from goodfence.kernels.private import (
    HalfStepLimits,
    ItemFeatures,
    _as_integers,
    add_by_item,
    add_half_steps,
    add_normalised,
    predict_rows,
    rank_profile,
    residuals,
)
from goodfence.models.private.releases import sum_pairs
from tests.support import reference

N_ITEMS = 12
Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = tuple[npt.NDArray[Any], npt.NDArray[Any]]


def some_users(seed: int, low: int = -900, high: int = 900) -> list[dict[int, int]]:
    """Return eight users with integer ratings, one of them with none and one with a zero."""
    rng = np.random.default_rng(seed)
    made: list[dict[int, int]] = [{}, {3: 0}]
    for count in (1, 2, 5, 8, 11, N_ITEMS):
        items = np.sort(rng.choice(N_ITEMS, count, replace=False))
        made.append({int(item): int(rng.integers(low, high)) for item in items})
    return made


def laid_out(users: list[dict[int, Any]]) -> Rows:
    indptr = np.cumsum([0, *(len(user) for user in users)])
    return indptr, np.array([item for user in users for item in user], dtype=np.int64)


def values_of(users: list[dict[int, Any]], kind: Any) -> npt.NDArray[Any]:
    return np.array([value for user in users for value in user.values()], dtype=kind)


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(5))
def test_residuals_and_sums(seed: int) -> None:
    users = some_users(seed)
    biases = np.random.default_rng(seed).integers(-200, 200, N_ITEMS)
    indptr, indices = laid_out(users)
    found = residuals(indptr, indices, values_of(users, np.int64), biases, 500, 3, 300)
    twins = reference.residuals(users, biases.tolist(), 500, 3, 300)
    assert found.tolist() == values_of(twins, np.int64).tolist()
    sums, counts = np.zeros((2, N_ITEMS), dtype=np.int64)
    add_by_item(indices, found, 7, sums, counts)
    assert sums.tolist() == [sum(twin.get(item, 0) for twin in twins) for item in range(N_ITEMS)]
    assert counts.tolist() == [7 * sum(item in twin for twin in twins) for item in range(N_ITEMS)]


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(5))
def test_normalised_sums(seed: int) -> None:
    users = some_users(seed)
    indptr, indices = laid_out(users)
    sums, counts = np.zeros((2, N_ITEMS), dtype=np.int64)
    rest = (1024, 1.5, 1.5, 10**6)
    add_normalised(Csr(indptr, indices, values_of(users, np.int64)), *rest, sums, counts)
    twin = reference.normalised_sums(users, *rest, N_ITEMS)
    assert np.abs(sums - twin[0]).max() <= len(users)  # a last bit may fall on the other side of an integer
    assert np.abs(counts - twin[1]).max() <= len(users)


@pytest.mark.kernel
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("toward_zero", [True, False])
def test_pair_sums(power: int, toward_zero: bool) -> None:
    users = some_users(3)
    indptr, indices = laid_out(users)
    values = values_of(users, np.int64)
    rows = sparse.csr_array((values, indices, indptr), shape=(len(users), N_ITEMS))
    scales = np.asarray(user_scales(indptr, values, power, 50.0), dtype=np.float64)
    found = sum_pairs(rows, scales, toward_zero=toward_zero)
    twin = np.array(reference.pair_sums(users, power, 50.0, N_ITEMS, toward_zero))
    assert np.abs(found - twin).max() <= (1 if toward_zero else 0)
    assert (np.tril(found) == 0).all()


def known(seed: int) -> ItemFeatures:
    rng = np.random.default_rng(seed)
    features = np.concatenate([np.ones((N_ITEMS, 1)), rng.normal(0, 0.5, (N_ITEMS, 2))], axis=1)
    bias, weights = rng.normal(0, 0.4, N_ITEMS), rng.uniform(0.4, 1, N_ITEMS)
    penalties = np.array([2.0, 0.85, 0.85])
    return ItemFeatures(bias, np.ascontiguousarray(features), weights, penalties)


@pytest.mark.kernel
@pytest.mark.parametrize("cut", [np.inf, 0.4])
@pytest.mark.parametrize("seed", range(3))
def test_predictions(seed: int, cut: float) -> None:
    users = [{i: r / 400 for i, r in user.items()} for user in some_users(seed)]
    indptr, indices = laid_out(users)
    every = np.tile(np.arange(N_ITEMS), len(users))
    ends = np.arange(len(users) + 1) * N_ITEMS
    out = np.empty(len(every))
    rows = np.arange(len(users))
    profiles = Csr(indptr, indices, values_of(users, float))
    of_items = known(seed)._replace(cut=cut)
    predict_rows(rows, ends, every, profiles, of_items, out)
    bias, features, *_ = of_items
    for row, user in enumerate(users):
        twin = bias + features @ reference.ridge(user, *of_items)
        assert out[ends[row] : ends[row + 1]] == pytest.approx(twin, abs=1e-9)


@pytest.mark.kernel
@pytest.mark.parametrize("counts", ["alike", "few", "noisy"])
@pytest.mark.parametrize("n", [1, 4, N_ITEMS])
def test_ranked_profiles(n: int, counts: str) -> None:
    kinds = {"alike": np.ones(N_ITEMS), "few": np.r_[90.0, 80.0, np.full(N_ITEMS - 2, 2.0)]}
    popular = kinds.get(counts, np.random.default_rng(2).normal(0, 9, N_ITEMS))  # noise may leave a count below 0
    of_items, listable = known(4)._replace(cut=1.2), np.arange(N_ITEMS) != 5
    order = np.argsort(-popular, kind="stable")
    for user in some_users(4):
        own = {item: value / 400 for item, value in user.items()}
        columns, best = np.empty(n, dtype=np.int32), np.empty(n)
        pair = np.array(list(own), dtype=np.int64), np.array(list(own.values()), dtype=float)
        rank_profile(pair, of_items, (popular, order), 0.9, listable, columns, best)
        predicted = of_items.bias + of_items.features @ reference.ridge(own, *of_items)
        scores = popular * np.sqrt(ndtr(predicted / 0.9))
        twin = reference.best_list(scores, list(own), np.flatnonzero(listable).tolist(), n)
        listed = columns[columns >= 0]
        assert listed.tolist() == [item for item, _ in twin]
        assert (columns[len(twin) :] == -1).all()
        assert best[: len(twin)] == pytest.approx(predicted[listed], abs=1e-9)


@pytest.mark.kernel
@pytest.mark.parametrize("longest", [20.0, 1e9])
def test_projected_rows(longest: float) -> None:
    users = [*some_users(4), {3: 0, 5: 0}]
    indptr, indices = laid_out(users)
    directions = np.random.default_rng(4).integers(-90, 90, (N_ITEMS, 3))
    found = np.zeros((N_ITEMS, 3), dtype=np.int64)
    rows = Csr(indptr, indices, values_of(users, np.int64))
    add_projected(rows, directions, longest, 7.0, found)
    twin = np.array(reference.projected_rows(users, directions.tolist(), longest, 7.0))
    assert np.abs(twin).max() > 1000
    assert np.abs(found - twin).max() <= 1  # a last bit may fall on the other side of a half


@pytest.mark.kernel
@pytest.mark.parametrize("longest", [0.3, 5.0])
def test_half_steps(longest: float) -> None:
    users = [{i: r / 400 for i, r in user.items()} for user in some_users(1)]
    indptr, indices = laid_out(users)
    limits = 10**7, 10**6
    items = np.zeros((N_ITEMS, 3), dtype=np.int64)
    scores = np.zeros((3, 3), dtype=np.int64)
    values = values_of(users, float)
    profiles, bounds = Csr(indptr, indices, values), HalfStepLimits(1.5, longest, *limits)
    add_half_steps(profiles, known(1), bounds, items, scores)
    squared = 1 + longest**2
    twin_items, twin_scores = np.zeros((N_ITEMS, 3)), np.zeros((3, 3))
    for user in filter(None, users):
        part, square = reference.half_step(user, *known(1)[:4], 1.5, longest)
        twin_scores += square * limits[1] / squared
        for item, row in part.items():
            twin_items[item] += row * limits[0] / np.sqrt(squared)
    assert np.abs(items - twin_items).max() <= len(users) + 1e-3
    assert np.abs(scores - twin_scores).max() <= len(users) + 1e-3


@pytest.mark.kernel
def test_what_a_user_adds_to_a_half_step_does_not_depend_on_who_else_is_there() -> None:
    """To the last bit, wherever they are in memory: on that the sensitivity of the sum rests."""
    rng = np.random.default_rng(3)
    features = np.concatenate([np.ones((N_ITEMS, 1)), rng.normal(0, 0.5, (N_ITEMS, 13))], axis=1)
    weights, penalties = rng.uniform(0.2, 1, N_ITEMS), np.full(14, 0.85)
    of_items = ItemFeatures(rng.normal(0, 1, N_ITEMS), features, weights, penalties)
    limits = HalfStepLimits(1.5, 2.0, 1 << 29, 1 << 29)

    def total(users: list[dict[int, float]]) -> npt.NDArray[np.int64]:
        items, scores = np.zeros((N_ITEMS, 14), dtype=np.int64), np.zeros((14, 14), dtype=np.int64)
        rows = Csr(*laid_out(users), values_of(users, float))
        add_half_steps(rows, of_items, limits, items, scores)
        return np.concatenate([items, scores])

    users = [{i: r / 400 for i, r in user.items()} for user in some_users(4)]
    alone = sum(total([user]) for user in users)
    for _ in range(5):
        order = rng.permutation(len(users))
        assert (total([users[at] for at in order]) == alone).all()


@pytest.mark.kernel
def test_who_is_not_a_number_is_left_out() -> None:
    """Whatever floating point does, a user whose integers are not within the limit adds nothing."""
    users = [{0: 1.0, 1: -1.0}]
    indptr, indices = laid_out(users)
    part = known(2)
    part.bias[0] = np.nan
    items, scores = np.zeros((N_ITEMS, 3), dtype=np.int64), np.zeros((3, 3), dtype=np.int64)
    profiles = Csr(indptr, indices, np.array([1.0, -1.0]))
    add_half_steps(profiles, part, HalfStepLimits(1.5, 1.0, 1000, 1000), items, scores)
    assert not items.any()
    assert not scores.any()


@pytest.mark.kernel
@pytest.mark.parametrize(("limit", "within"), [(6, True), (5, True), (4, False)])
def test_integers_exactly_as_long_as_the_limit_are_within_it(limit: int, within: bool) -> None:
    """(3.9, -4.9) is cut to (3, -4), of length 5."""
    holds, found = _as_integers(1.0, np.ones(1), np.array([[3.9, -4.9]]), limit)
    assert holds == within
    if within:
        assert found.tolist() == [[3, -4]]
