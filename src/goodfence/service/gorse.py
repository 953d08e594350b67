"""`--compat gorse`: the paths of Gorse for feedback, users, items, recommendations and sessions, over the same data.

A client of Gorse moves by changing the address. Its key goes on in `X-API-Key`. Routes that show other users' data
answer 410 with the reason. Written from Gorse's source; tested with requests as its clients send them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Header, Query
from pydantic import BaseModel, Field

from goodfence.errors import BadRequest
from goodfence.neighbours.lists import Ranked
from goodfence.service.hot_path import MOST_LISTED, Wish, best_for, uid_of
from goodfence.service.records import Said
from goodfence.service.routes import GORSE, Asking, refuse, route
from goodfence.service.serving import ServedModel

Version = Annotated[str | None, Header(alias="X-API-Version")]
_LEAK = "Gorse computes this from the feedback of single users, who could be read from it"


class GorseFeedback(BaseModel):
    """One feedback of Gorse."""

    FeedbackType: str = ""
    UserId: str = Field(min_length=1, max_length=200)
    ItemId: str = Field(min_length=1, max_length=200)
    Value: float = Field(default=1.0, allow_inf_nan=False)
    Timestamp: str = ""


class GorseUser(BaseModel):
    """A user of Gorse; labels do not enter the model."""

    UserId: str = Field(min_length=1, max_length=200)


class GorseItem(BaseModel):
    """An item of Gorse."""

    ItemId: str = Field(min_length=1, max_length=200)
    IsHidden: bool = False
    Categories: list[str] | None = None
    Comment: str = Field(default="", max_length=500)


def _value(ask: Asking, one: GorseFeedback) -> float:
    scale = ask.service.scale
    return 1.0 if scale is None else one.Value


def _seconds(text: str) -> int | None:
    if not text:
        return None
    try:
        return max(0, int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()))
    except (ValueError, OverflowError):
        raise BadRequest("Timestamp must be a date and time, as in 2026-01-31T10:00:00Z") from None


@route("POST", "/api/feedback", "backend", compat=GORSE)
@route("PUT", "/api/feedback", "backend", compat=GORSE)
def insert_feedback(ask: Asking, feedback: list[GorseFeedback]) -> dict[str, int]:
    """Save feedback, which replaces what was there."""
    rows = [(one.UserId, Said(one.ItemId, _value(ask, one), _seconds(one.Timestamp))) for one in feedback]
    if rows:
        ask.service.records.save_bulk(rows, ask.service.scale)
    return {"RowAffected": len(rows)}


@route("POST", "/api/user", "backend", compat=GORSE)
def insert_user(ask: Asking, user: GorseUser) -> dict[str, int]:
    """Open an account."""
    ask.service.records.save_users([user.UserId])
    return {"RowAffected": 1}


@route("DELETE", "/api/user/{user}", "backend", compat=GORSE)
def delete_user(ask: Asking, user: str) -> dict[str, int]:
    """Forget a user."""
    row = ask.service.records.user_row(user)
    if row is not None:
        ask.service.forget(row)
    return {"RowAffected": 1}


@route("POST", "/api/item", "operator", compat=GORSE)
def insert_item(ask: Asking, item: GorseItem) -> dict[str, int]:
    """Declare an item."""
    told = {"item": item.ItemId, "title": item.Comment, "labels": item.Categories or [], "hidden": item.IsHidden}
    return {"RowAffected": ask.service.records.save_items([told])}


@route("GET", "/api/recommend/{user}", "backend", compat=GORSE)
def recommend_as_gorse(
    ask: Asking, user: str, n: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 10, x_api_version: Version = None
) -> list[Any]:
    """Recommend to a user: ids, or ids and scores for X-API-Version 2."""
    row = ask.service.records.user_row(user)
    found = best_for(ask.service, ask.service.records.profile(row), uid_of(ask.service, row), Wish(n))
    return _as_gorse(*found, scored=x_api_version == "2")


@route("POST", "/api/session/recommend", ("public", "backend"), compat=GORSE)
def recommend_session(
    ask: Asking, feedback: list[GorseFeedback], n: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 10
) -> list[Any]:
    """Recommend to a guest by the feedback in the body, which is not stored."""
    said = [Said(one.ItemId, _value(ask, one)) for one in feedback[:1000]]
    profile = ask.service.records.guest(said, ask.service.scale)
    return _as_gorse(*best_for(ask.service, profile, None, Wish(n)), scored=True)


@route("GET", "/api/health/live", "public", compat=GORSE)
def gorse_live() -> dict[str, bool]:
    """Return that the process runs."""
    return {"Ready": True}


@route("GET", "/api/health/ready", "public", compat=GORSE)
def gorse_ready(ask: Asking) -> dict[str, bool]:
    """Return whether the service can recommend."""
    return {"Ready": ask.service.model is not None}


def _as_gorse(model: ServedModel, ranked: Ranked, *, scored: bool) -> list[Any]:
    ids = [model.items[column] for column in ranked.columns.tolist()]
    if not scored:
        return ids
    return [{"Id": item, "Score": score} for item, score in zip(ids, ranked.scores.tolist(), strict=True)]


for _path in (
    "/api/user/{user}/neighbors",
    "/api/user-to-user/{name}/{user}",
    "/api/item/{item}/feedback",
    "/api/item/{item}/feedback/{kind}",
    "/api/feedback",
    "/api/feedback/{kind}",
    "/api/item-to-item/{name}/{item}",
    "/api/non-personalized/{name}",
    "/api/popular",
    "/api/latest",
):
    route("GET", _path, "public", status=410, compat=GORSE)(refuse(_LEAK))
