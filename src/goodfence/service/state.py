"""A service at work: its settings, data, keys, model and jobs."""

from __future__ import annotations

import json
import secrets
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from goodfence.data.scale import Scale
from goodfence.errors import Conflict, GoodfenceError, NotReady, require
from goodfence.models.method import parsed
from goodfence.models.private.base import FROM_RATINGS
from goodfence.service.access import Keys, RateLimiter
from goodfence.service.bookkeeping import Books
from goodfence.service.jobs import Jobs
from goodfence.service.learning import ANCHOR, DATA, LEDGER
from goodfence.service.metrics import ServiceMetrics
from goodfence.service.records import Records, secret_at
from goodfence.service.serving import ServedModel
from goodfence.service.store import open_store

_MODEL = "SELECT id, method, file, sha256, guarantee FROM model"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """What is decided when a folder is first served."""

    feedback: str = "explicit"
    scale: tuple[float, ...] = (1.0, 5.0, 1.0)
    method: str = "private-cf epsilon=1"
    cap: tuple[float, float] = (1.0, 1e-5)
    """The epsilon and delta that no account of the ledger may exceed, for life."""

    def __post_init__(self) -> None:
        require(self.feedback in ("explicit", "implicit"), "feedback", "explicit or implicit", self.feedback)
        parsed(self.method, public={"items": FROM_RATINGS})
        Scale.of(self.scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """How one process serves, which may differ each time."""

    allow_unproved: bool = False
    self_service: bool = False
    """Whether anybody may open an account."""
    compat: str | None = None
    anchor: Path | None = None
    ledger: str | None = None
    data: str | None = None


class Service:
    """Everything that routes use; opened once for each process.

    Parameters
    ----------
    folder : Path
        Data, ledger, keys and models.
    settings : ServiceSettings, optional
        For a folder that is new; an older one keeps its own.
    serving : Serving, optional
        How this process serves.
    """

    def __init__(self, folder: Path, settings: ServiceSettings | None = None, serving: Serving | None = None) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "keys").mkdir(mode=0o700, exist_ok=True)
        self.folder, self.serving = folder, serving or Serving()
        self.data = self.serving.data or str(folder / DATA)
        self.store = open_store(self.data)
        with ExitStack() as undo:
            undo.callback(self.store.close)
            self._open(settings)
            undo.pop_all()

    def _open(self, settings: ServiceSettings | None) -> None:
        folder = self.folder
        self.settings = self._settled(settings or ServiceSettings())
        self.scale = Scale.of(self.settings.scale) if self.settings.feedback == "explicit" else None
        self.records = Records(self.store, secret_at(folder / "keys" / "cells"))
        secret_at(folder / "keys" / "signing")
        self.keys, self.limiter, self.metrics = Keys(self.store), RateLimiter(), ServiceMetrics()
        anchor = self.serving.anchor or folder / ANCHOR
        place = self.serving.ledger or str(folder / LEDGER)
        self.books = Books(place, anchor, folder / "released", self.store)
        self.model: ServedModel | None = None
        self.codes: dict[str, tuple[str, float]] = {}
        self.headers: list[tuple[bytes, bytes]] = []
        self._load_active()
        self.jobs = Jobs(self.store, folder)

    def close(self) -> None:
        """Stop jobs, finish accepted writes, close."""
        self.jobs.close()
        self.store.close()

    def _settled(self, wanted: ServiceSettings) -> ServiceSettings:
        rows = self.store.read("SELECT value FROM setting WHERE name = 'settings'")
        if rows:
            told = json.loads(rows[0][0])
            return ServiceSettings(**{**told, "scale": tuple(told["scale"]), "cap": tuple(told["cap"])})
        sql = "INSERT INTO setting (name, value) VALUES ('settings', ?)"
        self.store.write(lambda writer: writer.run(sql, json.dumps(asdict(wanted))))
        return wanted

    # models

    def _load_active(self) -> None:
        rows = self.store.read(f"{_MODEL} WHERE state = 'active'")
        if rows:
            self._require_servable(rows[0])
            self.model = ServedModel.load(rows[0], self.folder, self.records)
        self.refresh_headers()

    def refresh_headers(self) -> None:
        """Make the headers that say which guarantee holds and where the ledger is, for every answer."""
        self.books.refresh()
        told = [(b"goodfence-ledger", self.books.head_text.encode())]
        if self.model is not None:
            told.append((b"goodfence-guarantee", guarantee_header(self.model).encode()))
        self.headers = told

    def _require_servable(self, row: tuple[Any, ...]) -> None:
        if json.loads(row[4])["status"] == "proved":
            self.books.require_released(str(row[3]))
        elif not self.serving.allow_unproved:
            raise Conflict("this model has no proved guarantee; start the service with --allow-unproved to serve it")

    def begin_training(self, *, kind: str = "auto", method: str | None = None, activate: bool = True) -> str:
        """Close the batch and begin a fit or an update; return the job."""
        kind = "fit" if kind == "auto" else kind
        line = method or self.settings.method
        chosen = parsed(line, public={"items": FROM_RATINGS})
        if chosen.guarantee.status != "proved" and not self.serving.allow_unproved:
            raise Conflict("this method has no proved guarantee; start the service with --allow-unproved to use it")
        self.books.require_state(getattr(chosen.recommender, "unit", "rating"))
        batch = self.records.close_batch()
        model = secrets.token_hex(6)
        told = asdict(self.settings)
        request = {**told, "method": line, "batch": batch, "model": model, "key": f"{kind} {batch}"}
        request |= {"anchor": str(self.books.anchor), "ledger": self.books.place, "data": self.data}
        request["artefacts"] = str(self.books.folder)
        return self.jobs.begin(kind, request, lambda found: self._learnt(found, line, batch, model, activate))

    def _learnt(self, found: dict[str, Any], method: str, batch: int, model: str, activate: bool) -> dict[str, Any]:
        """Record a model whose file is whole and paid for, and activate it."""
        row = (model, found["kind"], method, found["file"], found["sha256"], json.dumps(found["guarantee"]), batch)
        sql = (
            "INSERT INTO model (id, kind, method, file, sha256, guarantee, batch, paid, made, state) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'ready')"
        )
        paid = int(found["guarantee"]["status"] == "proved")

        def work(writer: Any) -> None:
            writer.run(sql, *row, paid, int(time.time()))
            writer.run("UPDATE batch SET state = 'released' WHERE id <= ?", batch)

        self.store.write(work)
        self.books.remember()
        if activate:
            self.activate(model)
        return {"model": model, "sha256": found["sha256"], "active": activate, "guarantee": found["guarantee"]}

    def begin_audit(self, told: dict[str, Any]) -> str:
        """Begin an audit of a copy of the data; return the job."""
        line = told["method"] or self.settings.method
        request = {**asdict(self.settings), **told, "method": line, "data": self.data}
        parsed(request["method"], public={"items": FROM_RATINGS})
        return self.jobs.begin("audit", request, lambda found: found)

    def last_audit(self) -> dict[str, Any] | None:
        """Return the newest attack of the lab on this method: audits of live data are not public."""
        if self.model is None:
            return None
        for job in self.jobs.listed(100):
            found = (job["result"] or {}).get(self.model.method) if job["kind"] == "lab" else None
            if found is not None:
                sentence = (
                    f"{found['recovered']:.0%} of hidden ratings were recovered of {found['n']} users "
                    f"of the bundled films, {found['without']:.0%} without their data"
                )
                return {**found, "method": self.model.method, "data": "bundled films", "sentence": sentence}
        return None

    def begin_lab(self, asked: dict[str, Any], kind: str = "lab") -> str:
        """Begin an attack on the bundled films, or a comparison (frontier) on them; return the job."""
        return self.jobs.begin(kind, asked, lambda found: found)

    def activate(self, model: str) -> None:
        """Serve another model: its file is verified, then one reference is swapped."""
        rows = self.store.read(f"{_MODEL} WHERE id = ?", model)
        if not rows:
            raise NotReady("there is no such model")
        self._require_servable(rows[0])
        served = ServedModel.load(rows[0], self.folder, self.records)
        now = int(time.time())

        def work(writer: Any) -> None:
            writer.run("UPDATE model SET state = 'retired' WHERE state = 'active'")
            writer.run("UPDATE model SET state = 'active', activated = ? WHERE id = ?", now, model)

        self.store.write(work)
        self.model = served
        self.refresh_headers()

    def roll_back(self) -> str:
        """Serve the model that was active before this one, and return its id."""
        sql = (
            "SELECT id FROM model WHERE state = 'retired' AND activated IS NOT NULL ORDER BY activated DESC, made DESC"
        )
        rows = self.store.read(sql)
        if not rows:
            raise Conflict("there is no earlier model")
        self.activate(str(rows[0][0]))
        return str(rows[0][0])

    def models(self) -> list[dict[str, Any]]:
        """Return all models, the newest first."""
        names = ("id", "kind", "method", "sha256", "guarantee", "batch", "made", "activated", "state")
        rows = self.store.read(f"SELECT {', '.join(names)} FROM model ORDER BY made DESC, rowid DESC")  # noqa: S608
        found = [dict(zip(names, row, strict=True)) for row in rows]
        return [{**one, "guarantee": json.loads(one["guarantee"])} for one in found]

    def cost(self, method: str | None = None) -> dict[str, Any]:
        """Return what a fit would cost, what was spent and what is left, as epsilon; charges nothing."""
        recommender = parsed(method or self.settings.method, public={"items": FROM_RATINGS}).recommender
        return self.books.cost(recommender, max(len(self.records.item_rows), 1), self.settings.cap)

    # users

    def open_account(self, ext: str | None) -> tuple[str, str]:
        """Return the id of a user and a new key of theirs."""
        name = ext or secrets.token_hex(8)
        [row] = self.records.save_users([name])
        return name, self.keys.make(["user"], user=row)

    def forget(self, user: int) -> None:
        """Forget a user: rows, keys and random id."""
        self.records.forget(user)
        self.keys.drop_user(user)

    def released_with(self, user: int) -> list[dict[str, Any]]:
        """Return the models that learnt from a user, for that user."""
        rows = self.store.read("SELECT min(batch) FROM cell WHERE user_id = ? AND batch >= 1", user)
        first = rows[0][0]
        models = [] if first is None else [one for one in self.models() if one["batch"] >= first]
        return [{name: one[name] for name in ("id", "method", "made", "guarantee")} for one in models]


def guarantee_header(model: ServedModel) -> str:
    """Return the guarantee of a model for a header: never an epsilon without its unit."""
    told = model.guarantee
    if told.epsilon is None:
        return told.status
    return f"{told.status}; unit={told.unit}; eps={told.epsilon:g}; delta={told.delta:g}"


def ready(service: Service) -> list[str]:
    """Return what is missing until the service can answer; nothing where it can."""
    missing = []
    if service.model is None:
        missing.append("no model is active")
    try:
        service.store.read("SELECT 1")
    except GoodfenceError:
        missing.append("the database does not answer")
    if service.books.fault:
        missing.append(service.books.fault)
    return missing
