"""The kernels of the private models are their plain twins."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from goodfence.kernels.half_step import add_half_steps
from goodfence.kernels.item_sums import add_by_item, add_normalised, residuals
from goodfence.kernels.local_ridge import predict_rows
from goodfence.kernels.pair_sums import person_scales
from goodfence.models.private.covariance import sum_pairs
from tests import reference

N_ITEMS = 12
Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = tuple[npt.NDArray[Any], npt.NDArray[Any]]


def persons(seed: int, low: int = -900, high: int = 900) -> list[dict[int, int]]:
    """Return eight people with whole ratings, one of them with none and one with a zero."""
    rng = np.random.default_rng(seed)
    made: list[dict[int, int]] = [{}, {3: 0}]
    for count in (1, 2, 5, 8, 11, N_ITEMS):
        items = np.sort(rng.choice(N_ITEMS, count, replace=False))
        made.append({int(item): int(rng.integers(low, high)) for item in items})
    return made


def laid_out(people: list[dict[int, Any]]) -> Rows:
    indptr = np.cumsum([0, *(len(person) for person in people)])
    return indptr, np.array([item for person in people for item in person], dtype=np.int64)


def values_of(people: list[dict[int, Any]], kind: Any) -> npt.NDArray[Any]:
    return np.array([value for person in people for value in person.values()], dtype=kind)


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(5))
def test_residuals_and_sums(seed: int) -> None:
    people = persons(seed)
    centres = np.random.default_rng(seed).integers(-200, 200, N_ITEMS)
    indptr, indices = laid_out(people)
    found = residuals(indptr, indices, values_of(people, np.int64), centres, 500, 3, 300)
    twins = reference.residuals(people, centres.tolist(), 500, 3, 300)
    assert found.tolist() == values_of(twins, np.int64).tolist()
    sums, counts = np.zeros((2, N_ITEMS), dtype=np.int64)
    add_by_item(indices, found, 7, sums, counts)
    assert sums.tolist() == [sum(twin.get(item, 0) for twin in twins) for item in range(N_ITEMS)]
    assert counts.tolist() == [7 * sum(item in twin for twin in twins) for item in range(N_ITEMS)]


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(5))
def test_normalised_sums(seed: int) -> None:
    people = persons(seed)
    indptr, indices = laid_out(people)
    sums, counts = np.zeros((2, N_ITEMS), dtype=np.int64)
    rest = (1024, 1.5, 1.5, 10**6)
    add_normalised(indptr, indices, values_of(people, np.int64), *rest, sums, counts)
    twin = reference.normalised_sums(people, *rest, N_ITEMS)
    assert np.abs(sums - twin[0]).max() <= len(
        people
    )  # a last bit may fall on the other side of an integer
    assert np.abs(counts - twin[1]).max() <= len(people)


@pytest.mark.kernel
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("toward_zero", [True, False])
def test_pair_sums(power: int, toward_zero: bool) -> None:
    people = persons(3)
    indptr, indices = laid_out(people)
    values = values_of(people, np.int64)
    rows = sparse.csr_array((values, indices, indptr), shape=(len(people), N_ITEMS))
    scales = np.asarray(person_scales(indptr, values, power, 50.0), dtype=np.float64)
    found = sum_pairs(rows, scales, toward_zero=toward_zero)
    twin = np.array(reference.pair_sums(people, power, 50.0, N_ITEMS, toward_zero))
    assert np.abs(found - twin).max() <= (1 if toward_zero else 0)
    assert (np.tril(found) == 0).all()


def known(seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    features = np.concatenate([np.ones((N_ITEMS, 1)), rng.normal(0, 0.5, (N_ITEMS, 2))], axis=1)
    effects, weights = rng.normal(0, 0.4, N_ITEMS), rng.uniform(0.4, 1, N_ITEMS)
    return effects, np.ascontiguousarray(features), weights, np.array([2.0, 0.85, 0.85])


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(3))
def test_predictions(seed: int) -> None:
    people = [{i: r / 400 for i, r in person.items()} for person in persons(seed)]
    indptr, indices = laid_out(people)
    every = np.tile(np.arange(N_ITEMS), len(people))
    ends = np.arange(len(people) + 1) * N_ITEMS
    out = np.empty(len(every))
    rows = np.arange(len(people))
    predict_rows(rows, ends, every, indptr, indices, values_of(people, float), *known(seed), out)
    effects, features, *_ = known(seed)
    for row, person in enumerate(people):
        twin = effects + features @ reference.ridge(person, *known(seed))
        assert out[ends[row] : ends[row + 1]] == pytest.approx(twin, abs=1e-9)


@pytest.mark.kernel
@pytest.mark.parametrize("longest", [0.3, 5.0])
def test_half_steps(longest: float) -> None:
    people = [{i: r / 400 for i, r in person.items()} for person in persons(1)]
    indptr, indices = laid_out(people)
    limits = 10**7, 10**6
    items = np.zeros((N_ITEMS, 3), dtype=np.int64)
    scores = np.zeros((3, 3), dtype=np.int64)
    values = values_of(people, float)
    add_half_steps(indptr, indices, values, *known(1), 1.5, longest, *limits, items, scores)
    whole = 1 + longest**2
    twin_items, twin_scores = np.zeros((N_ITEMS, 3)), np.zeros((3, 3))
    for person in filter(None, people):
        part, square = reference.half_step(person, *known(1), 1.5, longest)
        twin_scores += square * limits[1] / whole
        for item, row in part.items():
            twin_items[item] += row * limits[0] / np.sqrt(whole)
    assert np.abs(items - twin_items).max() <= len(people) + 1e-3
    assert np.abs(scores - twin_scores).max() <= len(people) + 1e-3


@pytest.mark.kernel
def test_who_is_not_a_number_is_left_out() -> None:
    """Whatever floating point does, a person whose integers are not within the limit adds nothing."""
    people = [{0: 1.0, 1: -1.0}]
    indptr, indices = laid_out(people)
    effects, features, weights, penalties = known(2)
    effects[0] = np.nan
    items, scores = np.zeros((N_ITEMS, 3), dtype=np.int64), np.zeros((3, 3), dtype=np.int64)
    part = (effects, features, weights, penalties)
    add_half_steps(
        indptr, indices, np.array([1.0, -1.0]), *part, 1.5, 1.0, 1000, 1000, items, scores
    )
    assert not items.any()
    assert not scores.any()
