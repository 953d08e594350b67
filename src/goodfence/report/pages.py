"""`AuditPage` and `FrontierPage`: an audit and a comparison as one HTML file, for readers who are no engineers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import goodfence
from goodfence.attack.report import LeakReport
from goodfence.auditing.audit import AuditReport
from goodfence.auditing.frontier import Compared, Frontier, FrontierPoint, name_of
from goodfence.auditing.survey import TARGETS, Group, Survey, survey
from goodfence.data.ratings import Ratings
from goodfence.errors import require
from goodfence.privacy.guarantee import Guarantee
from goodfence.report import wording
from goodfence.report.charts import NARROW, WIDE, chart_files, inline_svg, knowledge_spec
from goodfence.report.frontier_chart import LETTERS, SHAPES, STATUSES, beyond, frontier_spec
from goodfence.report.serialize import describe, inline_json, write_folder, write_json, write_text
from goodfence.report.wording import dashed, interval, measured, of_100, verdict_line, words_of
from goodfence.settings import checked, place

if TYPE_CHECKING:
    from markupsafe import Markup

    from goodfence.attack.scoring import Estimate

_TEMPLATES = Path(__file__).parent / "templates"
_TABLE = "targets.parquet"
_THIN = 0.8  # the narrowest visible interval, on a track of 100
_KINDS = {"random": "any", "rarest": "the rarest", "most_popular": "the most popular"}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Page(ABC):
    """A result that can be written as one HTML file. It holds no id and no rating."""

    data: str
    """What the ratings are called; never a path."""
    command: str
    """The command that repeats the figures."""

    @property
    @abstractmethod
    def html(self) -> str:
        """The page as text."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page atomically."""
        write_text(path, self.html)

    def _rendered(
        self, template: str, found: LeakReport | Frontier, ratings: Ratings, figures: Any, **values: Any
    ) -> str:
        """Return the page in the words of the result, with its figures inside it as JSON."""
        from jinja2 import Environment, FileSystemLoader, StrictUndefined

        environment = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters["dashed"] = dashed
        environment.globals.update(shapes=SHAPES, say=wording, words=words_of(found))
        about = {"name": self.data, **describe(ratings)}
        stated = {"goodfence": goodfence.__version__, "command": self.command, "data": about}
        text = inline_json({**stated, **figures})
        return environment.get_template(template).render(
            **values,
            data=about,
            command=self.command,
            scale=ratings.scale,
            seed=found.settings.get("seed"),
            m=found.known,
            date=found.date,
            version=goodfence.__version__,
            json_text=text,
            json_link=b64encode(text.encode()).decode(),
        )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AuditPage(Page):
    """An audit with other attackers and other recommenders, as a page."""

    survey: Survey
    """The figures."""
    label: str
    """What was audited, for the reader."""

    def __repr__(self) -> str:
        return f"AuditPage({self.label}, {self.survey!r})"

    @cached_property
    def html(self) -> str:
        """The page as text."""
        found, leakage = self.survey, self.survey.audit.leakage
        figures = {
            "recommender": self.label,
            "seed": leakage.settings["seed"],
            **found.to_dict(),
            "verdict_line": verdict_line(leakage, self.label, found.audit.neighbourhood),
        }
        words, shares = words_of(leakage), leakage.estimates
        fully = shares["fully_recovered"], shares["fully_recovered_without"]
        caption = f"of the {words.unit} are {words.found}"
        waffles = [
            Waffle.of("of the users are fully recovered", *fully),
            Waffle.of(caption, leakage.found, leakage.found_without),
        ]
        return self._rendered(
            "audit.html",
            leakage,
            leakage.ratings,
            figures,
            label=self.label,
            audit=found.audit,
            leakage=leakage,
            survey=found,
            waffles=waffles,
            columns=[words.short, "without", "advantage", "users"],
            by_known=[_report_row(one, _items_known(one), leakage) for one in found.by_known],
            knowledge=_knowledge_pictures(found),
            by_strategy=[_report_row(one, _among_others(one), leakage) for one in found.by_strategy],
            by_activity=[_group_row(one, words.held) for one in found.by_activity],
            by_popularity=[_group_row(one, words.held) for one in found.by_popularity],
            tried=[
                {
                    "label": row.what,
                    "cells": [row.accounts, dashed(row.advantage), dashed(row.fully_recovered)],
                    "tags": {"own": "the strongest"} if row.chosen else {},
                }
                for row in wording.tried_rows(leakage)
            ],
            **_comparison(found.frontier, found.guarantees, own=True),
        )


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
    n_targets, seed = leakage.n_targets, leakage.settings["seed"]
    given = f"{report.audited}, {attack}, targets={n_targets}, rng={seed}"
    return f"gf.audit_page(gf.audit(ratings, {given})).save('audit.html')"


def _among_others(report: LeakReport) -> str:
    """Return one attacker among others who know as many ratings."""
    choose = report.settings["settings"]["choose"]
    known = _KINDS[choose] if isinstance(choose, str) else "named ones"
    does = report.attacker.describe(report.n_fakes)
    return f"knows {known}; {wording.accounts(report.n_fakes)}, {does}"


def _items_known(report: LeakReport) -> str:
    known, held = report.known, words_of(report).held
    return f"1 {held[:-1]} known" if known == 1 else f"{known} {held} known"


def _knowledge_pictures(survey: Survey) -> list[Markup]:
    """Return the picture for a wide page and for a narrow one; none where there is only one amount."""
    if len(survey.by_known) < 2:
        return []
    own = survey.audit.leakage
    words = words_of(own)
    said = (
        f"The share of {words.unit} that are {words.found}, by the number of {words.held} of the target that the "
        "attacker knows; the table below has the figures."
    )
    themes = (replace(WIDE, height=200), replace(NARROW, height=190))
    return [inline_svg(knowledge_spec(survey.by_known, own, theme), theme, said) for theme in themes]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FrontierPage(Page):
    """A frontier as a page."""

    found: Frontier
    """The figures."""
    guarantees: Sequence[Guarantee]
    """The guarantee of each recommender, in the same order."""
    ratings: Ratings
    """What was recommended from: its rounded size and its scale are shown."""
    max_loss: float | None = None
    """The largest acceptable error; of lists the largest acceptable 1 - NDCG@10."""

    def __repr__(self) -> str:
        return f"FrontierPage({len(self.found.points)} recommenders)"

    @cached_property
    def html(self) -> str:
        """The page as text."""
        found, max_loss, words = self.found, self.max_loss, words_of(self.found)
        limit = None if max_loss is None else 1.0 - max_loss if words.lists else max_loss
        figures = {
            words.limit: limit,
            **found.to_dict(max_loss),
            "guarantees": [one.to_dict() for one in self.guarantees],
        }
        most = max(found.points, key=lambda one: one.advantage.value)
        shown = [one for one in (most, found.best_within(max_loss)) if one is not None]
        caption = "of the users are fully recovered from {}"
        waffles = [
            Waffle.of(caption.format(one.name), one.fully_recovered, one.fully_recovered_without) for one in shown
        ]
        return self._rendered(
            "frontier.html",
            found,
            self.ratings,
            figures,
            most=most,
            guess=dashed(measured(found.guess)),
            waffles=waffles,
            **_comparison(found, self.guarantees, max_loss=max_loss),
        )


@checked
def save_result(result: LeakReport | AuditReport | Frontier, path: str | PathLike[str]) -> None:
    """Write a result: an audit as a JSON file, atomically, any other as a folder with a table and a manifest.

    A frontier's folder also holds its chart (HTML, SVG, PNG). An older result of the same kind is replaced. A folder
    without a manifest is not complete: its writing was interrupted. No id and no rating is written.
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
        stated = {"kind": type(result).__name__}
        stated |= {"attack": result.attack, "attacked": result.attacked}
        told = {**stated, **result.settings, **result.to_dict(), "table": _TABLE}
        write_folder(path, "report", told, (_TABLE, result.table()))


class Mark(NamedTuple):
    """A share with its interval: text, and where it is on a track of 100; None where it is not known."""

    text: str
    at: float | None
    low: float | None
    width: float

    @classmethod
    def of(cls, found: Estimate) -> Mark:
        """Return the mark of a share."""
        if math.isnan(found.value):
            return cls("not known", None, None, 0.0)
        at, low, high = (round(100 * share, 2) for share in found)
        text = dashed(measured(found))
        if math.isnan(low):
            return cls(text, at, None, 0.0)
        return cls(text, at, low, round(max(high - low, _THIN), 2))


def _report_row(report: LeakReport, label: str, own: LeakReport) -> dict[str, Any]:
    shares = report.found, report.found_without, report.estimates["advantage"], report.guessed
    row = _row(label, shares, report.n_targets)
    return {**row, "tags": {"own": "this audit"} if report is own else {}}


def _group_row(group: Group, held: str) -> dict[str, Any]:
    shares = group.recovery, group.recovery_without, group.advantage, group.guess
    return _row(wording.group_name(group, held), shares, group.n_users)


def _row(label: str, shares: Sequence[Estimate], n_users: int) -> dict[str, Any]:
    """Return a line of a table: recovery in both worlds, the advantage, and the number of users."""
    told, without, gained, guess = map(Mark.of, shares)
    return {
        "label": label,
        "track": {"told": told, "without": without, "guess": guess},
        "cells": [told.text, without.text, gained.text, f"{n_users:,}"],
        "tags": {},
    }


class Waffle(NamedTuple):
    """A hundred squares: some full without the target's data, some because of it, some empty."""

    caption: str
    number: str
    interval: str
    without: str
    interval_without: str
    n_anyway: int  # how many squares are full in both worlds
    n_full: int

    @classmethod
    def of(cls, caption: str, share: Estimate, without: Estimate) -> Waffle:
        """Return the squares of a share in both worlds."""
        n_full, n_without = (0 if math.isnan(one.value) else round(100 * one.value) for one in (share, without))
        told = [(of_100(one.value), dashed(interval(one))) for one in (share, without)]
        return cls(caption, *told[0], *told[1], min(n_full, n_without), n_full)


def _comparison(
    found: Frontier, guarantees: Sequence[Guarantee], *, own: bool = False, max_loss: float | None = None
) -> dict[str, Any]:
    """Return the comparison: picture, table, choice and cards. With `own` the first was audited."""
    words, best = words_of(found), found.best_within(max_loss)
    said = f"Recommenders by leak and by {words.loss}; the table below has the figures."
    rows = []
    for place_, point in enumerate(found.points):
        tags = {"own": "audited"} if own and place_ == 0 else {}
        tags |= {"best": "recommended"} if point is best else {}
        marks = (point.fully_recovered, point.advantage, point.recovery)
        quality = "not known" if math.isnan(point.quality) else f"{point.quality:.3f}"
        cells = [*(Mark.of(one).text for one in marks), quality, of_100(point.coverage)]
        cells += [f"{point.n_targets:,}", point.status]
        label = f"{LETTERS[place_ % len(LETTERS)]}\u2002{point.name}"
        rows.append({"label": label, "cells": cells, "tags": tags})
    there = {point.status for point in found.points}
    shares = ["fully recovered", "advantage", words.short]
    return {
        "pictures": [inline_svg(frontier_spec(found, theme, max_loss), theme, said) for theme in (WIDE, NARROW)],
        "compared": rows,
        "compared_columns": [*shares, words.column, words.covered, "users", "guarantee"],
        "recommended": best is not None,
        "far": ", ".join(f"{one.name} ({one.loss:.2f})" for one in beyond(found)),
        "statuses": {name: told for name, told in STATUSES.items() if name in there},
        "choice": dashed(_choice(found, best, max_loss, own=own)),
        "cards": wording.cards_of([point.name for point in found.points], guarantees),
    }


def _choice(found: Frontier, best: FrontierPoint | None, max_loss: float | None, *, own: bool) -> str:
    """Return the recommendation, and its cost in quality beside what was audited."""
    words, name = words_of(found), None if best is None else best.name
    text = wording.recommendation(found, name, best, max_loss)
    audited = found.points[0]
    if best is None or not own:
        return text
    if best is audited:
        return f"{text} It is the audited one."
    return f"{text} Its {words.column} is {best.quality:.3f}; that of {audited.name} is {audited.quality:.3f}."
