"""What everybody may ask: health, the promise and its chain; items from the released model; and what is refused."""

from __future__ import annotations

from typing import Any

from fastapi import Response

from goodfence.neighbours.lists import Ranked
from goodfence.service.hot_path import DEFAULT_LISTED, MOST_LISTED, active, encoded
from goodfence.service.promises import certificate
from goodfence.service.routes import Asking, missing, refuse, route, whole_number
from goodfence.service.serving import ServedModel
from goodfence.service.state import ready

_NEIGHBOURS = "similar users are not shown: their neighbours' feedback can be read from them"
_FEEDBACK = "other users' feedback is not shown"
_COUNTS = "exact counts are not shown: the difference of two of them is one user's feedback"


@route("GET", "/v1/health/live", "public")
def live() -> dict[str, str]:
    """Return that the process runs."""
    return {"status": "live"}


@route("GET", "/v1/health/ready", "public")
def is_ready(ask: Asking, response: Response) -> dict[str, Any]:
    """Return whether the service can recommend, and what is missing."""
    found = ready(ask.service)
    response.status_code = 503 if found else 200
    return {"status": "not ready" if found else "ready", "missing": found}


@route("GET", "/v1/promise", "public")
def promise(ask: Asking) -> dict[str, Any]:
    """Return the certificate: what is guaranteed, what was spent, what was released, signed."""
    return certificate(ask.service)


@route("GET", "/v1/promise/chain", "public")
def chain(ask: Asking, after: int = 0) -> dict[str, Any]:
    """Return the public fields of the ledger's entries after one, at most 1,000."""
    return {"ledger": ask.service.books.ledger_id, "entries": ask.service.books.public_entries(after)}


@route("GET", "/v1/items/{item}/related", "backend")
def related(ask: Asking, item: str, n: str = str(DEFAULT_LISTED)) -> Response:
    """Return the items that go with one, from the released model only."""
    if item not in ask.service.records.item_rows:
        raise missing("item")
    model = active(ask.service)
    return _listed(model, model.related(item, whole_number(n, "n", MOST_LISTED)))


@route("GET", "/v1/popular", "backend")
def popular(ask: Asking, n: str = str(DEFAULT_LISTED), category: str | None = None) -> Response:
    """Return what the released model lists to an empty profile: never exact popularity."""
    model = active(ask.service)
    return _listed(model, model.popular(whole_number(n, "n", MOST_LISTED), model.allow(category, [])))


def _listed(model: ServedModel, ranked: Ranked) -> Response:
    return Response(encoded(model, ranked), media_type="application/json")


for _path, _reason in {
    "/v1/users/{user}/neighbors": _NEIGHBOURS,
    "/v1/users/{user}/neighbours": _NEIGHBOURS,
    "/v1/users/{user}/ratings": _FEEDBACK,
    "/v1/items/{item}/ratings": _FEEDBACK,
    "/v1/items/{item}/count": _COUNTS,
    "/v1/ratings": _FEEDBACK,
}.items():
    route("GET", _path, "public", status=410)(refuse(_reason))
