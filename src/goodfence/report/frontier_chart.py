"""The frontier as a picture: error to the right, advantage upwards, the status of the guarantee as the mark.

Each mark holds a letter; a table says what it stands for. The same drawing goes into a file and into a page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain, cycle, product
from string import ascii_letters
from typing import TYPE_CHECKING, Any, NamedTuple

from goodfence.report.charts import COLOUR, FILE, NARROW, Spec, Theme, as_altair, layer, layered
from goodfence.report.wording import dashed, measured, of_100, words_of

if TYPE_CHECKING:
    import altair

    from goodfence.auditing.frontier import Frontier, FrontierPoint

LETTERS = ascii_letters.swapcase()  # the letters of the points, in their order
SHAPES = {
    "proved": "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0Z",
    "claimed": "M0,-1.35L1.3,.9H-1.3Z",
    "refuted": "M0,-1.3L1.3,0L0,1.3L-1.3,0Z",
    "none": "M-.9-.9H.9V.9H-.9Z",
}
"""The mark of each status, as a path around 0 of radius 1."""
STATUSES = {
    "proved": "guarantee proved",
    "claimed": "guarantee claimed by a paper",
    "refuted": "guarantee refuted",
    "none": "no guarantee",
}
_COLOURS = {"proved": "good", "claimed": "guess-ink", "refuted": "read", "none": "read"}
_MARK, _RING, _FONT = 11, 17, 13
"""The radius of a mark and of the ring around the recommended one, and the size of a letter."""
_STRIP = 84.0  # width of the strip for marks that are not to scale
_NEAR = 0.5  # a gap of less than this part of the least error makes nothing an outlier


class Plane:
    """The part of the plane that is drawn, in error and advantage.

    An error far from all others would squeeze them: its mark is drawn in a strip at the right edge, with its number.
    """

    def __init__(self, frontier: Frontier, theme: Theme) -> None:
        reference = _reference(frontier)
        known = [one.loss for one in frontier.points if not math.isnan(one.loss)] or [0.0, 1.0]
        self.farthest = farthest_in_place(known)
        errors = [error for error in known if error <= self.farthest]
        errors += [] if reference is None else [reference[1]]
        room = max(max(errors) - min(errors), 0.02)
        far = any(self.is_beyond(one) for one in frontier.points)
        strip = (_STRIP if theme is not NARROW else _STRIP / 2) if far else 0.0
        low, high = min(errors) - 0.12 * room, max(errors) + 0.12 * room
        self.x = low, low + (high - low) * theme.width / (theme.width - strip)
        self.ticks = _ticks(low, high, 4 if theme is NARROW else 7)
        lows, highs = zip(*(_ends(one) for one in frontier.points), strict=True)
        top, bottom = max(*highs, 0.05), min(*lows, 0.0)
        self.y = bottom - 0.06 * (top - bottom), top + 0.06 * (top - bottom)
        self.edge = (high + self.x[1]) / 2
        """The middle of the strip."""
        self.scales = (theme.width / (self.x[1] - self.x[0]), theme.height / (self.y[1] - self.y[0]))
        """Pixels per unit of error and of advantage."""

    def is_beyond(self, point: FrontierPoint) -> bool:
        """Return True if a point is drawn in the strip: its error is far from all others, or unknown."""
        return not point.loss <= self.farthest

    def place(self, point: FrontierPoint) -> dict[str, float]:
        """Return where a point is drawn."""
        across = self.edge if self.is_beyond(point) else point.loss
        return {"mae": across, "share": point.advantage.value}


def farthest_in_place(errors: Sequence[float]) -> float:
    """Return the largest error except outliers: at most a third, farther from the others than these span."""
    ordered = sorted(errors)
    for place in range(2, len(ordered)):
        few = len(ordered) - place <= max(1, len(ordered) // 3)
        spanned = max(ordered[place - 1] - ordered[0], _NEAR * ordered[0])
        if few and ordered[place] - ordered[place - 1] > spanned:
            return ordered[place - 1]
    return ordered[-1]


def beyond(frontier: Frontier) -> list[FrontierPoint]:
    """Return the points that the chart draws at its right edge: their errors are far from all others."""
    plane = Plane(frontier, FILE)
    return [one for one in frontier.points if plane.is_beyond(one)]


def _ticks(low: float, high: float, most: int) -> list[float]:
    """Return at most `most` round numbers, evenly spaced, from `low` to `high`."""
    sizes = (size * 10.0**power for power in range(-4, 6) for size in (1, 2, 5))
    step = next(size for size in sizes if (high - low) / size <= most)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [round(number * step, 6) for number in range(first, last + 1)]


def _reference(frontier: Frontier) -> tuple[str, float] | None:
    stated = frontier.settings.get("reference")
    return None if stated is None else (str(stated["name"]), float(stated["mae"]))


class _Drawn(NamedTuple):
    point: FrontierPoint
    letter: str
    at: dict[str, float]
    colour: str


def frontier_chart(frontier: Frontier) -> altair.LayerChart:
    """Return the chart: loss to the right, advantage upwards, the status of the guarantee as the mark."""
    chart: altair.LayerChart = as_altair(frontier_spec(frontier))
    return chart


def frontier_spec(frontier: Frontier, theme: Theme = FILE, max_loss: float | None = None) -> Spec:
    """Return the chart: a file has the table of letters beside it. The best recommender within `max_loss` is ringed.

    `settings["reference"]`, if present, is drawn as a line.
    """
    plane, words = Plane(frontier, theme), words_of(frontier)
    drawn = [
        _Drawn(point, letter, plane.place(point), theme.colour(_COLOURS[point.status]))
        for point, letter in zip(frontier.points, cycle(LETTERS), strict=False)
        if not math.isnan(point.advantage.value)
    ]
    x = {
        "field": "mae",
        "type": "quantitative",
        "title": f"{words.loss} (left is better)",
        "scale": {"domain": list(plane.x), "nice": False, "zero": False},
        "axis": {"format": ".3~f", "values": plane.ticks, "grid": False},
    }
    y = {
        "field": "share",
        "type": "quantitative",
        "title": f"{words.given_away} (down is better)",
        "scale": {"domain": list(plane.y), "nice": False},
        "axis": {"format": "~%", "tickCount": 6},
    }
    layers = [
        *_reference_lines(frontier, drawn, plane, theme),
        *_marks(drawn, plane, theme, frontier.best_within(max_loss)),
        *_letters(drawn, plane, theme),
    ]
    if theme.in_page:
        return layered(theme, x, y, layers)
    layers += _table(drawn, theme, frontier)
    return layered(theme, x, y, layers, title=_title(frontier))


def _ends(point: FrontierPoint) -> tuple[float, float]:
    """Return the ends of the interval of the advantage; the advantage itself where there is none."""
    value, low, high = point.advantage
    value = 0.0 if math.isnan(value) else value
    return value if math.isnan(low) else low, value if math.isnan(high) else high


def _title(frontier: Frontier) -> Spec:
    users, items = frontier.settings.get("shape", (0, 0))
    data, words = frontier.settings.get("data"), words_of(frontier)
    shape = f"{f'{data}, about' if data else 'About'} {users:,} users, {items:,} items."
    known = f"{frontier.known} known {words.held} of each target"
    profiles = f"Fake profiles with {known if frontier.known else 'some knowledge'}"
    far = "; ".join(f"{one.name}: {one.loss:.2f}" for one in beyond(frontier))
    return {
        "text": words.against,
        "subtitle": [
            f"{shape} {profiles}; the strongest attack tried counts.",
            f"Given away: {words.gained}. Thin line: 95% interval.",
            f"Ringed: recommended. {words.held_out}" + (f" At the right edge, not to scale: {far}." if far else ""),
        ],
        "anchor": "start",
        "fontSize": 22,
        "subtitleFontSize": 14,
        "subtitlePadding": 8,
        "subtitleColor": "#444444",
        "offset": 14,
    }


def _reference_lines(frontier: Frontier, drawn: Sequence[_Drawn], plane: Plane, theme: Theme) -> Iterator[Spec]:
    """Yield the level at which nothing is given away, and the error of the reference."""
    row = {"mae": plane.x[0], "end": plane.x[1], "share": 0.0}
    ink = theme.colour("guess-ink")
    yield layer([row], {"type": "rule", "color": ink, "strokeWidth": 2}, x2={"field": "end"})
    if theme is not NARROW:  # the axis of a narrow chart says it
        low = [one for one in drawn if abs(one.at["share"]) * plane.scales[1] < 2 * _RING]
        taken = any((one.at["mae"] - plane.x[0]) * plane.scales[0] < 160 for one in low)
        side = {"align": "right", "dx": -6} if taken else {"align": "left", "dx": 6}
        at = {**row, "mae": plane.x[1] if taken else plane.x[0], "text": "nothing given away"}
        yield _text([at], color=ink, dy=11, **side)
    reference = _reference(frontier)
    if reference is not None:
        name, error = reference
        line = {"mae": error, "share": plane.y[0], "end": plane.y[1]}
        soft = theme.colour("soft")
        dashes = {"type": "rule", "color": soft, "strokeDash": [5, 4]}
        yield layer([line], dashes, y2={"field": "end"})
        if theme is not NARROW:
            left = error < sum(plane.x) / 2
            side = {"align": "left", "dx": 6} if left else {"align": "right", "dx": -6}
            named = {"mae": error, "share": plane.y[1], "text": f"{name}: {error:.3f}"}
            yield _text([named], color=soft, dy=10, **side)


def _marks(drawn: Sequence[_Drawn], plane: Plane, theme: Theme, ringed: FrontierPoint | None) -> Iterator[Spec]:
    """Yield lines within a family, intervals, arrows at marks that are not in place, the ring, and the marks."""
    ink = theme.colour("ink")
    lines, intervals, marks = [], [], []
    for number, one in enumerate(drawn):
        low, high = _ends(one.point)
        told = {"told": _told(one.point), "status": STATUSES[one.point.status]}
        lines.append({**one.at, "family": one.point.family, "order": number, "colour": one.colour})
        intervals.append({**one.at, "share": low, "high": high})
        marks.append({**one.at, **told, "colour": one.colour})
    yield layer(
        lines,
        {"type": "line", "strokeWidth": 1.5, "opacity": 0.5},
        detail={"field": "family", "type": "nominal"},
        order={"field": "order", "type": "quantitative"},
        color=COLOUR,
    )
    thin = {"type": "rule", "strokeWidth": 1.2, "opacity": 0.75, "color": ink}
    yield layer(intervals, thin, y2={"field": "high"})
    outlined = {"type": "point", "filled": False, "opacity": 1}
    far = [one for one in drawn if plane.is_beyond(one.point)]
    arrow = {"shape": "M-1-.8L0,0L-1,.8", "size": 200, "stroke": ink, "strokeWidth": 2}
    edge = plane.x[1] - 5 / plane.scales[0]
    yield layer([{**one.at, "mae": edge} for one in far], {**outlined, **arrow})
    numbers = [
        {**one.at, "text": "no answers" if math.isnan(one.point.loss) else f"{one.point.loss:.2f}"} for one in far
    ]
    yield _text(numbers, color=theme.colour("soft"), align="right", dx=-5, dy=-_RING - 6)
    ring = {"size": (2 * _RING) ** 2, "strokeWidth": 3, "stroke": theme.colour("good")}
    yield layer([one.at for one in drawn if one.point is ringed], {**outlined, **ring})
    used = [name for name in SHAPES if any(one.point.status == name for one in drawn)]
    shape = {
        "field": "status",
        "type": "nominal",
        "scale": {"domain": [STATUSES[n] for n in used], "range": [SHAPES[n] for n in used]},
        "legend": None,
    }
    hollow = {"fill": theme.colour("paper"), "fillOpacity": 0.9, "strokeWidth": 2.5, "aria": True}
    mark = {"type": "point", "size": (2 * _MARK) ** 2, "opacity": 1, **hollow}
    words = {"field": "told", "type": "nominal"}
    yield layer(marks, mark, shape=shape, stroke=COLOUR, tooltip=words, description=words)


def _told(point: FrontierPoint) -> str:
    """Return the text of a mark's tooltip."""
    words = words_of(point)
    return dashed(
        f"{point.name}: {measured(point.advantage)}% given away: {measured(point.recovery)}% {words.found}, "
        f"{measured(point.recovery_without)}% without the target in the data; {words.column} {point.quality:.3f}; "
        f"{point.n_targets:,} targets; {STATUSES[point.status]}"
    )


def _letters(drawn: Sequence[_Drawn], plane: Plane, theme: Theme) -> Iterator[Spec]:
    """Yield the letter in each mark; the letters of overlapping marks stand above them, in order of error."""
    groups: list[list[_Drawn]] = []
    for one in sorted(drawn, key=lambda each: each.at["mae"]):
        near = [group for group in groups if any(_overlap(one, other, plane) for other in group)]
        groups = [group for group in groups if group not in near]
        groups.append([*chain(*near), one])
    ink = {"color": theme.colour("ink"), "fontWeight": "bold"}
    yield _text([{**one.at, "text": one.letter} for one, *more in groups if not more], **ink)
    for group in (group for group in groups if len(group) > 1):
        ordered = sorted(group, key=lambda each: each.at["mae"])
        highest = max(group, key=lambda each: each.at["share"])
        text = " ".join(one.letter for one in ordered)
        yield _text([{**highest.at, "text": text}], **ink, dy=-_RING - 6)


def _overlap(one: _Drawn, other: _Drawn, plane: Plane) -> bool:
    across = (one.at["mae"] - other.at["mae"]) * plane.scales[0]
    down = (one.at["share"] - other.at["share"]) * plane.scales[1]
    return math.hypot(across, down) < 1.6 * _MARK


def _table(drawn: Sequence[_Drawn], theme: Theme, frontier: Frontier) -> Iterator[Spec]:
    """Yield the table beside the chart: what each letter stands for, its loss and its advantage."""
    names = [one.point.name for one in drawn]
    lines = [("", "recommender", words_of(frontier).column, "given away %", "guarantee")]
    for one, name in zip(drawn, names, strict=True):
        gained = of_100(one.point.advantage.value)
        lines.append((one.letter, name, f"{one.point.quality:.3f}", gained, one.point.status))
    step, wide = min(24.0, theme.height / len(lines)), 8.0 * max(map(len, names))
    columns = [(28.0, "left"), (48.0, "left"), *((98 + wide + n, "right") for n in (0, 108, 204))]
    pixels = {"type": "quantitative", "scale": None, "axis": None}
    encoding = {"x": {"field": "across", **pixels}, "y": {"field": "down", **pixels}}
    for (column, (across, align)), head in product(enumerate(columns), (True, False)):
        rows = [
            {"text": line[column], "across": theme.width + across, "down": step * place}
            for place, line in enumerate(lines)
            if (place == 0) == head
        ]
        weight = "bold" if head or column == 0 else "normal"
        cells = _text(rows, color=theme.colour("ink"), align=align, fontWeight=weight)
        yield {**cells, "encoding": {**cells["encoding"], **encoding}}


def _text(rows: Sequence[Spec], **mark: Any) -> Spec:
    """Return texts, centred on their places unless `mark` says otherwise."""
    plain = {"type": "text", "fontSize": _FONT, "baseline": "middle"}
    return layer(rows, {**plain, **mark}, text={"field": "text", "type": "nominal"})
