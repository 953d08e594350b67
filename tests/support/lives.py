"""A search for lives that differ in one cell, or one user, and whose releases differ by more than is claimed.

Both lives see the same public numbers (biases, lists, centres), which are the enemy's. Cells arrive late, twice, with
another value, after they were withdrawn; users are forgotten; the catalogue grows. What is compared is every integer
that any update publishes, before its noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

import goodfence as gf
from goodfence.models.private import history
from goodfence.models.private.cf import PrivateCF
from goodfence.models.private.co_occurrence import centre_of
from goodfence.models.private.life import MOST_DIRECTIONS, Life, with_items, with_new
from goodfence.models.private.projected import LONGEST, PROJECTED, find_directions, projected_size
from goodfence.models.private.top_n import PrivateTopN
from goodfence.models.private.updated import HALF_STEP_SHARE
from goodfence.privacy.fixed_point import integer_sensitivity
from goodfence.privacy.noise import SIGMA, SeededNoise
from goodfence.privacy.updates import Series, Terms, mix_batches
from goodfence.rng import Streams

N_ITEMS, VICTIM = 24, 7
OTHERS = (1, 2)


@dataclass
class Step:
    """What happens in one update."""

    cells: list[tuple[int, int, float]] = field(default_factory=list)
    """User, item, value."""
    withdrawn: list[tuple[int, int]] = field(default_factory=list)
    forgotten: list[int] = field(default_factory=list)
    more_items: int = 0
    biases: Any = None
    listed: Any = None
    counts: Any = None


def models(updates: int) -> dict[str, Callable[[], Any]]:
    """Return every kind of model that can be updated, by a name."""
    how: Any = {"epsilon": 1.0, "catalogue": list(range(N_ITEMS))}

    def lasting(pairs: Any = "batch", wait: int = 0) -> gf.Lasting:
        return gf.Lasting(updates=updates, pairs=pairs, wait=wait)

    return {
        "means, rating": lambda: gf.PrivateMeans(**how, lasting=lasting()),
        "means, rating, history": lambda: gf.PrivateMeans(**how, lasting=lasting("history")),
        "residuals, rating": lambda: PrivateCF(**how, plan="means", lasting=lasting()),
        "residuals, user": lambda: PrivateCF(**how, unit="user", plan="means", lasting=lasting(wait=1)),
        "covariance, rating": lambda: PrivateCF(**how, plan="covariance", lasting=lasting()),
        "covariance, rating, history": lambda: PrivateCF(**how, plan="covariance", lasting=lasting("history")),
        "covariance, user": lambda: PrivateCF(**how, unit="user", plan="covariance", lasting=lasting(wait=1)),
        "lists, event": lambda: PrivateTopN(**how, lasting=lasting()),
        "lists, event, history": lambda: PrivateTopN(**how, lasting=lasting("history")),
        "lists, user": lambda: PrivateTopN(**how, unit="user", lasting=lasting()),
    }


def ratings_of(cells: list[tuple[int, int, float]], model: Any, n_items: int) -> gf.Ratings:
    latest = {(user, item): value for user, item, value in cells}
    users = sorted({user for user, _ in latest})
    rows = [users.index(user) for user, _ in latest]
    columns = [item for _, item in latest]
    implicit = model.learns_from == "implicit"
    data = [1.0] * len(latest) if implicit else list(latest.values())
    csr = sparse.csr_array((data, (rows, columns)), shape=(len(users), n_items))
    how: Any = {"feedback": "implicit"} if implicit else {"scale": (1, 5)}
    return gf.Ratings(csr, users or np.empty(0, dtype=np.int64), list(range(n_items)), **how)


def live(model: Any, steps: list[Step]) -> Life:
    """Return the life of these steps, with the public numbers that they state instead of learnt ones."""
    n_items = N_ITEMS
    room = 2 * N_ITEMS
    model.life_ = Life(model._terms(model.lasting, room), room)
    model.ratings_ = ratings_of([], model, n_items)
    model.model_ = model.record_ = None
    model.restore = lambda ratings, *_: setattr(model, "ratings_", ratings)
    for at, step in enumerate(steps):
        life = model.life_
        n_items += step.more_items
        before = with_items(model.ratings_, range(n_items - step.more_items, n_items), room)
        model.ratings_, arrived = with_new(before, ratings_of(step.cells, model, n_items))
        life.add_users(model.ratings_.shape[0])
        life.close(model.ratings_, arrived, model.unit)
        known = public_numbers(step, n_items)
        if getattr(model, "plan", "") == "means":
            del known["listed"], known["pair biases"]
        profiles = model.profiles_in(model.ratings_, at)
        if isinstance(model, PrivateCF) and model.unit == "rating" and "listed" in known and profiles.arrival is None:
            known |= half_step_numbers(model, step, n_items)
        publish(model, profiles, known, at)
        frozen = frozen_of(model, profiles, known)
        life.finish(known, frozen)
        for user, item in step.withdrawn:
            if user in model.ratings_.users:
                model.withdraw(user, [item])
        there = [user for user in step.forgotten if user in model.ratings_.users]
        if there:
            model.forget(there)
    return model.life_  # type: ignore[no-any-return]


def publish(model: Any, profiles: Any, known: Any, at: int) -> None:
    for name, totals in model._sums(profiles, known).items():
        one = model.life_.series.setdefault(name, Series(at))
        one.sums.append(np.ascontiguousarray(totals.T).ravel())
        one.noisy.append(mix_batches(model.lasting.coefficients, one.sums, model.life_.terms.finer))


def frozen_of(model: Any, profiles: Any, known: Any) -> Any:
    if profiles.arrival is None:
        return None
    if model.learns_from == "implicit":
        found = history.frozen_events(profiles, known["listed"])
    else:
        found = history.frozen_residuals(profiles, known["pair biases"], known["listed"])
    return found[profiles.arrival.new]


def public_numbers(step: Step, n_items: int) -> dict[str, Any]:
    biases = np.resize(step.biases, n_items)
    listed = step.listed[step.listed < n_items]
    centre = centre_of(np.resize(step.counts, len(listed)))
    return {"biases": biases, "pair biases": biases, "listed": listed, "centre": centre}


def half_step_numbers(model: Any, step: Step, n_items: int) -> dict[str, Any]:
    """Return directions of which the victim's ratings, all alike, make the longest scores, or any others."""
    rng = np.random.default_rng(int(abs(step.counts).sum() * 1e3))
    alike = np.full((n_items, 2), 0.3)
    factors = rng.normal(0, 0.3, (n_items, 2)) if rng.random() < 0.5 else alike
    directions = np.zeros((n_items, MOST_DIRECTIONS), dtype=np.int64)
    directions[:, :2] = find_directions(factors, np.resize(step.counts, n_items))
    cost = model.life_.terms.of_batch * math.sqrt(HALF_STEP_SHARE)
    size = projected_size(PROJECTED, 2 * N_ITEMS, directions, LONGEST, integer_sensitivity(cost))
    return {"directions": directions.ravel(), "projected size": np.array([size])}


def moved(one: Life, other: Life) -> float:
    """Return how far everything that two lives publish differs, over what is claimed."""
    squares = 0.0
    for name, series in one.series.items():
        for mine, yours in zip(series.noisy, other.series[name].noisy, strict=True):
            squares += float(((mine - yours).astype(np.float64) ** 2).sum())
    return math.sqrt(squares) / one.terms.sensitivity


def neighbour(steps: list[Step], unit: str) -> list[Step]:
    """Return the same life without the victim, or without all that the victim ever says about item 0."""
    every = unit == "user"
    kept = []
    for step in steps:
        cells = [cell for cell in step.cells if cell[0] != VICTIM or not (every or cell[1] == 0)]
        gone = [cell for cell in step.withdrawn if cell[0] != VICTIM or not (every or cell[1] == 0)]
        kept.append(Step(cells, gone, step.forgotten, step.more_items, step.biases, step.listed, step.counts))
    return kept


def random_life(rng: np.random.Generator, updates: int) -> list[Step]:
    """Return a life in which the victim rates item 0 in some batch, perhaps again, and other items before and after."""
    style, order = rng.integers(4), rng.permutation(N_ITEMS)
    level, n_items = float(rng.choice([1, 5, 4])), N_ITEMS
    steps = [Step() for _ in range(updates)]
    for at in rng.choice(updates, size=int(rng.choice([1, 1, 2, 3])), replace=True):
        steps[at].cells.append((VICTIM, 0, float(rng.choice([1, 5, level]))))
    others = rng.permutation(np.arange(1, N_ITEMS))[: int(rng.choice([0, 1, 3, 8, 23]))]
    for number, item in enumerate(others.tolist()):
        at = {0: number % updates, 1: int(rng.integers(updates)), 2: updates - 1, 3: 0}[int(style)]
        steps[at].cells.append((VICTIM, item, level if rng.random() < 0.8 else float(rng.integers(1, 6))))
    listed = order[: int(rng.choice([2, 8, N_ITEMS]))]
    for at, step in enumerate(steps):
        for user in OTHERS:
            step.cells += [(user, int(item), float(rng.integers(1, 6))) for item in rng.integers(0, N_ITEMS, 3)]
        if rng.random() < 0.2:
            step.withdrawn.append((VICTIM, int(rng.choice([0, *others[:2]]))))
        step.forgotten = [int(rng.choice([VICTIM, *OTHERS]))] if rng.random() < 0.05 else []
        step.more_items = 1 if rng.random() < 0.1 and n_items < 2 * N_ITEMS else 0
        n_items += step.more_items
        kind = rng.integers(3)
        step.biases = np.zeros(1) if kind == 0 else rng.normal(0, 1, N_ITEMS) if kind == 1 else np.full(1, level - 3.5)
        listed = listed if rng.random() < 0.7 else np.concatenate([listed, order[len(listed) : len(listed) + 4]])
        if 0 not in listed and at == 0:
            listed = np.concatenate([listed, [0]])
            order = np.concatenate([listed, np.setdiff1d(order, listed)])
        step.listed, step.counts = listed, 10.0 ** rng.uniform(-3, 3, N_ITEMS)
    withdraw_known(steps)
    return steps


def withdraw_known(steps: list[Step]) -> None:
    """Only what is there can be withdrawn, in both lives alike."""
    there: set[tuple[int, int]] = set()
    for step in steps:
        there |= {(user, item) for user, item, _ in step.cells}
        step.withdrawn = [cell for cell in step.withdrawn if cell in there]
        there -= set(step.withdrawn) | {cell for cell in there if cell[0] in step.forgotten}


def searched(name: str, n: int, seed: int = 0, updates: int = 6) -> float:
    """Return the largest distance of n lives from their neighbours, over what is claimed."""
    return max(distances(name, n, seed, updates), default=0.0)


def distances(name: str, n: int, seed: int, updates: int) -> Iterator[float]:
    rng = np.random.default_rng([seed, updates])
    make = models(updates)[name]
    for _ in range(n):
        steps = random_life(rng, updates)
        model, twin = make(), make()
        yield moved(live(model, steps), live(twin, neighbour(steps, model.unit)))


def audited(lives: int, seed: int, updates: int = 4, noise: float = 1.0) -> tuple[list[Any], float]:
    """Return the scores of lives without and with one event, and the mu that is claimed.

    What arrives in every later batch depends on what was released before. The score is the exact logarithm of the
    likelihood ratio of everything that a life publishes.
    """
    lasting = gf.Lasting(updates=updates)
    terms = Terms(lasting, 8, 0.8)
    size, scores = math.floor(terms.of_batch * SIGMA), []
    for there in (0, 1):
        drawn = SeededNoise(Streams([seed, there]))
        without: list[Any] = []
        extra = [np.full(lives, size * there * (t == 0)) for t in range(updates)]
        score, arriving = np.zeros(lives), np.full(lives, 3)
        for t in range(updates):
            without.append(size * arriving)
            with_it = [one + more for one, more in zip(without, extra, strict=False)]
            expected = mix_batches(lasting.coefficients, without, terms.finer)
            noisy = mix_batches(lasting.coefficients, with_it, terms.finer)
            noisy = noisy + np.rint(noise * drawn.draw(lives)).astype(np.int64)
            moved = lasting.coefficients[t] * size / 2.0**terms.finer
            score += (noisy - expected) * moved - moved**2 / 2
            arriving = np.where(noisy > expected, 5, 0)
        scores.append(score / SIGMA**2)
    return scores, terms.mu
