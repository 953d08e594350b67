"""A frontier on disk: a folder with table, manifest and chart, whole or not at all."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import goodfence
from goodfence.auditing.frontier_chart import chart_spec
from goodfence.auditing.frontier_labels import Spec
from goodfence.data.whole import folder_written_whole
from goodfence.errors import FileProblem, MissingExtra

if TYPE_CHECKING:
    from goodfence.auditing.frontier import Frontier

_MANIFEST, _TABLE = "manifest.json", "frontier.parquet"
_PNG_SCALE = 2.0


def save_frontier(frontier: Frontier, folder: str | PathLike[str]) -> None:
    """Write the frontier to `folder`; a frontier that is there is replaced, anything else is an error."""
    import pyarrow.parquet as pq

    target = Path(folder)
    if target.exists() and not ((target / _MANIFEST).is_file() and (target / _TABLE).is_file()):
        raise FileProblem("folder exists and is not a saved frontier; choose another, or remove it")
    with folder_written_whole(target) as partial:
        pq.write_table(frontier.table(), partial / _TABLE, compression="zstd")
        manifest = {
            "goodfence": goodfence.__version__,
            "kind": "Frontier",
            "guess": list(frontier.guess),
            **frontier.settings,
        }
        text = json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False)
        (partial / _MANIFEST).write_text(text + "\n", encoding="utf-8")
        for name, content in pictures(chart_spec(frontier)).items():
            (partial / name).write_bytes(content)


def pictures(spec: Spec) -> dict[str, bytes]:
    """Return the chart as PNG, SVG, and HTML that needs no network."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("a chart needs vl-convert-python; install it") from None
    svg = vl_convert.vegalite_to_svg(spec)
    return {
        "chart.png": vl_convert.svg_to_png(svg, scale=_PNG_SCALE),
        "chart.svg": svg.encode(),
        "chart.html": vl_convert.vegalite_to_html(spec, bundle=True).encode(),
    }
