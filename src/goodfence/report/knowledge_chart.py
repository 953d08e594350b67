"""The picture of what is read by somebody who knows less, or more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from goodfence.report.marks import Mark, Row
from goodfence.report.plane import NARROW, WIDE, Frame, Plane, Tick, share_ticks


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A point of a line, with what it says when pointed at."""

    x: float
    y: float
    tip: str
    own: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A line with the band of its intervals."""

    kind: str
    line: str
    band: str
    spots: list[Spot]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeChart:
    """Everything that the template draws."""

    frame: Frame
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    series: list[Series]
    baseline: float
    inner_right: float


def knowledge_charts(known: Sequence[int], rows: Sequence[Row]) -> list[KnowledgeChart]:
    """Return the picture for a wide page and for a narrow one; none where there is only one amount."""
    if len(known) < 2:
        return []
    return [_chart(frame, known, rows) for frame in (WIDE, NARROW)]


def _chart(frame: Frame, known: Sequence[int], rows: Sequence[Row]) -> KnowledgeChart:
    powers = [math.log2(m) for m in known]
    margin = 0.06 * (powers[-1] - powers[0])
    plane = Plane(
        frame=frame, x_range=(powers[0] - margin, powers[-1] + margin), y_range=(0.0, 100.0)
    )
    places = [plane.x(power) for power in powers]
    lines = {
        "guess": [row.guess for row in rows],
        "without": [row.without for row in rows],
        "read": [row.read for row in rows],
    }
    return KnowledgeChart(
        frame=frame,
        x_ticks=[Tick(at=x, text=f"{m:,}") for x, m in zip(places, known, strict=True)],
        y_ticks=share_ticks(plane),
        series=[_series(kind, places, marks, rows, plane) for kind, marks in lines.items()],
        baseline=plane.inner_bottom,
        inner_right=plane.inner_right,
    )


_WORDS = {"read": "read", "without": "read without her in the data", "guess": "guessed"}


def _series(
    kind: str, places: Sequence[float], marks: Sequence[Mark], rows: Sequence[Row], plane: Plane
) -> Series:
    spots = [
        Spot(
            x=x,
            y=plane.y(mark.at),
            tip=f"{row.label}: {mark.text} of 100 {_WORDS[kind]}; {row.n_people:,} people",
            own=row.own,
        )
        for x, mark, row in zip(places, marks, rows, strict=True)
        if mark.at is not None
    ]
    sure = [(x, mark) for x, mark in zip(places, marks, strict=True) if mark.low is not None]
    upper = [f"{x} {plane.y(mark.high)}" for x, mark in sure]
    lower = [f"{x} {plane.y(mark.low or 0.0)}" for x, mark in reversed(sure)]
    return Series(
        kind=kind,
        line="M" + "L".join(f"{spot.x} {spot.y}" for spot in spots) if spots else "",
        band="M" + "L".join(upper + lower) + "z" if sure else "",
        spots=spots,
    )
