"""Attacks on copies: an audit of the service's data, and the lab on the bundled films. Nothing is served or charged."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from goodfence.data.load import load
from goodfence.models.method import parsed
from goodfence.report import wording
from goodfence.service.learning import learnt_ratings
from goodfence.service.store import open_store

LAB_METHODS = (
    "knn k=50",
    "ppns k=50 beta=7",
    "npns k=50",
    "pncf k=50 within=7",
    "private-means epsilon=1",
    "private-cf epsilon=1",
    "private-cf epsilon=4",
)
_CHUNK = 10


def audit_copy(_: Path, request: dict[str, Any], say: Callable[..., None]) -> dict[str, Any]:
    """Audit a method on a copy of the data; the result is for operators and auditors."""
    from goodfence.auditing.audit import audit

    with closing(open_store(request["data"], read_only=True)) as store:
        items = [row[0] for row in store.read("SELECT ext FROM item ORDER BY id")]
        ratings = learnt_ratings(store, {**request, "batch": 2**62}, items, current=True)
    ratings = ratings.replaced(ratings.csr, users=[f"user-{at}" for at in range(ratings.shape[0])])
    chosen = parsed(request["method"], public={"items": "from ratings"})
    say(progress=(1, 2))
    found = audit(ratings, chosen.recommender, known=request["known"], targets=request["targets"], progress=False)
    report = found.leakage
    say(progress=(2, 2))
    told = json.loads(json.dumps(report.to_dict(), default=float))
    said = {"verdict": wording.verdict(report, chosen.label), "advantage": wording.advantage(report)}
    return {**said, "method": chosen.label, "report": told}


def attack_films(_: Path, request: dict[str, Any], say: Callable[..., None]) -> dict[str, Any]:
    """Attack recommenders of the bundled films side by side, and tell after every few users what was recovered."""
    from goodfence.attack.knn_attack import KNNAttack

    films = load("movietweetings")
    methods, known, fakes = request["methods"], request["known"], request["fakes"]
    users, done, total = films.users.tolist(), 0, request["targets"] * len(request["methods"])
    state: dict[str, list[float]] = {method: [] for method in methods}
    without: dict[str, list[float]] = {method: [] for method in methods}
    for first in range(0, request["targets"], _CHUNK):
        for method in methods:
            recommender = parsed(method, rng=request["seed"], public={"items": "from ratings"}).recommender
            targets = _drawn(users, request["seed"])[first : min(first + _CHUNK, request["targets"])]
            report = KNNAttack(known=known, fakes=fakes).run(
                films, recommender, targets=targets, rng=request["seed"], progress=False
            )
            state[method] += [float(report.recovery)] * len(targets)
            without[method] += [float(report.recovery - report.advantage)] * len(targets)
            done += len(targets)
            n = len(state[method])
            told = {"method": method, "n": n, "recovered": sum(state[method]) / n, "without": sum(without[method]) / n}
            say(progress=(done, total), event=told)
    n = request["targets"]
    return {
        method: {"n": n, "recovered": sum(state[method]) / n, "without": sum(without[method]) / n} for method in methods
    }


def compare_films(_: Path, request: dict[str, Any], say: Callable[..., None]) -> dict[str, Any]:
    """Measure error and leak of each recommender on the bundled films, and tell each as it is known."""
    from goodfence.attack.knn_attack import KNNAttack
    from goodfence.auditing.frontier import frontier

    films, attack, points = load("movietweetings"), KNNAttack(known=request["known"], fakes=request["fakes"]), []
    for method in LAB_METHODS:
        chosen, seeded = (parsed(method, rng=rng, public={"items": "from ratings"}) for rng in (None, request["seed"]))
        how: dict[str, Any] = {"attacks": [attack], "targets": request["targets"], "rng": request["seed"]}
        [point] = frontier(films, [seeded.recommender], known=request["known"], progress=False, **how).points
        low, high = point.advantage.low, point.advantage.high
        told = {"method": method, "status": chosen.guarantee.status, "error": point.loss}
        points.append({**told, "advantage": point.advantage.value, "low": low, "high": high})
        say(progress=(len(points), len(LAB_METHODS)), event=points[-1])
    return {"points": points}


def _drawn(users: list[Any], seed: int) -> list[Any]:
    from goodfence.rng import Streams

    order = Streams(seed).at(0).permutation(len(users))
    return [users[at] for at in order.tolist()]
