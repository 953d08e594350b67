"""The one registry of routes: nothing is answered that did not come through `route`, whose scope has no default."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute

from goodfence.errors import BadRequest, GoodfenceError, NotAllowed, NotThere, TooManyRequests, WouldLeak
from goodfence.service.access import RATES, Caller, Scope, unknown_key

if TYPE_CHECKING:
    from goodfence.service.state import Service

Handler = TypeVar("Handler", bound=Callable[..., Any])
Headers: TypeAlias = list[tuple[bytes, bytes]]
PROBLEM = b"application/problem+json"
COOKIE = "goodfence"
LARGEST = 2**20
"""Bytes of a body, but for imports, which stream."""
UNLIMITED = 2**62
GORSE = "gorse"
_SAFE = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A route: how it is asked, by whom, and what answers."""

    method: str
    path: str
    scopes: tuple[Scope, ...]
    endpoint: Callable[..., Any]
    status: int = 200
    largest: int = LARGEST
    page: bool = False
    """Whether it answers with a page, not with JSON."""
    compat: str | None = None
    """Of which other service this is a path; None for our own."""


REGISTRY: dict[tuple[str, str], Registered] = {}
"""Every route by method and path."""


def route(
    method: str,
    path: str,
    scope: Scope | tuple[Scope, ...],
    *,
    status: int = 200,
    largest: int = LARGEST,
    page: bool = False,
    compat: str | None = None,
) -> Callable[[Handler], Handler]:
    """Register a route; `scope` says who may ask, and a key with any of them may."""
    scopes = (scope,) if isinstance(scope, str) else scope

    def register(endpoint: Handler) -> Handler:
        told = {"status": status, "largest": largest, "page": page, "compat": compat}
        made = Registered(method=method, path=path, scopes=scopes, endpoint=endpoint, **told)  # type: ignore[arg-type]
        if (method, path) in REGISTRY:
            raise RuntimeError("a route is registered twice")
        REGISTRY[method, path] = made
        return endpoint

    return register


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What a route is given: the service, and who asks."""

    service: Service
    caller: Caller

    @property
    def user(self) -> int:
        """The row of the user whose key this is."""
        if self.caller.user is None:
            raise NotAllowed("this route is for the key of a user")
        return self.caller.user


def asked(request: Request) -> Inquiry:
    """Return who asks, after `admit`."""
    return Inquiry(request.app.state.service, request.state.caller)


Asking: TypeAlias = Annotated[Inquiry, Depends(asked)]


def admit(service: Service, registered: Registered, headers: Iterable[tuple[bytes, bytes]], address: str) -> Caller:
    """Return who asks, after the rate limit and the check of the scope, and before anything is read."""
    sent = dict(headers)
    token, from_cookie = token_of(sent)
    try:
        caller = service.keys.caller(token)
    except NotAllowed:
        if not from_cookie or registered.scopes != ("public",):
            service.limiter.admit(address, *RATES["public"])
            raise
        caller = service.keys.caller(None)  # an old cookie does not close public pages
    public = registered.scopes == ("public",)
    kind = next((scope for scope in registered.scopes if scope in caller.scopes), "public")
    rate = max((RATES[scope] for scope in caller.scopes), default=RATES["public"])
    service.limiter.admit(caller.key or address, *rate)
    if not public and kind == "public" and "public" not in registered.scopes:
        if not caller.scopes:
            raise unknown_key()
        raise NotAllowed(f"this route needs a key with the scope {' or '.join(registered.scopes)}")
    if from_cookie and registered.method not in _SAFE:
        _require_own_page(sent)
    return caller


def token_of(sent: Mapping[bytes, bytes]) -> tuple[str | None, bool]:
    """Return the key that was sent, and whether it came as a cookie, which a browser sends by itself."""
    bearer = sent.get(b"authorization", b"")
    if bearer[:7].lower() == b"bearer ":
        return bearer[7:].decode("latin-1"), False
    if b"x-api-key" in sent:
        return sent[b"x-api-key"].decode("latin-1"), False
    for part in sent.get(b"cookie", b"").split(b";"):
        name, _, value = part.strip().partition(b"=")
        if name == COOKIE.encode():
            return value.decode("latin-1"), True
    return None, False


def _require_own_page(sent: Mapping[bytes, bytes]) -> None:
    """Refuse a form of another site, which a browser would send with our cookie."""
    site = sent.get(b"sec-fetch-site")
    origin = sent.get(b"origin", b"").partition(b"://")[2]
    own = site == b"same-origin" if site is not None else origin == sent.get(b"host", b"")
    if not own:
        raise NotAllowed("a form must come from a page of this service")


class GuardedRoute(APIRoute):
    """A route that admits the caller before it reads the body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, behind the guard."""
        answer = super().get_route_handler()
        registered = REGISTRY[next(iter(self.methods or ())), self.path]

        async def guarded(request: Request) -> Response:
            address = request.client.host if request.client else ""
            request.state.caller = admit(request.app.state.service, registered, request.headers.raw, address)
            return await answer(request)

        return guarded


def problem_of(error: GoodfenceError) -> tuple[int, bytes, Headers]:
    """Return status, body (RFC 9457) and headers of an error; its message holds no id and no value."""
    status = getattr(error, "status", 422)
    headers: Headers = [(b"content-type", PROBLEM)]
    if isinstance(error, TooManyRequests):
        headers.append((b"retry-after", str(max(1, round(error.wait + 0.5))).encode()))
    if status == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b"Bearer"))
    return status, problem_body(status, error.code, str(error)), headers


def problem_body(status: int, code: str, detail: str) -> bytes:
    """Return the JSON of a problem."""
    title = HTTPStatus(status).phrase
    told = {"type": f"urn:goodfence:error:{code}", "title": title, "status": status, "code": code, "detail": detail}
    return json.dumps(told).encode()


def refuse(reason: str) -> Callable[..., None]:
    """Return what answers a route that would leak: 410 with the reason."""

    def refused() -> None:
        raise WouldLeak(reason)

    return refused


def missing(what: str) -> NotThere:
    """Return the error for something that is not there."""
    return NotThere(f"there is no such {what}")


def whole_number(text: str, name: str, most: int) -> int:
    """Return a number of a query from 1 to `most`."""
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= most):
        raise BadRequest(f"{name} must be an integer from 1 to {most}")
    return int(text[:9])
