"""The kernels of co-occurrence are their plain twins."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from goodfence.kernels.co_occurrence import COARSER, subtract_centre, weigh_users
from goodfence.models.private.co_occurrence import FINER, SPARE, UNIT, EventProfiles, centre_of, co_occurrence_totals
from goodfence.privacy.guarantee import Unit
from tests.support import reference

N_ITEMS = 14


def some_users(seed: int) -> list[list[int]]:
    """Return users with few and many items, one with none and one with all."""
    rng = np.random.default_rng(seed)
    counts = (0, 1, 2, 3, 5, 8, 11, N_ITEMS)
    return [sorted(rng.choice(N_ITEMS, count, replace=False).tolist()) for count in counts]


def profiles(users: list[list[int]]) -> EventProfiles:
    starts = np.cumsum([0, *map(len, users)])
    return EventProfiles(starts, np.array([i for items in users for i in items]), N_ITEMS)


@pytest.mark.kernel
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_what_each_user_adds(seed: int, power: int) -> None:
    users = some_users(seed)
    centre = centre_of(np.random.default_rng(seed).uniform(0.1, 9, N_ITEMS))
    made, found = profiles(users), np.empty((len(users), 3), dtype=np.int64)
    weigh_users(made.indptr, made.indices, centre, (UNIT, SPARE), 3.7e8, power, found)
    twin = reference.event_weights(users, centre.tolist(), UNIT, SPARE, 3.7e8, power)
    assert found.tolist() == twin


@pytest.mark.kernel
@pytest.mark.parametrize("unit", ["event", "user"])
@pytest.mark.parametrize("seed", range(4))
def test_sums_above_the_diagonal(seed: int, unit: Unit) -> None:
    """The integers are the formula's within what the proof allows for rounding: all users', and 1/2 of each cell."""
    users = some_users(seed)
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(N_ITEMS, 9, replace=False))
    centre = centre_of(rng.uniform(0.1, 9, 9))
    size = 123_456.7
    found = co_occurrence_totals(profiles(users), chosen, centre, unit, size)
    kept = [[chosen.tolist().index(i) for i in items if i in chosen] for items in users]
    exact = np.array(reference.co_occurrence(kept, (centre / UNIT).tolist(), unit))
    above = np.triu_indices(9, 1)
    slack = 0.501 + len(users) * (0.625 * 3 + COARSER) / FINER
    assert np.abs(found[above] - size * exact[above]).max() <= slack
    assert np.abs(exact[above]).max() > 0.3
    assert not np.tril(found).any()


@pytest.mark.kernel
@pytest.mark.parametrize("largest", [10, 2**40, 2**53 + 1, 2**61])
def test_a_cell_is_off_by_rounding_alone(largest: int) -> None:
    """However large the sums are, and however much of them cancels: beside exact fractions."""
    rng = np.random.default_rng(7)
    centre = centre_of(rng.uniform(0.01, 9, 12))
    sums = rng.integers(0, largest, 12)
    matrix = np.triu(rng.integers(0, largest, (12, 12)), 1)
    total = int(rng.integers(0, largest))
    found = matrix.copy()
    subtract_centre(found, sums, total, centre / UNIT)
    v = [Fraction(int(each), UNIT) for each in centre]
    for i, j in zip(*np.triu_indices(12, 1), strict=True):
        exact = int(matrix[i, j]) - int(sums[i]) * v[j] - v[i] * int(sums[j]) + int(COARSER) * total * v[i] * v[j]
        assert abs(int(found[i, j]) - exact / FINER) <= Fraction(1, 2) + Fraction(1, 1000)


@pytest.mark.kernel
def test_a_centre_is_no_longer_than_one() -> None:
    rng = np.random.default_rng(3)
    for size in (1, 2, 7, 100, 2048):
        for counts in (np.ones(size), rng.uniform(1e-9, 1, size), rng.pareto(1.0, size) + 1e-12):
            centre = centre_of(counts)
            assert int(centre @ centre) + UNIT * np.sqrt(size) * 2 > 0.99 * UNIT**2
            assert int(centre @ centre) <= UNIT**2
            assert (centre >= 0).all()
