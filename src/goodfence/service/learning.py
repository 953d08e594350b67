"""How a service trains: the one seam between its rows, the models and the ledger. Runs in the child process."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import sparse

from goodfence.data.files import atomic_write
from goodfence.data.ratings import Ratings
from goodfence.errors import ServiceProblem
from goodfence.ledger.costs import Cap, Charge
from goodfence.ledger.ledger import Ledger
from goodfence.models.method import parsed
from goodfence.models.private.base import PrivateRecommender
from goodfence.models.recommender import guarantee_of
from goodfence.service.store import Store, open_store

DATA, LEDGER, ANCHOR, MODELS = "data.db", "privacy.ledger", "anchor.log", "models"
FITS = 1024
"""For so many fits a cap has room for the distance of the noise from a real Gaussian."""
_LEARNT = "SELECT user_id, item_id, learnt FROM cell WHERE batch BETWEEN 1 AND ?"
_CURRENT = "SELECT user_id, item_id, value FROM cell WHERE coalesce(batch, 0) <= ?"


def sha256_of(path: Path) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def learn(folder: Path, request: dict[str, Any], say: Callable[..., None]) -> dict[str, Any]:
    """Fit a model to the closed batches and write its file; a private one is charged before anything is drawn."""
    with closing(open_store(request["data"], read_only=True)) as store:
        items = [row[0] for row in store.read("SELECT ext FROM item ORDER BY id")]
        if not items:
            raise ServiceProblem("the catalogue is empty; import items first")
        recommender = parsed(request["method"], public={"catalogue": items}).recommender
        private = isinstance(recommender, PrivateRecommender)
        say(progress=(1, 3))
        ratings = learnt_ratings(store, request, items, current=not private)
        file = folder / MODELS / f"{request['model']}.gf"
        file.parent.mkdir(mode=0o700, exist_ok=True)
        say(progress=(2, 3))
        if private:
            content = _paid(folder, request, store, recommender, ratings)
            with atomic_write(file, mode=0o600) as written:
                written.write(content)
        else:
            recommender.fit(ratings).save(file)
        say(progress=(3, 3))
    guarantee = guarantee_of(recommender)
    stated = {"file": f"{MODELS}/{file.name}", "sha256": sha256_of(file), "guarantee": asdict(guarantee)}
    return {**stated, "kind": type(recommender).__name__}


def learnt_ratings(store: Store, request: dict[str, Any], items: list[str], *, current: bool) -> Ratings:
    """Return what is learnt from: users by their random ids, the first value of each cell, or the current one."""
    columns = {row[0]: at for at, row in enumerate(store.read("SELECT id FROM item ORDER BY id"))}
    uids = store.read("SELECT id, uid FROM account ORDER BY uid")
    rows = {row[0]: at for at, row in enumerate(uids)}
    found = store.stream(_CURRENT if current else _LEARNT, request["batch"])
    cells = np.array([(rows[user], columns[item], value) for user, item, value in found], dtype=np.float64)
    user, item, value = cells.reshape(-1, 3).T
    shape = (len(rows), len(items))
    csr = sparse.csr_array((value, (user.astype(np.int64), item.astype(np.int64))), shape=shape)
    users = [bytes(row[1]).hex() for row in uids]
    how: dict[str, Any] = {"scale": request["scale"]} if request["feedback"] == "explicit" else {"feedback": "implicit"}
    return Ratings(csr, users, items, **how)


def terms(recommender: PrivateRecommender, n_items: int) -> Cap:
    """Return what one fit costs at most, in ticks and in slack: public, and known before the draw."""
    slack = math.ceil(recommender._distance(n_items) * 2**48)
    return Cap.of(epsilon=recommender.epsilon, delta=recommender.delta, slack=slack)


def cap_of(recommender: PrivateRecommender, n_items: int, cap: tuple[float, float]) -> Cap:
    """Return what an account may spend: that of one fit, or more where the cap is above its epsilon."""
    asked = terms(recommender, n_items)
    if (recommender.epsilon, recommender.delta) == tuple(cap):
        return asked
    return Cap.of(epsilon=cap[0], delta=cap[1], slack=asked.slack * FITS)


def _paid(
    folder: Path, request: dict[str, Any], store: Store, recommender: PrivateRecommender, ratings: Ratings
) -> bytes:
    """Return the model's file as the ledger released it: every account is charged, then the noise is drawn."""
    cost, slack = terms(recommender, len(ratings.items))
    cap = cap_of(recommender, len(ratings.items), request["cap"])
    digests = store.read("SELECT id, digest FROM batch WHERE id <= ? ORDER BY id", request["batch"])
    if recommender.unit == "user":
        names = [str(user) for user in ratings.users.tolist()]
    else:
        names = [f"batch {number}" for number, _ in digests]

    def draw() -> bytes:
        with TemporaryDirectory(dir=folder / MODELS) as place:
            path = Path(place) / "model.gf"
            recommender.fit(ratings).save(path, ratings=False)
            if recommender.account_.mu**2 * 2**48 > cost:
                raise ServiceProblem("the fit spent more than was charged; nothing of it is released")
            return path.read_bytes()

    told = {"method": request["method"], "batches": [bytes(digest).hex() for _, digest in digests]}
    facts = {"name": request["method"], "sensitivity": math.isqrt(cost) + 1, "dimension": len(ratings.items)}
    with Ledger(request["ledger"], anchor=request["anchor"], folder=request["artefacts"]) as ledger:
        accounts = ledger.open_accounts(recommender.unit, names, cap)
        charges = [Charge(account, cost, slack) for account in accounts]
        asked = json.dumps(told, sort_keys=True).encode()
        return bytes(ledger.release(request["key"], request=asked, charges=charges, draw=draw, facts=facts))
