"""For every released quantity: look for neighbouring data whose integers differ by more than is claimed.

Random, structured and optimised pairs; each test fails if one breaks the bound, and also if the largest ratio found
is so small that the search (or the bound) is no good. Run with `-s` to see the ratios.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from goodfence.models.private.co_rating import LARGEST, overlap_totals
from goodfence.models.private.constants import COVARIANCE, RESIDUALS, SUMS
from goodfence.models.private.covariance import covariance_size, pair_totals
from goodfence.models.private.half_step import half_step_totals
from goodfence.models.private.item_residuals import residual_totals
from goodfence.models.private.item_sums import rating_totals, user_totals
from goodfence.models.private.local_ridge import ItemModel
from goodfence.models.private.people import People, Unit
from goodfence.privacy.fixed_point import whole_sensitivity

N_ITEMS = 300
MU = 0.2
Person: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
Totals: TypeAlias = Callable[[People], npt.NDArray[np.int64]]


def people_of(*persons: Person) -> People:
    """Return people with these (items, centred ratings)."""
    ends = np.cumsum([0, *(len(items) for items, _ in persons)])
    items = np.concatenate([items for items, _ in persons]).astype(np.int64)
    values = np.concatenate([values for _, values in persons]).astype(np.float64)
    return People(ends, items, values, N_ITEMS)


def nobody() -> Person:
    return np.empty(0, dtype=np.int64), np.empty(0)


def rating_pairs(rng: np.random.Generator) -> Iterator[tuple[Person, Person]]:
    """Yield persons and the same with one rating more: extremes, blocks, and ordinary ones."""
    levels = np.array([-2.5, -1.5, -0.5, 0.5, 1.5])
    for count in [0, 1, 2, 3, 6, 11, 16, 21, 30, 41, 60, 80, 150, 298]:
        for old in (-2.5, -0.5, 0.5, 1.5):
            for new in (-2.5, 1.5):
                yield with_one_more(np.full(count, old), new)
        for _ in range(5):
            share = rng.random()
            mixed = np.where(rng.random(count) < share, *rng.choice(levels, 2))
            yield with_one_more(mixed, rng.choice(levels))
            yield with_one_more(rng.uniform(-2.5, 1.5, count), rng.uniform(-2.5, 1.5))


def with_one_more(values: npt.NDArray[np.float64], new: float) -> tuple[Person, Person]:
    items = np.arange(len(values) + 1)
    return (items[:-1], values), (items, np.append(values, new))


def single_persons(rng: np.random.Generator) -> Iterator[tuple[Person, Person]]:
    """Yield nobody and one person with all of her ratings."""
    for before, after in rating_pairs(rng):
        yield nobody(), after
        if len(before[0]):
            yield nobody(), before


def distance(totals: Totals, before: Person, after: Person) -> float:
    """Return how far the integers differ; others are there too, as in any data."""
    others = np.arange(40), np.resize([1.5, -0.5, 0.5], 40)
    moved = totals(people_of(others, after)) - totals(people_of(others, before))
    return float(np.sqrt((moved.astype(np.float64) ** 2).sum()))


def largest(
    totals: Totals, pairs: Iterator[tuple[Person, Person]], unit: Unit, rng: np.random.Generator
) -> float:
    """Return the largest distance of the pairs, after climbing from the best of them by changing one rating."""
    tried = [(distance(totals, *pair), pair) for pair in pairs]
    best, (before, after) = max(tried, key=lambda found: found[0])
    for _ in range(60):
        values = after[1].copy()
        values[rng.integers(len(values))] = rng.choice(
            [-2.5, -1.5, -0.5, 0.5, 1.5, rng.uniform(-2.5, 1.5)]
        )
        candidate = (after[0], values)
        start = nobody() if unit == "user" else (before[0], values[:-1])
        found = distance(totals, start, candidate)
        if found > best:
            best, before, after = found, start, candidate
    return best


def effects(rng: np.random.Generator, kind: str) -> npt.NDArray[np.float64]:
    return np.zeros(N_ITEMS) if kind == "none" else rng.normal(0, 0.5, N_ITEMS)


def check(name: str, found: float, bound: float, at_least: float) -> None:
    print(f"{name}: largest ratio found {found / bound:.4f}")  # noqa: T201 (the ratio is what one runs this for)
    assert at_least <= found / bound <= 1.0


@pytest.mark.parametrize("kind", ["none", "some"])
def test_item_sums_rating(kind: str) -> None:
    rng = np.random.default_rng(1)
    known = effects(rng, kind)
    settings = SUMS["rating"]
    bound = rating_totals(people_of(nobody()), known, settings, MU)[1]
    found = largest(
        lambda p: rating_totals(p, known, settings, MU)[0], rating_pairs(rng), "rating", rng
    )
    check(f"item sums, rating, {kind} known", found, bound, 0.9)
    assert bound <= whole_sensitivity(MU)


def test_item_sums_user() -> None:
    rng = np.random.default_rng(2)
    known = effects(rng, "some")
    found = largest(
        lambda p: user_totals(p, known, SUMS["user"], MU)[0], single_persons(rng), "user", rng
    )
    check("item sums, user", found, whole_sensitivity(MU), 0.99)


@pytest.mark.parametrize("kind", ["none", "some"])
def test_item_residuals_rating(kind: str) -> None:
    rng = np.random.default_rng(3)
    known = effects(rng, kind)
    bound = residual_totals(people_of(nobody()), known, RESIDUALS, MU)[1]
    found = largest(
        lambda p: residual_totals(p, known, RESIDUALS, MU)[0], rating_pairs(rng), "rating", rng
    )
    check(f"item residuals, {kind} known", found, bound, 0.85)
    assert bound <= whole_sensitivity(MU)


@pytest.mark.parametrize("unit", ["rating", "user"])
@pytest.mark.parametrize("n_chosen", [300, 60])
def test_covariance(unit: Unit, n_chosen: int) -> None:
    rng = np.random.default_rng(4)
    known, chosen = effects(rng, "some"), np.arange(N_ITEMS - n_chosen, N_ITEMS)
    target = whole_sensitivity(MU)
    size = covariance_size(COVARIANCE, unit, N_ITEMS, n_chosen, target)
    pairs = rating_pairs(rng) if unit == "rating" else single_persons(rng)
    if n_chosen < N_ITEMS:
        pairs = (tuple((N_ITEMS - 1 - items, values) for items, values in pair) for pair in pairs)  # type: ignore[misc]
    found = largest(
        lambda p: pair_totals(p, known, chosen, COVARIANCE, unit, size), pairs, unit, rng
    )
    check(f"covariance, {unit}, {n_chosen} chosen", found, target, 0.85)


@pytest.mark.parametrize("unit", ["rating", "user"])
def test_overlap(unit: Unit) -> None:
    target = whole_sensitivity(MU)
    most = LARGEST[unit]
    counts = np.arange(0, 2 * most)
    each = np.array([overlap_totals(np.array([count]), unit, target)[0] for count in counts])
    moved = np.diff(each) if unit == "rating" else each
    check(f"overlap, {unit}", float(np.abs(moved).max()), target, 0.9)


@pytest.mark.parametrize("longest", [0.0, 0.6, 2.0])
def test_half_step(longest: float) -> None:
    rng = np.random.default_rng(5)
    features = np.concatenate([np.ones((N_ITEMS, 1)), rng.normal(0, 0.5, (N_ITEMS, 2))], axis=1)
    if longest == 0:
        features = features[:, :1]
    model = ItemModel(
        effects(rng, "some"), np.ascontiguousarray(features), rng.uniform(0.3, 1, N_ITEMS)
    )
    limits = whole_sensitivity(MU), whole_sensitivity(MU / 6)
    for part, least in ((0, 0.9), (1, 0.8)):
        found = largest(
            lambda p, part=part: half_step_totals(p, model, longest, *limits)[part],  # type: ignore[misc]
            single_persons(rng),
            "user",
            rng,
        )
        check(f"half step, part {part}, score up to {longest}", found, limits[part], least)


def test_somebody_without_ratings_leaves_no_trace() -> None:
    model = ItemModel(np.zeros(N_ITEMS), np.ones((N_ITEMS, 1)), np.ones(N_ITEMS))
    somebody = np.arange(5), np.array([1.5, 0.5, -0.5, -2.5, 1.5])
    one, two = people_of(somebody), people_of(somebody, nobody())
    nothing = np.zeros(N_ITEMS)
    chosen = np.arange(N_ITEMS)
    every: list[Totals] = [
        lambda p: rating_totals(p, nothing, SUMS["rating"], MU)[0],
        lambda p: user_totals(p, nothing, SUMS["user"], MU)[0],
        lambda p: residual_totals(p, nothing, RESIDUALS, MU)[0],
        lambda p: pair_totals(p, nothing, chosen, COVARIANCE, "rating", 1.0),
        lambda p: overlap_totals(p.counts, "rating", 1000),
        lambda p: half_step_totals(p, model, 0.0, 1000, 1000)[1],
    ]
    for totals in every:
        assert (totals(one) == totals(two)).all()


def test_a_bound_that_is_too_small_is_found_out() -> None:
    """The search itself: with the offset's part left out of the bound, it finds a violation."""
    rng = np.random.default_rng(6)
    settings, nothing = SUMS["rating"], np.zeros(N_ITEMS)
    _, _, (grid, one) = rating_totals(people_of(nobody()), nothing, settings, MU)
    careless = np.hypot(settings.clamps.wide * grid, one)
    found = largest(
        lambda p: rating_totals(p, nothing, settings, MU)[0], rating_pairs(rng), "rating", rng
    )
    assert found > careless
