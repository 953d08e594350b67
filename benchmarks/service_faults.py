"""Odd requests, kills, canaries and a browser: what `./scripts/bench serve` counts, and tests in short."""

from __future__ import annotations

import importlib.util
import json
import logging
import multiprocessing
import os
import random
import re
import shutil
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from goodfence.errors import NotAllowed
from goodfence.service import store
from goodfence.service.hot_path import Wish, best_for
from goodfence.service.learning import sha256_of
from goodfence.service.routes import REGISTRY, Registered
from goodfence.service.state import Service, ServiceSettings, Serving
from tests.support.service_shop import Shop, fill, opened

KEYS = (None, "user", "backend", "operator", "auditor", "metrics", "all")
TRAINS = {("POST", path) for path in ("/v1/models", "/v1/audits", "/lab", "/overview/{act}")}
"""What begins a job; asked without the right only."""
CAP = ServiceSettings(method="private-cf epsilon=1", cap=(300.0, 1e-5))
_FORM = ("key", "item", "value", "method", "beside", "known", "fakes", "targets", "job", "code", "verified")


def may(one: Registered, key: str | None) -> bool:
    """Whether a key of this kind has the right to a route."""
    scopes = {None: (), "all": ("operator", "auditor", "backend", "metrics")}.get(key, (key,))
    return "public" in one.scopes or bool(set(scopes) & set(one.scopes))


def served(shop: Shop) -> list[Registered]:
    """Return the routes that a service answers."""
    return [one for one in REGISTRY.values() if one.compat in (None, shop.service.serving.compat)]


# odd requests


def odd_requests(shop: Shop, least: int) -> tuple[Counter[str], set[str]]:
    """Send odd requests to every route with each key, and return how many got which answer, and what is wrong."""
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis import strategies as st

    statuses, wrong = Counter[str](), set[str]()
    schema = schemathesis.openapi.from_dict(shop.told("GET", "/openapi.json"))
    operations = [found.ok() for found in schema.get_all_operations()]  # type: ignore[union-attr]
    asked = {(one.method, one.path) for one in map(_of, operations)}
    pages = [one for one in served(shop) if (one.method, one.path) not in asked]
    base = str(shop.client.base_url).rstrip("/")

    def send(one: Registered, method: str, path: str, **how: Any) -> None:
        for key in KEYS:
            if may(one, key) and (one.method, one.path) in TRAINS:
                continue
            _renew(shop)
            headers = {**dict(how.get("headers") or {}), **({"X-API-Key": shop.keys[key]} if key else {})}
            try:
                told = shop.client.request(method, path, **{**how, "headers": headers})
            except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, ValueError, TypeError):
                continue  # what cannot be sent
            statuses[f"{told.status_code // 100}xx"] += 1
            if told.status_code >= 500 and told.status_code != 503:
                wrong.add(f"{one.method} {one.path} answers {told.status_code}")
            to_door = told.status_code == 303 and told.headers["location"] == "/enter"
            refused = told.status_code in (401, 403) or (one.page and key is None and to_door)
            elsewhere = told.status_code in (400, 404, 405, 307)  # not that route: an odd path or address
            if not may(one, key) and not (refused or elsewhere):
                wrong.add(f"{one.method} {one.path} answers {told.status_code} to {key}")

    def odd_operation(operation: Any) -> Callable[[], None]:
        @given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            sent = case.as_transport_kwargs(base_url=base)
            how = {name: sent[name] for name in ("json", "data", "params") if sent.get(name) is not None}
            if isinstance(how.get("data"), bytes | str):
                how["content"] = how.pop("data")
            send(_of(operation), sent["method"], sent["url"], headers=sent.get("headers"), **how)

        return ask

    def odd_page(one: Registered) -> Callable[[], None]:
        words = st.text(max_size=12)

        @given(part=words, told=st.dictionaries(st.sampled_from(_FORM), words | st.integers().map(str)))
        def visit(part: str, told: dict[str, str]) -> None:
            path = one.path if "{" not in one.path else f"{one.path.partition('{')[0]}x{part.replace('/', '')}"
            how: dict[str, Any] = {"params": told} if one.method == "GET" else {"data": told}
            send(one, one.method, path, headers={"Origin": base}, follow_redirects=False, **how)

        return visit

    calm = settings(
        max_examples=8, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    turn = 0
    while statuses.total() < least:
        turn += 1
        for each in [*map(odd_operation, operations), *map(odd_page, pages)]:
            seed(turn)(calm(each))()
        if not statuses:
            raise RuntimeError("nothing was sent")
    return statuses, wrong


def _renew(shop: Shop) -> None:
    """Forget what was asked before, and open the account again that an odd request has closed."""
    shop.service.limiter = type(shop.service.limiter)()
    try:
        shop.service.keys.caller(shop.keys["user"])
    except NotAllowed:
        shop.keys["user"] = shop.service.open_account("u1")[1]


def _of(operation: Any) -> Registered:
    return REGISTRY[operation.method.upper(), operation.path]


def holes(shop: Shop) -> tuple[int, list[str]]:
    """Ask every route as everybody, and return how many answers there were, and which gave what they must not."""
    n, found = 0, []
    known = {"user": "u2", "item": "i1", "what": "items"}
    for one in served(shop):
        path = re.sub(r"{(\w+)}", lambda part: known.get(part[1], "none"), one.path)
        for key in KEYS:
            if may(one, key):
                continue
            told, n = shop.ask(one.method, path, key, follow_redirects=False), n + 1
            if told.status_code not in ((303,) if one.page and key is None else (401,) if key is None else (403,)):
                found.append(f"{one.method} {one.path} answers {told.status_code} to {key}")
    return n, found


# kills


def _begin(kind: str, folder: Path, ready: Any, serving: Serving | None) -> None:
    """In a child: do what is killed."""
    os.setsid()
    if kind == "migration":
        with later_schema():
            ready.set()
            store.SQLiteStore(folder / "data.db")
        return
    service = Service(folder, CAP, serving)
    if kind == "import":
        ready.set()
        for turn in range(10_000):
            rows = [(f"k{turn}-{user}", _said(f"i{user % 30}")) for user in range(50)]
            service.records.save_bulk(rows, service.scale)
        return
    ready.set()
    service.jobs.wait(service.begin_training(), 60)
    time.sleep(60)


def _said(item: str) -> Any:
    from goodfence.service.records import Said

    return Said(item, 3.0)


@contextmanager
def later_schema() -> Iterator[None]:
    """Let there be one more migration, which rewrites every row: what the next version might do."""
    plain, text = store.migrations, "ALTER TABLE cell ADD COLUMN twice REAL;\nUPDATE cell SET twice = value * 2;\n"
    number = len(plain("sqlite")) + 1
    store.migrations = lambda dialect: [*plain(dialect), (number, text, "later")]
    try:
        yield
    finally:
        store.migrations = plain


def killed(kind: str, folder: Path, after: float, whom: str, serving: Serving | None = None) -> None:
    """Begin something in a process of its own, and kill it, its worker or both."""
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    child = context.Process(target=_begin, args=(kind, folder, ready, serving))
    child.start()
    if not ready.wait(60):
        raise RuntimeError("the service did not start")
    time.sleep(after)
    workers = _children(child.pid or 0)
    with suppress(ProcessLookupError):
        if whom == "worker" and workers:
            for worker in workers:
                os.kill(worker, signal.SIGKILL)
            time.sleep(0.05)
        child.kill()
    if whom == "both":
        for worker in workers:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
    child.join()
    end = time.monotonic() + 60
    while time.monotonic() < end and any(map(_runs, workers)):
        time.sleep(0.02)  # an orphan ends when it sees that its parent is gone


def _children(parent: int) -> list[int]:
    with suppress(OSError):
        text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
        threads = Path(f"/proc/{parent}/task").iterdir()
        text = " ".join((thread / "children").read_text() for thread in threads)
        return [int(part) for part in text.split()]
    return []


def _runs(process: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def faults_after(kind: str, folder: Path, before: int, serving: Serving | None = None) -> list[str]:
    """Return what is wrong with a service after a kill; nothing where it is as it should be."""
    if kind == "migration":
        return _after_migration(folder, before)
    wrong = []
    service = Service(folder, CAP, serving)
    try:
        released = {entry.facts.get("sha256") for entry in service.books.entries if entry.kind == "release"}
        wrong += service.books.verify()
        if service.model is not None:
            best_for(service, service.records.profile(1), None, Wish())
            if service.model.sha256 not in released or service.model.guarantee.status != "proved":
                wrong.append("a model that was not paid is served")
        wrong += [
            "a file was released unpaid" for file in (folder / "models").glob("*.gf") if sha256_of(file) not in released
        ]
        embedded = isinstance(service.store, store.SQLiteStore)
        if embedded and service.store.read("PRAGMA integrity_check") != [("ok",)]:
            wrong.append("the database is damaged")
        sql = "SELECT count(*) FROM cell JOIN account ON account.id = user_id WHERE ext LIKE 'k%' GROUP BY "
        halves = service.store.read(f"{sql} rtrim(ext, '0123456789') HAVING count(*) != 50")
        wrong += ["a part of an import was saved in part" for _ in halves]
        if any(job["state"] in ("waiting", "running") for job in service.jobs.listed()):
            wrong.append("a job that nobody does is not over")
    finally:
        service.close()
    return wrong


def _after_migration(folder: Path, before: int) -> list[str]:
    with sqlite3.connect(folder / "data.db") as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(cell)")]
        done = connection.execute("SELECT max(version) FROM schema_version").fetchone()[0]
    wrong = [] if ("twice" in columns) == (done > before) else ["a migration was done in part"]
    with later_schema():
        finished = store.SQLiteStore(folder / "data.db")
        if finished.read("SELECT count(*) FROM cell WHERE twice IS NOT value * 2") != [(0,)]:
            wrong.append("a migration lost a value")
        finished.close()
    return wrong


def kill(place: Path, n: int, rng: int = 7) -> tuple[Counter[str], list[str]]:
    """Kill a service while it trains, updates, imports and migrates, and return how often, and what was wrong."""
    draw, counts, wrong = random.Random(rng), Counter[str](), []
    empty, trained = place / "empty", place / "trained"
    with opened(empty, CAP) as shop:
        fill(shop)
    shutil.copytree(empty, trained)
    with opened(trained, CAP) as shop:
        begun = time.monotonic()
        job = shop.told("POST", "/v1/models?wait=120", "operator", json={})["job"]
        if job["state"] != "done":
            raise RuntimeError(job)
    longest = {"training": time.monotonic() - begun + 0.5, "import": 0.5, "migration": 0.05}
    longest["update"] = longest["training"]
    large = place / "large"
    shutil.copytree(trained, large)
    with opened(large, CAP) as shop:
        for part in range(20):
            rows = [(f"many{part}-{user}", _said(f"i{user % 30}")) for user in range(2000)]
            shop.service.records.save_bulk(rows, shop.service.scale)
    for turn in range(n):
        kind = ("training", "update", "import", "migration")[turn % 4]
        folder = place / "now"
        shutil.copytree({"training": empty, "update": trained, "import": trained, "migration": large}[kind], folder)
        killed(kind, folder, draw.uniform(0, longest[kind]), draw.choice(("both", "service", "worker")))
        found = faults_after(kind, folder, len(store.migrations("sqlite")))
        wrong += [f"{kind}: {one}" for one in found]
        counts[kind] += 1
        shutil.rmtree(folder)
    return counts, wrong


# canaries


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


def canaries_in(shop: Shop, least: int) -> tuple[int, int, list[str]]:
    """Return lines of log, texts read, and which of them hold an id, a rating or a token of one user."""
    canary, rating = "canary-7f3a", 4.4375
    kept, root, level = _Lines(), logging.getLogger(), logging.getLogger().level
    quiet = [logging.getLogger(name) for name in ("httpx", "httpcore", "hypothesis")]  # the client, not the service
    before = [one.level for one in quiet]
    root.addHandler(kept)
    root.setLevel(logging.DEBUG)
    for one in quiet:
        one.setLevel(logging.ERROR)
    key = shop.told("POST", f"/v1/users?user={canary}", "operator")["key"]
    shop.told("PUT", "/v1/items/canary-item", "operator", json={"title": "Canary item"})
    mine, texts = {"Authorization": f"Bearer {key}"}, dict[str, str]()
    try:
        while len(kept.lines) < least:
            shop.service.limiter = type(shop.service.limiter)()
            _as_canary(shop, mine, canary, key, rating, texts)
            _as_others(shop, texts)
    finally:
        root.removeHandler(kept)
        root.setLevel(level)
        for one, was in zip(quiet, before, strict=True):
            one.setLevel(was)
    told = {canary: "id", key[-43:]: "token", str(rating): "rating"}
    wrong = {f"{what} in the log" for line in kept.lines for text, what in told.items() if text in line}
    wrong |= {f"{what} in {place}" for place, text in texts.items() for part, what in told.items() if part in text}
    return len(kept.lines), len(texts), sorted(wrong)


def _as_canary(shop: Shop, mine: dict[str, str], canary: str, key: str, rating: float, texts: dict[str, str]) -> None:
    ask = shop.client.request
    ask("PUT", "/v1/me/ratings/i1", headers=mine, json={"value": rating})
    ask("POST", "/v1/me/events", headers=mine, json={"events": [{"item": "i2", "value": rating}]})
    ask("GET", "/v1/me/recommendations", headers=mine)
    ask("GET", "/for-you", headers={"Cookie": f"goodfence={key}"})
    backend, said = {"X-API-Key": shop.keys["backend"]}, {"item": canary, "value": rating}
    wrongs = [
        ask("PUT", f"/v1/me/ratings/{canary}", headers=mine, json={"value": rating}),
        ask("PUT", "/v1/me/ratings/i1", headers=mine, json={"value": rating * 100}),
        ask("POST", "/v1/me/events", headers=mine, json={"events": [said]}),
        ask("GET", f"/v1/me/recommendations?n={canary}", headers=mine),
        ask("GET", f"/v1/me?key={key}", headers={"Authorization": f"Bearer {key}x"}),
        ask("GET", f"/{canary}/{key}"),
        ask("GET", f"/v1/users/{canary}/neighbors", headers=backend),
        ask("POST", f"/v1/users/{canary}/events", headers=backend, json={"events": [said]}),
        ask("POST", "/v1/session/recommendations", json={"profile": [said]}),
        ask("POST", "/v1/import/events", headers={"X-API-Key": shop.keys["operator"], "Content-Type": "text/csv"},
            content=f"user,item,value\n{canary},none,{rating}\n"),
        ask("POST", "/enter", headers={"Origin": str(shop.client.base_url).rstrip("/")}, data={"key": key + "x"}),
    ]  # fmt: skip
    for at, answer in enumerate(wrongs):
        if answer.status_code < 400:
            raise RuntimeError(f"no error: request {at} answers {answer.status_code}")
        texts[f"error {at}"] = answer.text


def _as_others(shop: Shop, texts: dict[str, str]) -> None:
    for (method, path), one in REGISTRY.items():
        operators = path in ("/v1/export/{what}", "/v1/jobs/{job}/events")  # an operator may read all; it is no page
        if method != "GET" or "{" in path.replace("{item}", "").replace("{user}", "") or operators:
            continue
        key = next((key for key in ("user", "all") if may(one, key)), None)
        asked = path.replace("{item}", "i1").replace("{user}", "u3")
        texts[path] = shop.ask("GET", asked, key, follow_redirects=False).text


# pages in a browser


def axe() -> str | None:
    """Return the source of axe-core, None where it is not installed."""
    found = importlib.util.find_spec("axe_core_python")
    if found is None or found.origin is None:
        return None
    return next(Path(found.origin).parent.rglob("axe.min.js")).read_text(encoding="utf-8")


PAGES = ("/promise", "/enter", "/for-you", "/overview", "/lab", "/frontier", "/ledger")


def visit_pages(shop: Shop, program: str, *, picture: Path | None = None) -> list[list[Any]]:
    """Return for each page, theme and width: first byte in ms, bytes, foreign requests, violations of axe."""
    from tests.support.browser import opened as browser_opened

    base, source, found = str(shop.client.base_url).rstrip("/"), axe(), []
    with browser_opened(program) as browser:
        for theme in ("light", "dark"):
            browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
            for width in (1200, 320):
                browser.width(width, phone=width == 320)
                for path in PAGES:
                    key = {"/for-you": "user", "/enter": None, "/promise": None}.get(path, "all")
                    token = shop.keys[key] if key else ""
                    browser.ask("Network.setCookie", name="goodfence", value=token, url=base)
                    if key is None:
                        browser.ask("Network.clearBrowserCookies")
                    browser.requests.clear()
                    browser.go(base + path)
                    timing = "performance.getEntriesByType('navigation')[0]"
                    late = float(browser.value(f"{timing}.responseStart - {timing}.requestStart"))
                    size = browser.value("performance.getEntries().reduce((n, e) => n + (e.decodedBodySize || 0), 0)")
                    foreign = sum(not one.startswith((base, "data:")) for one in browser.requests)
                    wrong = [] if source is None else _axe(browser, source)
                    wide = browser.value("document.documentElement.scrollWidth")
                    if wide > width:
                        wrong.append(f"{wide} px wide")
                    found.append([path, theme, width, late, size, foreign, wrong])
                    if picture is not None:
                        name = path[1:].partition("?")[0].replace("/", "-")
                        _photograph(browser, picture / f"{name}-{theme}-{width}.png")
    return found


def _axe(browser: Any, source: str) -> list[str]:
    browser.value(f"{source}; void 0")
    tags = json.dumps(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"])
    call = f"axe.run(document, {{runOnly: {tags}}}).then(r => r.violations.map(v => v.id + ': ' + v.nodes[0].html))"
    told = browser.ask("Runtime.evaluate", expression=call, awaitPromise=True, returnByValue=True)
    return list(told["result"]["value"])


def _photograph(browser: Any, path: Path) -> None:
    import base64

    told = browser.ask("Page.captureScreenshot", captureBeyondViewport=True)
    path.write_bytes(base64.b64decode(told["data"]))


def live_curve(shop: Shop) -> tuple[float, float]:
    """Return the seconds until the first point of the lab's curve, and until 100 users were attacked."""
    headers = {"Origin": str(shop.client.base_url).rstrip("/"), "Cookie": f"goodfence={shop.keys['all']}"}
    form = {"method": "knn k=50", "beside": "knn k=50", "known": "8", "fakes": "50", "targets": "100"}
    begun = time.monotonic()
    job = shop.client.post("/lab", headers=headers, data=form).headers["location"].rpartition("/")[2]
    first = 0.0
    while True:
        now, events = time.monotonic() - begun, shop.service.jobs.events(job)
        if events and not first:
            first = now
        if (found := shop.service.jobs.find(job)) and found["state"] in ("done", "failed"):
            if found["state"] == "failed":
                raise RuntimeError(found)
            return first, now
        time.sleep(0.02)
