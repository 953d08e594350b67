"""`Deployed`: a recommender in service, described by a small TOML file.

The service needs no refit protocol: an auditor who may open accounts makes both worlds by opening and closing them. All
accounts, those of the users in the data and the fakes, are the auditor's own.

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import numpy as np

from goodfence.adapters.http import Endpoint, is_list_of_ids
from goodfence.data.files import find_file
from goodfence.data.ratings import Ratings
from goodfence.errors import FileProblem, NotFittedError, SettingError, require
from goodfence.models.recommender import row_of
from goodfence.privacy.guarantee import Guarantee
from goodfence.settings import checked, one_of

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
        one_of(self.method, "method", _METHODS)
        sound = isinstance(self.path, str) and self.path.startswith("/")
        require(sound, "path", "text that begins with /", type(self.path))

    def send(self, endpoint: Endpoint, **values: Any) -> bytes:
        """Return the answer to this question with its values, in the path each as one part of an address."""
        path = self.path
        for name, value in values.items():
            path = path.replace("{" + name + "}", quote(str(value), safe=""))
        body = None if self.body is None else json.dumps(_filled(self.body, values)).encode()
        return endpoint.send(self.method, path, body, _DONE)


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
        """Return the mapping in a file; an unknown entry is an error."""
        file = find_file(Path(path), _LARGEST, "be a description of a service")
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
        settle = told.pop("settle", 0.0)
        require(isinstance(settle, int | float) and settle >= 0, "settle", "at least 0", settle)
        items = told["list"].pop("items", "")
        require(isinstance(items, str), "items", "text such as results.*.id", type(items))
        for name, stated in told.items():
            others = sorted(set(stated) - {"path", "method", "body"})
            require(not others, name, "a table of path, method and body", ", ".join(others))
            require("path" in stated, name, "a table with a path", "none")
        calls = {name: Call(**stated) for name, stated in told.items()}
        return cls(**calls, items=items, settle=settle)


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
    """Return what is at a path of names and `*` (every entry of a list) in an answer; None for nothing."""
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
    """A recommender of lists in service, for `ListAttack` and `audit`.

    `fit` opens an account for each new or changed user, closes those that are not in the events, and waits until the
    service has learnt. So the two worlds of a target differ in few accounts.

    Parameters
    ----------
    url : str or Endpoint
        Where it is served; an `Endpoint` also says how patiently it is asked, and with which headers.
    mapping : str or path
        The file that says how.
    prefix : str, default "goodfence-"
        What the names of all accounts begin with, so that they can be told from others.
    """

    def __init__(self, url: str | Endpoint, mapping: str | Path, *, prefix: str = "goodfence-") -> None:
        self.endpoint = url if isinstance(url, Endpoint) else Endpoint(url=url)
        self.mapping = ServiceMapping.read(mapping)
        self.prefix = prefix
        # The open accounts, with what they hold: copies of a recommender share them, as the service does.
        self._open: dict[Any, list[Any]] = {}

    def __repr__(self) -> str:
        return f"Deployed({self.endpoint.shown!r})"

    @checked
    def fit(self, ratings: Ratings) -> Self:
        """Make the accounts of the service those of these events."""
        if ratings.feedback != "implicit":
            raise SettingError("what is deployed must be given events: it is asked for lists")
        wanted = {
            user: ratings.items[row_of(ratings.csr, row)[0]].tolist() for row, user in enumerate(ratings.users.tolist())
        }
        gone = [user for user, held in self._open.items() if wanted.get(user) != held]
        if gone and self.mapping.close is None:
            raise SettingError("the mapping must have a table close: an account has to be closed")
        self._close(gone)
        new = [user for user in wanted if user not in self._open]
        for user in new:
            self.mapping.open.send(self.endpoint, user=self._name(user), items=wanted[user])
            self._open[user] = wanted[user]
        if gone or new:
            if self.mapping.learn is not None:
                self.mapping.learn.send(self.endpoint)
            time.sleep(self.mapping.settle)
        self.ratings_ = ratings
        return self

    def recommend(self, user: Any, n: int) -> list[Any]:
        """Return the ids of the items that the account of a user is shown, best first; of items in the data only."""
        if not hasattr(self, "ratings_"):
            raise NotFittedError("the accounts must be opened before one is asked; call fit(events)")
        answer = self.mapping.list.send(self.endpoint, user=self._name(user), n=n)
        try:
            told = found_at(json.loads(answer), self.mapping.items)
        except (ValueError, RecursionError):
            raise self.endpoint.problem("answer with a list in JSON") from None
        if not is_list_of_ids(told):
            raise self.endpoint.problem(f"have item ids at {self.mapping.items!r} of its answer")
        # By ids as text: JSON may have an integer where the data has text.
        known = {str(item): item for item in self.ratings_.items.tolist()}
        return [known[one] for one in map(str, told) if one in known]

    def close(self) -> None:
        """Close every account that was opened."""
        self._close(list(self._open))

    def _close(self, users: list[Any]) -> None:
        if self.mapping.close is not None:
            for user in users:
                self.mapping.close.send(self.endpoint, user=self._name(user))
                del self._open[user]

    def guarantee(self) -> Guarantee:
        """Return that there is none: a guarantee is a property of what is inside."""
        return Guarantee(status="none", reason="Nothing is known of what is inside a black box.")

    def _name(self, user: Any) -> str:
        return f"{self.prefix}{user.item() if isinstance(user, np.generic) else user}"
