"""Charts of the figures: the paper's axes and series, 95% bands, and under attack what leaks beside its MAE.

A chart is a Vega-Lite specification, written out as such.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from goodfence.errors import MissingExtra
from goodfence.report.charts import FONT, SCHEMA, Spec
from goodfence.reproduction.definition import Definition

if TYPE_CHECKING:
    import altair

SERIES = ("PPNS", "kNN", "nPNS", "PNCF")
"""In the order of drawing: kNN is dashed, and lies over PPNS where both are one line."""
COLOURS = {"PPNS": "#D55E00", "kNN": "#222222", "nPNS": "#0072B2", "PNCF": "#009E73"}
"""Okabe and Ito's, which the colour-blind can tell apart; each series has its own mark too."""
_SHAPES = {"PPNS": "circle", "kNN": "square", "nPNS": "triangle-up", "PNCF": "diamond"}
_DASHES = {"PPNS": [1, 0], "kNN": [6, 4], "nPNS": [1, 0], "PNCF": [1, 0]}
_WIDTHS = {"PPNS": 4, "kNN": 2, "nPNS": 2, "PNCF": 2}
_CONFIG: Spec = {
    "font": FONT,
    "background": "white",
    "padding": 14,
    "axis": {
        "labelFontSize": 13,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "titlePadding": 8,
    },
    "view": {"stroke": "#cccccc"},
}
_LETTERS = {2: 118, 3: 185}
"""How many letters of a caption fit below 2 or 3 panels."""


class Panel(NamedTuple):
    """One panel: a metric, its heading, the title of its axis, and the series that are drawn."""

    metric: str
    heading: str
    axis: str
    series: tuple[str, ...] = SERIES


_PAPER = (
    Panel("mae", "All methods", "MAE"),
    Panel("mae", "Enlarged, without PNCF", "MAE", ("PPNS", "kNN", "nPNS")),
)
_ATTACK = (
    Panel("mae", "MAE of the fake: LOW is bad", "MAE"),
    Panel("recovery", "Recovery: HIGH is bad", "hidden ratings found out"),
    Panel("advantage", "Advantage: HIGH is bad", "hidden ratings leaked"),
)


def figure_spec(definition: Definition, summary: pa.Table, manifest: Mapping[str, Any]) -> Spec:
    """Return the chart of a figure: one panel for each measure, one legend for all."""
    panels = _ATTACK if definition.protocol == "attack" else _PAPER
    metrics = pa.array(sorted({panel.metric for panel in panels}))
    rows = summary.filter(pc.is_in(summary["metric"], metrics)).to_pylist()
    views = [_view(definition, panel) for panel in panels]
    views[0]["layer"][-1]["params"] = [_PICKED]  # one legend serves all panels
    caption = _title(textwrap.wrap(definition.caption, _LETTERS[len(panels)]), 13, orient="bottom")
    caption |= {"fontWeight": "normal", "color": "#444444", "offset": 14}
    heading = _title(definition.title, 18, offset=12, subtitleFontSize=13, subtitlePadding=6)
    heading |= {
        "subtitle": _subtitle(definition, manifest, len(panels)),
        "subtitleColor": "#444444",
    }
    return {
        "$schema": SCHEMA,
        "config": _CONFIG,
        "data": {"values": rows},
        "title": heading,
        "vconcat": [{"hconcat": views, "spacing": 28, "title": caption}],
    }


def figure_chart(spec: Spec) -> altair.VConcatChart:
    """Return the chart of a figure as altair knows it."""
    try:
        import altair
    except ImportError:
        raise MissingExtra("a chart needs altair; install altair and vl-convert-python") from None
    chart: altair.VConcatChart = altair.VConcatChart.from_dict(spec)
    return chart


_PICKED: Spec = {
    "name": "picked",
    "select": {"type": "point", "fields": ["series"]},
    "bind": "legend",
}


def _view(definition: Definition, panel: Panel) -> Spec:
    """Return one panel: bands, a line for each series, and the points."""
    x = {
        "field": "x",
        "type": "quantitative",
        "title": definition.label,
        "scale": {"type": definition.scale, "zero": False, "nice": False, "padding": 12},
        "axis": {
            "values": [float(value) for value in definition.values],
            "labelExpr": "'' + datum.value",
            "labelOverlap": "greedy",
            "grid": False,
        },
    }
    shared: Spec = {"x": x, "color": _coded(COLOURS), "opacity": _SHOWN}
    value = _y(definition, panel, "value")
    band = {"y": _y(definition, panel, "low"), "y2": {"field": "high"}, **shared}
    points: Spec = {
        "y": value,
        "shape": _coded(_SHAPES),
        "tooltip": _tooltip(definition, panel),
        **shared,
    }
    encoding: Spec = {"y": value, **shared}
    lines = [
        {
            "transform": [{"filter": f"datum.series === '{one}'"}],
            "mark": {"type": "line", "strokeWidth": _WIDTHS[one], "strokeDash": _DASHES[one]},
            "encoding": encoding,
        }
        for one in panel.series
    ]
    return {
        "width": 330,
        "height": 290,
        "title": {"text": panel.heading, "fontSize": 15, "frame": "group"},
        "transform": [
            {"filter": f"datum.metric === '{panel.metric}'"},
            {"filter": {"field": "series", "oneOf": list(panel.series)}},
        ],
        "layer": [
            {"mark": {"type": "area", "fillOpacity": 0.16}, "encoding": band},
            *lines,
            {"mark": {"type": "point", "filled": True, "size": 52}, "encoding": points},
        ],
    }


_SHOWN: Spec = {"condition": {"param": "picked", "value": 1}, "value": 0.12}


def _y(definition: Definition, panel: Panel, field: str) -> Spec:
    share = panel.metric in ("recovery", "advantage")
    return {
        "field": field,
        "type": "quantitative",
        "title": panel.axis,
        "scale": {"zero": definition.protocol == "attack", "nice": True},
        "axis": {"format": "%" if share else "~g"},
    }


def _coded(codes: Mapping[str, str]) -> Spec:
    legend = {
        "title": None,
        "orient": "top",
        "labelFontSize": 15,
        "symbolSize": 160,
        "symbolDash": [1, 0],
        "columns": len(SERIES),
    }
    scale = {"domain": list(SERIES), "range": [codes[name] for name in SERIES]}
    return {"field": "series", "type": "nominal", "scale": scale, "legend": legend}


def _tooltip(definition: Definition, panel: Panel) -> list[Spec]:
    numbers = {"value": panel.metric, "low": "95% from", "high": "to"}
    return [
        {"field": "series", "type": "nominal", "title": "method"},
        {"field": "x", "type": "quantitative", "title": definition.x},
        *(
            {"field": field, "type": "quantitative", "title": title, "format": ".4f"}
            for field, title in numbers.items()
        ),
    ]


def _subtitle(definition: Definition, manifest: Mapping[str, Any], n_panels: int) -> list[str]:
    n_users, n_items = manifest["shape"]
    what = (
        f"{definition.data}: {n_users:,} users x {n_items:,} items; {len(manifest['seeds'])} seeds x "
        f"{manifest['targets']} targets a point; bands: 95% over targets"
    )
    return [what, *textwrap.wrap(definition.note, _LETTERS[n_panels])]


def _title(text: str | list[str], size: int, **options: object) -> Spec:
    return {"text": text, "anchor": "start", "fontSize": size, **options}
