"""The chart of a report: how much was recovered, and how much of that chance explains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goodfence.errors import MissingExtra

if TYPE_CHECKING:
    import altair

    from goodfence.attack.report import AttackReport

_BARS = {
    "recovery": "with the target",
    "recovery_without": "without the target",
    "guess": "guessing the item's mean",
    "exact": "exact, with the target",
}


def recovery_chart(report: AttackReport) -> altair.LayerChart:
    """Return bars with their 95% intervals: recovery in both worlds, by guessing, and exact."""
    try:
        import altair as alt
        import pyarrow as pa
    except ImportError:
        raise MissingExtra("a chart needs altair; install altair") from None
    estimates = report.estimates
    rows = [
        {"what": label, "share": e.value, "low": e.low, "high": e.high}
        for label, e in ((label, estimates[name]) for name, label in _BARS.items())
    ]
    labels = list(_BARS.values())
    base = alt.Chart(pa.Table.from_pylist(rows)).encode(y=alt.Y("what:N", sort=labels, title=None))
    title = "share of the hidden ratings"
    scale = alt.Scale(domain=[0, 1])
    bars = base.mark_bar(color="#7a9cc6").encode(x=alt.X("share:Q", scale=scale, title=title))
    spans = base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q")
    heading = f"{report.n_targets:,} targets, {report.n_hidden:,} hidden ratings"
    layered: altair.LayerChart = (bars + spans).properties(
        title=alt.TitleParams(report.attacked, subtitle=heading)
    )
    return layered
