"""Released quantity: for every item the sum of its residuals and its number of ratings, both with noise.

`docs/mechanisms/private-means.md` proves the sensitivities that `rating_bound` computes and `add_normalised` tests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from goodfence.errors import require
from goodfence.kernels.item_sums import add_by_item, add_normalised
from goodfence.models.private.people import Clamps, People, Unit
from goodfence.privacy.fixed_point import UP, Floats, Publisher, offset_move, whole_sensitivity
from goodfence.privacy.noise import SIGMA, Integers

NAME = "item sums and counts"
_GRID = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SumSettings:
    """Public constants of the release."""

    clamps: Clamps
    stretch: float
    """How much larger a residual enters than a count does."""
    floor: float
    """Unit user: nobody's contribution is blown up beyond 1/floor of it."""

    def __post_init__(self) -> None:
        require(self.stretch > 0, "stretch", "positive", self.stretch)
        require(self.floor > 0, "floor", "positive", self.floor)


@dataclass(frozen=True, slots=True)
class ItemSums:
    """Noisy sums and counts of all items, and the standard deviation of their noise."""

    sums: Floats
    counts: Floats
    sums_noise: float
    counts_noise: float


def release_sums(
    people: People,
    effects: Floats,
    settings: SumSettings,
    unit: Unit,
    mu: float,
    publisher: Publisher,
) -> ItemSums:
    """Release item sums and counts at the price mu.

    Parameters
    ----------
    effects
        Item effects that are known already (all zero at first): residuals are taken from them.
    mu
        The sensitivity divided by the noise, at most.
    """
    if unit == "rating":
        totals, sensitivity, grids = rating_totals(people, effects, settings, mu)
    else:
        totals, sensitivity, grids = user_totals(people, effects, settings, mu)
    noisy = publisher.publish(NAME, totals, sensitivity)
    of_sums, of_counts = grids
    return ItemSums(noisy[0] / of_sums, noisy[1] / of_counts, SIGMA / of_sums, SIGMA / of_counts)


def rating_grids(settings: SumSettings, n_items: int, mu: float) -> tuple[int, int]:
    """Return the largest grids of sums and counts whose `rating_bound` spends at most mu."""
    target = whole_sensitivity(mu)
    grid = math.ceil(target / rating_bound(settings, n_items, 1 << 30) * (1 << 30)) + 1
    while grid > 1 and rating_bound(settings, n_items, grid) > target:
        grid -= max(1, grid >> 20)
    require(
        rating_bound(settings, n_items, grid) <= target, "epsilon", "larger for this catalogue", mu
    )
    return grid, int(grid / settings.stretch)


def rating_bound(settings: SumSettings, n_items: int, grid: int) -> int:
    """Bound how far one rating more moves (sums, counts): its own row, and the others through the offset."""
    clamps = settings.clamps
    own, one = clamps.wide_on(grid), int(grid / settings.stretch)
    others = offset_move(clamps.near_on(grid), clamps.prior, n_items)
    return math.ceil(math.sqrt(own**2 + one**2 + others**2) * UP)


def rating_totals(
    people: People, effects: Floats, settings: SumSettings, mu: float
) -> tuple[Integers, int, tuple[float, float]]:
    """Return sums and counts as integers, their sensitivity to one rating, and their grids."""
    grid, one = rating_grids(settings, people.n_items, mu)
    totals = np.zeros((2, people.n_items), dtype=np.int64)
    values = people.residuals(settings.clamps, effects, grid)
    add_by_item(people.indices, values, one, totals[0], totals[1])
    return totals, rating_bound(settings, people.n_items, grid), (grid, one)


def user_totals(
    people: People, effects: Floats, settings: SumSettings, mu: float
) -> tuple[Integers, int, tuple[float, float]]:
    """Return weighted sums and counts as integers, their sensitivity to one user, and their grids."""
    limit = whole_sensitivity(mu)
    require(1 <= limit < 1 << 31, "epsilon", "smaller, or larger, for integers of 64 bits", mu)
    totals = np.zeros((2, people.n_items), dtype=np.int64)
    values = people.residuals(settings.clamps, effects, _GRID)
    add_normalised(
        people.indptr,
        people.indices,
        values,
        _GRID,
        settings.stretch,
        settings.floor,
        limit,
        totals[0],
        totals[1],
    )
    return totals, limit, (settings.stretch * limit, float(limit))
