"""A guarded service of ratings and lists on this machine: a key, a rate limit, a cold start and late retraining."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
from scipy import sparse

import goodfence as gf
from tests.support.recommender_service import SECRET
from tests.support.shop_service import place_of
from tests.support.web import QuietHandler, running

KEY = {"X-Key": SECRET}
OPEN = """
[open]
method = "PUT"
path = "/accounts/{user}"
body = {items = "$items", stars = "$ratings"}
"""
OPEN_EACH = """
[open]
method = "PUT"
path = "/accounts/{user}/items/{item}"
body = {stars = "$rating"}
each = true
"""
OPEN_ALL = """
[open_all]
path = "/accounts"
body = {accounts = "$accounts", source = "import"}
account = {name = "$user", items = "$items", stars = "$ratings"}
"""
CLOSE = """
[close]
method = "DELETE"
path = "/accounts/{user}"
"""
LIST = """
[list]
method = "GET"
path = "/accounts/{user}/shelf?size={n}"
items = "entries.*.sku"
scores = "entries.*.score"
"""
PREDICT = """
[predict]
path = "/accounts/{user}/predictions"
body = {items = "$items"}
predictions = "rated.*.value"
"""
PREDICT_EACH = """
[predict]
method = "GET"
path = "/accounts/{user}/predictions/{item}"
predictions = "value"
"""

Answer = tuple[int, bytes, dict[str, str]]


def write_tables(folder: Path, *tables: str) -> Path:
    """Write a mapping file of these tables."""
    path = folder / "service.toml"
    path.write_text("".join(tables))
    return path


@dataclass
class RatingService:
    """User-based kNN on the ratings or clicks of its accounts."""

    feedback: Any = "explicit"
    k: int = 4
    cold: int = 0
    """Accounts with fewer ratings get item means, and the most popular items."""
    retrains_after: float = 0.0
    """How many seconds after a change the model is replaced."""
    limit: int = 0
    """After how many answers one question is answered by 429; 0 for never."""
    retry_after: str | None = "0"
    bad: Callable[[str, str], Answer | None] = lambda _method, _path: None
    """What is answered instead, if anything."""
    accounts: dict[str, dict[str, float]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Every question that was answered: method and path."""
    refused: int = 0
    """How many questions came too fast."""
    largest: int = 0
    """The most accounts there ever were."""
    answers: int = 0
    model: Any = None
    changed: float | None = None

    def answer(self, method: str, path: str, sent: Any, key: str | None) -> Answer:
        """Return status, body and headers."""
        if key != SECRET:
            return 401, SECRET.encode(), {}
        if self.limit and self.answers >= self.limit:
            self.answers, self.refused = 0, self.refused + 1
            return 429, SECRET.encode(), {} if self.retry_after is None else {"Retry-After": self.retry_after}
        self.answers += 1
        told = self.bad(method, path)
        if told is not None:
            return told
        self.asked.append((method, path))
        status, body = self.served(method, path, sent)
        return status, json.dumps(body).encode(), {}

    def served(self, method: str, path: str, sent: Any) -> tuple[int, Any]:
        """Return what an honest service answers."""
        parts = urlsplit(path)
        user, what, item = [*map(unquote, parts.path.split("/")[2:]), None, None, None][:3]
        if user is None or method == "PUT":
            opened = sent["accounts"] if user is None else [{"name": user, "items": [item], **sent}]
            for one in opened:
                stars = one["stars"] if isinstance(one["stars"], list) else [one["stars"]]
                held = dict(zip(map(str, one["items"]), stars, strict=True))
                self.accounts.setdefault(one["name"], {}).update(held)
            self.changed, self.largest = time.monotonic(), max(self.largest, len(self.accounts))
            return 201, {}
        if user not in self.accounts:
            return 404, {}
        if method == "DELETE":
            del self.accounts[user]
            self.changed = time.monotonic()
            return 204, {}
        self.retrain()
        if what == "shelf":
            return 200, {"entries": self.shelf(user, int(parse_qs(parts.query)["size"][0]))}
        values = self.predictions(user, [item] if method == "GET" else list(map(str, sent["items"])))
        return 200, {"value": values[0]} if method == "GET" else {"rated": [{"value": one} for one in values]}

    def retrain(self) -> None:
        """Replace the model if the last change is long enough ago."""
        if self.changed is None or time.monotonic() - self.changed < self.retrains_after:
            return
        users = sorted(self.accounts, key=place_of)
        items = sorted({item for held in self.accounts.values() for item in held}, key=lambda item: (len(item), item))
        columns = {item: column for column, item in enumerate(items)}
        cells = [(row, columns[item], value) for row, user in enumerate(users) for item, value in self._held(user)]
        rows, places, values = zip(*cells, strict=True)
        csr = sparse.csr_array((np.array(values, dtype=np.float64), (rows, places)))
        scale = (1, 5, 1) if self.feedback == "explicit" else None
        ratings = gf.Ratings(csr, users, items, scale=scale, feedback=self.feedback)
        self.model, self.changed = gf.NeighbourCF(gf.KNN(k=self.k), progress=False, threads=1).fit(ratings), None

    def _held(self, user: str) -> list[tuple[str, float]]:
        return sorted(self.accounts[user].items(), key=lambda cell: (len(cell[0]), cell[0]))

    def predictions(self, user: str, items: list[Any]) -> list[float | None]:
        """Return a number for each item that the model knows: for a cold account the mean of the item."""
        ratings = self.model.ratings_
        known, cold = set(ratings.items.tolist()), self.is_cold(user)
        told: list[float | None] = []
        for item in items:
            given = [held[item] for held in self.accounts.values() if item in held]
            value = float(np.mean(given)) if cold and given else np.nan
            if not cold and item in known:
                value = float(self.model.predict([user], [item])[0])
            told.append(None if np.isnan(value) else value)
        return told

    def shelf(self, user: str, n: int) -> list[dict[str, Any]]:
        """Return a list with scores: for a cold account the most popular items."""
        if self.is_cold(user):
            counts = np.diff(self.model.ratings_.transposed.csr.indptr)
            best = np.argsort(-counts, kind="stable")[:n]
            return [{"sku": self.model.ratings_.items[one], "score": float(counts[one])} for one in best]
        told = self.model.recommend(user, n)
        return [{"sku": item, "score": float(score)} for item, score in zip(*told, strict=True)]

    def is_cold(self, user: str) -> bool:
        return len(self.accounts[user]) < self.cold or user not in set(self.model.ratings_.users.tolist())


@contextmanager
def serving_ratings(service: RatingService) -> Iterator[str]:
    """Serve, and return the address."""
    lock = threading.Lock()

    class Handler(QuietHandler):
        def _do(self) -> None:
            sent = self.received()
            with lock:
                answer = service.answer(self.command, self.path, sent, self.headers.get("X-Key"))
            self.reply(*answer)

        do_GET = do_POST = do_PUT = do_DELETE = _do  # noqa: N815 - names of the server

    with running(Handler) as address:
        yield address
