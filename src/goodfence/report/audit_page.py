"""`audit_page`: an audit as one HTML file, for a reader who has never heard of epsilon."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from goodfence.attack.attack import Attack, mechanism_in
from goodfence.attack.knn_attack import KNNAttack
from goodfence.attack.saving import ratings_checksum
from goodfence.attack.targets import Wanted
from goodfence.auditing.audit import audit
from goodfence.auditing.compared import Compared, name_of
from goodfence.auditing.survey import TARGETS, Survey, known_of, survey
from goodfence.data.ratings import Ratings
from goodfence.report.cards import briefly, cards_of
from goodfence.report.enclosed import survey_as_json
from goodfence.report.frontier_picture import choice_of, frontier_pictures, ways_of
from goodfence.report.knowledge_chart import knowledge_charts
from goodfence.report.marks import group_rows, knowledge_rows, strategy_rows
from goodfence.report.rendering import render, write_page
from goodfence.report.waffle import waffle
from goodfence.report.wording import attacked, because, guessed, read_by, whole
from goodfence.rng import RNG


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AuditPage:
    """An audit and what stands around it, ready to be written as a page. It holds no id and no rating."""

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

    @property
    def html(self) -> str:
        """The page as text."""
        return render(
            "audit.html",
            _values(self),
            survey_as_json(self.survey, self.label, self.data, self.command),
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page, whole or not at all."""
        write_page(self.html, Path(path))


def audit_page(
    ratings: Ratings,
    audited: Compared,
    *,
    attack: Attack | None = None,
    targets: Wanted | None = None,
    trials: int = 0,
    compared: Sequence[Compared] | None = None,
    others: int = TARGETS,
    data: str = "ratings",
    rng: RNG = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> AuditPage:
    """Audit a recommender, look around the audit, and return a page that says what was found.

    Parameters
    ----------
    ratings, audited, attack, trials, threads, progress
        As in `audit`.
    rng
        A seed for everything but the noise of private models; None draws one, and the page tells it.
    targets
        Who is attacked; None for everybody, or 30 where every target needs two fits.
    compared
        What else could be used; None for kNN, PPNS, nPNS, PNCF and two private models.
    others
        How many people further attackers attack.
    data
        What the page calls the ratings.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> page = audit_page(films, gf.KNN(k=20), targets=40, compared=[], others=20, data="films", rng=7)
    >>> "What would stop it" in page.html
    True
    """
    has_k = mechanism_in(audited) is not None
    everybody = ratings.shape[0] if has_k else None
    wanted = everybody if targets is None else targets
    if rng is None:
        rng = secrets.randbelow(
            2**32
        )  # everybody on the page is attacked from one seed, which it tells
    running: dict[str, Any] = {"rng": rng, "threads": threads, "progress": progress}
    report = audit(ratings, audited, attack=attack, targets=wanted, trials=trials, **running)
    plan = attack
    if plan is None:
        plan = KNNAttack(known=8, fakes=None if has_k else report.leakage.n_fakes)
    around = survey(report, audited, plan, compared=compared, targets=others, **running)
    line = _python_line(report.audited, plan, targets, report.leakage.settings["seed"])
    return AuditPage(survey=around, label=name_of(audited), data=data, command=line)


def _python_line(audited: str, attack: Attack, targets: Wanted | None, seed: int | None) -> str:
    """Return the call that makes the figures again; neither ids nor named items are in it."""
    plan = repr(attack) if isinstance(attack.choose, str) else f"known={attack.known}, named items"
    some = f", targets={targets}" if isinstance(targets, int) else ""
    return f"gf.audit_page(ratings, {audited}, attack={plan}{some}, rng={seed}).save('audit.html')"


def _values(page: AuditPage) -> dict[str, Any]:
    """Return what the template shows."""
    leakage = page.survey.audit.leakage
    ratings = leakage.ratings
    n_users, n_items = ratings.shape
    return {
        "label": page.label,
        "data": page.data,
        "command": page.command,
        "n_users": n_users,
        "n_items": n_items,
        "n_ratings": ratings.n_ratings,
        "scale": ratings.scale,
        "seed": leakage.settings["seed"],
        "checksum": ratings_checksum(ratings),
        "audit": page.survey.audit,
        **_sentences(page.survey),
        **_attacker(page.survey),
        **_figures(page.survey),
    }


def _sentences(found: Survey) -> dict[str, Any]:
    """Return what is said in words."""
    leakage = found.audit.leakage
    return {
        "found": read_by(leakage),
        "guessed": guessed(leakage),
        "promised": briefly(found.audit.guarantee),
        "because": because(leakage),
        "whole": whole(leakage.read_whole),
        "attacked": attacked(leakage, leakage.ratings.shape[0]),
    }


def _attacker(found: Survey) -> dict[str, Any]:
    """Return what the strip that draws the attacker shows."""
    leakage = found.audit.leakage
    settings = leakage.settings["settings"]
    return {
        "m": known_of(leakage),
        "choose": settings["choose"] if isinstance(settings["choose"], str) else "named",
        "adaptive": settings["name"] == "AdaptiveAttack",
        "ask_all": settings.get("ask") == "all",
        "n_fakes": leakage.n_fakes,
        "n_targets": leakage.n_targets,
        "n_left_out": leakage.n_left_out,
        "neighbours": found.neighbours,
        "n_skipped": found.n_skipped,
    }


def _figures(found: Survey) -> dict[str, Any]:
    """Return pictures, tables and cards."""
    leakage = found.audit.leakage
    estimates = leakage.estimates
    by_known = knowledge_rows(found.by_known, leakage)
    ways = ways_of(found.frontier, own=True)
    return {
        "waffles": [
            waffle("read", "read, with her in the data", estimates["recovery"]),
            waffle("without", "read, without her in the data", estimates["recovery_without"]),
            waffle("guess", "guessed, with no account at all", estimates["guess"]),
        ],
        "by_known": by_known,
        "knowledge": knowledge_charts([known_of(report) for report in found.by_known], by_known),
        "by_strategy": strategy_rows(found.by_strategy),
        "by_activity": group_rows(found.by_activity),
        "by_popularity": group_rows(found.by_popularity),
        "ways": ways,
        "pictures": frontier_pictures(found.frontier, ways),
        "choice": choice_of(ways),
        "cards": cards_of([way.name for way in ways], found.promises),
    }
