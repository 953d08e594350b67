"""`AuditPage` and `FrontierPage`: an audit and a comparison as one HTML file, for readers who are no engineers."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import goodfence
from goodfence.data.ratings import Ratings
from goodfence.privacy.guarantee import Guarantee
from goodfence.report.charts import NARROW, WIDE, Known, inline_svg, knowledge_spec
from goodfence.report.frontier_chart import LETTERS, SHAPES, STATUSES, beyond, frontier_spec
from goodfence.report.serialize import describe, inline_json, write_text
from goodfence.report.wording import (
    accounts,
    assumed,
    beside,
    briefly,
    cards_of,
    dashed,
    fully_means,
    group_name,
    interval,
    known_of,
    measured,
    of_100,
    recommendation,
    recovered,
    scope,
    strategy,
    tried_rows,
    verdict,
    verdict_line,
    who_attacks,
    worst_off,
)

if TYPE_CHECKING:
    from markupsafe import Markup

    from goodfence.attack.report import AttackReport
    from goodfence.attack.scoring import Estimate
    from goodfence.audit.audit import AuditReport
    from goodfence.audit.frontier import Frontier, FrontierPoint
    from goodfence.audit.survey import Group, Survey

_TEMPLATES = Path(__file__).parent / "templates"
_THIN = 0.8
"""What is narrower could not be seen, of a track of 100."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AuditPage:
    """An audit and what surrounds it, ready to be written as a page. The page holds no id and no rating."""

    survey: Survey
    """The figures."""
    label: str
    """What was audited, for the reader."""
    data: str
    """What the ratings are called; never a path."""
    command: str
    """What makes these figures again."""

    def __repr__(self) -> str:
        return f"AuditPage({self.label}, {self.survey!r})"

    @cached_property
    def html(self) -> str:
        """The page as text."""
        leakage = self.survey.audit.leakage
        about = {"name": self.data, **describe(leakage.ratings)}
        figures = {
            "goodfence": goodfence.__version__,
            "command": self.command,
            "recommender": self.label,
            "seed": leakage.settings["seed"],
            "data": about,
            **self.survey.to_dict(),
            "verdict_line": verdict_line(leakage, self.label, self.survey.audit.neighbourhood),
        }
        values = {
            "label": self.label,
            "command": self.command,
            "scale": leakage.ratings.scale,
            "seed": leakage.settings["seed"],
            "data": about,
            "audit": self.survey.audit,
            **_sentences(self.label, self.survey.audit),
            **_attacker(self.survey),
            **_figures(self.survey),
        }
        return _rendered("audit.html", values, figures)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page in one atomic step."""
        write_text(path, self.html)


def _sentences(label: str, audit: AuditReport) -> dict[str, Any]:
    """Return what is said in words."""
    leakage = audit.leakage
    return {
        "verdict": verdict(leakage, label),
        "leaks": leakage.leaks,
        "who": who_attacks(leakage),
        "fully_means": fully_means(leakage),
        "worst_off": worst_off(leakage),
        "recovered": recovered(leakage),
        "beside": beside(leakage),
        "scope": scope(leakage, audit.neighbourhood),
        "assumed": assumed(leakage),
        "promised": briefly(audit.guarantee),
        "date": leakage.date,
    }


def _attacker(survey: Survey) -> dict[str, Any]:
    """Return what the strip that draws the attacker shows, and who else was tried."""
    leakage = survey.audit.leakage
    settings = leakage.settings["settings"]
    return {
        "m": known_of(leakage),
        "choose": settings["choose"] if isinstance(settings["choose"], str) else "named",
        "adaptive": settings["name"] == "AdaptiveAttack",
        "ask_all": settings.get("ask") == "all",
        "n_fakes": leakage.n_fakes,
        "n_targets": leakage.n_targets,
        "n_left_out": leakage.n_left_out,
        "neighbours": survey.neighbours,
        "n_skipped": survey.n_skipped,
        "tried": tried_rows(leakage),
        "n_choosing": leakage.n_choosing,
        "not_tried": leakage.not_tried,
    }


def _figures(survey: Survey) -> dict[str, Any]:
    """Return pictures, tables and cards."""
    leakage, found = survey.audit.leakage, survey.audit.leakage.estimates
    compared = _compared(survey.frontier, own=True)
    fully, fully_without = found["fully_recovered"], found["fully_recovered_without"]
    told, told_without = found["recovery"], found["recovery_without"]
    return {
        "waffles": [
            Waffle.of("people are fully recovered", fully, fully_without),
            Waffle.of("hidden ratings are recovered", told, told_without),
        ],
        "by_known": [
            Row.of(_ratings_known(report), report, own=report is leakage)
            for report in survey.by_known
        ],
        "knowledge": _knowledge_pictures(survey),
        "by_strategy": [
            Row.of(_among_others(report), report, own=report is leakage)
            for report in survey.by_strategy
        ],
        "by_activity": [Row.of_group(group) for group in survey.by_activity],
        "by_popularity": [Row.of_group(group) for group in survey.by_popularity],
        **_comparison(survey.frontier, compared, survey.guarantees),
    }


def _among_others(report: AttackReport) -> str:
    """Return one attacker among others who know as many ratings: which ones, and what the accounts do."""
    settings = report.settings["settings"]
    kinds = {"random": "any", "rarest": "the rarest", "most_popular": "the most popular"}
    known = kinds[settings["choose"]] if isinstance(settings["choose"], str) else "named ones"
    opened = f"{accounts(report.n_fakes)}, {strategy(settings, report.n_fakes)}"
    return f"knows {known}; {opened}"


def _ratings_known(report: AttackReport) -> str:
    known = known_of(report)
    return "1 rating known" if known == 1 else f"{known} ratings known"


def _knowledge_pictures(survey: Survey) -> list[Markup]:
    """Return the picture for a wide page and for a narrow one; none where there is only one amount."""
    if len(survey.by_known) < 2:
        return []
    points = [
        Known(
            known=known_of(report),
            read=report.estimates["recovery"],
            without=report.estimates["recovery_without"],
            guess=report.estimates["guess"],
            told=f"{_ratings_known(report)}, {report.n_targets:,} targets",
            own=report is survey.audit.leakage,
        )
        for report in survey.by_known
    ]
    said = (
        "How many of 100 hidden ratings are recovered, by how many ratings of the target the attacker knows; "
        "the table below has the figures."
    )
    themes = (replace(WIDE, height=200), replace(NARROW, height=190))
    return [inline_svg(knowledge_spec(points, theme), theme, said) for theme in themes]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FrontierPage:
    """A frontier ready to be written as a page. What it writes holds no id and no rating."""

    found: Frontier
    """The figures."""
    promises: Sequence[Guarantee]
    """The guarantee of each recommender, in the same order."""
    ratings: Ratings
    """What was recommended from: about how much it is, and its scale, are shown."""
    data: str
    """What the ratings are called; never a path."""
    command: str
    """What makes these figures again."""
    max_mae: float | None = None
    """The error that can be borne."""

    def __repr__(self) -> str:
        return f"FrontierPage({len(self.found.points)} recommenders)"

    @cached_property
    def html(self) -> str:
        """The page as text."""
        found, max_mae = self.found, self.max_mae
        about = {"name": self.data, **describe(self.ratings)}
        figures = {
            "goodfence": goodfence.__version__,
            "command": self.command,
            "data": about,
            "max_mae": max_mae,
            **found.to_dict(max_mae),
            "promises": [promise.to_dict() for promise in self.promises],
        }
        compared = _compared(found, own=False, max_mae=max_mae)
        most = max(found.points, key=lambda point: point.advantage.value)
        best = found.recommended(max_mae)
        values = {
            "data": about,
            "command": self.command,
            "scale": self.ratings.scale,
            "seed": found.settings.get("seed"),
            "m": found.known,
            "date": found.date,
            "finding": _frontier_finding(most, found.known),
            "guess": dashed(measured(found.guess)),
            "waffles": [_frontier_waffle(one) for one in (most, best) if one is not None],
            **_comparison(found, compared, self.promises, max_mae),
        }
        return _rendered("frontier.html", values, figures)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page in one atomic step."""
        write_text(path, self.html)


def _frontier_finding(most: FrontierPoint, known: int | None) -> str:
    """Return what is given away where most is."""
    return dashed(
        f"Most is given away by {_name(most)}: to someone who knows {'some' if known is None else known} of a person's "
        f"ratings, {of_100(most.advantage.value)} of 100 hidden ratings (95%: {interval(most.advantage)}). "
        f"{of_100(most.fully_recovered.value)} of 100 people are fully recovered."
    )


def _frontier_waffle(point: FrontierPoint) -> Waffle:
    caption = f"people are fully recovered from {_name(point)}"
    return Waffle.of(caption, point.fully_recovered, point.fully_recovered_without)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A share with its interval: text, and where it is on a track of 100."""

    text: str
    """As in "92 (89–94)"."""
    at: float | None
    """The share; None where it is not known."""
    low: float | None
    """Where its interval begins; None where it is not known."""
    high: float
    """Where it ends."""

    @classmethod
    def of(cls, found: Estimate) -> Mark:
        """Return the mark of a share.

        Examples
        --------
        >>> from goodfence.attack.scoring import Estimate
        >>> Mark.of(Estimate(0.92, 0.89, 0.94)).text
        '92 (89–94)'
        """
        if math.isnan(found.value):
            return cls(text="not known", at=None, low=None, high=0.0)
        at, low, high = (round(100 * share, 2) for share in found)
        if math.isnan(low):
            return cls(text=dashed(measured(found)), at=at, low=None, high=0.0)
        return cls(text=dashed(measured(found)), at=at, low=low, high=high)

    @property
    def width(self) -> float:
        """How wide the interval is, and at least so wide that it is seen."""
        return 0.0 if self.low is None else round(max(self.high - self.low, _THIN), 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What was recovered of somebody or by somebody, in both worlds, their difference, and by guessing."""

    label: str
    n_people: int
    told: Mark
    without: Mark
    guess: Mark
    advantage: str
    own: bool = False
    """Whether this is the audit's own attacker."""

    @classmethod
    def of(cls, label: str, report: AttackReport, *, own: bool) -> Row:
        """Return the row of an attacker."""
        found = report.estimates
        return cls(
            label=label,
            n_people=report.n_targets,
            told=Mark.of(found["recovery"]),
            without=Mark.of(found["recovery_without"]),
            guess=Mark.of(found["guess"]),
            advantage=Mark.of(found["advantage"]).text,
            own=own,
        )

    @classmethod
    def of_group(cls, group: Group) -> Row:
        """Return the row of a group of people or items, by how many ratings they have."""
        return cls(
            label=group_name(group),
            n_people=group.n_users,
            told=Mark.of(group.recovery),
            without=Mark.of(group.recovery_without),
            guess=Mark.of(group.guess),
            advantage=Mark.of(group.advantage).text,
        )


_SIDE, _STEP, _ROW = 9, 11, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Waffle:
    """A hundred squares: some full without the data in question, some because of it, some empty."""

    caption: str
    number: str
    """How many of a hundred are full."""
    interval: str
    without: str
    """How many would be without the data."""
    interval_without: str
    anyway: str
    """The path of the squares that are full in both worlds."""
    because: str
    """The path of those that are full because of the data."""
    empty: str
    """The path of the others."""

    @classmethod
    def of(cls, caption: str, share: Estimate, without: Estimate) -> Waffle:
        """Return the squares of a share in both worlds, full ones from below.

        Examples
        --------
        >>> from goodfence.attack.scoring import Estimate
        >>> made = Waffle.of("Recovered", Estimate(0.02, 0.01, 0.03), Estimate(0.01, 0.0, 0.02))
        >>> made.number, made.anyway, made.because, made.empty.count("M")
        ('2.0', 'M0 99h9v9h-9z', 'M11 99h9v9h-9z', 98)
        """
        n_full, n_without = (
            0 if math.isnan(one.value) else round(100 * one.value) for one in (share, without)
        )
        n_anyway = min(n_full, n_without)
        squares = [
            f"M{_STEP * (place % _ROW)} {_STEP * (_ROW - 1 - place // _ROW)}h{_SIDE}v{_SIDE}h-{_SIDE}z"
            for place in range(100)
        ]
        return cls(
            caption=caption,
            number=of_100(share.value),
            interval=dashed(interval(share)),
            without=of_100(without.value),
            interval_without=dashed(interval(without)),
            anyway="".join(squares[:n_anyway]),
            because="".join(squares[n_anyway:n_full]),
            empty="".join(squares[n_full:]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRow:
    """A recommender as the table of the comparison shows it."""

    letter: str
    name: str
    status: str
    """The status of its guarantee: the shape."""
    fully: str
    """Of how many people everything asked for is recovered, with its interval."""
    told: str
    """What is recovered, with its interval."""
    advantage: str
    """What the targets' data gives away, with its interval."""
    mae: float
    covered: str
    n_people: int
    own: bool
    recommended: bool


def _compared(found: Frontier, *, own: bool, max_mae: float | None = None) -> list[ComparedRow]:
    """Return what the table shows; with `own` the first is what was audited."""
    best = found.recommended(max_mae)
    return [
        ComparedRow(
            letter=LETTERS[place % len(LETTERS)],
            name=_name(point),
            status=point.status,
            fully=Mark.of(point.fully_recovered).text,
            told=Mark.of(point.recovery).text,
            advantage=Mark.of(point.advantage).text,
            mae=point.mae,
            covered=of_100(point.coverage),
            n_people=point.n_targets,
            own=own and place == 0,
            recommended=point is best,
        )
        for place, point in enumerate(found.points)
    ]


def _name(point: FrontierPoint) -> str:
    return f"{point.family} {point.label}".strip()


def _comparison(
    found: Frontier,
    compared: Sequence[ComparedRow],
    guarantees: Sequence[Guarantee],
    max_mae: float | None = None,
) -> dict[str, Any]:
    """Return the comparison: picture, table, choice and cards."""
    said = "Recommenders by what they give away and by error; the table below has the figures."
    far = [f"{_name(one)} ({one.mae:.2f})" for one in beyond(found)]
    return {
        "pictures": [
            inline_svg(frontier_spec(found, theme, max_mae), theme, said)
            for theme in (WIDE, NARROW)
        ],
        "compared": compared,
        "far": ", ".join(far),
        "statuses": {
            name: words
            for name, words in STATUSES.items()
            if any(row.status == name for row in compared)
        },
        "choice": _choice(found, compared, max_mae),
        "cards": cards_of([row.name for row in compared], guarantees),
    }


def _choice(found: Frontier, compared: Sequence[ComparedRow], max_mae: float | None) -> str:
    """Return the recommendation, and what it costs in error."""
    bound = "" if max_mae is None else f" at an error of at most {max_mae:g}"
    point = found.recommended(max_mae)
    text = recommendation(found, None if point is None else _name(point), point, bound)
    best = next((row for row in compared if row.recommended), None)
    own = next((row for row in compared if row.own), None)
    if best is not None and own is best:
        text += " It is what was audited."
    elif best is not None and own is not None:
        change = best.mae - own.mae
        less = "less" if change < 0 else "more"
        text += f" Its error is {best.mae:.2f}, {abs(change):.2f} {less} than that of {own.name}."
    return dashed(text)


def _rendered(template: str, values: Mapping[str, Any], figures: Mapping[str, Any]) -> str:
    """Return a page, with its figures inside it as JSON."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["dashed"] = dashed
    environment.globals["shapes"] = SHAPES
    text = inline_json(figures)
    return environment.get_template(template).render(
        **values,
        version=goodfence.__version__,
        json_text=text,
        json_link=b64encode(text.encode()).decode(),
    )
