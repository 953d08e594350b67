"""Attacks on copies: an audit of the service's data, and the lab on the bundled films. Nothing is served or charged."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

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
_ONE, _ALL, _ADAPTS = ("knn", {"ask": "one"}), ("knn", {"ask": "all"}), ("adaptive", dict[str, str]())
LAB_ATTACKERS = {"one asks": (_ONE,), "all compare": (_ALL,), "adapts": (_ADAPTS,), "strongest": (_ONE, _ALL, _ADAPTS)}
"""Kind and settings of who attacks; of several each user is judged by the one who is strongest on other users."""
_CHUNK = 10
_Part: TypeAlias = tuple[int, list[tuple[float, float]]]
"""A number of users, and what each attacker recovered of them, with their data and without."""


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
    from goodfence.attack.knn_attack import AdaptiveAttack, KNNAttack

    films, methods, seed = load("movietweetings"), request["methods"], request["seed"]
    kinds: dict[str, Any] = {"knn": KNNAttack, "adaptive": AdaptiveAttack}
    attackers = [kinds[kind](**settings) for kind, settings in attackers_asked(request)]
    drawn, done, total = _drawn(films.users.tolist(), seed), 0, request["targets"] * len(methods)
    outcomes: dict[str, list[_Part]] = {method: [] for method in methods}
    told: dict[str, dict[str, float]] = {}
    for first in range(0, request["targets"], _CHUNK):
        targets = drawn[first : min(first + _CHUNK, request["targets"])]
        for method in methods:
            recommender = parsed(method, rng=seed, public={"items": "from ratings"}).recommender
            reports = [one.run(films, recommender, targets=targets, rng=seed, progress=False) for one in attackers]
            pairs = [(float(one.recovery), float(one.recovery - one.advantage)) for one in reports]
            outcomes[method].append((len(targets), pairs))
            done += len(targets)
            told[method] = _pooled(outcomes[method])
            say(progress=(done, total), event={"method": method, **told[method]})
    return told


def attackers_asked(request: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return kind and settings of each attacker that was asked for, as in --attack."""
    given = {name: request[name] for name in ("known", "fakes")}
    return [(kind, {**given, **settings}) for kind, settings in LAB_ATTACKERS[request["attacker"]]]


def _pooled(parts: list[_Part]) -> dict[str, float]:
    """Return what was recovered: each part by the attacker who gains most on the others, the first where none does."""
    total = sum(n for n, _ in parts)
    gained = [[n * (found - without) for found, without in pairs] for n, pairs in parts]
    sums = [sum(of_one) for of_one in zip(*gained, strict=True)]
    found, without = 0.0, 0.0
    for (n, pairs), own in zip(parts, gained, strict=True):
        others = [whole - mine for whole, mine in zip(sums, own, strict=True)]
        best = pairs[others.index(max(others)) if len(parts) > 1 else 0]
        found, without = found + n * best[0] / total, without + n * best[1] / total
    return {"n": total, "recovered": found, "without": without}


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
