"""A recommender behind a real web server on this machine, which can misbehave, for the tests of black boxes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from scipy import sparse

import goodfence as gf
from tests.support.web import QuietHandler, running

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
    """What is answered to /predict instead of predictions."""
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
        known = sent.get("profile")
        profile = known and dict(zip(known["items"], known["ratings"], strict=True))
        if path.endswith("/recommend"):
            listed = model.recommend(profile or sent["user"], sent["n"])
            return json.dumps({"items": listed.items.tolist()}).encode()
        told = model.predict(profile or sent["users"], sent["items"])
        predictions = [None if one != one else one for one in told.tolist()]
        return json.dumps({"predictions": predictions}).encode()

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


@contextmanager
def serving(service: Service) -> Iterator[str]:
    """Serve, and return the address."""

    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 - name of the server
            sent = self.received()
            service.asked.append((self.path, sent, dict(self.headers)))
            time.sleep(service.delay)
            if service.status != 200:
                moved = {"Location": f"http://127.0.0.1:1/{SECRET}"}
                self.reply(service.status, SECRET.encode(), moved, SECRET)
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

    with running(Handler) as address:
        yield address
