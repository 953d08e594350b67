"""The picture of leak against error: the promise is the shape, and the recommended way is ringed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from goodfence.auditing.frontier import Frontier
from goodfence.auditing.frontier_point import FrontierPoint
from goodfence.auditing.label_places import Box, LabelPlaces, Place, text_width
from goodfence.report.marks import Mark
from goodfence.report.plane import NARROW, WIDE, Frame, Plane, Tick, round_ticks, share_ticks
from goodfence.report.wording import dashed, of_100

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SIZE = 15
_FAMILIES = {
    "PrivateMeans, per rating": "Private means",
    "PrivateMeans, per user": "Private means, per person",
    "PrivateCF, per rating": "Private CF",
    "PrivateCF, per user": "Private CF, per person",
    "McSherry–Mironov, per rating": "McSherry–Mironov",
    "McSherry–Mironov, per user": "McSherry–Mironov, per person",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to recommend, as the table and the picture show it."""

    letter: str
    name: str
    promise: str
    """The status of its promise: the shape."""
    read: Mark
    without: Mark
    guess: str
    """What guessing gives of the same people, with its interval."""
    gained: str
    """What her data gives away, with its interval."""
    mae: float
    covered: str
    n_people: int
    own: bool
    recommended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A way in the picture: mark, stem, interval and label."""

    way: Way
    x: float
    y: float
    stem: float
    low: float
    high: float
    label: str
    label_x: float
    label_y: float

    @property
    def tip(self) -> str:
        """What it says when pointed at."""
        way = self.way
        return (
            f"{way.name}: {way.read.text} of 100 read, {way.without.text} without her in the data, "
            f"{way.guess} guessed; error {way.mae:.3f}; {way.n_people:,} people"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPicture:
    """Everything that the template draws."""

    frame: Frame
    spots: list[Spot]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    band_top: float
    band_height: float
    baseline: float
    inner_right: float


def ways_of(found: Frontier, *, own: bool, max_mae: float | None = None) -> list[Way]:
    """Return what the table shows; with `own` the first is what was audited."""
    best = found.recommended(max_mae)
    return [
        Way(
            letter=LETTERS[place % len(LETTERS)],
            name=name_of(point),
            promise=point.promise,
            read=Mark.of(point.recovery),
            without=Mark.of(point.recovery_without),
            guess=Mark.of(point.guess).text,
            gained=Mark.of(point.advantage).text,
            mae=point.mae,
            covered=of_100(point.coverage),
            n_people=point.n_targets,
            own=own and place == 0,
            recommended=point is best,
        )
        for place, point in enumerate(found.points)
    ]


def name_of(point: FrontierPoint) -> str:
    """Return what a way is called on the page.

    Its family as people say it, and its settings.
    """
    return f"{_FAMILIES.get(point.family, point.family)} {point.label}".strip()


def frontier_pictures(found: Frontier, ways: Sequence[Way]) -> list[FrontierPicture]:
    """Return the picture for a wide page, with names, and for a narrow one, with letters."""
    return [_picture(found, ways, frame) for frame in (WIDE, NARROW)]


def _picture(found: Frontier, ways: Sequence[Way], frame: Frame) -> FrontierPicture:
    plane = _plane(ways, frame)
    guess = Mark.of(found.guess)
    low = (guess.at or 0.0) if guess.low is None else guess.low
    band_top = plane.y(low + max(guess.width, 1.0))
    spots = _labelled([_spot(way, plane) for way in ways if way.read.at is not None], plane, frame)
    most = 7 if frame is WIDE else 4
    return FrontierPicture(
        frame=frame,
        spots=spots,
        x_ticks=[Tick(at=plane.x(v), text=f"{v:g}") for v in round_ticks(*plane.x_range, most)],
        y_ticks=share_ticks(plane),
        band_top=band_top,
        band_height=round(plane.y(low) - band_top, 1),
        baseline=plane.inner_bottom,
        inner_right=plane.inner_right,
    )


def _plane(ways: Sequence[Way], frame: Frame) -> Plane:
    errors = [way.mae for way in ways if not math.isnan(way.mae)] or [0.0, 1.0]
    room = max(max(errors) - min(errors), 0.04)
    return Plane(
        frame=frame,
        x_range=(min(errors) - 0.12 * room, max(errors) + 0.16 * room),
        y_range=(0.0, 104.0),
    )


def _spot(way: Way, plane: Plane) -> Spot:
    at = way.read.at or 0.0
    x, y = plane.x(plane.x_range[1] if math.isnan(way.mae) else way.mae), plane.y(at)
    return Spot(
        way=way,
        x=x,
        y=y,
        stem=plane.y(at if way.without.at is None else way.without.at),
        low=plane.y(at if way.read.low is None else way.read.low),
        high=plane.y(at if way.read.low is None else way.read.high),
        label=way.name if plane.frame is WIDE else way.letter,
        label_x=x,
        label_y=y,
    )


def _labelled(spots: list[Spot], plane: Plane, frame: Frame) -> list[Spot]:
    """Return the spots with their labels where they hide nothing."""
    inner = Box(frame.left, 20, plane.inner_right + frame.right, plane.inner_bottom)
    taken = [Box(spot.x - 10, spot.y - 10, spot.x + 10, spot.y + 10) for spot in spots]
    taken += [
        Box(spot.x - 3, min(spot.y, spot.stem), spot.x + 3, max(spot.y, spot.stem))
        for spot in spots
    ]
    taken += [Box(spot.x - 5, spot.high, spot.x + 5, spot.low) for spot in spots]
    room = LabelPlaces(inner, taken)
    placed = []
    first = sorted(spots, key=lambda spot: not (spot.way.recommended or spot.way.own))
    for spot in first:
        found = room.place(
            spot.label, _SIZE, [Place(spot.x, spot.y)], [12, 18, 28, 42, 60], must=True
        )
        x, y = (spot.x, spot.y) if found is None else found
        half = text_width(spot.label, _SIZE) / 2
        inside = min(max(x, inner.left + half), inner.right - half)
        placed.append(replace(spot, label_x=round(inside, 1), label_y=round(y, 1)))
    return placed[::-1]  # the important ones are drawn last, above the others


def choice_of(ways: Sequence[Way], max_mae: float | None = None) -> str:
    """Return the recommendation in a sentence."""
    bound = "" if max_mae is None else f" at an error of at most {max_mae:g}"
    best = next((way for way in ways if way.recommended), None)
    if best is None:
        return (
            f"None of these is shown to be no better than guessing{bound}. More people attacked would narrow the "
            "intervals; other settings may do better."
        )
    own = next((way for way in ways if way.own), None)
    cost = ""
    if own is not None and own is not best:
        change = best.mae - own.mae
        less = "less" if change < 0 else "more"
        cost = f" Its error is {best.mae:.2f}, {abs(change):.2f} {less} than that of {own.name}."
    elif own is best:
        cost = " It is what was audited."
    return dashed(
        f"{best.name} has the least error among those that are no better than guessing{bound}.{cost}"
    )
