"""Values as JSON knows them: what is not known is null."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def known(value: Any) -> Any:
    """Return a value with None for every number that is not finite, however deep inside.

    Examples
    --------
    >>> known({"mae": float("nan"), "interval": (0.5, float("inf"))})
    {'mae': None, 'interval': [0.5, None]}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: known(inside) for key, inside in value.items()}
    if isinstance(value, list | tuple):
        return [known(inside) for inside in value]
    return value
