"""The frontier as a picture: error to the right, advantage upwards, the status of the guarantee as the mark.

The same drawing in a file and in a page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from string import ascii_letters
from typing import TYPE_CHECKING, NamedTuple

from goodfence.report.charts import (
    COLOUR,
    FILE,
    LEADER,
    NARROW,
    Box,
    Label,
    LabelPlaces,
    Line,
    Place,
    Spec,
    Theme,
    along,
    as_altair,
    layer,
    layered,
)
from goodfence.report.vocabulary import words_of
from goodfence.report.wording import dashed, measured

if TYPE_CHECKING:
    import altair

    from goodfence.auditing.frontier import Frontier, FrontierPoint

LETTERS = ascii_letters.swapcase()
"""What stands for a point where there is no room for its name, in the order of the points."""
SHAPES = {
    "proved": "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0Z",
    "claimed": "M0,-1.15L1.15,.9H-1.15Z",
    "refuted": "M.64-1.17L1.17-.64L.52,0L1.17,.64L.64,1.17L0,.52L-.64,1.17L-1.17,.64L-.52,0L-1.17-.64L-.64-1.17L0-.52Z",
    "none": "M-.9-.9H.9V.9H-.9Z",
}
"""The mark of each status, as a path around 0 of radius 1."""
STATUSES = {
    "proved": "guarantee proved",
    "claimed": "guarantee claimed by a paper",
    "refuted": "guarantee refuted",
    "none": "no guarantee",
}
_COLOURS = ("#222222", "#D55E00", "#0072B2", "#009E73", "#882255", "#56B4E9", "#999933", "#CC79A7")
"""Okabe and Ito's, and two of Tol's: the colour-blind can tell them apart."""
_OWN = {
    "kNN": 0,
    "PPNS": 1,
    "nPNS": 2,
    "PNCF": 5,
    "PrivateCF, per rating": 3,
    "PrivateCF, per user": 4,
}
_MARK, _RING = 8, 15
"""The radius of a mark, and of the ring around the recommended one."""
_LEGEND: Spec = {
    "title": None,
    "orient": "top",
    "direction": "horizontal",
    "labelFontSize": 14,
    "symbolSize": 170,
    "symbolFillColor": "#555555",
    "symbolStrokeColor": "#555555",
    "offset": 36,
    "columnPadding": 26,
}
_STRIP = 84.0
"""How wide the strip is in which marks are drawn that are not to scale."""
_NEAR = 0.5
"""A gap of less than this part of the least error makes nothing an outlier."""


class ErrorPlane:
    """From error and advantage to pixels and back.

    One error that is far from all others would squeeze them: it is drawn in a strip at the right edge, and its number
    stands beside it.
    """

    def __init__(self, frontier: Frontier, theme: Theme) -> None:
        reference = _reference(frontier)
        known = [one.loss for one in frontier.points if not math.isnan(one.loss)] or [0.0, 1.0]
        self.farthest = farthest_in_place(known)
        errors = [error for error in known if error <= self.farthest]
        errors += [] if reference is None else [reference[1]]
        room = max(max(errors) - min(errors), 0.02)
        self.width, self.height = theme.width, theme.height
        far = any(self.is_beyond(one.loss) for one in frontier.points)
        self.strip = (_STRIP if theme is not NARROW else _STRIP / 2) if far else 0.0
        low, high = min(errors) - 0.12 * room, max(errors) + 0.12 * room
        self.x = low, low + (high - low) * self.width / (self.width - self.strip)
        self.ticks = _ticks(low, high, 4 if theme is NARROW else 7)
        lows, highs = zip(*(_ends(one) for one in frontier.points), strict=True)
        top = max(*highs, 0.05)
        bottom = min(*lows, 0.0)
        self.y = bottom - 0.06 * (top - bottom), top + 0.06 * (top - bottom)

    def is_beyond(self, error: float) -> bool:
        """Return whether a point is drawn in the strip: its error is far from all others, or not known."""
        return not error <= self.farthest

    def place(self, error: float, advantage: float) -> Place:
        """Return the pixel of a point."""
        across = self.width * (error - self.x[0]) / (self.x[1] - self.x[0])
        if self.is_beyond(error):
            across = self.width - self.strip / 2
        return Place(across, self.height * (self.y[1] - advantage) / (self.y[1] - self.y[0]))

    def back(self, place: Place) -> dict[str, float]:
        """Return the numbers of a pixel."""
        error = self.x[0] + place.x / self.width * (self.x[1] - self.x[0])
        return {
            "mae": error,
            "share": self.y[1] - place.y / self.height * (self.y[1] - self.y[0]),
        }


def farthest_in_place(errors: Sequence[float]) -> float:
    """Return the largest error but those, a third at most, that are farther from the others than these span.

    Examples
    --------
    >>> farthest_in_place([1.03, 1.07, 1.30, 1.33, 2.62]), farthest_in_place([1.03, 1.07, 1.30])
    (1.33, 1.3)
    """
    ordered = sorted(errors)
    for place in range(2, len(ordered)):
        few = len(ordered) - place <= max(1, len(ordered) // 3)
        spanned = max(ordered[place - 1] - ordered[0], _NEAR * ordered[0])
        if few and ordered[place] - ordered[place - 1] > spanned:
            return ordered[place - 1]
    return ordered[-1]


def beyond(frontier: Frontier) -> list[FrontierPoint]:
    """Return the points that the chart draws at its right edge: their errors are far from all others."""
    plane = ErrorPlane(frontier, FILE)
    return [one for one in frontier.points if plane.is_beyond(one.loss)]


def _ticks(low: float, high: float, most: int) -> list[float]:
    """Return at most `most` round numbers, evenly spaced, from `low` to `high`."""
    sizes = (size * 10.0**power for power in range(-4, 6) for size in (1, 2, 5))
    step = next(size for size in sizes if (high - low) / size <= most)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [round(number * step, 6) for number in range(first, last + 1)]


def _reference(frontier: Frontier) -> tuple[str, float] | None:
    """Return the name and the error of the reference line, if there is one."""
    stated = frontier.settings.get("reference")
    return None if stated is None else (str(stated["name"]), float(stated["mae"]))


class _Drawn(NamedTuple):
    """A point as it is drawn."""

    point: FrontierPoint
    colour: str
    letter: str
    best: bool
    """Whether it is ringed."""
    at: Place
    beyond: bool
    """Whether it is in the strip."""

    @property
    def radius(self) -> float:
        """How far the mark reaches, with its ring."""
        return _RING if self.best else _MARK


def frontier_chart(frontier: Frontier) -> altair.LayerChart:
    """Return the chart: loss to the right, advantage upwards, the status of the guarantee as the mark."""
    return as_altair(frontier_spec(frontier))


def frontier_spec(frontier: Frontier, theme: Theme = FILE, max_loss: float | None = None) -> Spec:
    """Return the chart.

    Parameters
    ----------
    frontier : Frontier
        What was compared. `settings["reference"]`, if it is there, is drawn as a line.
    theme : Theme, default FILE
        Size and colours. A page tells the status by colour, a file the family.
    max_loss : float or None, default None
        The error that can be borne: what is recommended then is ringed.
    """
    plane = ErrorPlane(frontier, theme)
    drawn = _drawn(frontier, plane, theme, frontier.best_within(max_loss))
    x = {
        "field": "mae",
        "type": "quantitative",
        "title": words_of(frontier).loss_axis,
        "scale": {"domain": list(plane.x), "nice": False, "zero": False},
        "axis": {"format": ".2f", "values": plane.ticks, "grid": False},
    }
    y = {
        "field": "share",
        "type": "quantitative",
        "title": f"{words_of(frontier).given_away} (down is better)",
        "scale": {"domain": list(plane.y), "nice": False},
        "axis": {"format": "~%", "tickCount": 6},
    }
    layers = [
        *_lines_of_reference(frontier, plane, theme),
        *_marked(drawn, plane, theme),
        *_Labelling(frontier, drawn, plane, theme).layers(),
    ]
    title = {} if theme.in_page else {"title": _title(frontier)}
    return layered(theme, x, y, layers, **title)


def _drawn(
    frontier: Frontier, plane: ErrorPlane, theme: Theme, ringed: FrontierPoint | None
) -> list[_Drawn]:
    """Return the points as they are drawn; one without an advantage is not."""
    colours = family_colours(frontier)
    status_colours = {"proved": "good", "claimed": "guess-ink"}
    drawn = []
    for number, point in enumerate(frontier.points):
        by_status = theme.colour(status_colours.get(point.status, "read"))
        colour = by_status if theme.in_page else colours[point.family]
        letter = LETTERS[number % len(LETTERS)]
        at = plane.place(point.loss, point.advantage.value)
        far = plane.is_beyond(point.loss)
        drawn.append(_Drawn(point, colour, letter, point is ringed, at, far))
    return [one for one in drawn if not math.isnan(one.at.y)]


def family_colours(frontier: Frontier) -> dict[str, str]:
    """Return one colour for each family: its own where it has one, else one that nobody has."""
    families = list(dict.fromkeys(point.family for point in frontier.points))
    own = {name: _COLOURS[_OWN[name]] for name in families if name in _OWN}
    free = [colour for colour in _COLOURS if colour not in own.values()] or ["#666666"]
    others = [name for name in families if name not in own]
    return own | {name: free[place % len(free)] for place, name in enumerate(others)}


def _ends(point: FrontierPoint) -> tuple[float, float]:
    """Return the ends of the interval of the advantage; the advantage itself where there is none."""
    value, low, high = point.advantage
    value = 0.0 if math.isnan(value) else value
    return value if math.isnan(low) else low, value if math.isnan(high) else high


def _title(frontier: Frontier) -> Spec:
    users, items = frontier.settings.get("shape", (0, 0))
    data = frontier.settings.get("data")
    shape = f"{f'{data}, about' if data else 'About'} {users:,} users, {items:,} items."
    words = words_of(frontier)
    known = (
        f"{frontier.known} known {words.held} of each target"
        if frontier.known
        else "some knowledge"
    )
    far = "; ".join(f"{one.family} {one.label}: {one.loss:.2f}" for one in beyond(frontier))
    return {
        "text": words.against,
        "subtitle": [
            f"{shape} Fake profiles with {known}; the strongest attack tried counts.",
            f"Given away: {words.gained}. Thin line: 95% interval.",
            f"Ringed: recommended. {words.held_out}"
            + (f" At the right edge, not to scale: {far}." if far else ""),
        ],
        "anchor": "start",
        "fontSize": 22,
        "subtitleFontSize": 14,
        "subtitlePadding": 8,
        "subtitleColor": "#444444",
        "offset": 14,
    }


def _lines_of_reference(frontier: Frontier, plane: ErrorPlane, theme: Theme) -> Iterator[Spec]:
    """Yield the level at which nothing is given away, and the error of the reference."""
    row = {"mae": plane.x[0], "end": plane.x[1], "share": 0.0}
    level = {"type": "rule", "color": theme.colour("guess-ink"), "strokeWidth": 2}
    yield layer([row], level, x2={"field": "end"})
    reference = _reference(frontier)
    if reference is not None:
        row = {"mae": reference[1], "share": plane.y[0], "end": plane.y[1]}
        dashes = {"type": "rule", "color": theme.colour("soft"), "strokeDash": [5, 4]}
        yield layer([row], dashes, y2={"field": "end"})


def _marked(drawn: Sequence[_Drawn], plane: ErrorPlane, theme: Theme) -> Iterator[Spec]:
    """Yield lines between points of a family, intervals, arrows at marks that are not in place, the ring, the marks."""
    ink = theme.colour("ink")
    lines, intervals, marks = [], [], []
    for number, one in enumerate(drawn):
        at, (low, high) = plane.back(one.at), _ends(one.point)
        family = {"family": one.point.family, "order": number}
        lines.append({**at, **family, "colour": one.colour})
        intervals.append({"mae": at["mae"], "share": low, "high": high})
        told = {"told": _told(one.point), "status": STATUSES[one.point.status]}
        marks.append({**at, **told, "colour": one.colour})
    yield layer(
        lines,
        {"type": "line", "strokeWidth": 1.5, "opacity": 0.5},
        detail={"field": "family", "type": "nominal"},
        order={"field": "order", "type": "quantitative"},
        color=COLOUR,
    )
    thin = {"type": "rule", "strokeWidth": 1.2, "opacity": 0.75, "color": ink}
    yield layer(intervals, thin, y2={"field": "high"})
    arrows = [plane.back(Place(plane.width - 5, one.at.y)) for one in drawn if one.beyond]
    outlined = {"type": "point", "filled": False, "opacity": 1}
    arrow = {"shape": "M-1-.8L0,0L-1,.8", "size": 200, "stroke": ink, "strokeWidth": 2}
    yield layer(arrows, {**outlined, **arrow})
    ring = {"size": (2 * _RING - 5) ** 2, "strokeWidth": 3, "stroke": theme.colour("good")}
    yield layer([plane.back(one.at) for one in drawn if one.best], {**outlined, **ring})
    used = [name for name in SHAPES if any(one.point.status == name for one in drawn)]
    shape = {
        "field": "status",
        "type": "nominal",
        "scale": {"domain": [STATUSES[n] for n in used], "range": [SHAPES[n] for n in used]},
        "legend": None if theme.in_page else _LEGEND,
    }
    filled = {"type": "point", "filled": True, "size": (2 * _MARK) ** 2, "opacity": 1, "aria": True}
    edge = {"stroke": theme.colour("paper"), "strokeWidth": 1.2}
    words = {"field": "told", "type": "nominal"}
    yield layer(
        marks, {**filled, **edge}, shape=shape, color=COLOUR, tooltip=words, description=words
    )


def _told(point: FrontierPoint) -> str:
    """Return what a mark tells when it is pointed at."""
    words = words_of(point)
    return dashed(
        f"{point.family} {point.label}: {measured(point.advantage)} of 100 given away: "
        f"{measured(point.recovery)} {words.had}, {measured(point.recovery_without)} without the target in the data; "
        f"{words.told_loss(point)}; {point.n_targets:,} targets; {STATUSES[point.status]}"
    )


class _Labelling:
    """Puts a name beside every family, the setting beside every mark that has room, or a letter beside each."""

    def __init__(
        self, frontier: Frontier, drawn: Sequence[_Drawn], plane: ErrorPlane, theme: Theme
    ) -> None:
        self.frontier, self.drawn, self.plane, self.theme = frontier, drawn, plane, theme
        frame = Box(0, 0, theme.width, theme.height)
        level = plane.place(plane.x[0], 0.0).y
        lines = [Box(0, level - 2, theme.width, level + 2)]
        reference = _reference(frontier)
        if reference is not None:
            across = plane.place(reference[1], 0.0).x
            lines.append(Box(across - 2, 0, across + 2, theme.height))
        self.room = LabelPlaces(frame, [*_obstacles(drawn, plane), *lines])
        self.large, self.small = (15, 13) if theme.in_page else (18, 13)

    def layers(self) -> Iterator[Spec]:
        """Yield the labels, the most important first."""
        yield from self._numbers_beyond()
        yield from self._levels()
        yield from self._letters() if self.theme is NARROW else self._names()

    def _numbers_beyond(self) -> Iterator[Spec]:
        for one in self.drawn:
            if one.beyond:
                number = "no answers" if math.isnan(one.point.loss) else f"{one.point.loss:.2f}"
                label = Label([Line(number, self.small)])
                yield from self._near(label, one, must=True)

    def _letters(self) -> Iterator[Spec]:
        for one in self.drawn:
            label = Label([Line(one.letter, 15)])
            radii = [one.radius + gap for gap in (2, 6, 12, 20, 32)]
            found = self.room.place(label, [one.at], radii, must=True) or one.at
            yield from _texts(label, found, self.theme.colour("ink"), self.plane)

    def _names(self) -> Iterator[Spec]:
        families = list(dict.fromkeys(one.point.family for one in self.drawn))
        alone = []
        for family in families:
            members = [one for one in self.drawn if one.point.family == family]
            lines = [Line(family, self.large)]
            if len(members) == 1:
                alone.append(members[0])
                lines = _own_lines(members[0].point, families, self.large, self.small)
            yield from self._family(Label(lines), members)
        words = short_labels([one.point for one in self.drawn])
        for one, setting in zip(self.drawn, words, strict=True):
            if one not in alone and setting:
                yield from self._near(Label([Line(setting, self.small)]), one, must=False)

    def _family(self, label: Label, members: Sequence[_Drawn]) -> Iterator[Spec]:
        """Yield the name of a family, and a thin line to its nearest point where the name is far from it."""
        plane = self.plane
        colour = self.theme.colour("ink") if self.theme.in_page else members[0].colour
        spots = [one.at for one in members]
        radii = [max(one.radius for one in members) + gap for gap in (3, 8, 14, 22, 34, 48, 64)]
        others = [one.at for one in self.drawn if one not in members]
        placed = self.room.place(label, spots, radii, must=True, strangers=others)
        middle = placed or spots[0]
        yield from _texts(label, middle, colour, plane)
        across, down = label.width / 2, label.height / 2
        edges = [
            Place(
                min(max(spot.x, middle.x - across), middle.x + across),
                min(max(spot.y, middle.y - down), middle.y + down),
            )
            for spot in spots
        ]
        edge, spot = min(zip(edges, spots, strict=True), key=lambda pair: math.dist(*pair))
        if math.dist(edge, spot) >= LEADER:
            end = plane.back(spot)
            row = {**plane.back(edge), "to_mae": end["mae"], "to_share": end["share"]}
            leader = {"type": "rule", "strokeWidth": 1, "opacity": 0.7, "color": colour}
            yield layer([row], leader, x2={"field": "to_mae"}, y2={"field": "to_share"})

    def _near(self, label: Label, one: _Drawn, *, must: bool) -> Iterator[Spec]:
        """Yield a small label beside its mark, where it has room or must be."""
        radii = [one.radius + gap for gap in (2, 6, 12, 20)]
        others = [other.at for other in self.drawn if other is not one]
        free = self.room.place(label, [one.at], radii, must=must, strangers=others)
        if free is not None:
            colour = self.theme.colour("soft") if self.theme.in_page else one.colour
            yield from _texts(label, free, colour, self.plane)

    def _levels(self) -> Iterator[Spec]:
        """Yield what the lines of reference are; in a narrow chart the axis says it."""
        if self.theme is NARROW:
            return
        plane = self.plane
        zero = Label([Line("nothing given away", self.theme.font - 1)])
        # Above the lowest line or below it, the far right first.
        level, half = plane.place(plane.x[0], 0.0).y, zero.width / 2 + 10
        wide = plane.width - plane.strip
        across = [wide - half - step * (wide - 2 * half) / 40 for step in range(41)]
        middles = [Place(x, y) for y in (level - 12, level + 12) for x in across]
        found = self.room.put(zero, middles)
        yield from _texts(zero, found, self.theme.colour("guess-ink"), plane)
        reference = _reference(self.frontier)
        if reference is not None:
            label = Label([Line(f"{reference[0]}: {reference[1]:.3f}", self.small)])
            at = plane.place(reference[1], plane.y[1])
            beside = [at.x + turn * (label.width / 2 + 8) for turn in (1, -1)]
            steps = range(8, self.theme.height // 2, 12)
            found = self.room.put(label, [Place(x, float(y)) for y in steps for x in beside])
            yield from _texts(label, found, self.theme.colour("soft"), plane)


def _own_lines(
    point: FrontierPoint, families: Sequence[str], large: float, small: float
) -> list[Line]:
    """Return the lines of a family of one: its name, and its settings below."""
    name, _, rest = point.family.partition(", ")
    if sum(family.partition(", ")[0] == name for family in families) > 1:
        name, rest = point.family, ""
    settings = ", ".join(filter(None, (rest, point.label)))
    return [Line(name, large), *([Line(settings, small)] if settings else [])]


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


def _obstacles(drawn: Sequence[_Drawn], plane: ErrorPlane) -> list[Box]:
    """Return the room of marks, arrows, intervals and the lines between marks."""
    boxes = []
    for one in drawn:
        x, y = one.at
        low, high = (plane.place(one.point.loss, share).y for share in _ends(one.point))
        boxes.append(Box(x - one.radius, y - one.radius, x + one.radius, y + one.radius))
        boxes.append(Box(x - 2, high, x + 2, low))
        if one.beyond:
            boxes.append(Box(x, y - 8, plane.width, y + 8))
    for one, two in pairwise(drawn):
        if one.point.family == two.point.family:
            boxes += along(one.at, two.at)
    return boxes


def _texts(label: Label, middle: Place, colour: str, plane: ErrorPlane) -> Iterator[Spec]:
    """Yield the lines of a label; the first of several is bold."""
    for line, place in label.lines(middle):
        weight = "bold" if line.size > 14 else "normal"
        mark = {"type": "text", "fontSize": line.size, "fontWeight": weight, "color": colour}
        row = {**plane.back(place), "text": line.text}
        centred = {"align": "center", "baseline": "middle"}
        yield layer([row], {**mark, **centred}, text={"field": "text", "type": "nominal"})
