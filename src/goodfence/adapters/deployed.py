"""`Deployed`: a recommender in service, described by a small TOML file.

The service needs no refit protocol: an auditor who may open accounts makes both worlds by opening and closing them. All
accounts, those of the users in the data and the fakes, are the auditor's own. `docs/how-to/black-box.md` has an example
of the file, with its tables open (or open_all), close, learn, list and predict.

Names in a path (`{user}`, `{n}`) and whole texts in a body (`$user`, `$items`, `$ratings`, `$n`) are replaced. `[open]`
with `each = true` is called for each item, with `$item` and `$rating`. `[open_all]` instead opens accounts in bulk: its
`account = {name = "$user", clicked = "$items"}` is one entry of the list `$accounts` in its body.
"""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias
from urllib.parse import quote

import numpy as np

from goodfence.adapters.http import Endpoint, is_list_of_ids, plain_ids
from goodfence.arrays import Floats
from goodfence.data.files import find_file
from goodfence.data.ratings import Ratings
from goodfence.errors import BlackBoxProblem, FileProblem, NotFittedError, SettingError, require
from goodfence.models.recommender import IdsLike, row_of
from goodfence.parallel import Advance, bar, ranges
from goodfence.privacy.guarantee import Guarantee
from goodfence.settings import checked, is_number, one_of

SHIPPED = ("goodfence", "gorse")  # mappings that come with goodfence, by their names
_SHIPPED = Path(__file__).parent / "mappings"
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_LARGEST = 2**20
_DONE = (200, 201, 202, 204)
_ABSENT = (404, 410)
_TABLES = {
    "open": {"each"},
    "open_all": {"account"},
    "close": set[str](),
    "learn": set[str](),
    "list": {"items", "scores"},
    "predict": {"predictions"},
}
"""What each table may have besides path, method and body."""
_IN_BULK = 500  # accounts in one call of `open_all`
_MANY = 20  # accounts whose opening or closing has a bar
_HOPELESS = 10
"""Failures in a row after which no more accounts are closed: a service that is down would take a timeout for each."""

Held: TypeAlias = tuple[list[Any], list[float]]  # the items and ratings of an account


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One kind of question to a service: a table of the file."""

    path: str
    method: str = "POST"
    body: Any = None
    each: bool = False  # whether there is one call for each item of an account
    account: Any = None  # one entry of `$accounts`
    items: str = ""
    """Where the ids are in the answer: names and `*` for every entry, between dots; empty for all of it."""
    scores: str | None = None  # where the scores are, one for each id
    predictions: str = ""  # where the predictions are, one for each item that was asked for

    def __post_init__(self) -> None:
        one_of(self.method, "method", _METHODS)
        sound = isinstance(self.path, str) and self.path.startswith("/")
        require(sound, "path", "text that begins with /", type(self.path))
        require(isinstance(self.each, bool), "each", "true or false", type(self.each))
        for name in ("items", "scores", "predictions"):
            where = getattr(self, name)
            require(isinstance(where, str | None), name, "text such as results.*.id", type(where))
        try:
            json.dumps([self.body, self.account], allow_nan=False)
        except (TypeError, ValueError):
            raise SettingError("body and account must be JSON: no dates, and finite numbers") from None
        require(not self.each or self.has("item"), "each", "false without {item} or $item", self.each)

    def has(self, name: str) -> bool:
        """Return whether a value of this name has a place in the path or the body."""
        return f"{{{name}}}" in self.path or f'"${name}"' in json.dumps(self.body)

    def send(self, endpoint: Endpoint, values: Mapping[str, Any], statuses: tuple[int, ...] = _DONE) -> bytes:
        """Return the answer to this question with its values, in the path each as one part of an address."""
        path = self.path
        for name, value in values.items():
            path = path.replace("{" + name + "}", quote(str(value), safe=""))
        body = None if self.body is None else json.dumps(_filled(self.body, values)).encode()
        return endpoint.send(self.method, path, body, statuses)


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceMapping:
    """How a service is asked: the content of the file."""

    open: Call  # one with `account` opens in bulk
    close: Call | None = None
    learn: Call | None = None
    list: Call | None = None
    predict: Call | None = None
    settle: float = 0.0

    @classmethod
    def read(cls, path: str | Path) -> ServiceMapping:
        """Return the mapping in a file, or one that is shipped, by its name; an unknown entry is an error."""
        shipped = _SHIPPED / f"{path}.toml"
        place = shipped if str(path) in SHIPPED else Path(path)
        file = find_file(place, _LARGEST, "be a description of a service")
        try:
            told = tomllib.loads(file.path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError):
            raise FileProblem(f"{file.name!r} must be TOML, and is not") from None
        settle = told.pop("settle", 0.0)
        unknown = sorted(set(told) - set(_TABLES))
        if unknown or ("open" in told) == ("open_all" in told) or not {"list", "predict"} & set(told):
            raise FileProblem(
                f"{file.name!r} must have the table open or open_all, and list or predict; it may have close, learn "
                "and settle" + (f"; {unknown[0]!r} is none of these" if unknown else "")
            )
        require(is_number(settle) and settle >= 0, "settle", "at least 0", settle)
        for name, stated in told.items():
            require(isinstance(stated, dict) and "path" in stated, name, "a table with a path", "none")
            others = sorted(set(stated) - {"path", "method", "body"} - _TABLES[name])
            allowed = ", ".join(["path", "method", "body", *sorted(_TABLES[name])])
            require(not others, name, f"a table of {allowed}", ", ".join(others))
        calls = {name: Call(**stated) for name, stated in told.items()}
        if "open_all" in calls:
            bulk = calls["open"] = calls.pop("open_all")
            listed = bulk.has("accounts") and bulk.account is not None
            require(listed, "open_all", "a table with account, and with $accounts in body", "another")
        return cls(**calls, settle=settle)


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
    """Return what is at a path of names and `*` (every entry of a list) in an answer; an empty tuple for nothing."""
    found = [answer]
    for name in filter(None, path.split(".")):
        if name == "*":
            found = [inside for one in found if isinstance(one, list) for inside in one]
        else:
            found = [one[name] for one in found if isinstance(one, Mapping) and name in one]
    if "*" in path.split("."):
        return found
    return found[0] if found else ()


class _Accounts(dict[Any, Held]):
    """What is open at the service: one for all copies of a recommender, as the service is one."""

    settle = 0.0
    changed = False  # whether the service has yet to learn

    def __deepcopy__(self, _: object) -> Self:
        return self


@checked
class Deployed:
    """A recommender in service, for `ListAttack`, `KNNAttack` and `audit`.

    `fit` opens an account for each new or changed user, closes those that are not in the data, and waits until the
    service has learnt. So the two worlds of a target differ in few accounts. As a context manager it closes all
    accounts at the end, also after an error or an interrupt.

    Parameters
    ----------
    url : str or Endpoint
        Where it is served; an `Endpoint` also says how patiently it is asked, and with which headers.
    mapping : str or path
        The file that says how; "goodfence" and "gorse" come with goodfence.
    prefix : str, default "goodfence-"
        What the names of all accounts begin with, so that they can be told from others.
    progress : bool, optional
        Whether opening many accounts shows a bar; by default only on a terminal.
    """

    def __init__(
        self, url: str | Endpoint, mapping: str | Path, *, prefix: str = "goodfence-", progress: bool | None = None
    ) -> None:
        self.endpoint = url if isinstance(url, Endpoint) else Endpoint(url=url)
        self.mapping = ServiceMapping.read(mapping)
        self.prefix = prefix
        self.progress = progress
        self._accounts = _Accounts()
        self.settle_ = self.mapping.settle

    def __repr__(self) -> str:
        return f"Deployed({self.endpoint.shown!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        try:
            self.close()
        except BlackBoxProblem as problem:
            if error is None:
                raise
            error.add_note(str(problem))  # it must not hide the error

    @property
    def settle_(self) -> float:
        """Seconds to wait after accounts change; setting it holds for all copies."""
        return self._accounts.settle

    @settle_.setter
    def settle_(self, seconds: float) -> None:
        require(is_number(seconds) and seconds >= 0, "settle_", "at least 0", seconds)
        self._accounts.settle = float(seconds)

    @checked
    def fit(self, ratings: Ratings) -> Self:
        """Make the accounts of the service those of these ratings or events."""
        self._table("predict" if ratings.feedback == "explicit" else "list")
        wanted: dict[Any, Held] = {}
        for row, user in enumerate(ratings.users.tolist()):
            columns, values = row_of(ratings.csr, row)
            wanted[user] = ratings.items[columns].tolist(), values.tolist()
        for user in [user for user, held in self._accounts.items() if wanted.get(user) != held]:
            self._close(user)
        self._open({user: held for user, held in wanted.items() if user not in self._accounts})
        if self._accounts.changed:
            if self.mapping.learn is not None:
                self.mapping.learn.send(self.endpoint, {})
            time.sleep(self.settle_)
            self._accounts.changed = False
        self.ratings_ = ratings
        return self

    def recommend(self, user: Any, n: int) -> Any:
        """Return the ids of the items that the account of a user is shown, best first; of items in the data only.

        Where the mapping says where the scores are, return (ids, scores).
        """
        call = self._table("list")
        answer = self._ask(call, user=self._name(user), n=n)
        told = found_at(answer, call.items)
        if not is_list_of_ids(told):
            raise self.endpoint.problem(f"have item ids at {call.items!r} of its answer")
        # By ids as text: JSON may have an integer where the data has text.
        known = {str(item): item for item in self.ratings_.items.tolist()}
        kept = [place for place, one in enumerate(told) if str(one) in known]
        ids = [known[str(told[place])] for place in kept]
        if call.scores is None:
            return ids
        rule = f"have one number for each item at {call.scores!r} of its answer"
        return ids, self.endpoint.numbers(found_at(answer, call.scores), len(told), rule)[kept]

    def predict(self, users: IdsLike, items: IdsLike) -> Floats:
        """Return the prediction for each pair of a user and an item, NaN for null."""
        call, whom, wanted = self._table("predict"), plain_ids(users), plain_ids(items)
        require(len(whom) == len(wanted), "items", "as many as users", len(wanted))
        apart, places = call.has("item"), dict[Any, list[int]]()  # the pairs of each call
        for place, user in enumerate(whom):
            places.setdefault((user, place if apart else None), []).append(place)
        rule = f"have one number or null for each item at {call.predictions!r} of its answer"
        predictions = np.full(len(wanted), np.nan)
        for (user, _), own in places.items():
            asked = [wanted[place] for place in own]
            answer = self._ask(call, user=self._name(user), items=asked, item=asked[0])
            told = found_at(answer, call.predictions)
            predictions[own] = self.endpoint.numbers(told if isinstance(told, list) else [told], len(own), rule)
        return predictions

    def close(self) -> None:
        """Close every account that was opened; one that fails does not keep the others open."""
        opened, failures = self._accounts, 0
        with self._bar("closing accounts", len(opened)) as advance:
            for user in [] if self.mapping.close is None else list(opened):
                try:
                    self._close(user)
                    failures = 0
                except BlackBoxProblem:
                    failures += 1
                if failures == _HOPELESS:
                    break
                advance(1)
        if opened:
            left = f"{len(opened):,} of the accounts at {self.endpoint.shown} could not be closed"
            raise BlackBoxProblem(f"{left}; close those whose names begin with {self.prefix!r}")

    def guarantee(self) -> Guarantee:
        """Return that there is none: a guarantee is a property of what is inside."""
        return Guarantee(status="none", reason="Nothing is known of what is inside a black box.")

    def _open(self, new: dict[Any, Held]) -> None:
        """Open accounts, in bulk or one by one."""
        call, users = self.mapping.open, list(new)
        with self._bar("opening accounts", len(users)) as advance:
            for first, last in ranges(len(users), 1 if call.account is None else _IN_BULK):
                part = users[first:last]
                # Empty until the service has confirmed them: what fails half-way is closed, and never taken as open.
                self._accounts.changed = True
                self._accounts.update((user, ([], [])) for user in part)
                every: list[dict[str, Any]]
                every = [{"user": self._name(user), "items": new[user][0], "ratings": new[user][1]} for user in part]
                if call.account is not None:
                    every = [{"accounts": [_filled(call.account, values) for values in every]}]
                elif call.each:
                    pairs = zip(*new[part[0]], strict=True)
                    every = [{**every[0], "item": item, "rating": rating} for item, rating in pairs]
                for values in every:
                    call.send(self.endpoint, values)
                self._accounts.update((user, new[user]) for user in part)
                advance(len(part))

    def _close(self, user: Any) -> None:
        if self.mapping.close is None:
            raise SettingError("the mapping must have a table close: an account has to be closed")
        self._accounts.changed = True
        unconfirmed = not self._accounts[user][0]  # it may not exist
        statuses = (*_DONE, *_ABSENT) if unconfirmed else _DONE
        self.mapping.close.send(self.endpoint, {"user": self._name(user)}, statuses)
        del self._accounts[user]

    def _bar(self, what: str, n: int) -> AbstractContextManager[Advance]:
        return bar(what, n, show=self.progress if n >= _MANY else False)

    def _table(self, name: str) -> Call:
        call: Call | None = getattr(self.mapping, name)
        if call is None:
            raise SettingError(f"the mapping must have a table {name}: ratings need predict, and events need list")
        return call

    def _ask(self, call: Call, **values: Any) -> Any:
        if not hasattr(self, "ratings_"):
            raise NotFittedError("the accounts must be opened before one is asked; call fit(ratings)")
        return self.endpoint.decoded(call.send(self.endpoint, values), "answer in JSON")

    def _name(self, user: Any) -> str:
        return f"{self.prefix}{user.item() if isinstance(user, np.generic) else user}"
