"""Figures as marks on a track from 0 to 100, and the rows of marks that a table shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from goodfence.attack.report import AttackReport
from goodfence.attack.scoring import Estimate
from goodfence.auditing.exposed import Group
from goodfence.report.wording import dashed, measured, strategy

_THIN = 0.8
"""What is narrower could not be seen, of a track of 100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A share with its interval: text, and places on a track of 100."""

    text: str
    """As in "92 (89–94)"."""
    at: float | None
    """Where the share stands; None where it is not known."""
    low: float | None
    """Where its interval begins; None where it is not known."""
    high: float
    """Where it ends."""

    @classmethod
    def of(cls, found: Estimate) -> Mark:
        """Return the mark of a share.

        Examples
        --------
        >>> Mark.of(Estimate(0.92, 0.89, 0.94)).text
        '92 (89–94)'
        """
        if math.isnan(found.value):
            return cls(text="not known", at=None, low=None, high=0.0)
        at = _percent(found.value)
        if math.isnan(found.low):
            return cls(text=dashed(measured(found)), at=at, low=None, high=0.0)
        low, high = _percent(found.low), _percent(found.high)
        return cls(text=dashed(measured(found)), at=at, low=low, high=high)

    @property
    def width(self) -> float:
        """How wide the interval is, and at least so wide that it is seen."""
        return 0.0 if self.low is None else round(max(self.high - self.low, _THIN), 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What was read of somebody or by somebody, beside what is read without her and what guessing gives."""

    label: str
    n_people: int
    read: Mark
    without: Mark
    guess: Mark
    own: bool = False
    """Whether this is the audit's own attacker."""


def strategy_rows(reports: Sequence[AttackReport]) -> list[Row]:
    """Return a row for each attacker; the audit's own is the first."""
    return [_row(strategy(report), report, own=place == 0) for place, report in enumerate(reports)]


def knowledge_rows(reports: Sequence[AttackReport], own: AttackReport) -> list[Row]:
    """Return a row for each amount of knowledge."""
    rows = []
    for report in reports:
        known = int(report.settings["settings"]["known"])
        label = "1 rating known" if known == 1 else f"{known} ratings known"
        rows.append(_row(label, report, own=report is own))
    return rows


def group_rows(groups: Sequence[Group]) -> list[Row]:
    """Return a row for each group of people or items, by how many ratings they have."""
    return [
        Row(
            label=span(group),
            n_people=group.n_people,
            read=Mark.of(group.read),
            without=Mark.of(group.read_without),
            guess=Mark.of(group.guess),
        )
        for group in groups
    ]


def span(group: Group) -> str:
    """Return how many ratings the members of a group have, in round numbers.

    Examples
    --------
    >>> from dataclasses import replace
    >>> one = Estimate(1.0, 1.0, 1.0)
    >>> group = Group(least=20, below=50, n_people=12, n_hidden=90, read=one, read_without=one, guess=one)
    >>> span(group), span(replace(group, below=None)), span(replace(group, least=1))
    ('20–49 ratings', '20 or more ratings', 'fewer than 50 ratings')
    """
    if group.least <= 1:
        if group.below is None:
            return "any number of ratings"
        return "only 1 rating" if group.below == 2 else f"fewer than {group.below:,} ratings"
    if group.below is None:
        return f"{group.least:,} or more ratings"
    return f"{group.least:,}–{group.below - 1:,} ratings"


def _row(label: str, report: AttackReport, *, own: bool) -> Row:
    found = report.estimates
    return Row(
        label=label,
        n_people=report.n_targets,
        read=Mark.of(found["recovery"]),
        without=Mark.of(found["recovery_without"]),
        guess=Mark.of(found["guess"]),
        own=own,
    )


def _percent(share: float) -> float:
    return round(100 * share, 2)
