"""The scale on which ratings are given.

Lowest, highest, step, and whether somebody vouches for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from goodfence.errors import require

_STEPS = (1.0, 0.5, 0.25, 0.1)
_ON_GRID = 1e-9
_BLOCK = 2**16


@dataclass(frozen=True, slots=True)
class Scale:
    """A rating scale.

    Examples
    --------
    >>> print(Scale(1, 5))
    whole numbers 1-5
    >>> print(Scale(0.5, 5, step=0.5))
    0.5-5 in steps of 0.5
    """

    lowest: float
    """The lowest rating that can be given."""
    highest: float
    """The highest rating that can be given."""
    step: float | None = 1.0
    """The distance between neighbouring values.

    None where any value between the ends can be given.
    """
    declared: bool = True
    """True where the catalogue or the caller states the scale, False where it was only observed.

    An observed scale is itself a statistic of the data, so the private models refuse it.
    """

    def __post_init__(self) -> None:
        finite = bool(np.isfinite(self.lowest) and np.isfinite(self.highest))
        require(finite, "scale", "finite at both ends", (self.lowest, self.highest))
        require(self.lowest <= self.highest, "scale", "lowest first", (self.lowest, self.highest))
        if self.step is not None:
            require(0 < self.step < np.inf, "step", "positive", self.step)
            whole = bool(self.on_grid(np.array([self.highest], dtype=np.float64))[0])
            require(
                whole,
                "scale",
                f"a whole number of steps of {self.step:g}",
                (self.lowest, self.highest),
            )

    @classmethod
    def of(cls, scale: Scale | tuple[float, ...] | list[float]) -> Scale:
        """Return a scale: itself, or declared by (lowest, highest) or (lowest, highest, step)."""
        if isinstance(scale, Scale):
            return scale
        rule = "(lowest, highest) or (lowest, highest, step)"
        listed = isinstance(scale, tuple | list) and len(scale) in (2, 3)
        require(listed, "scale", rule, scale)
        require(all(_is_number(value) for value in scale), "scale", f"numbers: {rule}", scale)
        lowest, highest, *steps = (float(value) for value in scale)
        return cls(lowest, highest, steps[0] if steps else 1.0)

    @classmethod
    def observed(cls, values: npt.NDArray[np.floating]) -> Scale:
        """Return the narrowest scale that holds `values`, marked as observed.

        `values` must not be empty.
        """
        lowest, highest = float(values.min()), float(values.max())
        for step in _STEPS:
            # The distance is tried too: far from zero, both ends can be multiples and it not.
            distance = _multiples(np.array([highest]), lowest, step)
            if distance.all() and _all_multiples(values, step):
                return cls(lowest, highest, step, declared=False)
        return cls(lowest, highest, None, declared=False)

    def holds(self, values: npt.NDArray[np.floating]) -> npt.NDArray[np.bool_]:
        """Return which of `values` can be given on this scale."""
        within = (values >= self.lowest) & (values <= self.highest)
        return within & self.on_grid(values)

    def on_grid(self, values: npt.NDArray[np.floating]) -> npt.NDArray[np.bool_]:
        """Return which of `values` lie a whole number of steps above the lowest."""
        if self.step is None:
            return np.ones(values.shape, dtype=np.bool_)
        return _multiples(values, self.lowest, self.step)

    def round(self, values: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
        """Return the nearest value of the scale to each of `values`, halves up, ends clipped.

        NaN stays NaN.

        Examples
        --------
        >>> Scale(1, 5).round(np.array([0.2, 2.5, 3.49, np.nan]))
        array([ 1.,  3.,  3., nan])
        """
        clipped: npt.NDArray[np.float64] = np.clip(values, self.lowest, self.highest, dtype=float)
        if self.step is None:
            return clipped
        steps = np.floor((clipped - self.lowest) / self.step + 0.5)
        rounded: npt.NDArray[np.float64] = np.minimum(self.lowest + steps * self.step, self.highest)
        return rounded

    def __str__(self) -> str:
        ends = f"{self.lowest:g}-{self.highest:g}"
        if self.step is None:
            text = f"any value {ends}"
        elif self.step == 1 and float(self.lowest).is_integer():
            text = f"whole numbers {ends}"
        else:
            text = f"{ends} in steps of {self.step:g}"
        return text if self.declared else f"{text} (observed)"


def _multiples(
    values: npt.NDArray[np.floating], origin: float, step: float
) -> npt.NDArray[np.bool_]:
    # What overflows gives NaN, which is near nothing.
    with np.errstate(over="ignore", invalid="ignore"):
        steps = (values - origin) / step
        near: npt.NDArray[np.bool_] = np.abs(steps - np.rint(steps)) < _ON_GRID
    return near


def _all_multiples(values: npt.NDArray[np.floating], step: float) -> bool:
    """Look block by block: blocks stay in the processor's cache, and one odd value ends it."""
    blocks = range(0, len(values), _BLOCK)
    return all(_multiples(values[start : start + _BLOCK], 0.0, step).all() for start in blocks)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
