"""A guarantee as odds: how often a guess may be right with a rating in the data, if it is right so often without."""

from __future__ import annotations

import math

from scipy.special import ndtr, ndtri

from goodfence.privacy.accounting import total_mu

GUESSED = 0.31
"""How often one rating of the bundled films is guessed right without any account."""


def at_most(without: float, epsilon: float, delta: float) -> float:
    """Return the largest probability of a right guess with the data, by the curve of Gaussian differential privacy."""
    mu = total_mu(epsilon, delta, 0.0)
    return float(ndtr(ndtri(without) + mu))


def rounded_up(share: float) -> int:
    """Return so many of 100, rounded up: a bound is never understated."""
    return math.ceil(100 * share - 1e-9)
