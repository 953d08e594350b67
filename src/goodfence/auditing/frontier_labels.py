"""The labels of the frontier's chart, each where there is room for it, and the plane they stand on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from goodfence.auditing.label_places import Box, LabelPlaces, Place, text_width

if TYPE_CHECKING:
    from goodfence.auditing.frontier import Frontier
    from goodfence.auditing.frontier_point import FrontierPoint

Spec: TypeAlias = "dict[str, Any]"

WIDTH, HEIGHT = 860, 500
COLOUR: Spec = {"field": "colour", "type": "nominal", "scale": None}
"""A colour that stands in the data as it is."""
_FAMILY, _SETTING, _GUESS = 18, 13, 15


class Plane:
    """From numbers to pixels and back."""

    def __init__(self, frontier: Frontier) -> None:
        errors = [point.mae for point in frontier.points]
        room = max(max(errors) - min(errors), 0.02)
        self.x = min(errors) - 0.12 * room, max(errors) + 0.12 * room
        highest = max(point.recovery.value for point in frontier.points)
        self.y = 0.0, 1.13 * max(highest, frontier.guess.high)

    def place(self, error: float, share: float) -> Place:
        """Return the pixel of a point."""
        across = (error - self.x[0]) / (self.x[1] - self.x[0])
        return Place(WIDTH * across, HEIGHT * (1 - share / self.y[1]))

    def back(self, place: Place) -> dict[str, float]:
        """Return the numbers of a pixel."""
        error = self.x[0] + place.x / WIDTH * (self.x[1] - self.x[0])
        return {"mae": error, "share": (1 - place.y / HEIGHT) * self.y[1]}


def label_layers(frontier: Frontier, plane: Plane, colours: dict[str, str]) -> list[Spec]:
    """Return a label for each family, for each setting that finds room, and for the level of guessing."""
    room = LabelPlaces(Box(0, 0, WIDTH, HEIGHT), _obstacles(frontier, plane))
    texts: list[Spec] = [_guess_label(frontier, plane, room)]
    leaders: list[Spec] = []
    for family, colour in colours.items():
        spots = [plane.place(**_error_share(p)) for p in frontier.points if p.family == family]
        found = room.place(family, _FAMILY, spots, [18, 28, 44, 64, 90, 120], must=True)
        if found is not None:
            texts.append(_text(family, found, colour, plane, _FAMILY, bold=True))
            leaders += _leader(family, found, spots, colour, plane)
    for point, words in zip(frontier.points, short_labels(frontier.points), strict=True):
        spot = plane.place(**_error_share(point))
        found = room.place(words, _SETTING, [spot], [9, 14, 20], must=False) if words else None
        if found is not None:
            texts.append(_text(words, found, colours[point.family], plane, _SETTING))
    line = {
        "data": {"values": leaders},
        "mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.7},
        "encoding": {
            "x2": {"field": "to_mae"},
            "y2": {"field": "to_share"},
            "color": COLOUR,
        },
    }
    return ([line] if leaders else []) + texts


def short_labels(points: Sequence[FrontierPoint]) -> list[str]:
    """Return each point's settings without those that all of its family share, unless nothing is left."""
    parts = [point.label.split(", ") for point in points]
    short = []
    for point, own in zip(points, parts, strict=True):
        family = [
            each for other, each in zip(points, parts, strict=True) if other.family == point.family
        ]
        left = [word for word in own if not all(word in each for each in family)]
        short.append(", ".join(left) or point.label)
    return short


def _error_share(point: FrontierPoint) -> dict[str, float]:
    return {"error": point.mae, "share": point.recovery.value}


def _obstacles(frontier: Frontier, plane: Plane) -> list[Box]:
    """Return the room of marks, stems and the lines between marks."""
    boxes = []
    for point in frontier.points:
        x, top = plane.place(point.mae, point.recovery.value)
        bottom = plane.place(point.mae, point.recovery_without.value).y
        boxes.append(Box(x - 8, top - 8, x + 8, top + 8))
        boxes.append(Box(x - 2, min(top, bottom), x + 2, max(top, bottom)))
    for one, two in zip(frontier.points, frontier.points[1:], strict=False):
        if one.family == two.family:
            boxes += _along(plane.place(**_error_share(one)), plane.place(**_error_share(two)))
    return boxes


def _along(start: Place, end: Place, steps: int = 24) -> list[Box]:
    """Return small boxes along a line."""
    shares = [step / steps for step in range(steps + 1)]
    middles = [
        Place(start.x + s * (end.x - start.x), start.y + s * (end.y - start.y)) for s in shares
    ]
    return [Box(m.x - 3, m.y - 3, m.x + 3, m.y + 3) for m in middles]


def _guess_label(frontier: Frontier, plane: Plane, room: LabelPlaces) -> Spec:
    text = f"guessing each item's average: {frontier.guess.value:.0%}"
    below = plane.place(plane.x[0], frontier.guess.low).y + 13
    above = plane.place(plane.x[0], frontier.guess.high).y - 13
    half = text_width(text, _GUESS) / 2 + 10
    across = [WIDTH - half - step * (WIDTH - 2 * half) / 40 for step in range(41)]
    room_for = [Place(x, y) for y in (below, above) for x in across]  # the far right first
    found = room.put(text, _GUESS, room_for)
    return _text(text, found, "#8a6d00", plane, _GUESS)


def _leader(
    family: str, label: Place, spots: Sequence[Place], colour: str, plane: Plane
) -> list[Spec]:
    """Return a thin line from a label to its nearest point, where the label stands far from it."""
    half = text_width(family, _FAMILY) / 2

    def edge(spot: Place) -> Place:
        x = min(max(spot.x, label.x - half), label.x + half)
        y = min(max(spot.y, label.y - 0.5 * _FAMILY), label.y + 0.5 * _FAMILY)
        return Place(x, y)

    def gap(spot: Place) -> float:
        near = edge(spot)
        return (near.x - spot.x) ** 2 + (near.y - spot.y) ** 2

    nearest = min(spots, key=gap)
    if gap(nearest) < 30**2:
        return []
    start, end = plane.back(edge(nearest)), plane.back(nearest)
    return [{**start, "to_mae": end["mae"], "to_share": end["share"], "colour": colour}]


def _text(
    text: str, place: Place, colour: str, plane: Plane, size: int, *, bold: bool = False
) -> Spec:
    return {
        "data": {"values": [{**plane.back(place), "text": text}]},
        "mark": {
            "type": "text",
            "fontSize": size,
            "fontWeight": "bold" if bold else "normal",
            "color": colour,
            "align": "center",
            "baseline": "middle",
        },
        "encoding": {"text": {"field": "text", "type": "nominal"}},
    }
