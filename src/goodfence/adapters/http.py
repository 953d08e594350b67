"""A recommender behind an address: a small protocol of two questions, in JSON.

    POST /fit       {"protocol": 1, "users": [...], "items": [...], "ratings": [...], "seed": 7}
                    -> {"model": "any text"}
    POST /predict   {"protocol": 1, "model": "any text", "users": [...], "items": [...]}
                    -> {"predictions": [3.5, null, ...]}

Of events (`"feedback": "implicit"` in /fit, whose ratings then are how much each event counts) lists are asked for:

    POST /recommend {"protocol": 1, "model": "any text", "user": ..., "n": 10}
                    -> {"items": [...]}

Where a profile asks, "profile": {"items": [...], "ratings": [...]} is sent in place of "users" or "user".
Only the model that was fitted last is ever asked, so that a service need not keep more than one.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse
from ipaddress import ip_address
from typing import Annotated, Any
from urllib.parse import urlsplit

import numpy as np

from goodfence.arrays import Floats, row_numbers
from goodfence.data.files import check_limit, readable
from goodfence.data.ratings import Id, Profile, Ratings
from goodfence.errors import BlackBoxProblem, SettingError, require, warn
from goodfence.models.recommender import IdsLike
from goodfence.settings import Positive, checked

PROTOCOL = 1
_LONGEST_NAME = 200
_SEEDS = 2**32
_CHUNK = 2**16
_HUGE = sys.float_info.max
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BUSY = (429, 503)
_TRIES = 6  # how often a busy service is asked one question
_FIRST_WAIT = 1.0
"""Seconds before the second try where no Retry-After is given; each further wait is twice as long."""
_LONGEST_WAIT = 120.0  # seconds that all waits for one answer may take


def _plain_headers(value: Mapping[Any, Any], name: str) -> dict[str, str]:
    kept = dict(value)
    texts = [*kept, *kept.values()]
    plain = all(isinstance(one, str) and one.isascii() and one.isprintable() for one in texts)
    plain = plain and all(map(_HEADER_NAME.fullmatch, kept))
    require(plain, name, "single lines of plain text by name", "others")
    return kept


@checked
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Endpoint:
    """Where a recommender is served, and how patiently it is asked.

    The ratings are sent there and nowhere else: no redirection is followed and no proxy used.

    Parameters
    ----------
    url : str
        The address, to which `/fit`, `/predict` and `/recommend` are added.
    timeout : float, default 60.0
        How many seconds one try may take, from the look-up of the address to the last byte of the answer.
    max_bytes : int, default 64 MiB
        How large an answer may be.
    headers : mapping of str to str, default empty
        What is sent with each question, for example a key. No error and no `repr` shows it.

    Examples
    --------
    >>> Endpoint(url="http://127.0.0.1:8000/recommender", headers={"Authorization": "Bearer secret"})
    Endpoint('http://127.0.0.1:8000')
    """

    url: str
    timeout: Positive = 60.0
    max_bytes: int = 64 * 2**20
    headers: Annotated[Mapping[str, str], _plain_headers] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_url(self.url)
        check_limit(self.max_bytes)

    def __repr__(self) -> str:
        return f"Endpoint({self.shown!r})"

    @property
    def shown(self) -> str:
        """The address as errors show it: no path, which may hold a key."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    @checked
    def train(self, ratings: Ratings, *, rng: int | None = None) -> _Served:
        """Let the service learn, and return what can be asked."""
        csr = ratings.csr
        sent: dict[str, Any] = {
            "users": ratings.users[row_numbers(csr.indptr)].tolist(),
            "items": ratings.items[csr.indices].tolist(),
            "ratings": csr.data.tolist(),
            "seed": None if rng is None else int(rng) % _SEEDS,
        }
        if ratings.feedback == "implicit":
            sent["feedback"] = ratings.feedback
        name = self.post("fit", sent).get("model")
        if not isinstance(name, str) or len(name) > _LONGEST_NAME:
            raise self.problem(f'answer /fit with {{"model": text of at most {_LONGEST_NAME}}}')
        return _Served(self, name)

    def post(self, question: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return what the service answers."""
        sent = json.dumps({"protocol": PROTOCOL, **body}, allow_nan=False).encode()
        answer = self.decoded(self.send("POST", f"/{question}", sent), f"answer /{question} in JSON")
        if not isinstance(answer, dict):
            raise self.problem(f"answer /{question} with a JSON object")
        return answer

    def problem(self, rule: str) -> BlackBoxProblem:
        """Return the error of a service that breaks a rule."""
        return BlackBoxProblem(f"the recommender at {self.shown} must {rule}, and did not")

    def decoded(self, received: bytes, rule: str) -> Any:
        """Return the JSON of an answer."""
        try:
            return json.loads(received, parse_constant=int)  # which raises: NaN is no JSON
        except (ValueError, RecursionError):
            raise self.problem(rule) from None

    def numbers(self, told: Any, n: int, rule: str) -> Floats:
        """Return `n` finite numbers of an answer, NaN for null."""
        listed = isinstance(told, list) and len(told) == n
        if not listed or not all(one is None or (type(one) in (int, float) and abs(one) <= _HUGE) for one in told):
            raise self.problem(rule)
        return np.array(told, dtype=np.float64)

    def send(self, method: str, path: str, body: bytes | None, statuses: tuple[int, ...] = (200,)) -> bytes:
        """Return the body of the answer; ask again after 429 and 503, when Retry-After says or ever more slowly.

        An error names the address, and nothing that was sent or received.
        """
        # Both statuses mean that nothing was done. Should a service have done it all the same, asking again changes
        # nothing: /fit replaces the model, an account is opened and closed by its own name, the rest only reads. Other
        # failures, such as a lost connection, are never tried again.
        waited, reason = 0.0, f"was still busy after {_TRIES} tries"
        for turn in range(_TRIES):
            try:
                return self._send_once(method, path, body, statuses)
            except _Busy as busy:
                wait = _FIRST_WAIT * 2**turn if busy.wait is None else busy.wait
                status, waited = busy.status, waited + wait
            if waited > _LONGEST_WAIT:
                reason = f"asked to wait longer than {_LONGEST_WAIT:g} seconds"
                break
            if turn + 1 < _TRIES:
                time.sleep(wait)
        raise BlackBoxProblem(f"the recommender at {self.shown} {reason} (status {status}); try again later")

    def _send_once(self, method: str, path: str, body: bytes | None, statuses: tuple[int, ...]) -> bytes:
        """Return the answer of one try, with one deadline from the look-up of the name to the last byte."""
        stated = {"Content-Type": "application/json", "Accept": "application/json", **self.headers}
        deadline, parts = _Deadline(self.timeout), urlsplit(f"{self.url.rstrip('/')}{path}")
        asked = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path
        rule = ""
        try:
            with deadline, closing(self._connection(deadline)) as connection:
                connection.request(method, asked, body, stated)
                answer = self._read(connection.getresponse(), statuses)
            if not deadline.passed:  # a connection that was shut down looks like one that has ended
                return answer
        except BlackBoxProblem as problem:
            rule = str(problem)
        except (OSError, HTTPException) as error:
            rule = f"cannot be reached ({type(error).__name__}); check the address, and that it runs"
        if deadline.passed:
            rule = f"did not answer within {self.timeout:g} seconds"
        raise BlackBoxProblem(f"the recommender at {self.shown} {rule}")

    def _connection(self, deadline: _Deadline) -> HTTPConnection:
        """Return an open connection; no proxy is used, and a redirection is an answer like any other."""
        parts = urlsplit(self.url)
        host, secure = parts.hostname or "", parts.scheme == "https"
        connected = deadline.connect(host, parts.port or (443 if secure else 80))
        if secure:
            context = ssl.create_default_context()
            connected = deadline.watch(context.wrap_socket(connected, server_hostname=host))
        connection = HTTPConnection(parts.netloc, timeout=self.timeout)
        connection.sock = connected
        return connection

    def _read(self, response: HTTPResponse, statuses: tuple[int, ...]) -> bytes:
        """Read to the end, and no more than the limit."""
        if response.status in _BUSY:
            raise _Busy(response.status, _stated_wait(response.headers.get("Retry-After")))
        if response.status not in statuses:
            raise BlackBoxProblem(f"must answer with status {statuses[0]}, got {response.status}")
        received = b""
        while part := response.read1(_CHUNK):
            received += part
            if len(received) > self.max_bytes:
                limit = readable(self.max_bytes)
                raise BlackBoxProblem(f"must answer with at most {limit}, and sent more")
        if response.length not in (None, 0):  # what is left of the stated length
            raise BlackBoxProblem("must send the whole answer, and hung up")
        return received


@dataclass(frozen=True, slots=True, repr=False)
class _Served:
    """A model that the service has trained."""

    endpoint: Endpoint
    name: str

    def predict(self, users: IdsLike | Profile, items: IdsLike) -> Floats:
        whom = _sent(users) if isinstance(users, Mapping) else {"users": plain_ids(users)}
        body = {"model": self.name, **whom, "items": plain_ids(items)}
        told = self.endpoint.post("predict", body).get("predictions")
        rule = 'answer /predict with {"predictions": a list of finite numbers or null, one for each item}'
        return self.endpoint.numbers(told, len(items), rule)

    def recommend(self, user: Id | Profile, n: int) -> Any:
        whom = _sent(user) if isinstance(user, Mapping) else {"user": plain_ids([user])[0]}
        items = self.endpoint.post("recommend", {"model": self.name, **whom, "n": n}).get("items")
        if not is_list_of_ids(items):
            raise self.endpoint.problem('answer /recommend with {"items": a list of ids}')
        return items


def is_list_of_ids(items: Any) -> bool:
    """Return whether these are texts or integers, in a list."""
    return isinstance(items, list) and all(type(one) in (str, int) for one in items)


def plain_ids(ids: IdsLike) -> list[Any]:
    """Return ids as JSON knows them."""
    return [one.item() if isinstance(one, np.generic) else one for one in ids]


def _sent(profile: Profile) -> dict[str, Any]:
    values = [float(value) for value in profile.values()]
    return {"profile": {"items": plain_ids(list(profile)), "ratings": values}}


def _check_url(url: str) -> None:
    """Refuse what is no plain address, without repeating it: it may hold a key. Warn of one without encryption."""
    try:
        parts = urlsplit(url)
        port_is_right = parts.port is None or parts.port > 0
    except ValueError:
        parts, port_is_right = urlsplit(""), False
    web = parts.scheme in ("http", "https") and bool(parts.hostname) and port_is_right
    printable = url.isascii() and url.isprintable() and " " not in url
    if not (web and printable):
        raise SettingError("url must be an address that begins with https:// or http://")
    bare = not (parts.query or parts.fragment or "@" in parts.netloc)
    require(bare, "url", "without password and query (use headers=)", "one with")
    here = parts.hostname == "localhost"
    with suppress(ValueError):
        here |= ip_address(parts.hostname or "").is_loopback
    if parts.scheme == "http" and not here:
        warn("the ratings are sent to another machine without encryption; use https where you can")


@dataclass
class _Busy(Exception):
    """A service asks to be asked again, after so many seconds if it says when."""

    status: int
    wait: float | None


def _stated_wait(stated: str | None) -> float | None:
    """Return the seconds that a Retry-After asks for, by number or date; None for neither, as for a negative number."""
    text = (stated or "").strip()
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)  # an HTTP date is in GMT
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


class _Deadline:
    """Shuts a connection down when the time is over: a time-out of the socket begins again with each byte."""

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._end = time.monotonic() + seconds
        self._watched: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._shut)
        self._timer.daemon = True

    def __enter__(self) -> _Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self.passed |= time.monotonic() >= self._end
        if self._watched is not None:
            self._watched.close()

    def connect(self, host: str, port: int) -> socket.socket:
        """Return a connection to the first address that answers."""
        problem: OSError = OSError("no address")
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        for family, kind, protocol, _, address in found:
            tried = self.watch(socket.socket(family, kind, protocol))
            tried.settimeout(max(0.001, self._end - time.monotonic()))
            try:
                tried.connect(address)
            except OSError as error:
                tried.close()
                problem = error
            else:
                return tried
        raise problem

    def watch(self, connection: socket.socket) -> socket.socket:
        """Return the connection, which is shut down when the time is over."""
        self._watched = connection
        return connection

    def _shut(self) -> None:
        self.passed = True
        if self._watched is not None:
            with suppress(OSError):
                self._watched.shutdown(socket.SHUT_RDWR)
