"""The first search for neighbouring data that move a release farther than is claimed, for every released quantity.

Pairs are random, structured and optimised. `tests/property/test_private_sensitivity.py` holds each search to the bound,
`benchmarks/sensitivity_hunt.py` writes down what they found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.models.private.cf import COVARIANCE, RESIDUALS
from goodfence.models.private.item_model import ItemModel
from goodfence.models.private.projected import LONGEST, PROJECTED, find_directions, projected_size, projected_totals
from goodfence.models.private.releases import (
    MOST_COUNTED,
    SUMS,
    covariance_size,
    half_step_totals,
    overlap_totals,
    pair_totals,
    rating_totals,
    residual_totals,
    user_totals,
)
from goodfence.privacy.fixed_point import UserProfiles, integer_sensitivity
from goodfence.privacy.guarantee import Unit

N_ITEMS = 300
MU = 0.2
User: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
Totals: TypeAlias = Callable[[UserProfiles], npt.NDArray[np.int64]]


def profiles_of(*users: User) -> UserProfiles:
    """Return the profiles of users with these (items, centred ratings)."""
    ends = np.cumsum([0, *(len(items) for items, _ in users)])
    items = np.concatenate([items for items, _ in users]).astype(np.int64)
    values = np.concatenate([values for _, values in users]).astype(np.float64)
    return UserProfiles(ends, items, values, N_ITEMS)


def nobody() -> User:
    return np.empty(0, dtype=np.int64), np.empty(0)


def rating_pairs(rng: np.random.Generator) -> Iterator[tuple[User, User]]:
    """Yield users and the same with one rating more: extremes, blocks, and ordinary ones."""
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


def with_one_more(values: npt.NDArray[np.float64], new: float) -> tuple[User, User]:
    items = np.arange(len(values) + 1)
    return (items[:-1], values), (items, np.append(values, new))


def single_users(rng: np.random.Generator) -> Iterator[tuple[User, User]]:
    """Yield nobody and one user with all their ratings."""
    for before, after in rating_pairs(rng):
        yield nobody(), after
        if len(before[0]):
            yield nobody(), before


def distance(totals: Totals, before: User, after: User) -> float:
    """Return how far the integers differ; others are there too, as in any data."""
    others = np.arange(40), np.resize([1.5, -0.5, 0.5], 40)
    moved = totals(profiles_of(others, after)) - totals(profiles_of(others, before))
    return float(np.sqrt((moved.astype(np.float64) ** 2).sum()))


def largest(totals: Totals, pairs: Iterator[tuple[User, User]], unit: Unit, rng: np.random.Generator) -> float:
    """Return the largest distance of the pairs, after climbing from the best of them by changing one rating."""
    tried = [(distance(totals, *pair), pair) for pair in pairs]
    best, (before, after) = max(tried, key=lambda found: found[0])
    for _ in range(60):
        values = after[1].copy()
        values[rng.integers(len(values))] = rng.choice([-2.5, -1.5, -0.5, 0.5, 1.5, rng.uniform(-2.5, 1.5)])
        candidate = (after[0], values)
        start = nobody() if unit == "user" else (before[0], values[:-1])
        found = distance(totals, start, candidate)
        if found > best:
            best, before, after = found, start, candidate
    return best


def biases(rng: np.random.Generator, kind: str) -> npt.NDArray[np.float64]:
    return np.zeros(N_ITEMS) if kind == "none" else rng.normal(0, 0.5, N_ITEMS)


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search for one released quantity, and what it must find to be any good."""

    released: str
    unit: Unit
    detail: str
    """In what the searches for the same quantity differ."""
    ratio: Callable[[], float]
    """Search, and return the largest distance found, over the bound."""
    at_least: float

    @property
    def name(self) -> str:
        return f"{self.released}, {self.unit}, {self.detail}"


def item_sums(kind: str) -> float:
    rng = np.random.default_rng(1)
    known = biases(rng, kind)
    settings = SUMS["rating"]
    bound = rating_totals(profiles_of(nobody()), known, settings, MU)[1]
    assert bound <= integer_sensitivity(MU)
    found = largest(lambda p: rating_totals(p, known, settings, MU)[0], rating_pairs(rng), "rating", rng)
    return found / bound


def item_sums_of_users() -> float:
    rng = np.random.default_rng(2)
    known = biases(rng, "some")
    found = largest(lambda p: user_totals(p, known, SUMS["user"], MU)[0], single_users(rng), "user", rng)
    return found / integer_sensitivity(MU)


def item_residuals(kind: str) -> float:
    rng = np.random.default_rng(3)
    known = biases(rng, kind)
    bound = residual_totals(profiles_of(nobody()), known, RESIDUALS, MU)[1]
    assert bound <= integer_sensitivity(MU)
    found = largest(lambda p: residual_totals(p, known, RESIDUALS, MU)[0], rating_pairs(rng), "rating", rng)
    return found / bound


def covariance(unit: Unit, n_chosen: int) -> float:
    rng = np.random.default_rng(4)
    known, chosen = biases(rng, "some"), np.arange(N_ITEMS - n_chosen, N_ITEMS)
    target = integer_sensitivity(MU)
    size = covariance_size(COVARIANCE, unit, N_ITEMS, n_chosen, target)
    pairs = rating_pairs(rng) if unit == "rating" else single_users(rng)
    found = largest(lambda p: pair_totals(p, known, chosen, COVARIANCE, unit, size), pairs, unit, rng)
    return found / target


def overlap(unit: Unit) -> float:
    target = integer_sensitivity(MU)
    counts = np.arange(0, 2 * MOST_COUNTED[unit])
    each = np.array([overlap_totals(np.array([count]), unit, target)[0] for count in counts])
    moved = np.diff(each) if unit == "rating" else each
    return float(np.abs(moved).max()) / target


def half_step(part: int, longest: float) -> float:
    rng = np.random.default_rng(5)
    features = np.concatenate([np.ones((N_ITEMS, 1)), rng.normal(0, 0.5, (N_ITEMS, 2))], axis=1)
    if longest == 0:
        features = features[:, :1]
    model = ItemModel(biases(rng, "some"), np.ascontiguousarray(features), rng.uniform(0.3, 1, N_ITEMS))
    limits = integer_sensitivity(MU), integer_sensitivity(MU / 6)
    found = largest(lambda p: half_step_totals(p, model, longest, *limits)[part], single_users(rng), "user", rng)
    return found / limits[part]


def projected(n_factors: int) -> float:
    rng = np.random.default_rng(7)
    known = biases(rng, "some")
    factors = rng.normal(0, 0.3, (N_ITEMS, n_factors))
    factors[:150] = 0.3  # all alike, so that scores are long
    directions = find_directions(factors, rng.uniform(1, 50, N_ITEMS))
    target = integer_sensitivity(MU)
    size = projected_size(PROJECTED, N_ITEMS, directions, LONGEST, target)
    found = largest(
        lambda p: projected_totals(p, known, directions, PROJECTED, LONGEST, size), rating_pairs(rng), "rating", rng
    )
    return found / target


def without_the_user_bias() -> float:
    """Return the ratio to a bound that is too small, because the user bias's part is left out: above 1."""
    rng = np.random.default_rng(6)
    settings, nothing = SUMS["rating"], np.zeros(N_ITEMS)
    _, _, (grid, one) = rating_totals(profiles_of(nobody()), nothing, settings, MU)
    careless = np.hypot(settings.clamps.wide * grid, one)
    found = largest(lambda p: rating_totals(p, nothing, settings, MU)[0], rating_pairs(rng), "rating", rng)
    return found / float(careless)


def searches() -> Iterator[Search]:
    """Yield every search, in the order of the releases."""
    units: tuple[Unit, Unit] = ("rating", "user")

    def search(released: str, unit: Unit, detail: str, ratio: Callable[[], float], at_least: float) -> Search:
        return Search(released=released, unit=unit, detail=detail, ratio=ratio, at_least=at_least)

    for kind in ("none", "some"):
        yield search("item sums", "rating", f"{kind} known", partial(item_sums, kind), 0.9)
    yield search("item sums", "user", "some known", item_sums_of_users, 0.99)
    for kind in ("none", "some"):
        yield search("item residuals", "rating", f"{kind} known", partial(item_residuals, kind), 0.85)
    for unit in units:
        for n_chosen in (300, 60):
            found = partial(covariance, unit, n_chosen)
            yield search("covariance", unit, f"{n_chosen} chosen", found, 0.85)
    for n_factors in (1, 8):
        found = partial(projected, n_factors)
        yield search("projected covariance", "rating", f"{n_factors} directions", found, 0.5)
    for unit in units:
        yield search("overlap", unit, "every count", partial(overlap, unit), 0.9)
    for part, (named, least) in enumerate({"items": 0.9, "scores": 0.8}.items()):
        for longest in (0.0, 0.6, 2.0):
            found = partial(half_step, part, longest)
            yield search(f"half step, {named}", "user", f"score up to {longest}", found, least)
