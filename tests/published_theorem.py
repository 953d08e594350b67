"""How far one rating more moves what McSherry and Mironov release, over the constant of their Theorem 5."""

from __future__ import annotations

import math

import numpy as np

from goodfence.models.mcsherry_mironov import THEOREM


def one_rating_more(count: int, clamp: float, prior: int) -> tuple[float, float]:
    """Return the largest move of the covariance over the constant, and of covariance and weights together.

    The `count` old ratings are equal, of every value between the ends of the scale, the new one is at an end, all in
    real numbers.
    """
    old, new = np.meshgrid(np.linspace(-2.5, 1.5, 201), [-2.5, 1.5])
    before, after = count * old / (count + prior), (count * old + new) / (count + 1 + prior)
    first, second = (np.clip(old - offset, -clamp, clamp) for offset in (before, after))
    added = np.clip(new - after, -clamp, clamp)
    n_pairs = count * (count - 1) / 2
    block = first**2 / math.sqrt(count) - second**2 / math.sqrt(count + 1)
    covariance = block**2 * n_pairs + (added * second) ** 2 * count / (count + 1)
    lighter = 1 / math.sqrt(count) - 1 / math.sqrt(count + 1)
    weights = lighter**2 * n_pairs + count / (count + 1)
    together = (covariance / clamp**4 + weights) / 2
    moved = np.sqrt([covariance.max() / clamp**4, together.max()]) / THEOREM
    return float(moved[0]), float(moved[1])
