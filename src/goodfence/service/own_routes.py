"""What users ask about themselves, and what an application's server asks for one of its users."""

from __future__ import annotations

import hashlib
import json
import time
from typing import Annotated, Any

from fastapi import Header, Response
from pydantic import BaseModel, Field

from goodfence.errors import BadRequest, Conflict
from goodfence.service.access import Caller
from goodfence.service.hot_path import MOST_IN_PROFILE, active, uid_of
from goodfence.service.records import Said, checked_id
from goodfence.service.routes import Asking, Inquiry, missing, route
from goodfence.service.state import Service

_KEPT_FOR = 24 * 3600


class Event(BaseModel):
    """One rating or event."""

    item: str = Field(max_length=200)
    value: float = Field(default=1.0, allow_inf_nan=False)
    at: int | None = Field(default=None, ge=0, le=2**40)


class Events(BaseModel):
    """Ratings or events of one user."""

    events: list[Event] = Field(max_length=MOST_IN_PROFILE)


class CellValue(BaseModel):
    """The value of one cell."""

    value: float = Field(default=1.0, allow_inf_nan=False)


class WantedItems(BaseModel):
    """Items to predict."""

    items: list[str] = Field(max_length=MOST_IN_PROFILE)


class SentProfile(BaseModel):
    """All that a new user said, as items and values."""

    items: list[str] = Field(default=[], max_length=MOST_IN_PROFILE)
    values: list[float] | None = Field(default=None, max_length=MOST_IN_PROFILE)


class NamedProfile(SentProfile):
    """The same of a user."""

    user: str = Field(min_length=1, max_length=200)


class SentProfiles(BaseModel):
    """Several of them."""

    users: list[NamedProfile] = Field(max_length=MOST_IN_PROFILE)


IdempotencyKey = Annotated[str | None, Header(max_length=200)]


@route("POST", "/v1/users", ("public", "operator"), status=201)
def open_user(ask: Asking, user: str | None = None) -> dict[str, str]:
    """Open an account and return its key, which is shown once. Without self-service this needs an operator's key."""
    operator = "operator" in ask.caller.scopes
    if not operator and not ask.service.serving.self_service:
        raise Conflict("accounts are opened by the operator here")
    if user is not None and not operator:
        raise BadRequest("the service chooses the id of an account that you open yourself")
    if user is not None:
        checked_id(user)
    name, key = ask.service.open_account(user)
    return {"user": name, "key": key}


@route("GET", "/v1/me", "user")
def about_me(ask: Asking) -> dict[str, Any]:
    """Return what the service has of me, and what holds for me."""
    model = ask.service.model
    guarantee = None if model is None else model.guarantee.to_dict()
    return {"ratings": len(ask.service.records.said_by(ask.user)), "guarantee": guarantee}


@route("DELETE", "/v1/me", "user", status=202)
def forget_me(ask: Asking) -> dict[str, Any]:
    """Forget me; what was released stays, and is covered by the guarantee."""
    ask.service.forget(ask.user)
    return _receipt(ask)


@route("GET", "/v1/me/export", "user")
def export_me(ask: Asking) -> Response:
    """Return all that I said, as NDJSON."""
    return Response(_lines(ask.service.records.said_by(ask.user)), media_type="application/x-ndjson")


@route("GET", "/v1/me/ratings", "user")
def my_ratings(ask: Asking) -> dict[str, Any]:
    """Return all that I said."""
    return {"ratings": ask.service.records.said_by(ask.user)}


@route("PUT", "/v1/me/ratings/{item}", "user", status=204)
def rate(ask: Asking, item: str, value: CellValue) -> None:
    """Say something of one item; the last value counts for my recommendations, the first for the model."""
    ask.service.records.save(ask.user, [Said(item, value.value)], ask.service.scale)


@route("DELETE", "/v1/me/ratings/{item}", "user", status=204)
def take_back(ask: Asking, item: str) -> None:
    """Take back what I said of an item."""
    _take_back(ask, ask.user, item)


@route("POST", "/v1/me/events", "user", status=202)
def my_events(ask: Asking, events: Events, idempotency_key: IdempotencyKey = None) -> Response:
    """Save what I say of several items; with an `Idempotency-Key` a repeated request changes nothing."""
    return saved_once(ask, ask.user, events, idempotency_key)


@route("POST", "/v1/me/predictions", "user")
def predict_me(ask: Asking, wanted: WantedItems) -> dict[str, Any]:
    """Predict my ratings of items; null where there is none."""
    return predictions(ask.service, ask.user, wanted.items)


@route("GET", "/v1/me/released", "user")
def released_with_me(ask: Asking) -> dict[str, Any]:
    """Return every release that learnt from me."""
    return {"released": ask.service.released_with(ask.user)}


# For an application's own server: one user a call, and no listing.


@route("PUT", "/v1/users/{user}", "backend", status=202)
def put_user(ask: Asking, user: str, profile: SentProfile) -> dict[str, Any]:
    """Open an account, if there is none, and save a profile."""
    said = [(user, one) for one in _said(profile)]
    ask.service.records.save_bulk(said, ask.service.scale, [user])
    return {"accepted": len(said)}


@route("POST", "/v1/users/batch", "backend", status=202, largest=16 * 2**20)
def put_users(ask: Asking, told: SentProfiles) -> dict[str, Any]:
    """Open accounts with their profiles, all or none."""
    said = [(profile.user, one) for profile in told.users for one in _said(profile)]
    ask.service.records.save_bulk(said, ask.service.scale, [profile.user for profile in told.users])
    return {"accepted": len(said)}


def _said(profile: SentProfile) -> list[Said]:
    values = [1.0] * len(profile.items) if profile.values is None else profile.values
    if len(values) != len(profile.items):
        raise BadRequest("values must be as many as items")
    return [Said(item, value) for item, value in zip(profile.items, values, strict=True)]


@route("DELETE", "/v1/users/{user}", "backend", status=202)
def forget_user(ask: Asking, user: str) -> dict[str, Any]:
    """Forget a user; the answer is the same whether there is one."""
    row = ask.service.records.user_row(user)
    if row is not None:
        ask.service.forget(row)
    return _receipt(ask)


@route("POST", "/v1/users/{user}/events", "backend", status=202)
def user_events(ask: Asking, user: str, events: Events, idempotency_key: IdempotencyKey = None) -> Response:
    """Save what a user says, whose account is opened if there is none."""
    [row] = ask.service.records.save_users([user])
    return saved_once(ask, row, events, idempotency_key)


@route("DELETE", "/v1/users/{user}/ratings/{item}", "backend", status=204)
def take_back_of_user(ask: Asking, user: str, item: str) -> None:
    """Take back what a user said of an item."""
    _take_back(ask, ask.service.records.user_row(user), item)


@route("POST", "/v1/users/{user}/predictions", "backend")
def predict_user(ask: Asking, user: str, wanted: WantedItems) -> dict[str, Any]:
    """Predict a user's ratings; of somebody unknown what an empty profile gets."""
    return predictions(ask.service, ask.service.records.user_row(user), wanted.items)


def predictions(service: Service, user: int | None, items: list[str]) -> dict[str, Any]:
    """Return predictions for a user, from the released model and their own ratings."""
    found = active(service).predict(service.records.profile(user), uid_of(service, user), items)
    return {"predictions": [{"item": item, "value": value} for item, value in zip(items, found, strict=True)]}


def saved_once(ask: Inquiry, user: int, events: Events, key: str | None) -> Response:
    """Save events, and nothing if the same request with the same key was answered before."""
    said = [Said(one.item, one.value, one.at) for one in events.events]
    body = json.dumps({"accepted": len(said)}).encode()
    digest = hashlib.sha256(f"{user}\0{events.model_dump_json()}".encode()).digest()
    earlier = None if key is None else _earlier(ask.service, ask.caller, key, digest)
    if earlier is not None:
        return earlier
    ask.service.records.save(user, said, ask.service.scale)  # saving again changes nothing, should the next line fail
    if key is not None:
        now = int(time.time())

        def work(writer: Any) -> None:
            writer.run("DELETE FROM idempotency WHERE at < ?", now - _KEPT_FOR)
            row = (ask.caller.key, key, digest, 202, body, now)
            sql = "INSERT INTO idempotency (key_id, key, request, status, body, at) VALUES (?, ?, ?, ?, ?, ?)"
            writer.run(f"{sql} ON CONFLICT DO NOTHING", *row)

        ask.service.store.write(work)
    return Response(body, 202, media_type="application/json")


def _earlier(service: Service, caller: Caller, key: str, digest: bytes) -> Response | None:
    sql = "SELECT request, status, body FROM idempotency WHERE key_id = ? AND key = ? AND at >= ?"
    rows = service.store.read(sql, caller.key, key, int(time.time()) - _KEPT_FOR)
    if not rows:
        return None
    request, status, body = rows[0]
    if bytes(request) != digest:
        problem = Conflict("this Idempotency-Key came with another request")
        problem.status = 422
        raise problem
    return Response(bytes(body), status, media_type="application/json")


def _take_back(ask: Inquiry, user: int | None, item: str) -> None:
    row = ask.service.records.item_rows.get(item)
    if row is None:
        raise missing("item")
    if user is not None:
        ask.service.records.remove(user, row)


def _receipt(ask: Inquiry) -> dict[str, Any]:
    return {
        "forgotten": True,
        "ledger": ask.service.books.head_text,
        "stays": "released statistics, which the guarantee covers: they are about as likely without this user",
    }


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)
