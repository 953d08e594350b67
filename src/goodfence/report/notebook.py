"""Results as notebooks show them: a few lines of HTML without style and script, every name escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from goodfence.report.wording import (
    assumed,
    dashed,
    guarantee_cell,
    measured,
    of_100,
    scope,
    tried_rows,
    verdict,
)

if TYPE_CHECKING:
    from goodfence.attack.report import AttackReport
    from goodfence.attack.scoring import Estimate
    from goodfence.audit.frontier import Frontier
    from goodfence.audit.report import AuditReport

_PEOPLE = {"fully_recovered": "people fully recovered", "worst_tenth_loss": "worst-off tenth loses"}
_RATINGS = {
    "recovery": "ratings recovered",
    "advantage": "advantage",
    "guess": "guessing",
    "raw_recovery": "recovered by the answers alone",
}


def attack_html(report: AttackReport, name: str = "", neighbourhood: str = "") -> str:
    """Return the verdict, what was recovered in both worlds, and who was tried."""
    found = report.estimates
    rows = [
        [words, _figure(found[one]), _figure(found.get(f"{one}_without"))]
        for one, words in (_PEOPLE | _RATINGS).items()
    ]
    tried = [
        [row.what, row.accounts, row.advantage, "chosen" if row.chosen else ""]
        for row in tried_rows(report)
    ]
    parts = [
        _paragraph(verdict(report, name or report.attacked), bold=True),
        _paragraph(f"{scope(report, neighbourhood)} Assumed: {assumed(report)}"),
        _table(["of 100 (95%)", "with the target's data", "without"], rows),
    ]
    if tried:
        parts.append(_table(["attackers tried", "accounts", "advantage, of 100", ""], tried))
    return "".join(parts)


def audit_html(report: AuditReport) -> str:
    """Return the finding of an audit and what became of the guarantee."""
    stated = f"Guarantee: {guarantee_cell(report.guarantee)}. {report.summary}"
    found = attack_html(report.leakage, report.audited, report.neighbourhood)
    return f"{found}{_paragraph(stated)}"


def frontier_html(frontier: Frontier) -> str:
    """Return one line for each recommender, the recommended one marked."""
    best = frontier.recommended()
    rows = [
        [
            f"{point.family} {point.label}".strip(),
            _figure(point.fully_recovered),
            _figure(point.advantage),
            f"{point.mae:.3f}",
            of_100(point.coverage),
            point.status,
            "recommended" if point is best else "",
        ]
        for point in frontier.points
    ]
    heading = ["", "people fully recovered, of 100", "advantage, of 100", "MAE", "answers of 100"]
    said = f"{frontier.date}: what recommenders give away to the attackers tried, and their error."
    return _paragraph(said) + _table([*heading, "guarantee", ""], rows)


def _figure(estimate: Estimate | None) -> str:
    return "" if estimate is None else dashed(measured(estimate))


def _paragraph(text: str, *, bold: bool = False) -> str:
    shown = escape(dashed(text))
    return f"<p><b>{shown}</b></p>" if bold else f"<p>{shown}</p>"


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heading)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
