"""What the settings of a mechanism must be."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from goodfence.errors import require


def whole(value: Any, name: str, *, least: int) -> int:
    """Return `value` as an integer of at least `least`.

    Examples
    --------
    >>> whole(0, "k", least=1)
    Traceback (most recent call last):
    ...
    goodfence.errors.SettingError: k must be an integer of at least 1, got 0
    """
    number = not isinstance(value, bool) and isinstance(value, Integral)
    holds = number and int(value) >= least
    require(holds, name, f"an integer of at least {least}", value)
    return int(value)


def positive(value: Any, name: str) -> float:
    """Return `value` as a positive, finite float.

    Examples
    --------
    >>> positive(1, "epsilon")
    1.0
    """
    number = not isinstance(value, bool) and isinstance(value, Real)
    require(number and 0 < float(value) < math.inf, name, "a positive, finite number", value)
    return float(value)


def finite(value: Any, name: str) -> float:
    """Return `value` as a finite float."""
    number = not isinstance(value, bool) and isinstance(value, Real)
    require(number and math.isfinite(float(value)), name, "a finite number", value)
    return float(value)


def fraction(value: Any, name: str) -> float:
    """Return `value` as a float strictly between 0 and 1."""
    number = not isinstance(value, bool) and isinstance(value, Real)
    require(number and 0 < float(value) < 1, name, "strictly between 0 and 1", value)
    return float(value)
