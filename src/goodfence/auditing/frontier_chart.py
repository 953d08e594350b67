"""The frontier as a picture: error to the right, what was found out upwards, the promise as the mark.

A chart is a Vega-Lite specification, written out as such; labels stand where `LabelPlaces` finds room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goodfence.auditing.frontier_labels import COLOUR, HEIGHT, WIDTH, Plane, Spec, label_layers
from goodfence.errors import MissingExtra

if TYPE_CHECKING:
    import altair

    from goodfence.auditing.frontier import Frontier
    from goodfence.auditing.frontier_point import FrontierPoint

_COLOURS = ("#222222", "#D55E00", "#0072B2", "#009E73", "#882255", "#56B4E9", "#999933", "#CC79A7")
"""Okabe and Ito's, and two of Tol's: the colour-blind can tell them apart."""
_OF = {
    "kNN": 0,
    "PPNS": 1,
    "nPNS": 2,
    "PNCF": 5,
    "PrivateCF, per rating": 3,
    "PrivateCF, per user": 4,
}
_SHAPES = {"proved": "circle", "claimed": "triangle-up", "refuted": "cross", "none": "square"}
_WORDS = {
    "proved": "promise proved",
    "claimed": "promise claimed by a paper",
    "refuted": "promise refuted",
    "none": "no promise",
}
_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
_CONFIG: Spec = {
    "font": "Helvetica, Arial, DejaVu Sans, sans-serif",
    "background": "white",
    "padding": 18,
    "axis": {
        "labelFontSize": 14,
        "titleFontSize": 15,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "labelColor": "#444444",
        "titleColor": "#222222",
        "gridColor": "#eeeeee",
        "domainColor": "#999999",
        "tickColor": "#999999",
    },
    "view": {"stroke": None},
}


def frontier_chart(frontier: Frontier) -> altair.LayerChart:
    """Return the chart as altair knows it."""
    try:
        import altair
    except ImportError:
        raise MissingExtra("a chart needs altair; install altair and vl-convert-python") from None
    chart: altair.LayerChart = altair.LayerChart.from_dict(chart_spec(frontier))
    return chart


def chart_spec(frontier: Frontier) -> Spec:
    """Return the Vega-Lite specification."""
    plane, colours = Plane(frontier), family_colours(frontier)
    layers = [
        *_band(frontier, plane),
        _stems(frontier, colours),
        _lines(frontier, colours),
        _points(frontier, colours),
        *label_layers(frontier, plane, colours),
    ]
    return {
        "$schema": _SCHEMA,
        "config": _CONFIG,
        "width": WIDTH,
        "height": HEIGHT,
        "title": _title(frontier),
        "layer": [_on_axes(layer, plane) for layer in layers],
    }


def family_colours(frontier: Frontier) -> dict[str, str]:
    """Return one colour for each family: its own where it has one, else one that nobody has."""
    families = list(dict.fromkeys(point.family for point in frontier.points))
    own = {name: _COLOURS[_OF[name]] for name in families if name in _OF}
    free = [colour for colour in _COLOURS if colour not in own.values()] or ["#666666"]
    others = [name for name in families if name not in own]
    return own | {name: free[place % len(free)] for place, name in enumerate(others)}


def _title(frontier: Frontier) -> Spec:
    users, items = frontier.settings.get("shape", (0, 0))
    known = (
        f"Somebody who knows {frontier.known} ratings of a user " if frontier.known else "Somebody "
    )
    return {
        "text": "What a recommender gives away, and how wrong it is",
        "subtitle": [
            f"{users:,} users, {items:,} items. {known}asks through fake accounts; the strongest attack tried counts.",
            "The stem under a mark ends at what he finds out when her data is not there: the stem is the leak.",
        ],
        "anchor": "start",
        "fontSize": 22,
        "subtitleFontSize": 14,
        "subtitlePadding": 8,
        "subtitleColor": "#444444",
        "offset": 16,
    }


def _on_axes(layer: Spec, plane: Plane) -> Spec:
    """Give a layer the shared axes."""
    x = {
        "field": "mae",
        "type": "quantitative",
        "title": "Mean absolute error on ratings held out   (← better)",
        "scale": {"domain": list(plane.x), "nice": False, "zero": False},
        "axis": {"format": ".2f", "tickCount": 8, "grid": False},
    }
    y = {
        "field": "share",
        "type": "quantitative",
        "title": "Hidden ratings found out   (↓ better)",
        "scale": {"domain": list(plane.y), "nice": False},
        "axis": {"format": "%", "values": [0, 0.2, 0.4, 0.6, 0.8, 1.0]},
    }
    encoding = layer.get("encoding", {})
    return {**layer, "encoding": {"x": x, "y": y, **encoding}}


def _band(frontier: Frontier, plane: Plane) -> list[Spec]:
    """Return the level of guessing, as wide as its interval, and at least a line."""
    guess = frontier.guess
    half = 0.006 * plane.y[1]
    low, high = min(guess.low, guess.value - half), max(guess.high, guess.value + half)
    row = {"mae": plane.x[0], "end": plane.x[1], "share": low, "top": high}
    return [
        {
            "data": {"values": [row]},
            "mark": {"type": "rect", "color": "#f0c75e", "opacity": 0.45},
            "encoding": {"x2": {"field": "end"}, "y2": {"field": "top"}},
        }
    ]


def _stems(frontier: Frontier, colours: dict[str, str]) -> Spec:
    rows = [
        {
            "mae": point.mae,
            "share": point.recovery_without.value,
            "top": point.recovery.value,
            "colour": colours[point.family],
        }
        for point in frontier.points
    ]
    return {
        "data": {"values": rows},
        "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.3, "strokeCap": "round"},
        "encoding": {"y2": {"field": "top"}, "color": COLOUR},
    }


def _lines(frontier: Frontier, colours: dict[str, str]) -> Spec:
    rows = [
        {**_spot(point), "family": point.family, "order": place, "colour": colours[point.family]}
        for place, point in enumerate(frontier.points)
    ]
    return {
        "data": {"values": rows},
        "mark": {"type": "line", "strokeWidth": 2, "opacity": 0.6},
        "encoding": {
            "detail": {"field": "family", "type": "nominal"},
            "order": {"field": "order", "type": "quantitative"},
            "color": COLOUR,
        },
    }


def _points(frontier: Frontier, colours: dict[str, str]) -> Spec:
    rows = [
        {
            **_spot(point),
            "name": f"{point.family} {point.label}".strip(),
            "promise": _WORDS[point.promise],
            "advantage": str(point.advantage),
            "recovery": str(point.recovery),
            "attack": point.attack,
            "guarantee": point.guarantee,
            "colour": colours[point.family],
        }
        for point in frontier.points
    ]
    used = [name for name in _SHAPES if any(point.promise == name for point in frontier.points)]
    legend = {
        "title": None,
        "orient": "top",
        "direction": "horizontal",
        "labelFontSize": 14,
        "symbolSize": 170,
        "symbolFillColor": "#555555",
        "symbolStrokeColor": "#555555",
        "offset": 4,
        "columnPadding": 26,
    }
    shape = {
        "field": "promise",
        "type": "nominal",
        "scale": {"domain": [_WORDS[n] for n in used], "range": [_SHAPES[n] for n in used]},
        "legend": legend,
    }
    told = ("name", "promise", "mae", "recovery", "advantage", "attack", "guarantee")
    tooltip = [{"field": name, "title": name} for name in told]
    tooltip[2] |= {"type": "quantitative", "format": ".4f"}
    return {
        "data": {"values": rows},
        "mark": {
            "type": "point",
            "filled": True,
            "size": 150,
            "opacity": 1,
            "stroke": "white",
            "strokeWidth": 1.2,
        },
        "encoding": {"shape": shape, "color": COLOUR, "tooltip": tooltip},
    }


def _spot(point: FrontierPoint) -> dict[str, float]:
    return {"mae": point.mae, "share": point.recovery.value}
