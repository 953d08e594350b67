"""Charts: each is one Vega-Lite specification, from which altair, PNG, SVG, HTML and a page's picture are made."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from goodfence.errors import MissingExtra
from goodfence.report.serialize import plain
from goodfence.report.wording import words_of

if TYPE_CHECKING:
    import altair
    from markupsafe import Markup

    from goodfence.attack.report import LeakReport

Spec: TypeAlias = dict[str, Any]
COLOUR: Spec = {"field": "colour", "type": "nominal", "scale": None}  # a colour that is in the data as it is
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
FONT = "Helvetica, Arial, DejaVu Sans, sans-serif"
_PNG_SCALE = 2.0
_ANGLE = "\ue03c"  # stands for `<` until the chart is inside a page's script, where it is written as an escape
_LIGHT = {
    "ink": "#222222",
    "soft": "#444444",
    "line": "#e4e4e4",
    "paper": "#ffffff",
    "read": "#d55e00",
    "without": "#0072b2",
    "guess": "#f0c75e",
    "guess-ink": "#755500",
    "good": "#00714f",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """Size and colours: a chart is drawn alike in all of them."""

    name: str  # `file`, or the class of the picture in a page: `wide` or `narrow`
    width: int  # of the plane, without axes
    height: int
    padding: Mapping[str, int] | int  # the room around it
    font: int = 14  # the size of the axes' letters

    @property
    def in_page(self) -> bool:
        """Whether the page's style gives the colours, which differ in the dark and on paper."""
        return self.name != "file"

    def colour(self, name: str) -> str:
        """Return a colour by its name in the page's style."""
        return f"var(--{name})" if self.in_page else _LIGHT[name]


FILE = Theme(name="file", width=860, height=500, padding=18)
WIDE = Theme(name="wide", width=684, height=310, padding={"left": 52, "right": 24, "top": 34, "bottom": 56})
NARROW = Theme(name="narrow", width=284, height=240, padding={"left": 46, "right": 10, "top": 34, "bottom": 54})


def layered(theme: Theme, x: Spec, y: Spec, layers: Sequence[Spec], **more: Any) -> Spec:
    """Return a chart of layers on common axes; the name of the y axis is above it, to be read without turning."""
    ink, soft, line = (theme.colour(name) for name in ("ink", "soft", "line"))
    above = {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end", "titleBaseline": "bottom"}
    above |= {"titleX": -44, "titleY": -10, "domain": False, "ticks": False, "labelPadding": 8}
    y = {**y, "axis": {**y["axis"], **above}}
    made: Spec = {
        "$schema": SCHEMA,
        "config": {
            "aria": False,
            "font": FONT,
            "axis": {
                "labelFontSize": theme.font,
                "titleFontSize": theme.font,
                "titleFontWeight": "normal",
                "titlePadding": 10,
                "labelColor": soft,
                "titleColor": ink,
                "gridColor": line,
                "domainColor": soft,
                "tickColor": soft,
            },
            "view": {"stroke": None},
        },
        "background": None if theme.in_page else theme.colour("paper"),
        "padding": theme.padding,
        "width": theme.width,
        "height": theme.height,
        **({"autosize": "none"} if theme.in_page else {}),
        **more,
        "layer": [{**one, "encoding": {"x": x, "y": y, **one.get("encoding", {})}} for one in layers],
    }
    return plain(made)  # type: ignore[no-any-return]


def layer(rows: Sequence[Spec], mark: Spec, **encoding: Spec) -> Spec:
    """Return marks with data of their own."""
    return {"data": {"values": rows}, "mark": mark, **({"encoding": encoding} if encoding else {})}


def as_altair(spec: Spec, kind: str = "LayerChart") -> Any:
    """Return the chart as altair knows it: as this class of it."""
    try:
        import altair
    except ImportError:
        raise MissingExtra("a chart needs altair; install altair") from None
    return getattr(altair, kind).from_dict(spec)


def chart_files(spec: Spec) -> dict[str, bytes]:
    """Return the chart as PNG, SVG, and HTML that needs no network."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(spec)
    # No name in the page, such as that of a class, ends the script and begins another.
    quiet = json.loads(json.dumps(spec, ensure_ascii=False).replace("<", _ANGLE))
    page = vl_convert.vegalite_to_html(quiet, bundle=True).replace(_ANGLE, "\\u003c")
    png = vl_convert.svg_to_png(svg, scale=_PNG_SCALE)
    return {"chart.png": png, "chart.svg": svg.encode(), "chart.html": page.encode()}


def inline_svg(spec: Spec, theme: Theme, said: str) -> Markup:
    """Return the chart as a picture in a page: `said` is its text alternative, and each mark tells what it is."""
    import vl_convert
    from markupsafe import Markup, escape

    svg = vl_convert.vegalite_to_svg(spec)
    box = svg.partition('viewBox="')[2].partition('"')[0]
    inside = svg[svg.index(">") + 1 : svg.rindex("</svg>")]
    told = re.sub(
        r'<path aria-label="([^"]*)" role="graphics-symbol" aria-roledescription="[^"]*"([^>]*)/>',
        r"<path\2><title>\1</title></path>",
        inside,
    )
    quiet = re.sub(r' (?:role|aria-[a-z]+|class)="[^"]*"', "", told)
    head = f'<svg class="chart {theme.name}" viewBox="{box}" role="img" aria-label="{escape(said)}">'
    return Markup(f"{head}{quiet}</svg>")  # noqa: S704 - what vl-convert wrote, which escapes all text


def _share_axis(title: str) -> Spec:
    """Return a y axis for shares, in percent."""
    return {
        "field": "share",
        "type": "quantitative",
        "title": title,
        "scale": {"domain": [0, 1.0], "nice": False},
        "axis": {"format": "%", "values": [0, 0.2, 0.4, 0.6, 0.8, 1.0]},
    }


def recovery_chart(report: LeakReport) -> altair.LayerChart:
    """Return bars with their 95% intervals: what is found in both worlds, by guessing, and (of ratings) exact."""
    bars = {"with the target": report.found, "without the target": report.found_without, "guessing": report.guessed}
    if "exact" in report.estimates:
        bars["exact, with the target"] = report.estimates["exact"]
    rows = [{"what": label, **found._asdict()} for label, found in bars.items()]
    y = {"field": "what", "type": "nominal", "sort": list(bars), "title": None}
    share = {"type": "quantitative", "scale": {"domain": [0, 1]}}
    x = {"field": "value", "title": f"share of the {words_of(report).unit}", **share}
    between = {"x": {"field": "low", **share}, "x2": {"field": "high"}, "y": y}
    spec = {
        "$schema": SCHEMA,
        "data": {"values": plain(rows)},
        "title": {
            "text": report.attacked,
            "subtitle": f"{report.n_targets:,} targets, {report.n_hidden:,} {words_of(report).hidden}",
        },
        "layer": [
            {"mark": {"type": "bar", "color": "#7a9cc6"}, "encoding": {"x": x, "y": y}},
            {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": between},
        ],
    }
    chart: altair.LayerChart = as_altair(spec)
    return chart


_TOLD = {"found": "recovered", "found_without": "without the target in the data", "guessed": "guessed"}


def knowledge_spec(reports: Sequence[LeakReport], own: LeakReport, theme: Theme) -> Spec:
    """Return recovery by how many ratings the attacker knows, in both worlds and by guessing; `own` is ringed."""
    known, words = [report.known for report in reports], words_of(own)
    room = (known[-1] / known[0]) ** 0.06
    x = {
        "field": "known",
        "type": "quantitative",
        "title": words.known,
        "scale": {"type": "log", "base": 2, "domain": [known[0] / room, known[-1] * room]},
        "axis": {"values": known, "format": ",d", "grid": False},
    }
    layers: list[Spec] = []
    for name, colour_name, dash, shape in (
        ("guessed", "guess", None, None),
        ("found_without", "without", [7, 5], "diamond"),
        ("found", "read", None, "circle"),
    ):
        colour = theme.colour("guess-ink" if name == "guessed" else colour_name)
        rows = []
        for report in reports:
            share, low, high = getattr(report, name)
            told = f"{report.known} known, {report.n_targets:,} targets: {share:.0%} {_TOLD[name]}"
            row = {"known": report.known, "share": share, "low": low, "high": high, "told": told}
            rows.append({**row, "size": 200 if report is own else 110, "own": report is own})
        rows = [row for row in rows if row["share"] == row["share"]]
        opacity = 0.6 if name == "guessed" else 0.18
        band = {"type": "area", "color": theme.colour(colour_name), "opacity": opacity}
        between = {"y": {**_share_axis(""), "field": "low"}, "y2": {"field": "high"}}
        line = {"type": "line", "color": colour, "strokeWidth": 1 if shape is None else 2.5}
        layers += [layer(rows, band, **between)]
        layers += [layer(rows, {**line, "strokeDash": dash} if dash else line)]
        if shape is not None:
            spot = {"type": "point", "shape": shape, "color": colour, "filled": True, "opacity": 1}
            edge = {"strokeWidth": 2, "stroke": theme.colour("paper"), "aria": True}
            encoding: Spec = {
                "size": {"field": "size", "type": "quantitative", "scale": None},
                "description": {"field": "told", "type": "nominal"},
            }
            if name == "found":
                ring = {"test": "datum.own", "value": theme.colour("ink")}
                encoding["stroke"] = {"condition": ring, "value": theme.colour("paper")}
            layers.append(layer(rows, {**spot, **edge}, **encoding))
    return layered(theme, x, _share_axis(words.share_axis), layers)
