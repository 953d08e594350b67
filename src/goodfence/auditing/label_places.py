"""Where labels stand in a chart so that none hides a point, a line or another label: greedy, in pixels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

_LETTER = 0.56
"""The width of a letter over the font size, on average."""
_DIRECTIONS = 16


class Box(NamedTuple):
    """A rectangle, y growing downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """Return the area that both cover."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(width, 0.0) * max(height, 0.0)

    def outside(self, frame: Box) -> float:
        """Return the area of this box that is not inside the frame."""
        return (self.right - self.left) * (self.bottom - self.top) - self.overlap(frame)


class Place(NamedTuple):
    """The middle of a label."""

    x: float
    y: float


@dataclass
class LabelPlaces:
    """A chart's free room: labels are placed one after the other, the most important first."""

    frame: Box
    taken: list[Box] = field(default_factory=list)

    def place(
        self,
        text: str,
        size: float,
        anchors: Sequence[Place],
        radii: Sequence[float],
        *,
        must: bool,
    ) -> Place | None:
        """Return where the label stands best near one of the anchors, and keep that room.

        Parameters
        ----------
        radii
            Distances between an anchor and the label's edge that are tried, the best first.
        must
            Whether the label is placed even where it hides something; None is returned otherwise.

        Examples
        --------
        >>> room = LabelPlaces(Box(0, 0, 100, 100))
        >>> first = room.place("a", 10, [Place(50, 50)], [8], must=False)
        >>> second = room.place("b", 10, [Place(50, 50)], [8], must=False)
        >>> first != second
        True
        """
        best, least = None, math.inf
        for cost, middle in _candidates(text, size, anchors, radii):
            box = box_of(text, size, middle)
            hidden = sum(box.overlap(other) for other in self.taken) + 4 * box.outside(self.frame)
            if hidden + cost < least and (must or hidden == 0):
                best, least = middle, hidden + cost
        if best is not None:
            self.taken.append(box_of(text, size, best))
        return best

    def put(self, text: str, size: float, middles: Sequence[Place]) -> Place:
        """Return the first of the middles at which the label hides least, and keep that room."""
        hidden = [
            sum(box.overlap(other) for other in self.taken) + 4 * box.outside(self.frame)
            for box in (box_of(text, size, middle) for middle in middles)
        ]
        best = middles[hidden.index(min(hidden))]
        self.taken.append(box_of(text, size, best))
        return best


def box_of(text: str, size: float, middle: Place) -> Box:
    """Return the room of a label, with a little air around it."""
    half = text_width(text, size) / 2 + 6
    return Box(
        middle.x - half, middle.y - 0.6 * size - 1, middle.x + half, middle.y + 0.6 * size + 1
    )


def text_width(text: str, size: float) -> float:
    """Return about how wide a text is."""
    return _LETTER * size * len(text)


def _candidates(
    text: str, size: float, anchors: Sequence[Place], radii: Sequence[float]
) -> Iterator[tuple[float, Place]]:
    """Yield middles around the anchors, with a cost that prefers near ones, and above or beside to oblique."""
    half = text_width(text, size) / 2
    for rank, radius in enumerate(radii):
        for turn in range(_DIRECTIONS):
            angle = 2 * math.pi * turn / _DIRECTIONS
            across, down = math.cos(angle), -math.sin(angle)
            oblique = 0.0 if turn % 4 == 0 else 2.0
            for anchor in anchors:
                x = anchor.x + across * (radius + half)
                y = anchor.y + down * (radius + 0.6 * size)
                yield 6.0 * rank + oblique, Place(x, y)
