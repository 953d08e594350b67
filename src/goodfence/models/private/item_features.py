"""Public features of the items as further directions in which people differ. They cost no budget."""

from __future__ import annotations

import numpy as np

from goodfence.errors import SettingError
from goodfence.privacy.fixed_point import Floats

SCALE = 0.3
"""How widely people differ along public features together: a public constant."""


def public_directions(features: Floats | None, n_items: int) -> Floats:
    """Return the features centred and scaled, one row an item; none where there are none.

    Examples
    --------
    >>> public_directions(np.array([[1.0], [0.0], [0.0], [1.0]]), 4).ravel()
    array([ 0.15, -0.15, -0.15,  0.15])
    """
    if features is None:
        return np.zeros((n_items, 0))
    table = np.asarray(features, dtype=np.float64)
    if table.ndim != 2 or len(table) != n_items or not np.isfinite(table).all():
        raise SettingError(
            f"features must be finite numbers, one row for each of the {n_items} items"
        )
    of_each = np.maximum(np.sqrt((table**2).sum(axis=1, keepdims=True)), 1.0)
    off = table - table.mean(axis=0)
    directions: Floats = SCALE * off / of_each
    return directions
