"""`AuditPage` and `FrontierPage`: an audit and a comparison as one HTML file, for readers who are no engineers."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import goodfence
from goodfence.attack.report import LeakReport
from goodfence.auditing.audit import AuditReport
from goodfence.auditing.frontier import Compared, Frontier, FrontierPoint, name_of
from goodfence.auditing.survey import TARGETS, Group, Survey, survey
from goodfence.data.ratings import Ratings
from goodfence.errors import require
from goodfence.privacy.guarantee import Guarantee
from goodfence.report import wording
from goodfence.report.charts import NARROW, WIDE, Known, chart_files, inline_svg, knowledge_spec
from goodfence.report.frontier_chart import LETTERS, SHAPES, STATUSES, beyond, frontier_spec
from goodfence.report.serialize import describe, inline_json, write_folder, write_json, write_text
from goodfence.report.vocabulary import Vocabulary
from goodfence.report.wording import (
    accounts,
    cards_of,
    dashed,
    group_name,
    interval,
    measured,
    of_100,
    recommendation,
    verdict_line,
    words_of,
)
from goodfence.settings import checked, place

if TYPE_CHECKING:
    from markupsafe import Markup

    from goodfence.attack.scoring import Estimate

_TEMPLATES = Path(__file__).parent / "templates"
_TABLE = "targets.parquet"
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
            "date": leakage.date,
            "m": leakage.known,
            "audit": self.survey.audit,
            "leakage": leakage,
            "survey": self.survey,
            **_figures(self.survey),
        }
        return _rendered("audit.html", words_of(leakage), values, figures)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page in one atomic step."""
        write_text(path, self.html)


@checked
def audit_page(
    report: AuditReport,
    *,
    compared: Sequence[Compared] | None = None,
    others: int = TARGETS,
    data: str = "ratings",
    progress: bool | None = None,
) -> AuditPage:
    """Compare other attackers and other recommenders with an audit, and return a page that shows everything.

    Parameters
    ----------
    report, progress
        What `audit` returned; as in `audit`.
    compared
        Other recommenders; None for kNN, PPNS, nPNS, PNCF and two private models.
    others
        How many users each further attacker attacks.
    data
        What the page calls the ratings.

    Examples
    --------
    >>> import goodfence as gf
    >>> report = gf.audit(gf.load("movietweetings"), gf.KNN(k=20), targets=40, trials=0, rng=7)
    >>> page = audit_page(report, compared=[], others=20, data="films")
    >>> "What would stop it" in page.html
    True
    """
    around = survey(report, compared=compared, targets=others, progress=progress)
    label = name_of(report.recommender)
    return AuditPage(survey=around, label=label, data=data, command=_python_line(report))


def _python_line(report: AuditReport) -> str:
    """Return the call that repeats the figures; without ids and named items."""
    leakage = report.leakage
    attack = f"attack={leakage.attacker!r}"
    if leakage.tried:
        attack = f"known={leakage.known}"
    elif not isinstance(leakage.attacker.choose, str):
        attack = f"attack=known={leakage.known}, named items"
    n_targets, seed = leakage.n_targets + leakage.n_choosing, leakage.settings["seed"]
    given = f"{report.audited}, {attack}, targets={n_targets}, rng={seed}"
    return f"gf.audit_page(gf.audit(ratings, {given})).save('audit.html')"


def _figures(survey: Survey) -> dict[str, Any]:
    """Return pictures, tables and cards."""
    leakage, found = survey.audit.leakage, survey.audit.leakage.estimates
    fully, fully_without = found["fully_recovered"], found["fully_recovered_without"]
    words = words_of(leakage)
    return {
        "waffles": [
            Waffle.of("people are fully recovered", fully, fully_without),
            Waffle.of(f"{words.unit} {words.found}", leakage.found, leakage.found_without),
        ],
        "by_known": [
            _row(_items_known(one), one.n_targets, _shares(one), own=one is leakage)
            for one in survey.by_known
        ],
        "knowledge": _knowledge_pictures(survey),
        "by_strategy": [
            _row(_among_others(one), one.n_targets, _shares(one), own=one is leakage)
            for one in survey.by_strategy
        ],
        "by_activity": [_group_row(group, words) for group in survey.by_activity],
        "by_popularity": [_group_row(group, words) for group in survey.by_popularity],
        **_comparison(survey.frontier, survey.guarantees, own=True),
    }


def _among_others(report: LeakReport) -> str:
    """Return one attacker among others who know as many ratings: which ones, and what the accounts do."""
    settings = report.settings["settings"]
    kinds = {"random": "any", "rarest": "the rarest", "most_popular": "the most popular"}
    known = kinds[settings["choose"]] if isinstance(settings["choose"], str) else "named ones"
    return f"knows {known}; {accounts(report.n_fakes)}, {report.attacker.describe(report.n_fakes)}"


def _shares(report: LeakReport) -> dict[str, Estimate]:
    """Return what a line of a table shows of a report, by the names of groups."""
    return {
        "recovery": report.found,
        "recovery_without": report.found_without,
        "guess": report.guessed,
        "advantage": report.estimates["advantage"],
    }


def _items_known(report: LeakReport) -> str:
    known, held = report.known, words_of(report).held
    return f"1 {held[:-1]} known" if known == 1 else f"{known} {held} known"


def _knowledge_pictures(survey: Survey) -> list[Markup]:
    """Return the picture for a wide page and for a narrow one; none where there is only one amount."""
    if len(survey.by_known) < 2:
        return []
    points = [
        Known(
            known=report.known,
            read=report.found,
            without=report.found_without,
            guess=report.guessed,
            told=f"{_items_known(report)}, {report.n_targets:,} targets",
            own=report is survey.audit.leakage,
        )
        for report in survey.by_known
    ]
    words = words_of(survey.audit.leakage)
    said = (
        f"How many of 100 {words.unit} {words.found}, by how many {words.held} of the target the attacker knows; "
        "the table below has the figures."
    )
    themes = (replace(WIDE, height=200), replace(NARROW, height=190))
    return [inline_svg(knowledge_spec(points, theme, words), theme, said) for theme in themes]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FrontierPage:
    """A frontier ready to be written as a page. What it writes holds no id and no rating."""

    found: Frontier
    """The figures."""
    guarantees: Sequence[Guarantee]
    """The guarantee of each recommender, in the same order."""
    ratings: Ratings
    """What was recommended from: about how much it is, and its scale, are shown."""
    data: str
    """What the ratings are called; never a path."""
    command: str
    """What makes these figures again."""
    max_loss: float | None = None
    """The error that can be borne; of lists, what may be missing to an NDCG of 1."""

    def __repr__(self) -> str:
        return f"FrontierPage({len(self.found.points)} recommenders)"

    @cached_property
    def html(self) -> str:
        """The page as text."""
        found, max_loss = self.found, self.max_loss
        about = {"name": self.data, **describe(self.ratings)}
        figures = {
            "goodfence": goodfence.__version__,
            "command": self.command,
            "data": about,
            words_of(found).limit: words_of(found).limit_of(max_loss),
            **found.to_dict(max_loss),
            "guarantees": [one.to_dict() for one in self.guarantees],
        }
        most = max(found.points, key=lambda point: point.advantage.value)
        best = found.best_within(max_loss)
        values = {
            "data": about,
            "command": self.command,
            "scale": self.ratings.scale,
            "seed": found.settings.get("seed"),
            "m": found.known,
            "date": found.date,
            "finding": dashed(
                f"Most is given away by {most.name}: to someone who knows "
                f"{'some' if found.known is None else found.known} of a person's {words_of(found).held}, "
                f"{of_100(most.advantage.value)} of 100 {words_of(found).unit} (95%: {interval(most.advantage)}). "
                f"{of_100(most.fully_recovered.value)} of 100 people are fully recovered."
            ),
            "guess": dashed(measured(found.guess)),
            "waffles": [
                Waffle.of(
                    f"people are fully recovered from {one.name}",
                    one.fully_recovered,
                    one.fully_recovered_without,
                )
                for one in (most, best)
                if one is not None
            ],
            **_comparison(found, self.guarantees, max_loss=max_loss),
        }
        return _rendered("frontier.html", words_of(found), values, figures)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page in one atomic step."""
        write_text(path, self.html)


@checked
def save_result(result: LeakReport | AuditReport | Frontier, path: str | PathLike[str]) -> None:
    """Write a result in one atomic step: an audit as JSON, any other as a folder with a table and a manifest.

    A frontier's folder also holds its chart (HTML, SVG, PNG). An older result of the same kind is replaced. No id and
    no rating is written.
    """
    if isinstance(result, AuditReport):
        page = place(path, "path").suffix.lower() in (".html", ".htm")
        require(not page, "path", "a name of a JSON file; gf.audit_page writes HTML", "HTML")
        line = verdict_line(result.leakage, result.audited, result.neighbourhood)
        write_json(path, {**result.to_dict(), "verdict_line": line})
    elif isinstance(result, Frontier):
        stated = {"kind": "Frontier", "date": result.date, "guess": list(result.guess)}
        files = chart_files(frontier_spec(result))
        table = "frontier.parquet", result.table()
        write_folder(path, "frontier", {**stated, **result.settings}, table, files)
    else:
        stated = {
            "kind": type(result).__name__,
            "attack": result.attack,
            "attacked": result.attacked,
        }
        told = {**stated, **result.settings, **result.to_dict(), "table": _TABLE}
        write_folder(path, "report", told, (_TABLE, result.table()))


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
        known = not math.isnan(low)
        text = dashed(measured(found))
        return cls(text=text, at=at, low=low if known else None, high=high if known else 0.0)

    @property
    def width(self) -> float:
        """How wide the interval is, and at least so wide that it is seen."""
        return 0.0 if self.low is None else round(max(self.high - self.low, _THIN), 2)


def _row(
    label: str, n_people: int, found: Mapping[str, Estimate], *, own: bool = False
) -> dict[str, Any]:
    """Return what was recovered of somebody or by somebody: in both worlds, by guessing, and the difference."""
    return {
        "label": label,
        "n_people": n_people,
        "told": Mark.of(found["recovery"]),
        "without": Mark.of(found["recovery_without"]),
        "guess": Mark.of(found["guess"]),
        "advantage": Mark.of(found["advantage"]).text,
        "own": own,
    }


def _group_row(group: Group, words: Vocabulary) -> dict[str, Any]:
    return _row(group_name(group, words.held), group.n_users, asdict(group))


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


def _comparison(
    found: Frontier,
    guarantees: Sequence[Guarantee],
    *,
    own: bool = False,
    max_loss: float | None = None,
) -> dict[str, Any]:
    """Return the comparison: picture, table, choice and cards. With `own` the first is what was audited."""
    loss = words_of(found).loss
    said = f"Recommenders by what they give away and by {loss}; the table below has the figures."
    best = found.best_within(max_loss)
    compared = [
        {
            "letter": LETTERS[place % len(LETTERS)],
            "name": point.name,
            "status": point.status,
            "fully": Mark.of(point.fully_recovered).text,
            "told": Mark.of(point.recovery).text,
            "advantage": Mark.of(point.advantage).text,
            "quality": point.quality,
            "covered": of_100(point.coverage),
            "n_people": point.n_targets,
            "own": own and place == 0,
            "recommended": point is best,
        }
        for place, point in enumerate(found.points)
    ]
    there = {point.status for point in found.points}
    return {
        "pictures": [
            inline_svg(frontier_spec(found, theme, max_loss), theme, said)
            for theme in (WIDE, NARROW)
        ],
        "compared": compared,
        "far": ", ".join(f"{one.name} ({one.loss:.2f})" for one in beyond(found)),
        "statuses": {name: words for name, words in STATUSES.items() if name in there},
        "choice": _choice(found, best, max_loss, own=own),
        "cards": cards_of([point.name for point in found.points], guarantees),
    }


def _choice(
    found: Frontier, best: FrontierPoint | None, max_loss: float | None, *, own: bool
) -> str:
    """Return the recommendation, and what it costs in error."""
    words = words_of(found)
    text = recommendation(found, None if best is None else best.name, best, words.bound(max_loss))
    if best is None or not own:
        return dashed(text)
    audited = found.points[0]
    if best is audited:
        return dashed(f"{text} It is what was audited.")
    return dashed(f"{text} {words.cost(best, audited, audited.name)}")


def _rendered(
    template: str, words: Vocabulary, values: Mapping[str, Any], figures: Mapping[str, Any]
) -> str:
    """Return a page in these words, with its figures inside it as JSON."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["dashed"] = dashed
    environment.globals.update(shapes=SHAPES, say=wording, words=words)
    text = inline_json(figures)
    return environment.get_template(template).render(
        **values,
        version=goodfence.__version__,
        json_text=text,
        json_link=b64encode(text.encode()).decode(),
    )
