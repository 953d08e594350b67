"""Where labels go in a chart so that none hides a mark, a line or another label: greedy, in pixels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

_LETTER = 0.56
"""The width of a letter over the font size, on average."""
_DIRECTIONS = 16
_AIR = 6.0
LEADER = 24.0
"""A label that is farther from its mark than this has a line to it."""
_MISLEADING = 300.0
"""What it costs to be nearer to another mark: as much as to hide a few letters."""


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

    def distance(self, place: Place) -> float:
        """Return how far a point is from this box; 0 inside it."""
        across = max(self.left - place.x, 0.0, place.x - self.right)
        down = max(self.top - place.y, 0.0, place.y - self.bottom)
        return math.hypot(across, down)

    def outside(self, frame: Box) -> float:
        """Return the area of this box that is not inside the frame."""
        return (self.right - self.left) * (self.bottom - self.top) - self.overlap(frame)


class Place(NamedTuple):
    """A point of the chart; of a label, its middle."""

    x: float
    y: float


class Line(NamedTuple):
    """A line of a label."""

    text: str
    size: float

    @property
    def width(self) -> float:
        """About how wide the text is."""
        return _LETTER * self.size * len(self.text)

    @property
    def height(self) -> float:
        """How high it is, with a little air."""
        return 1.2 * self.size + 2


class Label(tuple[Line, ...]):
    """Lines of text, one below the other, which are placed together."""

    __slots__ = ()

    @property
    def width(self) -> float:
        """How wide the widest line is."""
        return max(line.width for line in self)

    @property
    def height(self) -> float:
        """How high all lines are."""
        return sum(line.height for line in self)

    def box(self, middle: Place) -> Box:
        """Return the room of the label around its middle, with a little air."""
        across, down = self.width / 2 + _AIR, self.height / 2
        return Box(middle.x - across, middle.y - down, middle.x + across, middle.y + down)

    def lines(self, middle: Place) -> Iterator[tuple[Line, Place]]:
        """Yield each line with its own middle."""
        top = middle.y - self.height / 2
        for line in self:
            yield line, Place(middle.x, top + line.height / 2)
            top += line.height


@dataclass
class LabelPlaces:
    """A chart's free room: labels are placed one after the other, the most important first."""

    frame: Box
    taken: list[Box] = field(default_factory=list)

    def place(
        self,
        label: Label,
        anchors: Sequence[Place],
        radii: Sequence[float],
        *,
        must: bool,
        strangers: Sequence[Place] = (),
    ) -> Place | None:
        """Return where the label is best near one of the anchors, and reserve that room.

        Parameters
        ----------
        label : Label
            What is placed.
        anchors : sequence of Place
            What it belongs to.
        radii : sequence of float
            Distances between an anchor and the label's edge that are tried, the best first.
        must : bool
            Whether the label is placed even where it hides something; None is returned otherwise.
        strangers : sequence of Place
            What it could be taken to belong to: nearer to one of these, without a line, is a place of last resort.

        Examples
        --------
        >>> room = LabelPlaces(Box(0, 0, 100, 100))
        >>> first = room.place(Label([Line("a", 10)]), [Place(50, 50)], [8], must=False)
        >>> second = room.place(Label([Line("b", 10)]), [Place(50, 50)], [8], must=False)
        >>> first != second
        True
        """
        best, least = None, math.inf
        for cost, wanted in _candidates(label, anchors, radii):
            middle = self._inside(label, wanted)
            box = label.box(middle)
            hidden = self._hidden(box)
            own = min(box.distance(anchor) for anchor in anchors)
            misleading = own < LEADER and any(box.distance(other) < own for other in strangers)
            loss = hidden + cost + (_MISLEADING if misleading else 0.0)
            if loss < least and (must or hidden == 0):
                best, least = middle, loss
        if best is not None:
            self.taken.append(label.box(best))
        return best

    def put(self, label: Label, middles: Sequence[Place]) -> Place:
        """Return the first of the middles at which the label hides least, and reserve that room."""
        best = min(middles, key=lambda middle: self._hidden(label.box(middle)))
        self.taken.append(label.box(best))
        return best

    def _inside(self, label: Label, middle: Place) -> Place:
        """Return the middle moved sideways, if need be, so that the label does not leave the frame."""
        half = label.width / 2 + _AIR
        x = min(max(middle.x, self.frame.left + half), self.frame.right - half)
        return Place(x, middle.y)

    def _hidden(self, box: Box) -> float:
        return sum(box.overlap(other) for other in self.taken) + 4 * box.outside(self.frame)


def _candidates(
    label: Label, anchors: Sequence[Place], radii: Sequence[float]
) -> Iterator[tuple[float, Place]]:
    """Yield middles around the anchors, with a cost that prefers near ones, and above or beside to oblique."""
    for rank, radius in enumerate(radii):
        for turn in range(_DIRECTIONS):
            angle = 2 * math.pi * turn / _DIRECTIONS
            across, down = math.cos(angle), -math.sin(angle)
            oblique = 0.0 if turn % 4 == 0 else 2.0
            for anchor in anchors:
                x = anchor.x + across * (radius + label.width / 2)
                y = anchor.y + down * (radius + label.height / 2)
                yield 6.0 * rank + oblique, Place(x, y)


def along(start: Place, end: Place, steps: int = 24) -> list[Box]:
    """Return small boxes along a line: the room that it takes."""
    shares = [step / steps for step in range(steps + 1)]
    middles = [
        Place(start.x + s * (end.x - start.x), start.y + s * (end.y - start.y)) for s in shares
    ]
    return [Box(m.x - 3, m.y - 3, m.x + 3, m.y + 3) for m in middles]
