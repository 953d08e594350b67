"""A search for neighbouring events that move a release of `PrivateTopN` farther than is claimed.

The noisy counts, and so the centre, are the enemy's: any direction without negative parts. Users have few or many of
the items, along the centre or across it; what moves most is kept and changed a little.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.models.private.co_occurrence import (
    EventProfiles,
    centre_of,
    co_occurrence_size,
    co_occurrence_totals,
    count_totals,
)
from goodfence.privacy.fixed_point import integer_sensitivity
from goodfence.privacy.guarantee import Unit

N_ITEMS = 240
TRIES = 60
UNITS: tuple[Unit, Unit] = ("event", "user")

Integers: TypeAlias = npt.NDArray[np.int64]
Totals: TypeAlias = Callable[[EventProfiles, "Enemy"], Integers]


@dataclass(frozen=True)
class Enemy:
    """One user, and the counts that were released before: what the search changes."""

    count: int
    """How many items the user has besides the one in question."""
    heavy: int
    """How many items, the first ones, are far more frequent than the rest."""
    tilt: float
    """How much more frequent, as a power of ten."""
    first: int
    """From which item on the user has items; the last is the one in question."""
    chosen: int
    """How many items are chosen, the first ones."""

    def mutated(self, rng: np.random.Generator) -> Enemy:
        steps = rng.integers(-8, 9, 4) * (rng.random(4) < 0.5)
        return replace(
            self,
            count=int(np.clip(self.count + steps[0], 0, N_ITEMS - 1)),
            heavy=int(np.clip(self.heavy + steps[1], 0, N_ITEMS)),
            tilt=float(np.clip(self.tilt + rng.normal(0, 0.5), -9, 9)),
            first=int(np.clip(self.first + steps[2], 0, N_ITEMS - 1)),
            chosen=int(np.clip(self.chosen + steps[3], 2, N_ITEMS)),
        )

    def items(self) -> Integers:
        """Return the user's items, the one in question last."""
        return (self.first + np.arange(self.count + 1)) % N_ITEMS

    def centre(self) -> Integers:
        counts = np.where(np.arange(self.chosen) < self.heavy, 10.0**self.tilt, 1.0)
        return centre_of(counts)


def random_enemy(rng: np.random.Generator) -> Enemy:
    count = int(rng.choice([0, 1, 2, 3, 8, 30, 100, 200, N_ITEMS - 1]))
    heavy = int(rng.choice([0, 1, 5, 60, 180, N_ITEMS]))
    first = int(rng.choice([0, 0, 20, N_ITEMS - 1]))
    chosen = int(rng.choice([2, 3, 20, 120, N_ITEMS, N_ITEMS]))
    return Enemy(count, heavy, float(rng.uniform(-6, 6)), first, chosen)


def profiles_of(*users: Integers) -> EventProfiles:
    starts = np.cumsum([0, *map(len, users)])
    return EventProfiles(starts, np.concatenate([np.sort(each) for each in users]), N_ITEMS)


def hunt(totals: Totals, bound: float, unit: Unit, seed: int, tries: int = TRIES, events: int = 1) -> float:
    """Return the largest distance that was found, over the bound; another user is there too, as in any data.

    The unit event: the last events of the user, as many as `events`, are there or not.
    """
    rng = np.random.default_rng(seed)
    other = np.arange(0, N_ITEMS, 3)

    def ratio(enemy: Enemy) -> float:
        items = enemy.items()
        without = items[: max(len(items) - events, 0)] if unit == "event" else items[:0]
        pair = [totals(profiles_of(other, own), enemy) for own in (without, items)]
        moved = (pair[1] - pair[0]).astype(np.float64)
        return float(np.sqrt((moved**2).sum())) / bound

    pool = [(ratio(enemy), enemy) for enemy in (random_enemy(rng) for _ in range(60))]
    for _ in range(tries):
        pool = sorted(pool, key=lambda each: -each[0])[:6]
        enemy = pool[int(rng.integers(len(pool)))][1].mutated(rng)
        pool.append((ratio(enemy), enemy))
    return max(each[0] for each in pool)


def counts(unit: Unit, mu: float, seed: int = 5, events: int = 1) -> float:
    """Return the ratio of the counts."""
    limit = integer_sensitivity(mu)
    return hunt(lambda profiles, _: count_totals(profiles, unit, limit), limit, unit, seed, 20, events)


def co_occurrence(unit: Unit, mu: float, seed: int = 5, of: Unit | None = None, events: int = 1) -> float:
    """Return the ratio of the co-occurrence; `of` takes the factor of another unit, which is a mistake."""
    target = integer_sensitivity(mu)

    def totals(profiles: EventProfiles, enemy: Enemy) -> Integers:
        size = co_occurrence_size(of or unit, enemy.chosen, target)
        chosen = np.arange(enemy.chosen)
        return co_occurrence_totals(profiles, chosen, enemy.centre(), unit, size)

    return hunt(totals, target, unit, seed, events=events)


RELEASES: dict[str, Callable[..., float]] = {"item counts": counts, "co-occurrence": co_occurrence}
"""Every release of `PrivateTopN`, and the search for it."""
