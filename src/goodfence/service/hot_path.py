"""Recommendations: from key to answer in one pass, without validation of our own answer.

`/v1/me/recommendations`, `/v1/users/{user}/recommendations` and `/v1/session/recommendations` are plain routes of the
application: profile, one ranking in compiled code, and ids that were encoded when the model was loaded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from goodfence.errors import BadRequest, GoodfenceError, NotReady
from goodfence.neighbours.lists import Ranked
from goodfence.service.access import Caller
from goodfence.service.records import Said, StoredProfile
from goodfence.service.routes import LARGEST, Registered, admit, problem_of, route, whole_number
from goodfence.service.serving import ServedModel, UnprovedAnswers
from goodfence.service.state import Service

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
MOST_LISTED, DEFAULT_LISTED, MOST_IN_PROFILE = 100, 10, 1_000
_JSON = (b"content-type", b"application/json")
_PRIVATE = (b"cache-control", b"no-store")


class GuestRating(msgspec.Struct):
    """One entry of a guest's profile."""

    item: str
    value: float = 1.0


class Guest(msgspec.Struct):
    """A profile that is in the request and nowhere else."""

    profile: list[GuestRating]
    n: int = DEFAULT_LISTED
    exclude: list[str] = []
    category: str | None = None


_guest = msgspec.json.Decoder(Guest)


@dataclass(frozen=True, slots=True, repr=False)
class Wish:
    """What is asked for, besides whose list."""

    n: int = DEFAULT_LISTED
    category: str | None = None
    exclude: tuple[str, ...] = ()

    @classmethod
    def of_query(cls, query: bytes) -> Wish:
        """Return what a query string asks for."""
        if not query:
            return _USUAL
        found: dict[str, list[str]] = {}
        for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
            found.setdefault(name, []).append(value)
        n = whole_number(found["n"][-1], "n", MOST_LISTED) if "n" in found else DEFAULT_LISTED
        exclude = tuple(item for text in found.get("exclude", ()) for item in text.split(","))
        return cls(n, found.get("category", [None])[-1], exclude)


_USUAL = Wish()


class HotRoute:
    """An ASGI application for one route: admit, answer, send."""

    def __init__(self, registered: Registered, service: Service) -> None:
        self.registered, self.service = registered, service
        self.answer = registered.endpoint

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> int:
        """Answer one request, and return the status."""
        service = self.service
        try:
            client = scope.get("client")
            caller = admit(service, self.registered, scope["headers"], client[0] if client else "")
            body = await _body(receive) if self.registered.method == "POST" else b""
            status, told, headers = 200, self.answer(service, caller, scope, body), [_JSON, _PRIVATE]
        except GoodfenceError as error:
            status, told, headers = problem_of(error)
        headers = [*headers, *service.headers, (b"content-length", b"%d" % len(told))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": told})
        return status


async def _body(receive: Receive) -> bytes:
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        part = message.get("body", b"")
        size += len(part)
        if size > LARGEST:
            raise body_too_large()
        parts.append(part)
        more = message.get("more_body", False)
    return b"".join(parts)


def body_too_large(rule: str = "the body must be at most 1 MiB; import more at /v1/import") -> BadRequest:
    """Return the error for a body beyond the limit."""
    problem = BadRequest(rule)
    problem.status = 413
    return problem


def active(service: Service) -> ServedModel:
    """Return the model that answers."""
    if service.model is None:
        raise NotReady("no model is active; an operator trains one with POST /v1/models")
    return service.model


def best_for(service: Service, profile: StoredProfile, uid: str | None, wish: Wish) -> tuple[ServedModel, Ranked]:
    """Return the model and its best items for a profile."""
    model = active(service)
    allowed = model.allow(wish.category, list(wish.exclude))
    return model, model.rank(profile, uid, allowed, wish.n)


def uid_of(service: Service, user: int | None) -> str | None:
    """Return the random id by which an unproved model knows a user; no other model knows users."""
    if user is None or service.model is None or not isinstance(service.model.answers, UnprovedAnswers):
        return None
    uid = service.records.uid(user)
    return None if uid is None else uid.hex()


def encoded(model: ServedModel, ranked: Ranked) -> bytes:
    """Return the JSON of a list."""
    fragments = model.fragments
    pairs = zip(ranked.columns.tolist(), ranked.scores.tolist(), strict=True)
    entries = b",".join([b"%b%.6g}" % (fragments[column], score) for column, score in pairs])
    return b'{"items":[%b],"model":"%b"}' % (entries, model.id.encode())


def _of_user(service: Service, user: int | None, query: bytes) -> bytes:
    profile = service.records.profile(user)
    return encoded(*best_for(service, profile, uid_of(service, user), Wish.of_query(query)))


@route("GET", "/v1/me/recommendations", "user")
def recommend_to_me(service: Service, caller: Caller, scope: dict[str, Any], _: bytes) -> bytes:
    """Recommend to the user whose key this is; changes nothing."""
    return _of_user(service, caller.user, scope["query_string"])


@route("GET", "/v1/users/{user}/recommendations", "backend")
def recommend_to_user(service: Service, _: Caller, scope: dict[str, Any], __: bytes) -> bytes:
    """Recommend to a user; somebody unknown gets what an empty profile gets."""
    ext = scope["path"].split("/")[3]
    return _of_user(service, service.records.user_row(ext), scope["query_string"])


@route("POST", "/v1/session/recommendations", ("public", "backend"))
def recommend_to_guest(service: Service, _: Caller, __: dict[str, Any], body: bytes) -> bytes:
    """Recommend to a guest, whose profile is in the body and is not stored."""
    try:
        guest = _guest.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise BadRequest(
            'the body must be {"profile": [{"item": "...", "value": 1}]}, with n, exclude, category'
        ) from None
    if len(guest.profile) > MOST_IN_PROFILE or not 1 <= guest.n <= MOST_LISTED:
        raise BadRequest(f"a profile has at most {MOST_IN_PROFILE} items, and n is from 1 to {MOST_LISTED}")
    said = [Said(one.item, one.value) for one in guest.profile]
    profile = service.records.guest(said, active(service).answers.scale)
    return encoded(*best_for(service, profile, None, Wish(guest.n, guest.category, tuple(guest.exclude))))


HOT = (recommend_to_me, recommend_to_user, recommend_to_guest)
