"""The application: FastAPI for the API and the pages, in front of it one door that every request passes."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse
from starlette.routing import Route

from goodfence import __version__
from goodfence.errors import BadRequest, GoodfenceError, NotThere
from goodfence.service import gorse, operator_routes, own_routes, public_routes, site  # noqa: F401 - they register
from goodfence.service.hot_path import HOT, HotRoute, Receive, Send, body_too_large
from goodfence.service.routes import LARGEST, REGISTRY, GuardedRoute, Headers, problem_body, problem_of
from goodfence.service.state import Service

PATIENCE = 10.0
"""Seconds that one request may take, but for imports, exports and waiting for jobs."""
_POLICY = (
    b"default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    b"frame-ancestors 'none'"
)
_SECURITY: Headers = [
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
_NO_STORE = (b"cache-control", b"no-store")
log = logging.getLogger("goodfence.service")


def application(service: Service) -> Door:
    """Return the whole application of a service."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(service.close)  # after the last answer: what was accepted is written

    app = FastAPI(title="goodfence", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.service = service
    hot = {}
    for (method, path), one in REGISTRY.items():
        if one.compat not in (None, service.serving.compat):
            continue
        if one.endpoint in HOT:
            hot[method, path] = HotRoute(one, service)
            app.router.routes.append(Route(path, hot[method, path], methods=[method]))
            continue
        response = {"response_class": HTMLResponse} if one.page else {}
        how: dict[str, Any] = {"status_code": one.status, "include_in_schema": not one.page, **response}
        app.router.add_api_route(path, one.endpoint, methods=[method], route_class_override=GuardedRoute, **how)
    plain = app.openapi
    app.openapi = lambda: _with_hot(plain(), hot)  # type: ignore[method-assign]
    for kind in (GoodfenceError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _told)
    return Door(app, service, hot)


def _with_hot(schema: dict[str, Any], hot: dict[tuple[str, str], HotRoute]) -> dict[str, Any]:
    """Return the description of the API with the hot routes, which FastAPI does not know."""
    for (method, path), one in hot.items():
        responses = {"200": {"description": "A list."}}
        about: dict[str, Any] = {"summary": (one.answer.__doc__ or "").strip(), "responses": responses}
        names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
        told: list[dict[str, Any]] = [{"name": name, "in": "path", "required": True} for name in names]
        if method == "GET":
            told += [{"name": name, "in": "query"} for name in ("n", "exclude", "category")]
        else:
            content = {"application/json": {"schema": {"type": "object"}}}
            about["requestBody"] = {"required": True, "content": content}
        about["parameters"] = [{**each, "schema": {"type": "string"}} for each in told]
        schema["paths"].setdefault(path, {})[method.lower()] = about
    return schema


async def _told(request: Request, error: Exception) -> Response:
    """Return an error as RFC 9457, or as a page to a browser; of what was sent it repeats nothing."""
    if isinstance(error, RequestValidationError):
        places = sorted({".".join(str(part) for part in one["loc"][:2]) for one in error.errors()})
        error = BadRequest(f"not understood: {', '.join(places)}")
    elif isinstance(error, HTTPException):
        found = NotThere("there is nothing at this address, or not by this method")
        found.status = error.status_code
        error = found
    assert isinstance(error, GoodfenceError)  # noqa: S101 - no other kind is handled here
    status, body, headers = problem_of(error)
    route = request.scope.get("route")
    registered = REGISTRY.get((request.method, getattr(route, "path", "")))
    told = {name.decode(): value.decode() for name, value in headers}
    if registered is not None and registered.page:
        return site.error_page(request, status, error, told)
    return Response(body, status, told)


class Door:
    """The ASGI application: limits, headers and counts for every answer; hot routes need nothing else.

    Parameters
    ----------
    app : FastAPI
        All other routes.
    service : Service
        What they answer from.
    hot : dict
        The hot routes, by method and path template.
    """

    def __init__(self, app: FastAPI, service: Service, hot: dict[tuple[str, str], HotRoute]) -> None:
        self.app, self.service = app, service
        self._me, self._guest = hot["GET", HOT_PATHS[0]], hot["POST", HOT_PATHS[2]]
        self._user = hot["GET", HOT_PATHS[1]]

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)  # type: ignore[arg-type]
            return
        begun, hot = time.perf_counter(), self._hot(scope["method"], scope["path"])
        if hot is not None:
            template, status = hot.registered.path, await self._guarded(hot(scope, receive, send), send)
        else:
            status = await self._answered(scope, receive, send)
            template = getattr(scope.get("route"), "path", "none")
        seconds = time.perf_counter() - begun
        self.service.metrics.add(template, status, seconds)
        log.debug("%s %s %d %.1f ms", scope["method"], template, status, 1000 * seconds)

    async def _answered(self, scope: dict[str, Any], receive: Receive, send: Send) -> int:
        """Let the application answer, with the limits and headers of this door, and return the status."""
        status, body = 500, _Body(receive, _largest(scope["path"]))

        async def answer(message: dict[str, Any]) -> None:
            nonlocal status
            if body.too_large and not body.told:
                return  # what is told of it comes afterwards
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = self._headers(message["headers"])
            await send(message)

        patience = None if scope["path"].startswith(_PATIENT) else PATIENCE
        work = self.app(scope, body.part, answer)  # type: ignore[arg-type]
        await self._guarded(asyncio.wait_for(work, patience), answer)
        if body.too_large:
            body.told = True
            await self._guarded(_refused(body_too_large()), answer)
        return status

    def _hot(self, method: str, path: str) -> HotRoute | None:
        if method == "GET" and path.endswith("/recommendations"):
            if path == HOT_PATHS[0]:
                return self._me
            if path.startswith("/v1/users/") and path.count("/") == 4:
                return self._user
        return self._guest if method == "POST" and path == HOT_PATHS[2] else None

    def _headers(self, told: Headers) -> Headers:
        added = [*told, *self.service.headers]
        if not any(name == b"cache-control" for name, _ in told):
            added.append(_NO_STORE)
        return added + _SECURITY

    async def _guarded(self, work: Awaitable[int | None], answer: Send) -> int:
        """Do work and return its status; what goes wrong is told without what it was about."""
        status, code, detail = 500, "GF999", "a fault of goodfence; its log has the place"
        try:
            return await work or 200
        except TimeoutError:
            status, code, detail = 503, "GF700", "the answer took too long"
        except BadRequest as error:
            status, code, detail = error.status, error.code, str(error)
        except Exception as fault:  # the message may quote a rating: only type and place are logged
            log.error("%s at %s", type(fault).__name__, _place(fault))
        headers = [(b"content-type", b"application/problem+json")]
        with suppress(Exception):  # the answer had begun, or nobody listens
            await answer({"type": "http.response.start", "status": status, "headers": headers})
            await answer({"type": "http.response.body", "body": problem_body(status, code, detail)})
        return status


HOT_PATHS = tuple(next(path for (_, path), one in REGISTRY.items() if one.endpoint is hot) for hot in HOT)
_LARGE = {path.partition("{")[0]: one.largest for (_, path), one in REGISTRY.items() if one.largest != LARGEST}
_PATIENT = ("/v1/import/", "/v1/export/", "/v1/jobs/", "/v1/models", "/v1/audits", "/v1/me/export")


def _largest(path: str) -> int:
    """Return how many bytes the body of a request to this path may have."""
    return next((largest for start, largest in _LARGE.items() if path.startswith(start)), LARGEST)


class _Body:
    """A body that ends where the limit is: what is beyond it is not read."""

    def __init__(self, receive: Receive, largest: int) -> None:
        self._receive, self._largest, self._size = receive, largest, 0
        self.too_large, self.told = False, False

    async def part(self) -> dict[str, Any]:
        """Return the next part; of one that is too large nothing more."""
        message = await self._receive()
        self._size += len(message.get("body", b""))
        if self._size > self._largest:
            self.too_large = True
            return {"type": "http.request", "body": b"", "more_body": False}
        return message


async def _refused(error: BadRequest) -> int:
    raise error


def _place(fault: Exception) -> str:
    package = Path(__file__).parents[1]
    frames = traceback.extract_tb(fault.__traceback__)
    places = [f"{Path(one.filename).name}:{one.lineno}" for one in frames if Path(one.filename).is_relative_to(package)]
    return places[-1] if places else "an unknown place"


def routes_of(door: Door) -> list[tuple[str, str]]:
    """Return method and path template of every route that the application answers."""
    found = []
    for one in door.app.router.routes:
        assert isinstance(one, APIRoute | Route)  # noqa: S101 - mounts would hide routes
        found += [(method, one.path) for method in sorted(one.methods or ()) if method != "HEAD"]
    return found
