"""A recommender behind a real web server on this machine, which can misbehave, for the tests of black boxes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from scipy import sparse

import goodfence as gf

SECRET = "hidden-5f2c"  # noqa: S105 - it opens nothing
"""What stands in every bad answer and must never be in an error."""


@dataclass
class Service:
    """What is served, and how badly."""

    unfitted: Any = None
    """A recommender that is fitted anew for each /fit."""
    status: int = 200
    """What is answered instead, if not 200."""
    body: bytes | None = None
    """What is answered to /predict and /answer instead of predictions."""
    fit_body: bytes | None = None
    """What is answered to /fit instead of the name of a model."""
    delay: float = 0.0
    """How many seconds pass before each answer."""
    drip: float = 0.0
    """How many seconds pass between the bytes of an answer."""
    missing: int = 0
    """How many bytes of an answer are never sent."""
    asked: list[tuple[str, dict[str, Any], dict[str, str]]] = field(default_factory=list)
    """Every question: path, body and headers."""
    models: dict[str, Any] = field(default_factory=dict)
    """The one model that was fitted last."""

    def answer(self, path: str, sent: dict[str, Any]) -> bytes:
        """Return what an honest service answers, or what this one was told to."""
        if path.endswith("/fit"):
            return self.fit_body or json.dumps({"model": self.fit(sent)}).encode()
        if self.body is not None:
            return self.body
        model = self.models[sent["model"]]
        if path.endswith(("/recommend", "/answer_list")):
            return json.dumps({"items": self.listed(model, sent)}).encode()
        if path.endswith("/predict"):
            told = model.predict(sent["users"], sent["items"])
        else:
            known = sent["profile"]
            told = model.answer(dict(zip(known["items"], known["ratings"], strict=True)), sent["items"])
        predictions = [None if one != one else one for one in told.tolist()]
        return json.dumps({"predictions": predictions}).encode()

    def listed(self, model: Any, sent: dict[str, Any]) -> list[Any]:
        """Return the items that a user, or a profile, is shown."""
        if "user" in sent:
            return list(model.recommend(sent["user"], sent["n"]).items.tolist())
        return list(model.answer_list(sent["profile"]["items"], sent["n"]).items.tolist())

    def fit(self, sent: dict[str, Any]) -> str:
        """Learn, and return the name of the model."""
        # In the order of the question, as in the attacker's own world: chance and ties go by row.
        users, items = list(dict.fromkeys(sent["users"])), sorted(set(sent["items"]))
        rows = [users.index(user) for user in sent["users"]]
        columns = [items.index(item) for item in sent["items"]]
        cells = sparse.coo_array((sent["ratings"], (rows, columns)))
        name = f"model {len(self.asked)}"
        self.unfitted.rng = sent["seed"]
        ratings = gf.Ratings(cells.tocsr(), users, items, feedback=sent.get("feedback", "explicit"))
        self.models = {name: self.unfitted.fit(ratings)}
        return name


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing when somebody hangs up."""


@contextmanager
def serving(service: Service) -> Iterator[str]:
    """Serve, and return the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            service.asked.append((self.path, sent, dict(self.headers)))
            time.sleep(service.delay)
            if service.status != 200:
                self.send_response(service.status, SECRET)
                self.send_header("Location", f"http://127.0.0.1:1/{SECRET}")
                self.send_header("Content-Length", str(len(SECRET)))
                self.end_headers()
                self.wfile.write(SECRET.encode())
                return
            self._send(service.answer(self.path, sent))

        def _send(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body) + service.missing))
            self.end_headers()
            if not service.drip:
                self.wfile.write(body)
                return
            for place in range(len(body)):
                self.wfile.write(body[place : place + 1])
                time.sleep(service.drip)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = _Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
