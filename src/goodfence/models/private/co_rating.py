"""Released quantity: one number, how much people's ratings overlap, to scale the covariance by.

The proof of the sensitivity is in `docs/mechanisms/private-cf.md`.
"""

from __future__ import annotations

import math

import numpy as np

from goodfence.models.private.people import People, Unit
from goodfence.privacy.fixed_point import Publisher, whole_sensitivity
from goodfence.privacy.noise import Integers

NAME = "overlap of ratings"
LARGEST = {"rating": 1000, "user": 400}
"""More ratings than this of one person do not count."""
_POWER = {"rating": 1.5, "user": 1.0}


def release_overlap(people: People, unit: Unit, mu: float, publisher: Publisher) -> float:
    """Return, with noise, the sum over people of min(c, largest)^1.5 (rating) or min(c, largest) (user)."""
    target = whole_sensitivity(mu)
    total = overlap_totals(people.counts, unit, target)
    noisy = publisher.publish(NAME, total, target)
    grid = overlap_grid(unit, target)
    return float(noisy[0] / grid) if grid > 0 else 0.0


def overlap_grid(unit: Unit, target: int) -> float:
    """Return the factor for which one unit of privacy moves the rounded sum by at most `target`."""
    largest = LARGEST[unit]
    # One rating more moves c^1.5 by at most 1.5 sqrt(largest); a user is there with all of hers, or not.
    reach = 1.5 * math.sqrt(largest) if unit == "rating" else float(largest)
    # Rounding down can add 1 to the difference, and the rounding of the powers far less.
    return max(0, target - 2) / reach


def overlap_totals(counts: Integers, unit: Unit, target: int) -> Integers:
    """Return the sum over people as one integer."""
    powers = np.minimum(counts, LARGEST[unit]) ** _POWER[unit]
    each = np.floor(powers * overlap_grid(unit, target)).astype(np.int64)
    return np.array([each.sum()], dtype=np.int64)
