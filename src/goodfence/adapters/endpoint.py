"""A recommender behind an address: a small protocol of two questions, in JSON.

    POST /fit       {"protocol": 1, "users": [...], "items": [...], "ratings": [...], "seed": 7}
                    -> {"model": "any text"}
    POST /predict   {"protocol": 1, "model": "any text", "users": [...], "items": [...]}
                    -> {"predictions": [3.5, null, ...]}
    POST /answer    {"protocol": 1, "model": "any text", "profile": {"items": [...], "ratings": [...]},
                     "items": [...]}
                    -> {"predictions": [3.5, null, ...]}

Only the model that was fitted last is ever asked, so that a service need not keep more than one.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from goodfence.adapters.exchange import Exchange
from goodfence.adapters.flat import flatten
from goodfence.adapters.problem import BlackBoxProblem
from goodfence.data.limits import check_limit
from goodfence.data.ratings import Ratings
from goodfence.errors import GoodfenceWarning, require
from goodfence.models.recommender import Ids, Profile

PROTOCOL = 1
_LONGEST_NAME = 200
_SEEDS = 2**32


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Endpoint:
    """Where a recommender is served, and how patiently it is asked.

    The ratings are sent there and nowhere else: no redirection is followed and no proxy used.

    Examples
    --------
    >>> Endpoint(url="http://127.0.0.1:8000/recommender", headers={"Authorization": "Bearer secret"})
    Endpoint('http://127.0.0.1:8000')
    """

    url: str
    """The address, to which `/fit`, `/predict` and `/answer` are added."""
    timeout: float = 60.0
    """How many seconds one question may take."""
    max_bytes: int = 64 * 2**20
    """How large an answer may be."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """What is sent with each question, for example a key. No error and no `repr` shows it."""

    def __post_init__(self) -> None:
        _check_url(self.url)
        _warn_if_open(self.url)
        require(0 < self.timeout < np.inf, "timeout", "a positive number of seconds", self.timeout)
        check_limit(self.max_bytes)
        kept = dict(self.headers)
        require(_can_be_sent(kept), "headers", "single lines of plain text by name", "others")
        object.__setattr__(self, "headers", kept)

    def __repr__(self) -> str:
        return f"Endpoint({self.shown!r})"

    @property
    def shown(self) -> str:
        """The address as errors show it: no path, which may hold a key."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    def train(self, ratings: Ratings, *, rng: int | None = None) -> _Served:
        """Let the service learn, and return what can be asked."""
        users, items, values = flatten(ratings)
        sent = {"users": users.tolist(), "items": items.tolist(), "ratings": values.tolist()}
        seed = None if rng is None else rng % _SEEDS
        name = self.post("fit", {**sent, "seed": seed}).get("model")
        if not isinstance(name, str) or len(name) > _LONGEST_NAME:
            raise self.problem(f'answer /fit with {{"model": text of at most {_LONGEST_NAME}}}')
        return _Served(self, name)

    def post(self, question: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return what the service answers."""
        sent = json.dumps({"protocol": PROTOCOL, **body}, allow_nan=False).encode()
        exchange = Exchange(f"{self.url.rstrip('/')}/{question}", self.timeout, self.max_bytes)
        received = exchange.post(sent, self.headers, where=self.shown)
        try:
            answer = json.loads(received, parse_constant=_refuse)
        except (ValueError, RecursionError):
            raise self.problem(f"answer /{question} in JSON") from None
        if not isinstance(answer, dict):
            raise self.problem(f"answer /{question} with a JSON object")
        return answer

    def problem(self, rule: str) -> BlackBoxProblem:
        """Return the error of a service that breaks a rule."""
        return BlackBoxProblem(f"the recommender at {self.shown} must {rule}, and did not")


@dataclass(frozen=True, slots=True, repr=False)
class _Served:
    """A model that the service has learnt."""

    endpoint: Endpoint
    name: str

    def predict(self, users: Ids, items: Ids) -> npt.NDArray[np.float64]:
        """Return the predicted rating of users[j] for items[j]."""
        return self._predictions("predict", {"users": _plain(users)}, items)

    def answer(self, profile: Profile, items: Ids) -> npt.NDArray[np.float64]:
        """Return predictions for somebody who is not in the data."""
        ratings = [float(value) for value in profile.values()]
        sent = {"items": _plain(list(profile)), "ratings": ratings}
        return self._predictions("answer", {"profile": sent}, items)

    def _predictions(
        self, question: str, whom: dict[str, Any], items: Ids
    ) -> npt.NDArray[np.float64]:
        body = {"model": self.name, **whom, "items": _plain(items)}
        numbers = self.endpoint.post(question, body).get("predictions")
        if not _are_predictions(numbers, len(items)):
            raise self.endpoint.problem(
                f'answer /{question} with {{"predictions": a list of numbers or null, one for each item}}'
            )
        try:
            return np.array(numbers, dtype=np.float64)
        except OverflowError:
            raise self.endpoint.problem("answer with numbers that a float can hold") from None


def _are_predictions(numbers: Any, n: int) -> bool:
    listed = isinstance(numbers, list) and len(numbers) == n
    return listed and all(one is None or type(one) in (int, float) for one in numbers)


def _plain(ids: Ids) -> list[Any]:
    """Return ids as JSON knows them."""
    return [one.item() if isinstance(one, np.generic) else one for one in ids]


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _check_url(url: str) -> None:
    """Refuse what is no plain address, without repeating it: it may hold a password or a key."""
    try:
        parts = urlsplit(url)
        port_is_right = parts.port is None or parts.port > 0
    except ValueError:
        parts, port_is_right = urlsplit(""), False
    web = parts.scheme in ("http", "https") and bool(parts.hostname) and port_is_right
    printable = url.isascii() and url.isprintable() and " " not in url
    require(web and printable, "url", "an address, https://... or http://...", "another text")
    bare = not (parts.query or parts.fragment or "@" in parts.netloc)
    require(bare, "url", "without password and query (use headers=)", "one with")


def _warn_if_open(url: str) -> None:
    """Warn where everybody's ratings would travel readable for all on the way."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        here = ip_address(host).is_loopback
    except ValueError:
        here = host == "localhost"
    if parts.scheme == "http" and not here:
        warnings.warn(
            "the ratings are sent to another machine without encryption; use https where you can",
            GoodfenceWarning,
            stacklevel=4,
        )


def _can_be_sent(headers: Mapping[Any, Any]) -> bool:
    texts = [*headers, *headers.values()]
    return all(isinstance(one, str) and one.isascii() and one.isprintable() for one in texts)
