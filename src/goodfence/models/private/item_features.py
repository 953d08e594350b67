"""Public features of the items as further directions in which people differ. They cost no budget."""

from __future__ import annotations

import numpy as np

from goodfence.errors import SettingError
from goodfence.privacy.fixed_point import Floats

SCALE = 0.3
"""How widely people differ along public features together: a public constant."""
_FARTHEST = 4.0
_CONSTANT = 1e-9
"""A column that varies by less than this part of its size is taken as constant."""


def public_directions(features: Floats | None, n_items: int) -> Floats:
    """Return the features, each column in standard deviations from its mean; none where there are none.

    They are cut at four standard deviations, and a column that is constant becomes zero. So years, seconds since 1970
    and zeros and ones may stand side by side.

    Examples
    --------
    >>> public_directions(np.array([[1.0], [0.0], [0.0], [1.0]]), 4).ravel()
    array([ 0.3, -0.3, -0.3,  0.3])
    """
    if features is None:
        return np.zeros((n_items, 0))
    table = np.asarray(features, dtype=np.float64)
    if table.ndim != 2 or len(table) != n_items or not np.isfinite(table).all():
        raise SettingError(
            f"features must be finite numbers, one row for each of the {n_items} items"
        )
    largest = np.abs(table).max(axis=0, initial=0.0)
    shares = table / np.where(largest > 0, largest, 1.0)  # so that no square overflows
    off = shares - shares.mean(axis=0)
    spread = np.sqrt((off**2).mean(axis=0))
    standard = np.where(spread > _CONSTANT, off / np.maximum(spread, _CONSTANT), 0.0)
    directions: Floats = np.clip(standard, -_FARTHEST, _FARTHEST) * (
        SCALE / np.sqrt(max(table.shape[1], 1))
    )
    return directions
