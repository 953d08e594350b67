"""The pages: made on the server, usable without scripts; htmx refreshes parts of them where it runs."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Annotated, Any, TypeAlias
from urllib.parse import parse_qs

from fastapi import Depends, Request, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, RedirectResponse

from goodfence import __version__
from goodfence.errors import BadRequest, GoodfenceError, NotAllowed, NotReady
from goodfence.service import odds
from goodfence.service.hot_path import active
from goodfence.service.lab import LAB_ATTACKERS, LAB_METHODS, attackers_asked
from goodfence.service.promises import NOT_COVERED, certificate
from goodfence.service.records import Said
from goodfence.service.routes import COOKIE, Asking, Inquiry, missing, route
from goodfence.service.state import Service, ready

FILES = {"htmx.min.js": "text/javascript", "site.css": "text/css"}
_LAB_CHOICES: dict[str, Any] = {"methods": LAB_METHODS, "attackers": tuple(LAB_ATTACKERS)}
_LISTED, _SIGNED_IN = 12, 12 * 3600
_OVER = ("done", "failed", "stopped")
_TABS = (
    ("/for-you", "For you", "user"),
    ("/overview", "Overview", "operator"),
    ("/lab", "Attack lab", "auditor"),
    ("/frontier", "Frontier", "auditor"),
    ("/ledger", "Ledger", "auditor"),
    ("/promise", "Promise", "public"),
)


@lru_cache(maxsize=1)
def _templates() -> Environment:
    # Everything is escaped, whatever its file is called.
    made = Environment(
        loader=PackageLoader("goodfence.service"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    made.filters["day"] = lambda seconds: time.strftime("%-d %b %Y %H:%M", time.gmtime(seconds)) if seconds else ""
    made.filters["short"] = lambda number: f"{number:.4g}"
    return made


def page_of(
    ask: Inquiry, name: str, status: int = 200, headers: Mapping[str, str] | None = None, **told: Any
) -> Response:
    """Return a page of a template."""
    tabs = [(path, title) for path, title, scope in _TABS if scope == "public" or scope in ask.caller.scopes]
    service = ask.service
    always = {"tabs": tabs, "head": service.books.head_text, "version": __version__, "signed_in": bool(ask.caller.key)}
    always |= {"fault": service.books.fault, "now": name}
    text = _templates().get_template(f"{name}.html").render(**always, **told)
    return HTMLResponse(text, status, dict(headers or {}))


def error_page(request: Request, status: int, error: GoodfenceError, headers: Mapping[str, str]) -> Response:
    """Return an error as a page; a visitor without a key is shown where to give one."""
    if status == 401:
        return RedirectResponse("/enter", 303)
    ask = Inquiry(request.app.state.service, request.app.state.service.keys.caller(None))
    kept = {name: value for name, value in headers.items() if name != "content-type"}
    return page_of(ask, "error", status, kept, code=error.code, message=str(error))


async def _form(request: Request) -> dict[str, str]:
    text = (await request.body()).decode("utf-8", "replace")
    return {name: values[-1] for name, values in parse_qs(text, keep_blank_values=True).items()}


Form: TypeAlias = Annotated[dict[str, str], Depends(_form)]


@route("GET", "/static/{name}", "public")
def static(name: str) -> Response:
    """Return a file that pages need."""
    if name not in FILES:
        raise missing("file")
    headers = {"Cache-Control": "public, max-age=86400"}
    return Response(_content(name), media_type=FILES[name], headers=headers)


@lru_cache
def _content(name: str) -> bytes:
    """Return a file; the style of the pages is that of reports, and what only pages have."""
    own = (resources.files("goodfence.service") / "static" / name).read_bytes()
    if not name.endswith(".css"):
        return own
    return (resources.files("goodfence.report") / "templates" / "style.css").read_bytes() + own


def sha256_of_script() -> str:
    """Return the checksum of the script that pages use."""
    return hashlib.sha256(_content("htmx.min.js")).hexdigest()


# Coming and going


@route("GET", "/", "public", page=True)
def front_page(ask: Asking) -> Response:
    """Lead to the page that this visitor uses most."""
    mine = [path for path, _, scope in _TABS if scope in ask.caller.scopes]
    return RedirectResponse(mine[0] if mine else "/promise", 303)


@route("GET", "/enter", "public", page=True)
def enter(ask: Asking, code: str = "") -> Response:
    """Show where to give a key; a code that works once gives it by itself."""
    key, until = ask.service.codes.pop(code, ("", 0.0))
    if key and until > time.time():
        return _signed_in(key)
    return page_of(ask, "enter", self_service=ask.service.serving.self_service, wrong=bool(code))


@route("POST", "/enter", "public", page=True)
def give_key(ask: Asking, form: Form) -> Response:
    """Take a key."""
    key = form.get("key", "").strip()
    try:
        ask.service.keys.caller(key or "none")
    except NotAllowed:
        return page_of(ask, "enter", 401, self_service=ask.service.serving.self_service, wrong=True)
    return _signed_in(key)


@route("POST", "/enter/open", "public", page=True)
def open_own(ask: Asking) -> Response:
    """Open an account, where anybody may."""
    if not ask.service.serving.self_service:
        raise NotAllowed("accounts are opened by the operator here")
    return _signed_in(ask.service.open_account(None)[1])


@route("POST", "/leave", "public", page=True)
def leave() -> Response:
    """Take the key back."""
    answer = RedirectResponse("/promise", 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


def _signed_in(key: str) -> Response:
    answer = RedirectResponse("/", 303)
    answer.set_cookie(COOKIE, key, max_age=_SIGNED_IN, httponly=True, samesite="strict")
    return answer


# For you


@route("GET", "/for-you", "user", page=True)
def for_you(ask: Asking) -> Response:
    """Show a user's list, what others can learn of them, and their data."""
    service, records = ask.service, ask.service.records
    said = records.said_by(ask.user)[::-1]
    listed: list[dict[str, Any]] = []
    if service.model is not None:
        model = active(service)
        ranked = model.rank(records.profile(ask.user), None, model.allowed, _LISTED)
        ids = [model.items[column] for column in ranked.columns.tolist()]
        pairs = zip(ids, ranked.scores.tolist(), strict=True)
        listed = [{"item": item, "title": _title(service, item), "score": score} for item, score in pairs]
    mine = [{**one, "title": _title(service, one["item"])} for one in said]
    how = {"scale": service.scale, "released": service.released_with(ask.user), **_odds(service)}
    return page_of(ask, "for-you", listed=listed, mine=mine, **how)


@route("POST", "/for-you/rate", "user", page=True)
def rate_on_page(ask: Asking, form: Form) -> Response:
    """Save a rating that was given on the page."""
    try:
        value = float(form.get("value", "1"))
    except ValueError:
        raise BadRequest("a rating must be a number") from None
    ask.service.records.save(ask.user, [Said(form.get("item", ""), value)], ask.service.scale)
    return RedirectResponse("/for-you", 303)


@route("POST", "/for-you/take-back", "user", page=True)
def take_back_on_page(ask: Asking, form: Form) -> Response:
    """Take back a rating."""
    row = ask.service.records.item_rows.get(form.get("item", ""))
    if row is None:
        raise missing("item")
    ask.service.records.remove(ask.user, row)
    return RedirectResponse("/for-you", 303)


@route("POST", "/for-you/forget", "user", page=True)
def forget_on_page(ask: Asking) -> Response:
    """Forget the user."""
    ask.service.forget(ask.user)
    return leave()


def _title(service: Service, item: str) -> str:
    return service.records.titles.get(service.records.item_rows.get(item, -1), "") or item


def _odds(service: Service) -> dict[str, Any]:
    """Return how many of 100 strangers guess right, without a rating and at most with it, and as was measured."""
    guarantee = None if service.model is None else service.model.guarantee
    audit = service.last_audit()
    bars = [("without that rating", odds.rounded_up(odds.GUESSED), "without")]
    if guarantee is not None and guarantee.status == "proved":
        assert guarantee.epsilon is not None and guarantee.delta is not None  # noqa: S101, PT018 - proved
        bound = odds.at_most(odds.GUESSED, guarantee.epsilon, guarantee.delta)
        bars.append(("with it, at most", odds.rounded_up(bound), "guess"))
    if audit is not None:
        bars.append(("attackers we tried *", round(100 * audit["recovered"]), "read"))
    return {"guarantee": guarantee, "bars": bars, "audit": audit}


# Overview, ledger, promise


@route("GET", "/overview", "operator", page=True)
def overview(ask: Asking) -> Response:
    """Show what is served, what is left, and what is under way."""
    service = ask.service
    models = service.models()
    jobs = service.jobs.listed(6)
    how: dict[str, Any] = {
        "models": models,
        "jobs": jobs,
        "cost": service.cost(),
        "missing": ready(service),
        "audit": service.last_audit(),
    }
    busy = any(job["state"] not in _OVER for job in jobs)
    return page_of(ask, "overview", model=service.model, busy=busy, anchor=service.books.anchor.name, **how)


@route("POST", "/overview/{act}", "operator", page=True)
def act_on_page(ask: Asking, act: str, form: Form) -> Response:
    """Do what an operator asks for on the page."""
    service = ask.service
    if act == "train":
        service.begin_training()
    elif act == "roll-back":
        service.roll_back()
    elif act == "stop":
        service.jobs.stop(form.get("job", ""))
    else:
        raise missing("act")
    return RedirectResponse("/overview", 303)


@route("GET", "/ledger", ("auditor", "operator"), page=True)
def ledger_page(ask: Asking, verified: str = "") -> Response:
    """Show spending release by release."""
    books, delta = ask.service.books, ask.service.settings.cap[1]
    if books.fault:
        raise NotReady(books.fault)
    told = books.status(delta)
    faults = books.verify() if verified else None
    return page_of(ask, "ledger", told=told, cost=ask.service.cost(), faults=faults)


@route("GET", "/promise", "public", page=True)
def promise_page(ask: Asking, request: Request) -> Response:
    """Show who is protected, against what, for how long, and how to check it."""
    told = certificate(ask.service)
    address = f"{request.url.scheme}://{request.url.netloc}"
    return page_of(ask, "promise", told=told, address=address, not_covered=NOT_COVERED, **_odds(ask.service))


# The lab


@route("GET", "/lab", "auditor", page=True)
def lab(ask: Asking) -> Response:
    """Show what can be attacked, and how."""
    jobs = [job for job in ask.service.jobs.listed(50) if job["kind"] == "lab"][:5]
    return page_of(ask, "lab", job=None, jobs=jobs, chosen=_chosen({}), **_LAB_CHOICES)


@route("POST", "/lab", "auditor", page=True)
def attack(ask: Asking, form: Form) -> Response:
    """Begin an attack on the bundled films."""
    return RedirectResponse(f"/lab/{ask.service.begin_lab(_chosen(form))}", 303)


@route("GET", "/lab/{job}", "auditor", page=True)
def lab_job(ask: Asking, job: str) -> Response:
    """Show an attack while it goes on."""
    return page_of(ask, "lab", jobs=[], **_lab_told(ask.service, job), **_LAB_CHOICES)


@route("GET", "/lab/{job}/chart", "auditor", page=True)
def lab_chart(ask: Asking, job: str) -> Response:
    """Return the part of the page that grows."""
    return page_of(ask, "lab-chart", **_lab_told(ask.service, job))


@route("GET", "/frontier", "auditor", page=True)
def frontier_page(ask: Asking, bear: float = 0.0) -> Response:
    """Show the error of each recommender against what it leaks, and the setting for an error that can be borne."""
    job = next((job for job in ask.service.jobs.listed(100) if job["kind"] == "frontier"), None)
    points = ask.service.jobs.events(job["id"]) if job else []
    within = [point for point in points if point["error"] <= bear]
    best = min(within, key=lambda point: (point["status"] != "proved", point["high"]), default=None)
    most = max([1.0, *(point["error"] for point in points)])
    drawn = [{**one, "x": 50 + 560 * one["error"] / most, "y": 210 - 190 * max(one["advantage"], 0)} for one in points]
    busy = job is not None and job["state"] not in _OVER
    return page_of(ask, "frontier", job=job, points=drawn, best=best, bear=bear, busy=busy, most=most)


@route("POST", "/frontier", "auditor", page=True)
def measure_frontier(ask: Asking) -> Response:
    """Begin a comparison on the bundled films."""
    ask.service.begin_lab({"known": 8, "fakes": 50, "targets": 20, "seed": 7}, "frontier")
    return RedirectResponse("/frontier", 303)


def _chosen(form: Mapping[str, str]) -> dict[str, Any]:
    """Return what an attack was asked for, within limits."""
    found: dict[str, Any] = {}
    for name, usual, most in (("known", 8, 50), ("fakes", 50, 200), ("targets", 50, 200)):
        text = form.get(name, str(usual))
        if not (text.isascii() and text.isdecimal() and 1 <= int(text[:4]) <= most):
            raise BadRequest(f"{name} must be an integer from 1 to {most}")
        found[name] = int(text[:4])
    beside = [form.get("method", LAB_METHODS[0]), form.get("beside", "private-cf epsilon=1")]
    if not set(beside) <= set(LAB_METHODS):
        raise BadRequest("method must be one of the list")
    attacker = form.get("attacker", "one asks")
    if attacker not in LAB_ATTACKERS:
        raise BadRequest(f"attacker must be one of {', '.join(LAB_ATTACKERS)}")
    if attacker != "one asks" and found["fakes"] < 2:
        raise BadRequest("fakes must be at least 2 for this attacker: one asks, and the others help")
    return {**found, "methods": list(dict.fromkeys(beside)), "attacker": attacker, "seed": 7}


def _lab_told(service: Service, job: str) -> dict[str, Any]:
    found = service.jobs.find(job)
    if found is None or found["kind"] != "lab":
        raise missing("attack")
    asked = {"attacker": "one asks", **service.jobs.request(job)}
    curves: dict[str, list[dict[str, Any]]] = {method: [] for method in asked["methods"]}
    for event in service.jobs.events(job):
        curves[event["method"]].append(event)
    drawn = [_curve(method, events, asked["targets"], at) for at, (method, events) in enumerate(curves.items())]
    command = f"goodfence audit movietweetings --method '{asked['methods'][0]}'"
    lines = [" ".join([kind, *(f"{k}={v}" for k, v in how.items())]) for kind, how in attackers_asked(asked)]
    rest = f"--targets {asked['targets']} --seed {asked['seed']}"
    told = "\n".join(f"{command} --attack '{line}' {rest}" for line in lines)
    return {"job": found, "chosen": asked, "curves": drawn, "over": found["state"] in _OVER, "command": told}


def _curve(method: str, events: list[dict[str, Any]], targets: int, at: int) -> dict[str, Any]:
    """Return a curve as an SVG path, with the words that say the same."""
    spots = [(50 + 590 * event["n"] / targets, 210 - 190 * event["recovered"]) for event in events]
    path = " ".join(f"{'M' if place == 0 else 'L'}{x:.1f} {y:.1f}" for place, (x, y) in enumerate(spots))
    last = events[-1] if events else None
    return {
        "method": method,
        "kind": ("read", "without")[at % 2],
        "path": path,
        "spots": spots,
        "last": last,
        "events": events,
    }
