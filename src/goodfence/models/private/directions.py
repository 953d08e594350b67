"""Post-processing: directions in which people differ that need no further release: quality and popularity.

Some people follow the common opinion more than others, and some like what everybody knows. How much, each person's
own ratings tell on her side.
"""

from __future__ import annotations

import numpy as np

from goodfence.models.private.empirical_bayes import ItemEffects
from goodfence.privacy.fixed_point import Floats

SLOPE = 0.25
"""How widely people differ along each direction: a public constant."""
_FARTHEST = 4.0


def free_directions(items: ItemEffects) -> Floats:
    """Return two features of every item: its effect, and the logarithm of its count, both standardised."""
    share = items.counts / max(float(items.counts.sum()), 1e-12)
    floor = max(float(items.counts.max()) * 1e-5, 1e-12)
    popularity = np.log(np.maximum(items.counts, floor))
    return SLOPE * np.stack(
        [_standardised(items.effects, share), _standardised(popularity, share)], axis=1
    )


def _standardised(values: Floats, share: Floats) -> Floats:
    """Return the values from their mean over ratings, in standard deviations."""
    off = values - float(share @ values)
    spread = np.sqrt(float(share @ off**2)) + 1e-6
    return np.asarray(np.clip(off / spread, -_FARTHEST, _FARTHEST))
