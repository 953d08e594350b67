"""What is counted: ticks (squared integer sensitivities), slack (distance of the noise from a real Gaussian), caps."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from goodfence.errors import require
from goodfence.privacy.accounting import total_epsilon, total_mu
from goodfence.privacy.noise import BITS, MOST_MU, SIGMA

TICKS_BITS = 2 * BITS
"""A sensitivity D costs D² ticks, and mu² is their sum over 2^48; slack has the same unit."""
MOST_COST = MOST_MU**2 << TICKS_BITS
"""The largest cap, 2^60: sums of two costs stay far below 2^63."""


class Charge(NamedTuple):
    """What one release costs one account."""

    account: bytes
    """The account, from `Ledger.account`."""
    cost: int
    """The square of the integer sensitivity of the release to this account's data."""
    slack: int
    """`slack_of` the dimension of the release."""


class Cap(NamedTuple):
    """What an account may spend in its life."""

    cost: int
    slack: int

    @classmethod
    def of(cls, *, epsilon: float, delta: float, slack: int) -> Cap:
        """Return the cap that keeps an account (epsilon, delta)-private, with room for this much slack."""
        mu = Fraction(total_mu(epsilon, delta, slack / 2**TICKS_BITS))
        return cls(math.floor(mu * mu * 2**TICKS_BITS), slack).checked()

    def checked(self) -> Cap:
        """Return the cap if the ledger can hold it."""
        require(
            0 < self.cost <= MOST_COST, "cost", f"a cap of at most {MOST_COST} ticks (a mu of {MOST_MU})", self.cost
        )
        require(0 < self.slack <= MOST_COST, "slack", f"a cap from 1 to {MOST_COST}", self.slack)
        return self


class Spent(NamedTuple):
    """What an account spent, and its cap."""

    cost: int
    slack: int
    cap: Cap


def slack_of(dimension: int) -> int:
    """Return `lattice_distance(dimension, SIGMA)` in units of 2^-48, rounded up: 1.01 sqrt(dimension/32)."""
    squared = -(-(101**2) * dimension // (100**2 * 32))
    root = math.isqrt(squared)
    return root + (root * root < squared)


def epsilon_of(cost: int, slack: int, delta: float) -> float:
    """Return the epsilon, rounded up, of so many ticks and so much slack; for display only."""
    mu = math.nextafter(math.sqrt(cost) / SIGMA, math.inf) if cost else 0.0
    return total_epsilon(mu, slack / 2**TICKS_BITS, delta)
