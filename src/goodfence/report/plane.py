"""From numbers to the places of an SVG picture, for a wide page and for a narrow one."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The size of a picture, and its margins: a picture is drawn once for each, and the page shows one."""

    name: str
    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int


WIDE = Frame(name="wide", width=760, height=400, left=44, right=24, top=38, bottom=58)
NARROW = Frame(name="narrow", width=340, height=330, left=34, right=12, top=36, bottom=56)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """Numbers to pixels; y grows downwards in pixels."""

    frame: Frame
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    @property
    def inner_right(self) -> float:
        """The right edge of the plot."""
        return self.frame.width - self.frame.right

    @property
    def inner_bottom(self) -> float:
        """The lower edge of the plot."""
        return self.frame.height - self.frame.bottom

    def x(self, value: float) -> float:
        """Return the pixel of a number to the right.

        Examples
        --------
        >>> Plane(frame=NARROW, x_range=(0, 1), y_range=(0, 100)).x(0)
        34.0
        """
        low, high = self.x_range
        room = self.inner_right - self.frame.left
        return round(self.frame.left + room * (value - low) / (high - low), 1)

    def y(self, value: float) -> float:
        """Return the pixel of a number upwards."""
        low, high = self.y_range
        room = self.inner_bottom - self.frame.top
        return round(self.inner_bottom - room * (value - low) / (high - low), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A number on an axis."""

    at: float
    text: str


def round_ticks(low: float, high: float, most: int) -> list[float]:
    """Return round numbers inside a range, at most so many.

    Examples
    --------
    >>> round_ticks(0.98, 1.33, 5)
    [1.0, 1.1, 1.2, 1.3]
    """
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(power * s for s in (1, 2, 5, 10, 20) if (high - low) / (power * s) <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(step * place, 10) for place in range(first, last + 1)]


def share_ticks(plane: Plane, highest: float = 100.0) -> list[Tick]:
    """Return the numbers of a hundred at the left."""
    return [Tick(at=plane.y(v), text=str(v)) for v in (0, 20, 40, 60, 80, 100) if v <= highest]
