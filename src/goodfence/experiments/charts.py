"""Charts of the figures: the paper's axes and series, 95% bands, and under attack what leaks beside its MAE."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from goodfence.data.whole import written_whole
from goodfence.errors import MissingExtra
from goodfence.experiments.definition import Definition

if TYPE_CHECKING:
    import altair

SERIES = ("PPNS", "kNN", "nPNS", "PNCF")
"""In the order of drawing: kNN is dashed, and lies over PPNS where both are one line."""
COLOURS = {"PPNS": "#D55E00", "kNN": "#222222", "nPNS": "#0072B2", "PNCF": "#009E73"}
"""Okabe and Ito's, which the colour-blind can tell apart; each series has its own mark too."""
_SHAPES = {"PPNS": "circle", "kNN": "square", "nPNS": "triangle-up", "PNCF": "diamond"}
_DASHES = {"PPNS": [1, 0], "kNN": [6, 4], "nPNS": [1, 0], "PNCF": [1, 0]}
_WIDTHS = {"PPNS": 4.0, "kNN": 2.0, "nPNS": 2.0, "PNCF": 2.0}
_FONT = "Helvetica, Arial, DejaVu Sans, sans-serif"
_PNG_SCALE = 1.5
_CAPTION_WIDTH = {2: 118, 3: 185}

Panel = tuple[str, str, str, tuple[str, ...]]
"""A metric, the title of the panel, that of its axis, and the series that are drawn."""
_PAPER: tuple[Panel, ...] = (
    ("mae", "All methods", "MAE", SERIES),
    ("mae", "Enlarged, without PNCF", "MAE", ("PPNS", "kNN", "nPNS")),
)
_ATTACK: tuple[Panel, ...] = (
    ("mae", "MAE of the fake: LOW is bad", "MAE", SERIES),
    ("recovery", "Recovery: HIGH is bad", "hidden ratings found out", SERIES),
    ("advantage", "Advantage: HIGH is bad", "hidden ratings leaked", SERIES),
)


def figure_chart(
    definition: Definition, summary: pa.Table, manifest: Mapping[str, Any]
) -> altair.VConcatChart:
    """Return the chart of a figure: one panel for each measure, one legend for all."""
    alt = _altair()
    panels = _ATTACK if definition.protocol == "attack" else _PAPER
    picked = alt.selection_point(fields=["series"], bind="legend", name="picked")
    drawn = [_panel(alt, definition, summary, panel, picked) for panel in panels]
    drawn[0] = drawn[0].add_params(picked)  # one legend serves all panels
    beside = alt.hconcat(*drawn, spacing=28).properties(
        title=alt.TitleParams(
            _wrapped(definition.caption, len(panels)),
            orient="bottom",
            anchor="start",
            fontSize=13,
            fontWeight="normal",
            color="#444444",
            offset=14,
        )
    )
    headed = alt.vconcat(beside).properties(
        title=alt.TitleParams(
            definition.title,
            subtitle=_subtitle(definition, manifest, len(panels)),
            anchor="start",
            fontSize=18,
            subtitleFontSize=13,
            subtitleColor="#444444",
            subtitlePadding=6,
            offset=12,
        )
    )
    finished: altair.VConcatChart = _styled(headed)
    return finished


def save_chart(chart: altair.VConcatChart, folder: Path, *, only_png: bool = False) -> None:
    """Write `chart.png`, `chart.svg` and `chart.html`, which needs no network, to `folder`."""
    import vl_convert

    spec, version = chart.to_dict(validate=False), _vega_lite_version()
    svg = vl_convert.vegalite_to_svg(spec, vl_version=version)
    pictures = {"chart.png": vl_convert.svg_to_png(svg, scale=_PNG_SCALE)}
    if not only_png:
        page = vl_convert.vegalite_to_html(spec, vl_version=version, bundle=True)
        pictures |= {"chart.svg": svg.encode(), "chart.html": page.encode()}
    for name, content in pictures.items():
        with written_whole(folder / name) as file:
            file.write(content)


def _panel(
    alt: Any, definition: Definition, summary: pa.Table, panel: Panel, picked: Any
) -> altair.LayerChart:
    metric, heading, title, series = panel
    rows = summary.filter(pc.equal(summary["metric"], metric))
    rows = rows.filter(pc.is_in(rows["series"], pa.array(series)))
    kind = alt.Scale(type=definition.scale, zero=False, nice=False, padding=12)
    axis = alt.Axis(values=_ticks(definition), labelExpr="'' + datum.value", grid=False)
    x = alt.X("x:Q", title=definition.label, scale=kind, axis=axis)
    zero = definition.protocol == "attack"
    scale = alt.Scale(zero=zero, nice=True)
    share = metric in ("recovery", "advantage")
    y_axis = alt.Axis(format="%" if share else "~g")
    base = alt.Chart(rows).encode(x=x, opacity=alt.condition(picked, alt.value(1), alt.value(0.12)))
    colour = _coded(alt, alt.Color, COLOURS)
    bands = base.mark_area(fillOpacity=0.16).encode(
        y=alt.Y("low:Q", title=title, scale=scale, axis=y_axis), y2="high:Q", color=colour
    )
    y = alt.Y("value:Q", title=title, scale=scale, axis=y_axis)
    lines = [
        base.transform_filter(alt.datum.series == one)
        .mark_line(strokeWidth=_WIDTHS[one], strokeDash=_DASHES[one])
        .encode(y=y, color=colour)
        for one in series
    ]
    points = base.mark_point(filled=True, size=52, opacity=1).encode(
        y=y,
        color=colour,
        shape=_coded(alt, alt.Shape, _SHAPES),
        tooltip=[
            alt.Tooltip("series:N", title="method"),
            alt.Tooltip("x:Q", title=definition.x),
            alt.Tooltip("value:Q", title=metric, format=".4f"),
            alt.Tooltip("low:Q", title="95% from", format=".4f"),
            alt.Tooltip("high:Q", title="to", format=".4f"),
        ],
    )
    layered: altair.LayerChart = alt.layer(bands, *lines, points).properties(
        width=330, height=290, title=alt.TitleParams(heading, fontSize=15, frame="group")
    )
    return layered


def _coded(alt: Any, channel: Any, codes: Mapping[str, Any]) -> Any:
    legend = alt.Legend(
        title=None, orient="top", labelFontSize=15, symbolSize=160, symbolDash=[1, 0], columns=4
    )
    scale = alt.Scale(domain=list(SERIES), range=[codes[name] for name in SERIES])
    return channel("series:N", scale=scale, legend=legend)


def _ticks(definition: Definition) -> Sequence[float]:
    values = definition.values
    if definition.scale == "log" or len(values) <= 10:
        return [float(value) for value in values]
    return [float(value) for value in values[:: -(-len(values) // 10)]]


def _subtitle(definition: Definition, manifest: Mapping[str, Any], n_panels: int) -> list[str]:
    n_users, n_items = manifest["shape"]
    what = (
        f"{definition.data}: {n_users:,} users x {n_items:,} items; {len(manifest['seeds'])} seeds x "
        f"{manifest['targets']} targets a point; bands: 95% over targets"
    )
    return [what, *(_wrapped(definition.note, n_panels) if definition.note else [])]


def _wrapped(text: str, n_panels: int) -> list[str]:
    return textwrap.wrap(text, _CAPTION_WIDTH[n_panels])


def _styled(chart: Any) -> Any:
    return (
        chart.configure(font=_FONT, background="white", padding=14)
        .configure_axis(
            labelFontSize=13, titleFontSize=13, titleFontWeight="normal", titlePadding=8
        )
        .configure_view(stroke="#cccccc")
    )


def _altair() -> Any:
    try:
        import altair
    except ImportError:
        raise MissingExtra("a chart needs altair; install altair and vl-convert-python") from None
    return altair


def _vega_lite_version() -> str:
    version: str = _altair().SCHEMA_VERSION.lstrip("v")
    return ".".join(version.split(".")[:2])
