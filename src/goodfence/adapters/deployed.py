"""`Deployed`: a recommender as it is served, behind its own addresses, told by a small file in TOML.

No refit protocol is needed: an auditor who may open accounts makes both worlds by opening and closing them. All
accounts, those of the people in the data and the fakes, are the auditor's own.

    settle = 0.5                                   # seconds until the service has learnt; 0 unless given

    [open]                                         # an account with what it clicked
    method = "POST"
    path = "/accounts/{user}"
    body = {clicked = "$items"}

    [close]
    method = "DELETE"
    path = "/accounts/{user}"

    [learn]                                        # only where learning must be asked for
    path = "/retrain"

    [list]
    method = "GET"
    path = "/accounts/{user}/recommendations?limit={n}"
    items = "results.*.id"                         # where the ids are in the answer

`{user}` and `{n}` in a path, and `$user`, `$items` and `$n` as whole texts in a body, are replaced.
"""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import numpy as np

from goodfence.adapters.http import Endpoint, Exchange, is_list_of_ids
from goodfence.data.files import find_file
from goodfence.data.ratings import Ratings
from goodfence.errors import FileProblem, NotFittedError, SettingError, require
from goodfence.privacy.guarantee import Guarantee
from goodfence.settings import checked

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_LARGEST = 2**20
_DONE = (200, 201, 202, 204)
_KNOWN = {"settle", "open", "close", "learn", "list"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One kind of question to a service."""

    path: str
    method: str = "POST"
    body: Any = None

    def __post_init__(self) -> None:
        require(self.method in _METHODS, "method", f"one of {', '.join(_METHODS)}", self.method)
        sound = isinstance(self.path, str) and self.path.startswith("/")
        require(sound, "path", "text that begins with /", type(self.path))

    def path_for(self, values: Mapping[str, Any]) -> str:
        """Return the path with its values, each as one part of an address."""
        path = self.path
        for name, value in values.items():
            path = path.replace("{" + name + "}", quote(str(value), safe=""))
        return path

    def body_for(self, values: Mapping[str, Any]) -> bytes | None:
        """Return the body as JSON, if there is one."""
        return None if self.body is None else json.dumps(_filled(self.body, values)).encode()


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceMapping:
    """How a service is asked: the content of the file."""

    open: Call
    list: Call
    items: str
    """Where the ids are in the answer to `list`: names and `*` for every entry, between dots; empty for all of it."""
    close: Call | None = None
    learn: Call | None = None
    settle: float = 0.0

    @classmethod
    def read(cls, path: str | Path) -> ServiceMapping:
        """Return the mapping in a file; whatever is not known there is an error."""
        file = find_file(Path(path), _LARGEST)
        try:
            told = tomllib.loads(file.path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError):
            raise FileProblem(f"{file.name!r} must be TOML, and is not") from None
        unknown = sorted(set(told) - _KNOWN)
        if unknown or not {"open", "list"} <= set(told):
            raise FileProblem(
                f"{file.name!r} must have the tables open and list, and may have close, learn and settle"
                + (f"; {unknown[0]!r} is none of these" if unknown else "")
            )
        calls = {
            name: dict(told[name]) for name in ("open", "close", "list", "learn") if name in told
        }
        items = calls["list"].pop("items", "")
        require(isinstance(items, str), "items", "text such as results.*.id", type(items))
        settle = told.get("settle", 0.0)
        require(isinstance(settle, int | float) and settle >= 0, "settle", "at least 0", settle)
        return cls(
            **{name: _call(name, one) for name, one in calls.items()}, items=items, settle=settle
        )


def _call(name: str, told: Mapping[str, Any]) -> Call:
    unknown = sorted(set(told) - {"path", "method", "body"})
    require(not unknown, name, "a table of path, method and body", ", ".join(unknown))
    require("path" in told, name, "a table with a path", "none")
    return Call(**told)


def _filled(body: Any, values: Mapping[str, Any]) -> Any:
    """Return a body with every text `$name` replaced by its value, however deep."""
    if isinstance(body, str) and body.startswith("$") and body[1:] in values:
        return values[body[1:]]
    if isinstance(body, Mapping):
        return {key: _filled(inside, values) for key, inside in body.items()}
    if isinstance(body, list):
        return [_filled(inside, values) for inside in body]
    return body


def found_at(answer: Any, path: str) -> Any:
    """Return what is at a path of names and `*` (every entry of a list) in an answer; None for nothing.

    Examples
    --------
    >>> found_at({"results": [{"id": 7}, {"id": 3}]}, "results.*.id")
    [7, 3]
    >>> found_at({"ids": [7, 3]}, "ids")
    [7, 3]
    """
    found = [answer]
    for name in filter(None, path.split(".")):
        if name == "*":
            found = [inside for one in found if isinstance(one, list) for inside in one]
        else:
            found = [one[name] for one in found if isinstance(one, Mapping) and name in one]
    if "*" in path.split("."):
        return found
    return found[0] if found else None


@checked
class Deployed:
    """A recommender of lists as it is served, for `ListAttack` and `audit`.

    `fit` opens an account for each user of the events that has none yet or another profile, closes those that are not
    in the events, and waits until the service has learnt. So the two worlds of a target differ in few accounts.

    Parameters
    ----------
    url : str or Endpoint
        Where it is served; an `Endpoint` also says how patiently it is asked, and with which headers.
    mapping : str or path
        The file that says how.
    prefix : str, default "goodfence-"
        What the names of all accounts begin with, so that they can be told from others.
    """

    def __init__(
        self, url: str | Endpoint, mapping: str | Path, *, prefix: str = "goodfence-"
    ) -> None:
        self.endpoint = url if isinstance(url, Endpoint) else Endpoint(url=url)
        self.mapping = ServiceMapping.read(mapping)
        self.prefix = prefix
        self.accounts_ = _Accounts()

    def __repr__(self) -> str:
        return f"Deployed({self.endpoint.shown!r})"

    @checked
    def fit(self, ratings: Ratings) -> Self:
        """Make the accounts of the service those of these events."""
        if ratings.feedback != "implicit":
            raise SettingError("what is deployed must be given events: it is asked for lists")
        csr, wanted = ratings.csr, {}
        for row, user in enumerate(ratings.users.tolist()):
            held = ratings.items[csr.indices[csr.indptr[row] : csr.indptr[row + 1]]]
            wanted[user] = held.tolist()
        open_now = self.accounts_.open
        gone = [user for user in open_now if wanted.get(user) != open_now[user]]
        if gone and self.mapping.close is None:
            raise SettingError("the mapping must have a table close: an account has to be closed")
        for user in gone:
            self._call(self.mapping.close, user=self._name(user))
            del open_now[user]
        new = [user for user in wanted if user not in open_now]
        for user in new:
            self._call(self.mapping.open, user=self._name(user), items=wanted[user])
            open_now[user] = wanted[user]
        if gone or new:
            if self.mapping.learn is not None:
                self._call(self.mapping.learn)
            time.sleep(self.mapping.settle)
        self.ratings_ = ratings
        return self

    def recommend(self, user: Any, n: int) -> list[Any]:
        """Return the ids of the items that the account of a user is shown, best first; of items in the data only."""
        if not hasattr(self, "ratings_"):
            raise NotFittedError(
                "the accounts must be opened before one is asked; call fit(events)"
            )
        answer = self._call(self.mapping.list, user=self._name(user), n=n)
        try:
            told = found_at(json.loads(answer), self.mapping.items)
        except (ValueError, RecursionError):
            raise self.endpoint.problem("answer with a list in JSON") from None
        if not is_list_of_ids(told):
            raise self.endpoint.problem(f"have item ids at {self.mapping.items!r} of its answer")
        return [one for one in map(self._known.get, map(str, told)) if one is not None]

    def close(self) -> None:
        """Close every account that was opened."""
        if self.mapping.close is not None:
            for user in list(self.accounts_.open):
                self._call(self.mapping.close, user=self._name(user))
                del self.accounts_.open[user]

    def guarantee(self) -> Guarantee:
        """Return that there is none: a guarantee is a property of what is inside."""
        return Guarantee(status="none", reason="Nothing is known of what is inside a black box.")

    @property
    def _known(self) -> dict[str, Any]:
        """The items of the data, by their ids as text: JSON may have an integer where the data has text."""
        return {str(item): item for item in self.ratings_.items.tolist()}

    def _name(self, user: Any) -> str:
        return f"{self.prefix}{user.item() if isinstance(user, np.generic) else user}"

    def _call(self, call: Call | None, **values: Any) -> bytes:
        if call is None:
            return b""
        url = f"{self.endpoint.url.rstrip('/')}{call.path_for(values)}"
        exchange = Exchange(url, self.endpoint.timeout, self.endpoint.max_bytes)
        body, headers = call.body_for(values), self.endpoint.headers
        return exchange.send(call.method, body, headers, where=self.endpoint.shown, statuses=_DONE)


@dataclass(slots=True)
class _Accounts:
    """The accounts that are open, with what they hold: copies of a recommender share them, as the service does."""

    open: dict[Any, list[Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"_Accounts({len(self.open):,} open)"
