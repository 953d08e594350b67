"""What operators and auditors do: the catalogue, imports and exports, models, jobs, audits, the ledger, keys."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from goodfence.errors import BadRequest
from goodfence.service.access import SCOPES
from goodfence.service.routes import UNLIMITED, Asking, missing, route
from goodfence.service.state import Service, ready
from goodfence.service.transfer import exported, imported

_OVER = ("done", "failed", "stopped")
Wait = Annotated[float, Query(ge=0, le=600)]


class Item(BaseModel):
    """What is said of an item of the catalogue."""

    title: str = Field(default="", max_length=500)
    labels: list[str] = Field(default=[], max_length=50)
    hidden: bool = False


class ItemChange(BaseModel):
    """What changes of an item."""

    title: str | None = Field(default=None, max_length=500)
    labels: list[str] | None = Field(default=None, max_length=50)
    hidden: bool | None = None


class Training(BaseModel):
    """What is to be trained."""

    kind: str = Field(default="auto", pattern="^(auto|fit|update)$")
    method: str | None = Field(default=None, max_length=200)
    activate: bool = True
    cost_only: bool = False


class NewKey(BaseModel):
    """A key to be made."""

    scopes: list[str] = Field(min_length=1, max_length=5)
    days: int | None = Field(default=None, ge=1, le=3650)


class AuditRequest(BaseModel):
    """An audit to be made."""

    method: str | None = Field(default=None, max_length=200)
    known: int = Field(default=8, ge=1, le=100)
    targets: int = Field(default=30, ge=2, le=1000)


# The catalogue


@route("PUT", "/v1/items/{item}", "operator", status=204)
def put_item(ask: Asking, item: str, told: Item) -> None:
    """Declare an item: events of others are refused."""
    ask.service.records.save_items([{"item": item, **told.model_dump()}])


@route("PATCH", "/v1/items/{item}", "operator", status=204)
def change_item(ask: Asking, item: str, told: ItemChange) -> None:
    """Change what is said of an item."""
    known = _known_item(ask.service, item)
    ask.service.records.save_items([{**known, **told.model_dump(exclude_none=True)}])


@route("DELETE", "/v1/items/{item}", "operator", status=204)
def hide_item(ask: Asking, item: str) -> None:
    """List an item no longer; what was said of it stays with the users who said it."""
    ask.service.records.save_items([{**_known_item(ask.service, item), "hidden": True}])


@route("GET", "/v1/items/{item}", ("user", "backend", "operator"))
def one_item(ask: Asking, item: str) -> dict[str, Any]:
    """Return what the catalogue says of an item."""
    return _known_item(ask.service, item)


def _known_item(service: Service, item: str) -> dict[str, Any]:
    rows = service.store.read("SELECT ext, title, labels, hidden FROM item WHERE ext = ?", item)
    if not rows:
        raise missing("item")
    ext, title, labels, hidden = rows[0]
    return {"item": ext, "title": title, "labels": json.loads(labels), "hidden": bool(hidden)}


# Imports and exports


@route("POST", "/v1/import/{what}", "operator", largest=UNLIMITED)
async def import_rows(ask: Asking, request: Request, what: str) -> dict[str, Any]:
    """Import items, users or events (NDJSON, CSV, Parquet), streaming. Rows before a bad one stay; a repeat is safe."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return {"imported": await imported(ask.service, what, kind, request.stream())}


@route("GET", "/v1/export/{what}", "operator")
def export_rows(ask: Asking, what: str, format: str = "ndjson") -> StreamingResponse:
    """Export items, users or events, of one snapshot, streaming."""
    kind, lines = exported(ask.service, what, format)
    return StreamingResponse(lines, media_type=kind)


# Models and jobs


@route("POST", "/v1/models", "operator", status=202)
def train(ask: Asking, told: Training, response: Response, wait: Wait = 0) -> dict[str, Any]:
    """Fit or update, as a job that is charged before it releases; `cost_only` says what it would cost."""
    if told.cost_only:
        response.status_code = 200
        return {"cost": ask.service.cost(told.method)}
    job = ask.service.begin_training(kind=told.kind, method=told.method, activate=told.activate)
    return _after(ask.service, job, wait, response)


def _after(service: Service, job: str, wait: float, response: Response) -> dict[str, Any]:
    found = service.jobs.wait(job, wait)
    assert found is not None  # noqa: S101 - it was made just now
    if found["state"] == "done":
        response.status_code = 201
    elif found["state"] in _OVER:
        response.status_code = 409
    return {"job": found}


@route("GET", "/v1/models", ("operator", "auditor"))
def all_models(ask: Asking) -> dict[str, Any]:
    """Return all models, the newest first."""
    return {"models": ask.service.models()}


@route("POST", "/v1/models/{model}/activate", "operator")
def activate(ask: Asking, model: str) -> dict[str, Any]:
    """Serve this model."""
    if model not in {one["id"] for one in ask.service.models()}:
        raise missing("model")
    ask.service.activate(model)
    return {"active": model}


@route("POST", "/v1/models/roll-back", "operator")
def roll_back(ask: Asking) -> dict[str, Any]:
    """Serve the model that was active before."""
    return {"active": ask.service.roll_back()}


@route("GET", "/v1/jobs", ("operator", "auditor"))
def all_jobs(ask: Asking) -> dict[str, Any]:
    """Return the newest jobs."""
    return {"jobs": ask.service.jobs.listed()}


@route("GET", "/v1/jobs/{job}", ("operator", "auditor"))
def one_job(ask: Asking, job: str) -> dict[str, Any]:
    """Return how far a job is."""
    found = ask.service.jobs.find(job)
    if found is None:
        raise missing("job")
    return found


@route("DELETE", "/v1/jobs/{job}", ("operator", "auditor"), status=204)
def stop_job(ask: Asking, job: str) -> None:
    """Stop a job; what it was charged stays charged."""
    if ask.service.jobs.find(job) is None:
        raise missing("job")
    ask.service.jobs.stop(job)


@route("GET", "/v1/jobs/{job}/events", ("operator", "auditor"))
def follow_job(ask: Asking, job: str, after: int = 0) -> StreamingResponse:
    """Send what a job reports, as server-sent events, until it is over."""
    if ask.service.jobs.find(job) is None:
        raise missing("job")

    async def lines() -> AsyncIterator[str]:
        last = after
        while True:
            found = ask.service.jobs.find(job)
            for event in ask.service.jobs.events(job, last):
                last = event["n"]
                yield f"id: {last}\nevent: report\ndata: {json.dumps(event)}\n\n"
            yield f"event: job\ndata: {json.dumps(found)}\n\n"
            if found is None or found["state"] in _OVER:
                return
            await asyncio.sleep(0.25)

    return StreamingResponse(lines(), media_type="text/event-stream")


@route("POST", "/v1/audits", "auditor", status=202)
def audit_on_copy(ask: Asking, told: AuditRequest, response: Response, wait: Wait = 0) -> dict[str, Any]:
    """Attack a recommender fitted to a copy of the data; the copy is never served, and spends nothing."""
    return _after(ask.service, ask.service.begin_audit(told.model_dump()), wait, response)


@route("GET", "/v1/audits/{job}", "auditor")
def one_audit(ask: Asking, job: str) -> dict[str, Any]:
    """Return an audit."""
    found = ask.service.jobs.find(job)
    if found is None or found["kind"] != "audit":
        raise missing("audit")
    return found


# The ledger


@route("GET", "/v1/ledger", ("operator", "auditor"))
def ledger(ask: Asking) -> dict[str, Any]:
    """Return what was spent, of what, and whether ledger, anchor and data agree."""
    books = ask.service.books
    return {"head": books.head_text, "fault": books.fault or None, "cost": ask.service.cost()}


@route("GET", "/v1/ledger/entries", ("operator", "auditor"))
def entries(ask: Asking, after: int = 0) -> dict[str, Any]:
    """Return the public fields of entries."""
    return {"entries": ask.service.books.public_entries(after)}


@route("POST", "/v1/ledger/verify", ("operator", "auditor"))
def verify_ledger(ask: Asking) -> dict[str, Any]:
    """Check chain, sums, caps and artefacts."""
    faults = ask.service.books.verify()
    return {"sound": not faults, "faults": faults}


@route("POST", "/v1/ledger/anchor", "operator")
def anchor(ask: Asking) -> dict[str, Any]:
    """Append the head to the anchor."""
    return ask.service.books.anchored()


# Keys


@route("GET", "/v1/keys", "operator")
def all_keys(ask: Asking) -> dict[str, Any]:
    """Return the keys that are not users', without their secrets."""
    names = ("id", "scopes", "created", "expires", "revoked")
    rows = ask.service.store.read(f"SELECT {', '.join(names)} FROM api_key WHERE user_id IS NULL ORDER BY created")  # noqa: S608
    return {"keys": [dict(zip(names, row, strict=True)) for row in rows]}


@route("POST", "/v1/keys", "operator", status=201)
def make_key(ask: Asking, told: NewKey) -> dict[str, Any]:
    """Make a key, which is shown once."""
    if "user" in told.scopes or not set(told.scopes) <= set(SCOPES):
        raise BadRequest(
            "scopes must be among backend, operator, auditor and metrics; POST /v1/users makes users' keys"
        )
    seconds = None if told.days is None else told.days * 86_400
    return {"key": ask.service.keys.make(told.scopes, seconds=seconds)}


@route("DELETE", "/v1/keys/{key}", "operator", status=204)
def revoke_key(ask: Asking, key: str) -> None:
    """Make a key worthless."""
    ask.service.keys.revoke(key)


@route("GET", "/metrics", "metrics")
def metrics(ask: Asking) -> Response:
    """Return figures for Prometheus."""
    return Response(ask.service.metrics.text(ready=not ready(ask.service)), media_type="text/plain; version=0.0.4")
