"""Post-processing: item effects from noisy sums and counts, shrunk as the noise deserves.

The law of (count, effect) over the items is not assumed but estimated: a discrete prior on a grid, fitted to the noisy
data by expectation-maximisation (Kiefer and Wolfowitz's nonparametric maximum likelihood). Each item's effect is then
its posterior mean. So there is no threshold or strength to choose, and what rarely rated items are like is learnt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from goodfence.models.private.item_sums import ItemSums
from goodfence.privacy.fixed_point import Floats

_COUNTS, _EFFECTS = 30, 31
_LARGEST_EFFECT = 2.2
_STEPS = 30
_FIRST_SPREAD = 0.6
"""How widely effects lie before anything is known of them; where the estimate of their law begins."""
_CHUNK = 64
"""Items at once: so few that what is computed of them stays in the processor's cache."""
_SPREAD = 1.05
"""How widely ratings lie about their person's mean, on the scale 1..5: a guess from experience, not from the data."""

Float32s = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ItemEffects:
    """What is known of the items: how good, how sure, how often rated."""

    effects: Floats
    variances: Floats
    counts: Floats


def estimate_effects(sums: ItemSums, wide: float, weight: float) -> ItemEffects:
    """Return posterior means and variances of the items' effects, and posterior mean counts.

    Parameters
    ----------
    sums
        What was released.
    wide
        Where residuals were cut: a cut residual follows its item's effect only in part.
    weight
        The typical weight of a rating in the sums (1 for the unit rating).
    """
    slope = 2 * float(ndtr(wide / _SPREAD)) - 1
    variance = min(0.95, 0.7 * wide**2) * weight
    counts, effects = _grid(sums)
    likelihood = _likelihood(sums, counts, effects, slope, variance)
    prior = _prior(likelihood, effects)
    return _posterior(likelihood, prior, counts, effects)


def _grid(sums: ItemSums) -> tuple[Floats, Floats]:
    """Return the grid's counts (0 and a geometric row) and effects, one pair for each of its points."""
    largest = max(float(sums.counts.max()), 4 * sums.counts_noise)
    least = min(sums.counts_noise / 2, largest / 100)
    counts = np.concatenate([[0.0], np.geomspace(least, largest, _COUNTS - 1)])
    effects = np.linspace(-_LARGEST_EFFECT, _LARGEST_EFFECT, _EFFECTS)
    return np.repeat(counts, _EFFECTS), np.tile(effects, _COUNTS)


def _likelihood(
    sums: ItemSums, counts: Floats, effects: Floats, slope: float, variance: float
) -> Float32s:
    """Return the likelihood of every item at every point, each item's largest being 1."""
    gaps = np.repeat(
        np.gradient(counts[::_EFFECTS]) / 2.5, _EFFECTS
    )  # a point stands for its surroundings
    of_sums = sums.sums_noise**2 + counts * variance
    of_counts = sums.counts_noise**2 + gaps**2
    constant = -0.5 * np.log(of_sums * of_counts)
    out = np.empty((len(sums.sums), len(counts)), dtype=np.float32)
    for start in range(0, len(out), _CHUNK):
        part = slice(start, start + _CHUNK)
        log = constant - (sums.counts[part, None] - counts) ** 2 / (2 * of_counts)
        log -= (sums.sums[part, None] - slope * counts * effects) ** 2 / (2 * of_sums)
        log -= log.max(axis=1, keepdims=True)
        out[part] = np.exp(log)
    return out


def _prior(likelihood: Float32s, effects: Floats) -> Float32s:
    prior = np.exp(-(effects**2) / (2 * _FIRST_SPREAD**2)).astype(np.float32)
    prior /= prior.sum()
    for _ in range(_STEPS):
        prior = prior * ((1 / np.maximum(likelihood @ prior, 1e-30)) @ likelihood)
        prior /= prior.sum()
    return prior


def _posterior(
    likelihood: Float32s, prior: Float32s, counts: Floats, effects: Floats
) -> ItemEffects:
    joint = likelihood @ np.stack(
        [prior, prior * effects, prior * effects**2, prior * counts], axis=1
    ).astype(np.float32)
    total = np.maximum(joint[:, 0].astype(np.float64), 1e-30)
    mean = joint[:, 1] / total
    variance = np.maximum(joint[:, 2] / total - mean**2, 1e-6)
    return ItemEffects(mean, variance, joint[:, 3] / total)
