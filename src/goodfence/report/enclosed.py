"""The figures of a page as JSON inside it: what a program reads, and what makes the page repeatable."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import goodfence
from goodfence.attack.report import AttackReport
from goodfence.attack.saving import ratings_checksum
from goodfence.auditing.exposed import Group
from goodfence.auditing.frontier import Frontier
from goodfence.auditing.survey import Survey
from goodfence.privacy.guarantee import Guarantee
from goodfence.report.known import known

_PROMISE = ("verdict", "summary", "exhibit", "bound", "claimed_mu", "moved", "pair")


def survey_as_json(survey: Survey, label: str, data: str, command: str) -> dict[str, Any]:
    """Return everything that the page of an audit says: no ids, no ratings, no path."""
    audit, leakage = survey.audit, survey.audit.leakage
    ratings = leakage.ratings
    told = audit.to_dict()
    n_users, n_items = ratings.shape
    return {
        "goodfence": goodfence.__version__,
        "command": command,
        "recommender": label,
        "seed": leakage.settings["seed"],
        "data": {
            "name": data,
            "users": n_users,
            "items": n_items,
            "ratings": ratings.n_ratings,
            "scale": str(ratings.scale),
            "scale_declared": ratings.scale.declared,
            "checksum": ratings_checksum(ratings),
        },
        "attack": attack_as_json(leakage),
        "read_whole": leakage.read_whole._asdict(),
        "promise": {name: told[name] for name in _PROMISE},
        "guarantee": told["guarantee"],
        "by_known": [attack_as_json(report) for report in survey.by_known],
        "by_strategy": [attack_as_json(report) for report in survey.by_strategy],
        "by_activity": [_group(group) for group in survey.by_activity],
        "by_popularity": [_group(group) for group in survey.by_popularity],
        "frontier": frontier_as_json(survey.frontier, survey.promises),
    }


def frontier_as_json(
    found: Frontier, promises: Sequence[Guarantee], max_mae: float | None = None
) -> dict[str, Any]:
    """Return the ways side by side."""
    best = found.recommended(max_mae)
    return {
        "points": [point.row() for point in found.points],
        "promises": [asdict(promise) for promise in promises],
        "guess": found.guess._asdict(),
        "recommended": None if best is None else found.points.index(best),
        "settings": dict(found.settings),
    }


def attack_as_json(report: AttackReport) -> dict[str, Any]:
    """Return who attacked whom, and every figure with its interval; items that were named stay unnamed."""
    settings = dict(report.settings["settings"])
    if not isinstance(settings["choose"], str):
        settings["choose"] = "named items"
    return {
        "settings": settings,
        "fakes": report.n_fakes,
        "targets": report.n_targets,
        "left_out": report.n_left_out,
        "hidden": report.n_hidden,
        "estimates": {name: found._asdict() for name, found in report.estimates.items()},
    }


def as_text(told: Mapping[str, Any]) -> str:
    r"""Return JSON that can stand inside a page: what is not known is null, and nothing closes its element.

    Examples
    --------
    >>> as_text({"mae": float("nan"), "name": "</script>"})
    '{"mae": null, "name": "\\u003c/script\\u003e"}'
    """
    text = json.dumps(known(told), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _group(group: Group) -> dict[str, Any]:
    told = asdict(group)
    for name in ("read", "read_without", "guess"):
        told[name] = getattr(group, name)._asdict()
    return told
