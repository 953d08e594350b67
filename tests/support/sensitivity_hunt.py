"""Another search for neighbouring data that move a release farther than is claimed, unlike the first.

Here the item biases released before are the enemy's too, so that every distance of a rating from its item's bias can be
had; users are blocks of such distances, up to a rating of every item; ratings lie on scales of half stars, 0 to 10,
two values and 1 to 5; and budgets go from so small that rounding is most of the bound to the largest. The search
evolves: what moves most is kept and changed a little.

`tests/property/test_sensitivity_hunt.py` holds it to the bounds, `benchmarks/sensitivity_hunt.py` writes down what it
found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.data.scale import Scale
from goodfence.models.private.cf import COVARIANCE, RESIDUALS
from goodfence.models.private.item_model import ItemModel
from goodfence.models.private.projected import DIRECTION_GRID, PROJECTED, projected_size, projected_totals
from goodfence.models.private.projected import LONGEST as LONGEST_SCORE
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
from goodfence.privacy.fixed_point import UserProfiles, centred, integer_sensitivity
from goodfence.privacy.guarantee import Unit

N_ITEMS = 120
TRIES = 60
SCALES = [Scale(1, 5), Scale(0.5, 5, 0.5), Scale(0, 10), Scale(0, 1)]
SMALL, USUAL, LARGE = 3e-5, 0.25, 30.0
"""Budgets: in the first a grid has a few hundred points, in the last a few thousand million."""

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Enemy:
    """One user in blocks, and the biases of their items: what the search changes."""

    count: int
    """How many ratings they have besides the one in question."""
    share: float
    """How many of these are of the first block."""
    apart: tuple[float, float, float]
    """How far from the items' biases the ratings of both blocks and the one in question are."""
    grades: tuple[int, int, int]
    """Which of the scale's values they are."""
    chosen: int
    """From which item on they enter the covariance."""

    def mutated(self, rng: np.random.Generator) -> Enemy:
        apart = np.asarray(self.apart) + rng.normal(0, 0.3, 3) * (rng.random(3) < 0.5)
        snapped = np.round(apart * 4) / 4  # clamps lie on quarters: try them exactly, too
        count = self.count + int(rng.integers(-6, 7)) * int(rng.random() < 0.5)
        chosen = self.chosen + int(rng.integers(-5, 6)) * int(rng.random() < 0.3)
        return replace(
            self,
            count=min(max(count, 0), N_ITEMS - 1),
            share=float(np.clip(self.share + rng.normal(0, 0.1) * (rng.random() < 0.5), 0, 1)),
            apart=tuple(snapped if rng.random() < 0.3 else apart),
            grades=tuple(rng.integers(0, 11, 3)) if rng.random() < 0.2 else self.grades,
            chosen=min(max(chosen, 0), N_ITEMS - 2),
        )

    def user(self, scale: Scale) -> tuple[Floats, Floats]:
        """Return their ratings, the one in question last, and the biases of all items."""
        first = round(self.share * self.count)
        blocks = np.repeat([0, 1, 2], [first, self.count - first, 1])
        values = np.linspace(scale.lowest, scale.highest, 11)
        if scale.step is not None:
            values = scale.round(values)
        ratings = centred(values[np.asarray(self.grades)[blocks]], scale)
        biases = np.zeros(N_ITEMS)
        biases[: len(blocks)] = np.clip(ratings - np.asarray(self.apart)[blocks], -2.5, 2.5)
        return ratings, biases


def random_enemy(rng: np.random.Generator) -> Enemy:
    count = int(rng.choice([0, 1, 2, 5, 15, 20, 25, 40, 60, N_ITEMS - 1]))
    apart = rng.choice([-2.5, -2, -1.25, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 1.25, 2, 2.5], 3)
    grades = rng.integers(0, 11, 3)
    share = float(rng.choice([0, 0.5, 1, rng.random()]))
    chosen = int(rng.choice([0, 0, 10, N_ITEMS - 2]))
    return Enemy(count, share, tuple(apart), tuple(grades), chosen)


def profiles(ratings: Floats) -> UserProfiles:
    ends = np.array([0, len(ratings)])
    return UserProfiles(ends, np.arange(len(ratings)), ratings, N_ITEMS)


Totals: TypeAlias = Callable[[UserProfiles, Floats, Enemy], Integers]


def hunt(totals: Totals, bound: float, unit: Unit, seed: int, tries: int = TRIES) -> float:
    """Return the largest distance that was found, over the bound."""
    rng = np.random.default_rng(seed)

    def ratio(enemy: Enemy, scale: Scale) -> float:
        ratings, biases = enemy.user(scale)
        without = profiles(ratings[:-1] if unit == "rating" else ratings[:0])
        moved = totals(profiles(ratings), biases, enemy) - totals(without, biases, enemy)
        return float(np.sqrt((moved.astype(np.float64) ** 2).sum())) / bound

    found = []
    for scale in SCALES:
        pool = [(ratio(enemy, scale), enemy) for enemy in (random_enemy(rng) for _ in range(30))]
        for _ in range(tries):
            pool = sorted(pool, key=lambda each: -each[0])[:5]
            enemy = pool[int(rng.integers(len(pool)))][1].mutated(rng)
            pool.append((ratio(enemy, scale), enemy))
        found.append(max(each[0] for each in pool))
    return max(found)


def quantities(mu: float) -> dict[str, tuple[Totals, float, Unit, float]]:
    """Return every released quantity: its integers, their bound, the unit, and what a fair search must find."""
    target = float(integer_sensitivity(mu))
    zeros = np.zeros(N_ITEMS)
    sums = rating_totals(profiles(zeros[:0]), zeros, SUMS["rating"], mu)[1]
    rests = residual_totals(profiles(zeros[:0]), zeros, RESIDUALS, mu)[1]
    assert max(sums, rests) <= target
    sizes = {unit: covariance_size(COVARIANCE, unit, N_ITEMS, N_ITEMS, int(target)) for unit in ("rating", "user")}

    def pairs(unit: Unit) -> Totals:
        return lambda p, biases, enemy: pair_totals(
            p, biases, np.arange(enemy.chosen, N_ITEMS), COVARIANCE, unit, sizes[unit]
        )  # fmt: skip

    return {
        "item sums, rating": (
            lambda p, biases, _: rating_totals(p, biases, SUMS["rating"], mu)[0], sums, "rating", 0.97,
        ),
        "item sums, user": (
            lambda p, biases, _: user_totals(p, biases, SUMS["user"], mu)[0], target, "user", 0.97,
        ),
        "item residuals, rating": (
            lambda p, biases, _: residual_totals(p, biases, RESIDUALS, mu)[0], rests, "rating", 0.93,
        ),
        "covariance, rating": (pairs("rating"), target, "rating", 0.6),
        "covariance, user": (pairs("user"), target, "user", 0.6),
    }  # fmt: skip


LONGEST = {0: 0.0, 2: 0.6, 12: 2.0}
"""By the number of factors, how long a score may be."""


def half_step(part: int, n_factors: int, mu: float) -> float:
    """Return the same of a half step, whose factors are the enemy's, too: as long as they may be, alike or not."""
    limits = integer_sensitivity(mu), integer_sensitivity(mu / 6)
    found = []
    for seed, length in enumerate((0.25, 10.0)):
        rng = np.random.default_rng(seed)
        factors = rng.choice([-length, length], (N_ITEMS, n_factors))
        features = np.concatenate([np.ones((N_ITEMS, 1)), factors], axis=1)

        def totals(p: UserProfiles, biases: Floats, _: Enemy, features: Floats = features) -> Integers:
            model = ItemModel(biases, features, np.full(N_ITEMS, 0.9))
            return half_step_totals(p, model, LONGEST[n_factors], *limits)[part]

        found.append(hunt(totals, limits[part], "user", seed, tries=10))
    return max(found)


DIRECTIONS = ("one for all items", "one item apart", "in blocks", "any")
"""The directions of a projected covariance, which are the enemy's, too."""


def enemy_directions(kind: str) -> Integers:
    """Return directions of a largest singular value of 1 or less, on the grid."""
    plain = np.zeros((N_ITEMS, 2))
    if kind == "any":
        plain = np.random.default_rng(5).normal(size=(N_ITEMS, 3))
    elif kind == "in blocks":
        plain[: N_ITEMS // 2, 0], plain[N_ITEMS // 2 :, 1] = 1.0, -1.0
    else:
        plain[:, 0] = 1.0
    plain /= np.linalg.norm(plain, 2)
    if kind == "one item apart":
        plain[30] = 0.7, 0.7
    return np.trunc(plain * DIRECTION_GRID).astype(np.int64)


def projected(kind: str, mu: float, seed: int) -> float:
    """Return the same of a projected covariance along such directions."""
    target, directions = integer_sensitivity(mu), enemy_directions(kind)
    size = projected_size(PROJECTED, N_ITEMS, directions, LONGEST_SCORE, target)

    def totals(p: UserProfiles, biases: Floats, _: Enemy) -> Integers:
        return projected_totals(p, biases, directions, PROJECTED, LONGEST_SCORE, size)

    return hunt(totals, target, "rating", seed)


def overlap(unit: Unit, mu: float) -> float:
    """Return the same of the overlap, at every count."""
    target = integer_sensitivity(mu)
    counts = range(MOST_COUNTED[unit] + 3)
    each = [overlap_totals(np.array([count]), unit, target)[0] for count in counts]
    moved = np.diff(each) if unit == "rating" else np.array(each)
    return float(np.abs(moved).max()) / target
