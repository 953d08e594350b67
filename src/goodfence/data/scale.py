"""The scale on which ratings are given: lowest, highest, step, and whether somebody vouches for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from goodfence.arrays import AnyFloats, Flags, Floats
from goodfence.errors import require
from goodfence.settings import Finite, Positive, checked, finite

_STEPS = (1.0, 0.5, 0.25, 0.1)
_ON_GRID = 1e-9
_BLOCK = 2**16


@checked
@dataclass(frozen=True, slots=True)
class Scale:
    """A rating scale.

    Parameters
    ----------
    lowest, highest : float
        The lowest and the highest rating that can be given.
    step : float or None, default 1.0
        The distance between neighbouring values; None where any value between the ends can be given.
    declared : bool, default True
        True where the catalogue or the caller states the scale, False where it was only observed. An observed scale
        is itself a statistic of the data, so the private models refuse it.

    Examples
    --------
    >>> print(Scale(1, 5))
    integers 1-5
    >>> print(Scale(0.5, 5, step=0.5))
    0.5-5 in steps of 0.5
    >>> print(Scale(-5, -1))
    integers -5 to -1
    """

    lowest: Finite
    highest: Finite
    step: Positive | None = 1.0
    declared: bool = True

    def __post_init__(self) -> None:
        ends = (self.lowest, self.highest)
        require(self.lowest <= self.highest, "scale", "lowest first", ends)
        if self.step is not None:
            even = bool(self.on_grid(np.array([self.highest], dtype=np.float64))[0])
            require(even, "scale", f"a whole number of steps of {self.step:g}", ends)

    @classmethod
    def of(cls, scale: Scale | tuple[float, ...] | list[float]) -> Scale:
        """Return a scale: itself, or declared by (lowest, highest) or (lowest, highest, step)."""
        if isinstance(scale, Scale):
            return scale
        rule = "(lowest, highest) or (lowest, highest, step)"
        listed = isinstance(scale, tuple | list) and len(scale) in (2, 3)
        require(listed, "scale", rule, scale)
        lowest, highest, *steps = (finite(value, "scale") for value in scale)
        return cls(lowest, highest, steps[0] if steps else 1.0)

    @classmethod
    def observed(cls, values: AnyFloats) -> Scale:
        """Return the narrowest scale that holds `values` (at least one), marked as observed."""
        given = np.asarray(values)
        require(
            given.ndim >= 1 and given.size >= 1 and given.dtype.kind in "fiu",
            "values",
            "numbers, at least one",
            type(values),
        )
        lowest, highest = float(given.min()), float(given.max())
        for step in _STEPS:
            # The distance is tried too: far from zero, both ends can be multiples and it not.
            distance = _multiples(np.array([highest]), lowest, step)
            if distance.all() and _all_multiples(given, step):
                return cls(lowest, highest, step, declared=False)
        return cls(lowest, highest, None, declared=False)

    @checked
    def holds(self, values: AnyFloats) -> Flags:
        """Return which of `values` can be given on this scale."""
        given = np.asarray(values)
        return (given >= self.lowest) & (given <= self.highest) & self.on_grid(given)

    @checked
    def on_grid(self, values: AnyFloats) -> Flags:
        """Return which of `values` are an integer number of steps above the lowest."""
        if self.step is None:
            return np.ones(np.shape(values), dtype=np.bool_)
        return _multiples(np.asarray(values), self.lowest, self.step)

    @checked
    def round(self, values: AnyFloats) -> Floats:
        """Return the nearest value of the scale to each of `values`: halves up, ends clipped, NaN kept.

        Examples
        --------
        >>> Scale(1, 5).round(np.array([0.2, 2.5, 3.49, np.nan]))
        array([ 1.,  3.,  3., nan])
        """
        clipped: Floats = np.clip(values, self.lowest, self.highest, dtype=float)
        if self.step is None:
            return clipped
        steps = np.floor((clipped - self.lowest) / self.step + 0.5)
        rounded: Floats = np.minimum(self.lowest + steps * self.step, self.highest)
        return rounded

    def __str__(self) -> str:
        between = "-" if self.lowest >= 0 else " to "
        ends = f"{self.lowest:g}{between}{self.highest:g}"
        if self.step is None:
            text = f"any value {ends}"
        elif self.step == 1 and float(self.lowest).is_integer():
            text = f"integers {ends}"
        else:
            text = f"{ends} in steps of {self.step:g}"
        return text if self.declared else f"{text} (observed)"


def _multiples(values: AnyFloats, origin: float, step: float) -> Flags:
    # What overflows gives NaN, which is near nothing.
    with np.errstate(over="ignore", invalid="ignore"):
        steps = (values - origin) / step
        near: Flags = np.abs(steps - np.rint(steps)) < _ON_GRID
    return near


def _all_multiples(values: AnyFloats, step: float) -> bool:
    """Look block by block: blocks stay in the processor's cache, and one odd value ends it."""
    blocks = range(0, len(values), _BLOCK)
    return all(_multiples(values[start : start + _BLOCK], 0.0, step).all() for start in blocks)


ScaleLike: TypeAlias = Scale | tuple[float, ...]
"""A scale, or (lowest, highest) or (lowest, highest, step)."""
